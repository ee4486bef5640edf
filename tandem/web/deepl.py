"""DeepL's interface, version 2: texts, usage, languages."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response, jsonify, request
from pydantic import BaseModel, StrictStr

from tandem.services.requests import TranslateRequest, TranslateResult
from tandem.web.bodies import parse_body, read_body
from tandem.web.errors import FieldError
from tandem.web.faces import DEEPL
from tandem.web.locales import deepl_sources, deepl_targets
from tandem.web.operations import FORM, JSON, Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import Body, Language, OptionalLanguage, Texts, empty_is
from tandem.web.work import permit, render_answer, translate

_NO_LIMIT = 1_000_000_000_000  # what DeepL itself reports for an account without a limit

TagHandling = Annotated[Literal["", "html", "xml"], empty_is("")]


class DeepLTranslateBody(Body):
    """Body of POST /v2/translate; formality, context and the like are accepted and change nothing."""

    text: Texts
    target_lang: Language
    source_lang: OptionalLanguage = ""
    tag_handling: TagHandling = ""
    show_billed_characters: bool = True
    glossary_id: StrictStr | None = None


class DeepLLanguagesQuery(Body):
    """Parameters of GET /v2/languages, in its query or its body."""

    type: Literal["source", "target"] = "source"


class DeepLTranslation(BaseModel):
    """One translation."""

    detected_source_language: str
    text: str
    billed_characters: int | None = None


class DeepLTranslateAnswer(BaseModel):
    """Answer of POST /v2/translate."""

    translations: list[DeepLTranslation]


class DeepLUsage(BaseModel):
    """Answer of GET /v2/usage: this month's characters of the key; none are counted while keys are off."""

    character_count: int
    character_limit: int


class DeepLLanguage(BaseModel):
    """A language."""

    language: str
    name: str
    supports_formality: bool = False


def build_deepl(runtime: Runtime) -> Blueprint:
    """Return the blueprint of DeepL's routes."""
    deepl = Blueprint("deepl", __name__, url_prefix="/v2")

    @deepl.post("/translate")
    @documented(
        Operation(
            answer=DeepLTranslateAnswer, body=DeepLTranslateBody, face=DEEPL, takes=(JSON, FORM), errors=(413, 422)
        )
    )
    def post_translate() -> Response:
        """Translate texts."""
        body = parse_body(DeepLTranslateBody, read_body(request))
        if body.glossary_id:
            raise FieldError("glossary_id: no glossaries are kept here; leave it out.", "glossary_id")
        wanted = TranslateRequest(
            tuple(body.text), body.source_lang or "auto", body.target_lang, body.tag_handling or "text"
        )
        result = translate(runtime, wanted, "deepl")
        return render_answer(_render(body, result), runtime.services.engine_name)

    @deepl.get("/usage")
    @documented(Operation(answer=DeepLUsage, face=DEEPL))
    def get_usage() -> Response:
        """Say how many characters the key has used this month, and how many it may use."""
        usage = permit().usage()
        limit = _NO_LIMIT if usage.limit is None else usage.limit
        return render_answer(DeepLUsage(character_count=usage.characters, character_limit=limit))

    @deepl.get("/languages")
    @documented(
        Operation(
            answer=list[DeepLLanguage],
            face=DEEPL,
            query=(("type", {"type": "string", "enum": ["source", "target"], "default": "source"}),),
            errors=(400, 415, 503),
        )
    )
    def get_languages() -> Response:
        """List the languages that can be translated from, or into; DeepL's own client puts `type` in the body."""
        fields = read_body(request) if request.get_data(cache=True, parse_form_data=False) else {}
        query = parse_body(DeepLLanguagesQuery, fields | request.args.to_dict())
        directions = runtime.services.translation.directions
        pairs = deepl_targets(directions) if query.type == "target" else deepl_sources(directions)
        return jsonify([DeepLLanguage(language=code, name=name).model_dump() for code, name in pairs])

    return deepl


def _render(body: DeepLTranslateBody, result: TranslateResult) -> DeepLTranslateAnswer:
    return DeepLTranslateAnswer(
        translations=[
            DeepLTranslation(
                detected_source_language=detection.language.upper(),
                text=translation,
                billed_characters=len(text) if body.show_billed_characters else None,
            )
            for text, translation, detection in zip(body.text, result.translations, result.detections, strict=True)
        ]
    )
