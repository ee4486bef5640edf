"""What browser extensions ask for: DeepLX, Immersive Translate and KISS translator."""

from __future__ import annotations

import secrets

from flask import Blueprint, Response, request
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from tandem.services.requests import TranslateRequest
from tandem.web.bodies import parse_body, read_body
from tandem.web.deepl import TagHandling
from tandem.web.faces import DEEPLX, EXTENSIONS
from tandem.web.locales import browser_code
from tandem.web.operations import Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import Body, OptionalLanguage
from tandem.web.work import render_answer, translate

_ID_DIGITS = 10**10


class DeepLXBody(Body):
    """Body of POST /deeplx/translate."""

    text: StrictStr
    source_lang: OptionalLanguage = "auto"
    target_lang: OptionalLanguage = ""
    tag_handling: TagHandling = ""


class DeepLXAnswer(BaseModel):
    """Answer of POST /deeplx/translate."""

    code: int = 200
    id: int
    data: str
    alternatives: list[str] = []
    source_lang: str
    target_lang: str
    method: str = "Free"


class ImmersiveBody(Body):
    """Body of POST /immersive."""

    text_list: list[StrictStr]
    source_lang: OptionalLanguage = "auto"
    target_lang: OptionalLanguage = ""


class ImmersiveTranslation(BaseModel):
    """One translation."""

    detected_source_lang: str
    text: str


class ImmersiveAnswer(BaseModel):
    """Answer of POST /immersive."""

    translations: list[ImmersiveTranslation]


class KissBody(Body):
    """Body of POST /kiss."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_by_name=True)

    text: StrictStr
    source: OptionalLanguage = Field("auto", alias="from")
    target: OptionalLanguage = Field("", alias="to")


class KissAnswer(BaseModel):
    """Answer of POST /kiss."""

    model_config = ConfigDict(validate_by_name=True)

    text: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")


def build_extensions(runtime: Runtime) -> Blueprint:
    """Return the blueprint of the extensions' routes."""
    extensions = Blueprint("extensions", __name__)

    @extensions.post("/deeplx/translate")
    @documented(Operation(answer=DeepLXAnswer, body=DeepLXBody, face=DEEPLX, errors=(413, 422)))
    def post_deeplx() -> Response:
        """Translate a text as DeepLX does."""
        body = parse_body(DeepLXBody, read_body(request))
        wanted = TranslateRequest(
            (body.text,), body.source_lang or "auto", body.target_lang, body.tag_handling or "text"
        )
        result = translate(runtime, wanted, "deeplx")
        answer = DeepLXAnswer(
            id=secrets.randbelow(_ID_DIGITS),
            data=result.translations[0],
            source_lang=result.detections[0].language.upper(),
            target_lang=(body.target_lang or result.target).upper(),
        )
        return render_answer(answer, runtime.services.engine_name)

    @extensions.post("/immersive")
    @documented(Operation(answer=ImmersiveAnswer, body=ImmersiveBody, face=EXTENSIONS, errors=(413, 422)))
    def post_immersive() -> Response:
        """Translate texts as Immersive Translate's custom interface wants it."""
        body = parse_body(ImmersiveBody, read_body(request))
        wanted = TranslateRequest(tuple(body.text_list), body.source_lang or "auto", body.target_lang)
        result = translate(runtime, wanted, "immersive")
        translations = [
            ImmersiveTranslation(detected_source_lang=browser_code(detection), text=text)
            for text, detection in zip(result.translations, result.detections, strict=True)
        ]
        return render_answer(ImmersiveAnswer(translations=translations), runtime.services.engine_name)

    @extensions.post("/kiss")
    @documented(Operation(answer=KissAnswer, body=KissBody, face=EXTENSIONS, errors=(413, 422)))
    def post_kiss() -> Response:
        """Translate a text as KISS translator's custom interface wants it."""
        body = parse_body(KissBody, read_body(request))
        result = translate(runtime, TranslateRequest((body.text,), body.source or "auto", body.target), "kiss")
        answer = KissAnswer(
            text=result.translations[0],
            source=browser_code(result.detections[0]),
            target=body.target or result.target,
        )
        return render_answer(answer, runtime.services.engine_name)

    return extensions
