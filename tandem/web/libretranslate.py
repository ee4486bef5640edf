"""LibreTranslate's interface. Its POST /translate shares its path with ours: a body with `q` selects it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, current_app, g, jsonify, request
from pydantic import BaseModel, Field, StrictStr

from tandem.services.requests import TranslateRequest, TranslateResult
from tandem.text.detection import Detection, detect_language
from tandem.web.bodies import parse_body, read_body
from tandem.web.faces import LIBRETRANSLATE
from tandem.web.locales import Direction, libretranslate_code, libretranslate_codes
from tandem.web.operations import FORM, JSON, Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import Body, OptionalLanguage, empty_is
from tandem.web.work import accepted, render_answer, translate

FILE_FORMATS = "tandem.file_formats"  # key of `app.extensions`: suffixes that POST /translate_file takes


class LibreTranslateBody(Body):
    """Body of LibreTranslate's POST /translate."""

    q: StrictStr | list[StrictStr]
    source: OptionalLanguage = "auto"
    target: OptionalLanguage = ""
    format: Annotated[Literal["text", "html"], empty_is("text")] = "text"
    alternatives: Annotated[int, Field(ge=0, le=16), empty_is(0)] = 0
    api_key: StrictStr | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, a single one too."""
        return (self.q,) if isinstance(self.q, str) else tuple(self.q)


class DetectBody(Body):
    """Body of POST /detect."""

    q: StrictStr
    api_key: StrictStr | None = None


class DetectedLanguage(BaseModel):
    """What a text seems to be written in; confidence from 0 to 100."""

    confidence: float
    language: str


class LibreTranslateAnswer(BaseModel):
    """Answer of LibreTranslate's POST /translate; lists where `q` is a list."""

    translatedText: str | list[str]  # noqa: N815 - the product's own spelling
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class LibreTranslateLanguage(BaseModel):
    """A language and what it can be translated into."""

    code: str
    name: str
    targets: list[str]


class FrontendLanguage(BaseModel):
    """A language of the settings."""

    code: str
    name: str


class FrontendLanguages(BaseModel):
    """What a client should choose at first."""

    source: FrontendLanguage
    target: FrontendLanguage


class FrontendSettings(BaseModel):
    """Answer of GET /frontend/settings."""

    charLimit: int  # noqa: N815
    frontendTimeout: int  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool
    filesTranslation: bool  # noqa: N815
    supportedFilesFormat: list[str]  # noqa: N815
    language: FrontendLanguages


def build_libretranslate(runtime: Runtime) -> Blueprint:
    """Return the blueprint of LibreTranslate's routes, but for /translate, which is with ours."""
    libretranslate = Blueprint("libretranslate", __name__)

    @libretranslate.get("/languages")
    @documented(Operation(answer=list[LibreTranslateLanguage], face=LIBRETRANSLATE, errors=(503,), is_open=True))
    def get_languages() -> Response:
        """List the languages there are, and what each can be translated into."""
        directions = runtime.services.translation.directions
        return jsonify([language.model_dump() for language in _list_languages(directions)])

    @libretranslate.post("/detect")
    @documented(
        Operation(
            answer=list[DetectedLanguage], body=DetectBody, face=LIBRETRANSLATE, takes=(JSON, FORM), errors=(413,)
        )
    )
    def post_detect() -> Response:
        """Say which language a text is in."""
        body = parse_body(DetectBody, read_body(request))
        with accepted(runtime, [body.q], "detect"):
            return jsonify([_render_detection(detect_language(body.q)).model_dump()])

    @libretranslate.get("/frontend/settings")
    @documented(Operation(answer=FrontendSettings, face=LIBRETRANSLATE, is_open=True))
    def get_settings() -> Response:
        """Give the limits, and whether a key is needed."""
        return render_answer(_frontend_settings(runtime))

    return libretranslate


def answer_libretranslate(runtime: Runtime, fields: dict[str, Any]) -> Response:
    """Answer LibreTranslate's POST /translate.

    Args:
        runtime: The process's.
        fields: Of the request's body.

    Raises:
        InvalidRequestError: The fields are wrong.
        TandemError: See `work.translate`.
    """
    g.face = LIBRETRANSLATE
    body = parse_body(LibreTranslateBody, fields)
    wanted = TranslateRequest(body.texts, body.source or "auto", body.target, body.format, body.alternatives)
    result = translate(runtime, wanted, "libretranslate")
    return render_answer(_render(body, result), runtime.services.engine_name)


def _render(body: LibreTranslateBody, result: TranslateResult) -> LibreTranslateAnswer:
    is_list = isinstance(body.q, list)
    answer = LibreTranslateAnswer(translatedText=list(result.translations) if is_list else result.translations[0])
    if (body.source or "auto").lower() == "auto":
        detected = [_render_detection(detection) for detection in result.detections]
        answer.detectedLanguage = detected if is_list else detected[0]
    if body.alternatives:
        others = [_other_texts(result, item, body.alternatives) for item in range(len(body.texts))]
        answer.alternatives = others if is_list else others[0]
    return answer


def _other_texts(result: TranslateResult, item: int, count: int) -> list[str]:
    """Return further translations of a whole text: the n-th is made of every segment's n-th, or best where it has none.

    Args:
        result: The translation.
        item: Which text.
        count: Most of them; there are fewer when no segment has more.
    """
    segments = [segment for segment in result.segments if segment.item == item]
    texts = []
    for rank in range(min(count, max((len(segment.alternatives) for segment in segments), default=0))):
        units = result.translations[item].encode("utf-16-le", "surrogatepass")  # spans count in UTF-16 units
        for segment in reversed(segments):
            if rank < len(segment.alternatives):
                other = segment.alternatives[rank][0].encode("utf-16-le", "surrogatepass")
                start, end = segment.target_span
                units = units[: 2 * start] + other + units[2 * end :]
        texts.append(units.decode("utf-16-le", "surrogatepass"))
    return texts


def _render_detection(detection: Detection) -> DetectedLanguage:
    return DetectedLanguage(confidence=round(detection.confidence * 100, 1), language=libretranslate_code(detection))


def _list_languages(directions: list[Direction]) -> list[LibreTranslateLanguage]:
    languages = dict.fromkeys(code for pair in directions for code in pair)
    return [
        LibreTranslateLanguage(
            code=code,
            name=name,
            targets=[
                target_code
                for source, target in directions
                if source == language
                for target_code, _ in libretranslate_codes(target)
            ],
        )
        for language in languages
        for code, name in libretranslate_codes(language)
    ]


def _frontend_settings(runtime: Runtime) -> FrontendSettings:
    settings, services = runtime.settings, runtime.loaded
    target = services.translation.directions[0][1] if services else "en"
    code, name = libretranslate_codes(target)[0]
    formats = list(current_app.extensions.get(FILE_FORMATS, ()))
    return FrontendSettings(
        charLimit=settings.max_text_chars,
        frontendTimeout=500,
        apiKeys=settings.keys_required,
        keyRequired=settings.keys_required,
        suggestions=False,
        filesTranslation=bool(formats),
        supportedFilesFormat=formats,
        language=FrontendLanguages(
            source=FrontendLanguage(code="auto", name="Auto Detect"), target=FrontendLanguage(code=code, name=name)
        ),
    )
