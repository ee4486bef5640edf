"""What the native routes take and give, as types: untrusted JSON in, plain JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from tandem.core.errors import InvalidRequestError, TooLargeError
from tandem.services.prediction import Embedding
from tandem.services.requests import TranslatedSegment, TranslateRequest, TranslateResult


def _none_is_default(value: object) -> object:
    return "" if value is None else value


Language = Annotated[str, Field(max_length=40)]
OptionalLanguage = Annotated[Language, BeforeValidator(_none_is_default)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class TranslateBody(_Body):
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


class PredictBody(_Body):
    """Body of POST /predict."""

    task_type: StrictStr
    input_text: StrictStr | list[StrictStr]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, a single one too."""
        return (self.input_text,) if isinstance(self.input_text, str) else tuple(self.input_text)


def check_sizes(texts: Sequence[str], max_chars: int, max_items: int) -> None:
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
        rendered["segments"] = [
            render_segment(segment, body.texts[segment.item], result.translations[segment.item])
            for segment in result.segments
        ]
    warnings = sorted({warning for segment in result.segments for warning in segment.warnings})
    if "truncated" in warnings:
        rendered["truncated"] = True
    if warnings:
        rendered["warnings"] = warnings
    return rendered


def render_segment(segment: TranslatedSegment, source_text: str, target_text: str | None = None) -> dict[str, Any]:
    """Return the JSON of one segment; offsets count UTF-16 units, as a browser does.

    Args:
        segment: The segment.
        source_text: The text it is of.
        target_text: That text's translation; None in a stream, where it is not known yet.
    """
    rendered: dict[str, Any] = {
        "index": segment.index,
        "item": segment.item,
        "source": segment.source,
        "target": segment.target,
        "source_start": utf16_length(source_text[: segment.source_start]),
        "source_end": utf16_length(source_text[: segment.source_end]),
        "score": round(segment.score, 4),
    }
    if target_text is not None and segment.target_start is not None and segment.target_end is not None:
        rendered["target_start"] = utf16_length(target_text[: segment.target_start])
        rendered["target_end"] = utf16_length(target_text[: segment.target_end])
    if segment.alternatives:
        rendered["alternatives"] = _render_alternatives(segment)
    if segment.warnings:
        rendered["warning"] = ", ".join(segment.warnings)
    return rendered


def _render_alternatives(segment: TranslatedSegment) -> list[dict[str, Any]]:
    return [{"target": text, "score": round(score, 4)} for text, score in segment.alternatives]


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def render_embeddings(embeddings: Sequence[Embedding], *, is_list: bool) -> dict[str, Any]:
    """Return the JSON of vectors."""
    results = [{"embedding": embedding.vector.tolist()} for embedding in embeddings]
    rendered: dict[str, Any] = {"result": results if is_list else results[0]}
    cut = [embedding.truncated for embedding in embeddings]
    if any(cut):
        rendered["truncated"] = cut if is_list else True
    return rendered
