"""What the native routes take and give, as types: untrusted JSON in, plain JSON out."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from tandem.core.errors import InvalidRequestError, TooLargeError
from tandem.services.prediction import Embedding
from tandem.services.requests import TranslatedSegment, TranslateRequest, TranslateResult


def empty_is(default: object) -> BeforeValidator:
    """Return what puts a default in the place of null and of "", which a form sends for null."""
    return BeforeValidator(lambda given: default if given in (None, "") else given)


def _single_is_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Language = Annotated[str, Field(max_length=40)]
Texts = Annotated[list[StrictStr], BeforeValidator(_single_is_list)]
OptionalLanguage = Annotated[Language, empty_is("")]


class Body(BaseModel):
    """What all bodies have in common: fields that are not known are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class TranslateBody(Body):
    """Body of POST /translate."""

    text: StrictStr | list[StrictStr]
    source: OptionalLanguage = "auto"
    target: OptionalLanguage = ""
    format: Literal["text", "html", "xml"] = "text"
    alternatives: int = Field(0, ge=0, le=16)
    target_prefix: StrictStr = ""
    glossary: dict[StrictStr, StrictStr] = Field(default_factory=dict, max_length=1000)
    segments: bool = False
    stream: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, a single one too."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def to_request(self) -> TranslateRequest:
        """Return what the service takes."""
        return TranslateRequest(
            self.texts,
            self.source or "auto",
            self.target,
            self.format,
            self.alternatives,
            self.target_prefix,
            dict(self.glossary),
        )


class PredictBody(Body):
    """Body of POST /predict."""

    task_type: StrictStr
    input_text: StrictStr | list[StrictStr]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, a single one too."""
        return (self.input_text,) if isinstance(self.input_text, str) else tuple(self.input_text)


class AlternativeAnswer(BaseModel):
    """Another translation of a segment."""

    target: str
    score: float


class SegmentAnswer(BaseModel):
    """A segment of a translation; offsets count UTF-16 units."""

    index: int
    item: int
    source: str
    target: str
    source_start: int
    source_end: int
    score: float
    target_start: int | None = None
    target_end: int | None = None
    alternatives: list[AlternativeAnswer] | None = None
    warning: str | None = None


class TimingAnswer(BaseModel):
    """Where the time went, in milliseconds."""

    queue: float
    compute: float
    total: float


class CacheAnswer(BaseModel):
    """Where the results came from."""

    hits: int
    misses: int


class TranslateAnswer(BaseModel):
    """Answer of POST /translate."""

    translation: str | list[str]
    source: str | list[str]
    target: str
    timing_ms: TimingAnswer
    cache: CacheAnswer
    alternatives: list[list[AlternativeAnswer]] | None = None
    segments: list[SegmentAnswer] | None = None
    truncated: bool | None = None
    warnings: list[str] | None = None


class EmbeddingAnswer(BaseModel):
    """A vector."""

    embedding: list[float]


class PredictAnswer(BaseModel):
    """Answer of POST /predict."""

    result: EmbeddingAnswer | list[EmbeddingAnswer]
    truncated: bool | list[bool] | None = None


def check_sizes(texts: Sequence[Sized], max_chars: int, max_items: int) -> None:
    """Refuse what is too much for one request.

    Raises:
        InvalidRequestError: There is no text at all.
        TooLargeError: Too many texts, or one that is too long; the message names the limit.
    """
    if not texts:
        raise InvalidRequestError("The list of texts is empty; send at least one.")
    if len(texts) > max_items:
        raise TooLargeError(f"{len(texts)} texts are more than the {max_items} of one request (MAX_ITEMS).")
    longest = max(map(len, texts))
    if longest > max_chars:
        raise TooLargeError(f"A text of {longest} characters is over the limit of {max_chars} (MAX_TEXT_CHARS).")


def render_translation(body: TranslateBody, result: TranslateResult, total_ms: float) -> dict[str, Any]:
    """Return the JSON of a finished translation."""
    is_list = isinstance(body.text, list)
    sources = list(dict.fromkeys(detection.language for detection in result.detections))
    rendered: dict[str, Any] = {
        "translation": list(result.translations) if is_list else result.translations[0],
        "source": sources[0] if len(sources) == 1 else [detection.language for detection in result.detections],
        "target": result.target,
        "timing_ms": {
            "queue": round(result.times.queue_ms, 2),
            "compute": round(result.times.compute_ms, 2),
            "total": round(total_ms, 2),
        },
        "cache": {"hits": result.times.hits, "misses": result.times.misses},
    }
    if body.alternatives:
        rendered["alternatives"] = [_render_alternatives(segment) for segment in result.segments]
    if body.segments or body.stream:
        rendered["segments"] = list(map(render_segment, result.segments))
    warnings = sorted({warning for segment in result.segments for warning in segment.warnings})
    if "truncated" in warnings:
        rendered["truncated"] = True
    if warnings:
        rendered["warnings"] = warnings
    return rendered


def render_segment(segment: TranslatedSegment) -> dict[str, Any]:
    """Return the JSON of one segment."""
    rendered: dict[str, Any] = {
        "index": segment.index,
        "item": segment.item,
        "source": segment.source,
        "target": segment.target,
        "source_start": segment.source_span[0],
        "source_end": segment.source_span[1],
        "target_start": segment.target_span[0],
        "target_end": segment.target_span[1],
        "score": round(segment.score, 4),
    }
    if segment.alternatives:
        rendered["alternatives"] = _render_alternatives(segment)
    if segment.warnings:
        rendered["warning"] = ", ".join(segment.warnings)
    return rendered


def _render_alternatives(segment: TranslatedSegment) -> list[dict[str, Any]]:
    return [{"target": text, "score": round(score, 4)} for text, score in segment.alternatives]


def render_embeddings(embeddings: Sequence[Embedding], *, is_list: bool) -> dict[str, Any]:
    """Return the JSON of vectors."""
    results = [{"embedding": embedding.vector.tolist()} for embedding in embeddings]
    rendered: dict[str, Any] = {"result": results if is_list else results[0]}
    cut = [embedding.truncated for embedding in embeddings]
    if any(cut):
        rendered["truncated"] = cut if is_list else True
    return rendered
