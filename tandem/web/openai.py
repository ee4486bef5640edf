"""OpenAI's interface for embeddings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal, LiteralString

from flask import Blueprint, Response, request
from pydantic import (
    BaseModel,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError
from werkzeug.exceptions import NotFound

from tandem.services.prediction import Content, Embedding, PredictionService
from tandem.web.bodies import parse_body, read_body
from tandem.web.errors import FieldError
from tandem.web.faces import OPENAI
from tandem.web.operations import Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import Body, empty_is
from tandem.web.vectors import encode_base64, shorten
from tandem.web.work import embed, json_response, mark_truncated, render_answer

_OWNER = "tandem"
_INPUT_KINDS: LiteralString = "must be a string, a list of strings, a list of token ids or a list of such lists"


def _explain_input(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Say in one sentence what input may be, not once for every kind of it.

    Raises:
        PydanticCustomError: It is none of them.
    """
    try:
        return handler(value)
    except ValidationError:
        raise PydanticCustomError("input", _INPUT_KINDS) from None


Input = Annotated[StrictStr | list[StrictStr] | list[StrictInt] | list[list[StrictInt]], WrapValidator(_explain_input)]
EncodingFormat = Annotated[Literal["float", "base64"], empty_is("float")]


class EmbeddingsBody(Body):
    """Body of POST /v1/embeddings; any model name is accepted and answered with the real one."""

    input: Input
    model: StrictStr | None = None
    encoding_format: EncodingFormat = "float"
    dimensions: Annotated[StrictInt, Field(ge=1)] | None = None
    user: StrictStr | None = None

    @property
    def contents(self) -> list[Content]:
        """The texts and token ids, a single one too."""
        given: Any = self.input
        if isinstance(given, str):
            return [given]
        if given and isinstance(given[0], int):
            return [tuple(given)]
        return [content if isinstance(content, str) else tuple(content) for content in given]


class OpenAIEmbedding(BaseModel):
    """A vector: numbers, or base64 of little-endian float32; `truncated` where the text was cut at the limit."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str
    truncated: bool | None = None


class OpenAIUsage(BaseModel):
    """Tokens of the request."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """Answer of POST /v1/embeddings."""

    object: Literal["list"] = "list"
    model: str
    data: list[OpenAIEmbedding]
    usage: OpenAIUsage


class OpenAIModel(BaseModel):
    """A model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = _OWNER


class ModelsAnswer(BaseModel):
    """Answer of GET /v1/models."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]


def build_openai(runtime: Runtime) -> Blueprint:
    """Return the blueprint of OpenAI's routes."""
    openai = Blueprint("openai", __name__, url_prefix="/v1")
    started = int(time.time())

    @openai.post("/embeddings")
    @documented(Operation(answer=EmbeddingsAnswer, body=EmbeddingsBody, face=OPENAI, errors=(413,)))
    def post_embeddings() -> Response:
        """Embed texts, or their token ids."""
        body = parse_body(EmbeddingsBody, read_body(request))
        contents = body.contents
        services = runtime.services
        _check(contents, services.prediction)
        embeddings = embed(runtime, contents, "openai")
        _check_dimensions(body.dimensions, embeddings)
        response = json_response(lambda: _render(body, embeddings, services.embedding_model), len(embeddings))
        return mark_truncated(response, embeddings)

    @openai.get("/models")
    @documented(Operation(answer=ModelsAnswer, face=OPENAI, errors=(503,)))
    def get_models() -> Response:
        """List the embedding model."""
        return render_answer(ModelsAnswer(data=[OpenAIModel(id=runtime.services.embedding_model, created=started)]))

    @openai.get("/models/<path:model>")
    @documented(Operation(answer=OpenAIModel, face=OPENAI, errors=(404, 503)))
    def get_model(model: str) -> Response:
        """Describe the embedding model."""
        if model != runtime.services.embedding_model:
            raise NotFound
        return render_answer(OpenAIModel(id=model, created=started))

    return openai


def _check(contents: Sequence[Content], prediction: PredictionService) -> None:
    """Refuse contents that are empty, and token ids of another tokenizer.

    Raises:
        FieldError: Naming the index.
        InvalidRequestError: The token ids are not the model's own.
    """
    if not contents:
        raise FieldError("input is empty; send at least one text.", "input")
    for index, content in enumerate(contents):
        if not content:
            raise FieldError(f"input[{index}] is empty.", "input")
        if isinstance(content, tuple):
            prediction.check_ids(content)


def _check_dimensions(dimensions: int | None, embeddings: Sequence[Embedding]) -> None:
    longest = len(embeddings[0].vector)
    if dimensions is not None and dimensions > longest:
        raise FieldError(f"dimensions must be at most {longest}, the model's own.", "dimensions")


def _render(body: EmbeddingsBody, embeddings: Sequence[Embedding], model: str) -> dict[str, Any]:
    tokens = sum(embedding.tokens for embedding in embeddings)
    return {
        "object": "list",
        "model": model,
        "data": [_render_embedding(body, index, embedding) for index, embedding in enumerate(embeddings)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _render_embedding(body: EmbeddingsBody, index: int, embedding: Embedding) -> dict[str, Any]:
    vector = embedding.vector if body.dimensions is None else shorten(embedding.vector, body.dimensions)
    rendered: dict[str, Any] = {
        "object": "embedding",
        "index": index,
        "embedding": encode_base64(vector) if body.encoding_format == "base64" else vector.tolist(),
    }
    if embedding.truncated:
        rendered["truncated"] = True
    return rendered
