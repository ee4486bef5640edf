"""The interface of Text Embeddings Inference."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, jsonify, request
from pydantic import BaseModel, StrictStr

import tandem
from tandem.services.ports import Token
from tandem.services.prediction import Embedding
from tandem.web.bodies import parse_body, read_body
from tandem.web.faces import TEI
from tandem.web.operations import Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import Body, Texts, check_sizes, empty_is
from tandem.web.vectors import normalise, similarity
from tandem.web.work import accepted, embed, json_response, mark_truncated

OptionalTrue = Annotated[bool, empty_is(True)]


class EmbedBody(Body):
    """Body of POST /embed. `truncate: false` refuses texts over the model's limit; the model normalises by itself."""

    inputs: Texts
    truncate: OptionalTrue = True
    normalize: OptionalTrue = True


class SimilarityInputs(Body):
    """A sentence, and those it is compared with."""

    source_sentence: StrictStr
    sentences: list[StrictStr]


class SimilarityBody(Body):
    """Body of POST /similarity."""

    inputs: SimilarityInputs


class TokenizeBody(Body):
    """Body of POST /tokenize."""

    inputs: Texts
    add_special_tokens: OptionalTrue = True


class TokenAnswer(BaseModel):
    """A token; offsets count characters."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class PoolingInfo(BaseModel):
    """How a text's vector is made of its tokens'."""

    pooling: str


class ModelTypeInfo(BaseModel):
    """What kind of model it is."""

    embedding: PoolingInfo


class InfoAnswer(BaseModel):
    """Answer of GET /info."""

    model_id: str
    model_sha: str | None = None
    model_dtype: str
    model_type: ModelTypeInfo
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int
    max_client_batch_size: int
    auto_truncate: bool = True
    tokenization_workers: int = 1
    version: str


def build_tei(runtime: Runtime) -> Blueprint:
    """Return the blueprint of the routes of Text Embeddings Inference."""
    tei = Blueprint("tei", __name__)

    @tei.post("/")
    @tei.post("/embed")
    @documented(Operation(answer=list[list[float]], body=EmbedBody, face=TEI, errors=(413,)))
    def post_embed() -> Response:
        """Embed texts."""
        body = parse_body(EmbedBody, read_body(request))
        if not body.truncate:
            check_sizes(body.inputs, runtime.settings.max_text_chars, runtime.settings.max_items)
            runtime.services.prediction.check_lengths(body.inputs)
        embeddings = embed(runtime, body.inputs, "tei")
        response = json_response(lambda: _render(body, embeddings), len(embeddings))
        return mark_truncated(response, embeddings)

    @tei.post("/similarity")
    @documented(Operation(answer=list[float], body=SimilarityBody, face=TEI, errors=(413,)))
    def post_similarity() -> Response:
        """Compare a sentence with others."""
        inputs = parse_body(SimilarityBody, read_body(request)).inputs
        check_sizes(inputs.sentences, runtime.settings.max_text_chars, runtime.settings.max_items - 1)
        source, *others = embed(runtime, [inputs.source_sentence, *inputs.sentences], "tei")
        return jsonify([similarity(source.vector, other.vector) for other in others])

    @tei.post("/tokenize")
    @documented(Operation(answer=list[list[TokenAnswer]], body=TokenizeBody, face=TEI, errors=(413,)))
    def post_tokenize() -> Response:
        """Show the tokens of texts."""
        body = parse_body(TokenizeBody, read_body(request))
        with accepted(runtime, body.inputs, "tei") as services:
            spelt = services.prediction.spell(body.inputs, marks=body.add_special_tokens)
        return json_response(lambda: [[_render_token(token) for token in tokens] for tokens in spelt], len(spelt))

    @tei.get("/info")
    @documented(Operation(answer=InfoAnswer, face=TEI, errors=(503,)))
    def get_info() -> Response:
        """Describe the embedding model and the limits."""
        return jsonify(_describe(runtime).model_dump())

    return tei


def _render(body: EmbedBody, embeddings: list[Embedding]) -> list[list[float]]:
    vectors = (embedding.vector for embedding in embeddings)
    return [(normalise(vector) if body.normalize else vector).tolist() for vector in vectors]


def _render_token(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "text": token.text,
        "special": token.is_mark,
        "start": token.start,
        "stop": token.stop,
    }


def _describe(runtime: Runtime) -> InfoAnswer:
    settings, services = runtime.settings, runtime.services
    model = services.models["embedding"]
    return InfoAnswer(
        model_id=services.embedding_model,
        model_dtype=model["precision"],
        model_type=ModelTypeInfo(embedding=PoolingInfo(pooling=model["pooling"])),
        max_concurrent_requests=settings.max_queue,
        max_input_length=services.prediction.max_tokens,
        max_batch_tokens=settings.max_batch_tokens,
        max_batch_requests=settings.max_batch_size,
        max_client_batch_size=settings.max_items,
        version=tandem.__version__,
    )
