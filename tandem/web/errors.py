"""Every error becomes a problem, and a problem a response, in the shape that the route's clients expect."""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

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


RenderedError = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, before it is put into a client's shape.

    Attributes:
        status: HTTP status.
        code: For programs.
        message: For people.
        headers: Further headers of the response.
        place: The field of the request that is wrong, where one is.
    """

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    place: str = ""


Shape = Callable[[Problem], RenderedError]


class FieldError(InvalidRequestError):
    """A field of the request is missing or wrong."""

    def __init__(self, message: str, place: str) -> None:
        """Note which field."""
        super().__init__(message)
        self.place = place


def register_error_handlers(app: Flask, shape: Shape) -> None:
    """Answer every error.

    Args:
        app: The application.
        shape: Gives status and JSON of a problem, for the current request's client.
    """

    def respond(problem: Problem) -> Response:
        status, fields = shape(problem)
        response = jsonify(fields)
        response.status_code = status
        response.headers.update(problem.headers)
        return response

    app.register_error_handler(TandemError, lambda error: respond(_describe(error)))
    app.register_error_handler(HTTPException, lambda error: respond(_describe_http(error)))
    app.register_error_handler(Exception, lambda error: respond(_describe_unexpected(error)))


def explain(error: ValidationError) -> FieldError:
    """Turn a failed validation into a sentence that names the fields."""
    found = error.errors(include_url=False, include_input=False)
    problems = []
    for problem in found:
        place = ".".join(str(part) for part in problem["loc"] if not str(part).startswith(("list[", "str", "function")))
        problems.append(f"{place or 'body'}: {problem['msg']}")
    first = found[0]["loc"]
    return FieldError("; ".join(dict.fromkeys(problems)), str(first[0]) if first else "")


def error_fields(error: TandemError) -> dict[str, str]:
    """Return an error as the fields of its JSON."""
    return {"error": str(error), "code": error.code, "request_id": g.get("request_id", "")}


def _describe(error: TandemError) -> Problem:
    headers = {} if error.retry_after_s is None else {"Retry-After": str(math.ceil(error.retry_after_s))}
    place = error.place if isinstance(error, FieldError) else ""
    return Problem(error.status, error.code, str(error), headers, place)


def _describe_http(error: HTTPException) -> Problem:
    status = error.code or 500
    message = _WORDS.get(status) or error.description or error.name
    headers = {}
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        headers["Allow"] = ", ".join(error.valid_methods)
    if isinstance(error, RequestEntityTooLarge):
        headers["Connection"] = "close"
    return Problem(status, _CODES.get(status, "http"), message, headers)


def _describe_unexpected(error: Exception) -> Problem:
    # The type and place are logged; the message may hold user text.
    stack = "".join(traceback.format_tb(error.__traceback__))
    request_id = g.get("request_id", "")
    log_fields(LOGGER, logging.ERROR, f"unexpected {type(error).__name__}", request_id=request_id, stack=stack)
    return Problem(500, "internal", "Something went wrong here. The log has more under this request id.")
