"""What the routes of all faces do alike: sizes checked, characters charged, services asked, results counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import Any

from flask import Response, current_app, g, jsonify, request
from pydantic import BaseModel

from tandem.core.threads import run_native
from tandem.services.keys import Permit, charged
from tandem.services.patience import Patience
from tandem.services.prediction import Content, Embedding
from tandem.services.requests import TranslateRequest, TranslateResult
from tandem.web.callers import watch_caller
from tandem.web.runtime import Runtime, Services
from tandem.web.schemas import check_sizes

_HEAVY_VECTORS = 16  # rendering more than this leaves the event loop


def permit() -> Permit:
    """Return what the current request may do."""
    found: Permit = g.permit
    return found


def patience(runtime: Runtime) -> Patience:
    """Return how long the current request waits."""
    return Patience(runtime.settings.request_timeout_s, watch_caller(request.environ))


@contextmanager
def accepted(runtime: Runtime, contents: Sequence[Sized], route: str) -> Iterator[Services]:
    """Accept texts, or token ids, for what is done with them inside.

    Args:
        runtime: The process's.
        contents: What the request brings.
        route: For the metrics.

    Raises:
        InvalidRequestError: There is nothing in the request.
        TooLargeError: There is too much in it.
        NotReadyError: The models are still loading.
        QuotaError: The key's characters do not suffice; they are given back when what is done inside fails.
    """
    settings = runtime.settings
    check_sizes(contents, settings.max_text_chars, settings.max_items)
    services = runtime.services
    characters = sum(map(len, contents))
    with charged(permit(), characters):
        runtime.metrics.characters.labels(route).inc(characters)
        yield services


def translate(runtime: Runtime, wanted: TranslateRequest, route: str) -> TranslateResult:
    """Translate for the current request.

    Raises:
        TandemError: See `accepted` and `TranslationService.stream`.
    """
    with accepted(runtime, wanted.texts, route) as services:
        result = services.translation.translate(wanted, patience(runtime))
    runtime.count_cache(result.times)
    return result


def embed(runtime: Runtime, contents: Sequence[Content], route: str) -> list[Embedding]:
    """Embed for the current request.

    Raises:
        TandemError: See `accepted` and `PredictionService.embed`.
    """
    with accepted(runtime, contents, route) as services:
        embeddings, times = services.prediction.embed(contents, patience(runtime))
    runtime.count_cache(times)
    return embeddings


def render_answer(answer: BaseModel, engine: str = "") -> Response:
    """Return the response with an answer; what is None is left out.

    Args:
        answer: The body.
        engine: For `X-Translation-Engine`; "" where nothing was translated.
    """
    response = jsonify(answer.model_dump(exclude_none=True, by_alias=True))
    if engine:
        response.headers["X-Translation-Engine"] = engine
    return response


def json_response(build: Callable[[], Any], vectors: int) -> Response:
    """Return the response with a JSON value that holds vectors; many are written off the event loop.

    Args:
        build: Makes the value.
        vectors: How many are in it.
    """

    def render() -> str:
        return json.dumps(build(), ensure_ascii=False, separators=(",", ":"))

    body = run_native(render) if vectors > _HEAVY_VECTORS else render()
    return current_app.response_class(body + "\n", mimetype="application/json")


def mark_truncated(response: Response, embeddings: Sequence[Embedding]) -> Response:
    """Name the texts that were cut at the model's limit in `X-Truncated`, where the body has no place for it."""
    cut = [str(index) for index, embedding in enumerate(embeddings) if embedding.truncated]
    if cut:
        response.headers["X-Truncated"] = ",".join(cut)
    return response
