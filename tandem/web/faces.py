"""The clients that other products brought up: what an error looks like to each, and with which status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flask import g, request
from pydantic import BaseModel

from tandem.web.errors import Problem, RenderedError

# -- error bodies ------------------------------------------------------------------------------------------------------


class NativeError(BaseModel):
    """An error as this service tells it; LibreTranslate's clients read its `error` too."""

    error: str
    code: str
    request_id: str


class DeepLError(BaseModel):
    """An error as DeepL's clients read it."""

    message: str


class DeepLXError(BaseModel):
    """An error as DeepLX's clients read it."""

    code: int
    message: str


class OpenAIErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error as OpenAI's clients read it."""

    error: OpenAIErrorDetail


class TextEmbeddingsError(BaseModel):
    """An error as the clients of Text Embeddings Inference read it."""

    error: str
    error_type: str


# -- faces -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Face:
    """How one product's clients are spoken to.

    Attributes:
        name: Heading in the documentation.
        error: Their error body.
        render: Makes it of a problem and its status.
        statuses: Where they expect another status than ours, by the problem's code or status.
    """

    name: str
    error: type[BaseModel]
    render: Callable[[Problem, int], BaseModel]
    statuses: Mapping[str | int, int] = field(default_factory=dict)

    def status(self, code: str, status: int) -> int:
        """Return the status these clients expect for a problem of this code and status."""
        return self.statuses.get(code) or self.statuses.get(status) or status

    def shape(self, problem: Problem) -> RenderedError:
        """Return status and body of a problem."""
        status = self.status(problem.code, problem.status)
        return status, self.render(problem, status).model_dump()


def _render_native(problem: Problem, _: int) -> NativeError:
    return NativeError(error=problem.message, code=problem.code, request_id=g.get("request_id", ""))


def _render_openai(problem: Problem, status: int) -> OpenAIError:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = "server_error" if status >= 500 else kinds.get(status, "invalid_request_error")
    codes = {"quota_spent": "insufficient_quota", "missing_key": "invalid_api_key", "wrong_key": "invalid_api_key"}
    code = codes.get(problem.code, problem.code)
    detail = OpenAIErrorDetail(message=problem.message, type=kind, param=problem.place or None, code=code)
    return OpenAIError(error=detail)


def _render_tei(problem: Problem, status: int) -> TextEmbeddingsError:
    kinds = {429: "Overloaded", 503: "Unhealthy"}
    kind = kinds.get(status, "Backend" if status >= 500 else "Validation")
    return TextEmbeddingsError(error=problem.message, error_type=kind)


NATIVE = Face("Tandem", NativeError, _render_native)
LIBRETRANSLATE = Face("LibreTranslate", NativeError, _render_native, {401: 403, 422: 400, "too_large": 400})
DEEPL = Face(
    "DeepL",
    DeepLError,
    lambda problem, _: DeepLError(message=problem.message),
    {401: 403, 422: 400, "quota_spent": 456},
)
DEEPLX = Face(
    "DeepLX", DeepLXError, lambda problem, status: DeepLXError(code=status, message=problem.message), {422: 400}
)
OPENAI = Face("OpenAI", OpenAIError, _render_openai, {"wrong_key": 401, "quota_spent": 429, 422: 400})
TEI = Face("Text Embeddings Inference", TextEmbeddingsError, _render_tei, {"quota_spent": 429})
EXTENSIONS = Face("Browser extensions", NativeError, _render_native)

_BY_FIRST_PART = {
    "detect": LIBRETRANSLATE,
    "languages": LIBRETRANSLATE,
    "frontend": LIBRETRANSLATE,
    "translate_file": LIBRETRANSLATE,
    "v2": DEEPL,
    "deeplx": DEEPLX,
    "immersive": EXTENSIONS,
    "kiss": EXTENSIONS,
    "v1": OPENAI,
    "embed": TEI,
    "similarity": TEI,
    "tokenize": TEI,
    "info": TEI,
}


def current_face() -> Face:
    """Return the face that the current request came to, be its path one that exists or not."""
    chosen: Face | None = g.get("face")
    if chosen is not None:
        return chosen
    if request.path == "/" and request.method == "POST":
        return TEI
    return _BY_FIRST_PART.get(request.path.split("/")[1], NATIVE)


def shape_error(problem: Problem) -> RenderedError:
    """Return status and body of a problem, as the current request's client expects them."""
    return current_face().shape(problem)
