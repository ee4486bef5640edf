"""One error shape for every route: `{"error", "code", "request_id"}`."""

from __future__ import annotations

import logging
import math
import traceback

from flask import Flask, Response, g, jsonify
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from tandem.core.errors import InvalidRequestError, TandemError
from tandem.core.logs import log_fields

LOGGER = logging.getLogger("tandem.web")

_WORDS = {
    404: "There is no such page. The endpoints are listed at /docs.",
    405: "This method is not allowed here.",
    413: "The request body is too large.",
    415: "Send JSON (Content-Type: application/json) or a form.",
}
_CODES = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_type",
}


def render_error(error: TandemError) -> Response:
    """Return the response for an error that carries its status."""
    response = _render(error.status, error.code, str(error))
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return response


def register_error_handlers(app: Flask) -> None:
    """Answer every error in our shape."""
    app.register_error_handler(TandemError, render_error)
    app.register_error_handler(HTTPException, _render_http)
    app.register_error_handler(Exception, _render_unexpected)


def explain(error: ValidationError) -> InvalidRequestError:
    """Turn a failed validation into a sentence that names the fields."""
    problems = []
    for problem in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in problem["loc"] if not str(part).startswith(("list[", "str", "function")))
        problems.append(f"{place or 'body'}: {problem['msg']}")
    return InvalidRequestError("; ".join(dict.fromkeys(problems)))


def error_fields(error: TandemError) -> dict[str, str]:
    """Return an error as the fields of its JSON."""
    return {"error": str(error), "code": error.code, "request_id": g.get("request_id", "")}


def _render(status: int, code: str, message: str) -> Response:
    response = jsonify({"error": message, "code": code, "request_id": g.get("request_id", "")})
    response.status_code = status
    return response


def _render_http(error: HTTPException) -> Response:
    status = error.code or 500
    message = _WORDS.get(status) or error.description or error.name
    response = _render(status, _CODES.get(status, "http"), message)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(error.valid_methods)
    if isinstance(error, RequestEntityTooLarge):
        response.headers["Connection"] = "close"
    return response


def _render_unexpected(error: Exception) -> Response:
    # The type and place are logged; the message may hold user text.
    stack = "".join(traceback.format_tb(error.__traceback__))
    request_id = g.get("request_id", "")
    log_fields(LOGGER, logging.ERROR, f"unexpected {type(error).__name__}", request_id=request_id, stack=stack)
    return _render(500, "internal", "Something went wrong here. The log has more under this request id.")
