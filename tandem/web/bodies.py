"""Request bodies: JSON or a form, whatever the client calls it."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from flask import Request
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import UnsupportedMediaType

from tandem.core.errors import InvalidRequestError
from tandem.web.errors import explain

BodyT = TypeVar("BodyT", bound=BaseModel)


def read_body(request: Request) -> dict[str, Any]:
    """Return a request's fields. JSON without its header counts as JSON: `curl -d` sends it as a form.

    Raises:
        InvalidRequestError: The JSON is malformed or no object.
        UnsupportedMediaType: Neither JSON nor a form.
    """
    data = request.get_data(cache=True, parse_form_data=False)
    if request.is_json or data.lstrip()[:1] in (b"{", b"["):
        return _parse_json(data)
    if request.mimetype in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return {name: values if len(values) > 1 else values[0] for name, values in request.form.lists()}
    if not data.strip():
        raise InvalidRequestError('The request body is empty; send JSON such as {"text": "你好"}.')
    raise UnsupportedMediaType


def parse_body(schema: type[BodyT], fields: dict[str, Any]) -> BodyT:
    """Check fields against a schema.

    Raises:
        InvalidRequestError: Naming the fields that are missing or wrong.
    """
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        raise explain(error) from None


def _parse_json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidRequestError(f"The body is not valid JSON{where}.") from None
    if not isinstance(value, dict):
        raise InvalidRequestError('The body must be a JSON object, such as {"text": "你好"}.')
    return value
