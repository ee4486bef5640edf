"""The service's own routes: POST /translate and POST /predict."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from typing import Any

from flask import Blueprint, Response, jsonify, request, stream_with_context

from tandem.core.errors import InvalidRequestError, TandemError, UnprocessableError
from tandem.services.requests import TranslatedSegment, TranslateResult
from tandem.web.bodies import parse_body, read_body
from tandem.web.errors import error_fields
from tandem.web.libretranslate import LibreTranslateAnswer, LibreTranslateBody, answer_libretranslate
from tandem.web.operations import EVENTS, FORM, JSON, Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import (
    PredictAnswer,
    PredictBody,
    TranslateAnswer,
    TranslateBody,
    render_embeddings,
    render_segment,
    render_translation,
)
from tandem.web.work import accepted, embed, json_response, patience


def build_native(runtime: Runtime) -> Blueprint:
    """Return the blueprint of the native routes."""
    native = Blueprint("native", __name__)

    @native.post("/translate")
    @documented(
        Operation(
            answer=TranslateAnswer | LibreTranslateAnswer,
            body=TranslateBody | LibreTranslateBody,
            takes=(JSON, FORM),
            gives=(JSON, EVENTS),
            errors=(413, 422),
        )
    )
    def post_translate() -> Response:
        """Translate a text or a list of texts; a body with `q` is a LibreTranslate request."""
        start_s = time.monotonic()
        fields = read_body(request)
        if "q" in fields:
            return answer_libretranslate(runtime, fields)
        body = parse_body(TranslateBody, fields)
        with accepted(runtime, body.texts, "translate") as services:
            if body.stream:
                steps = services.translation.stream(body.to_request(), patience(runtime))
                response = _render_stream(runtime, body, steps, start_s)
            else:
                result = services.translation.translate(body.to_request(), patience(runtime))
                runtime.count_cache(result.times)
                response = jsonify(render_translation(body, result, (time.monotonic() - start_s) * 1000))
        response.headers["X-Translation-Engine"] = services.engine_name
        return response

    @native.post("/predict")
    @documented(Operation(answer=PredictAnswer, body=PredictBody, takes=(JSON, FORM), errors=(413, 422)))
    def post_predict() -> Response:
        """Embed a text or a list of texts."""
        fields = read_body(request)
        if "inputs" in fields and "task_type" not in fields:
            raise UnprocessableError("No classifier is installed; /embed and /predict with task_type embedding work.")
        missing = [name for name in ("task_type", "input_text") if not fields.get(name)]
        if missing:
            raise InvalidRequestError(f"task_type and input_text required; missing: {', '.join(missing)}.")
        body = parse_body(PredictBody, fields)
        runtime.services.prediction.check_task(body.task_type)
        embeddings = embed(runtime, body.texts, "predict")
        return json_response(
            lambda: render_embeddings(embeddings, is_list=isinstance(body.input_text, list)), len(embeddings)
        )

    return native


def _render_stream(
    runtime: Runtime, body: TranslateBody, steps: Generator[TranslatedSegment, None, TranslateResult], start_s: float
) -> Response:
    """Answer with server-sent events: a `segment` each, then `done` or `error`.

    What is wrong with the request itself shows before the first event, as an ordinary error response.
    """
    try:
        first: TranslatedSegment | None = next(steps)
        done: TranslateResult | None = None
    except StopIteration as stop:
        first, done = None, stop.value

    def events() -> Iterator[str]:
        nonlocal done
        try:
            segment = first
            while segment is not None and done is None:
                yield _event("segment", render_segment(segment))
                try:
                    segment = next(steps)
                except StopIteration as stop:
                    done = stop.value
            if done is not None:
                runtime.count_cache(done.times)
                yield _event("done", render_translation(body, done, (time.monotonic() - start_s) * 1000))
        except TandemError as error:
            yield _event("error", error_fields(error))
        finally:
            steps.close()

    response = Response(stream_with_context(events()), mimetype="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"  # a proxy must not hold the events back
    return response


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
