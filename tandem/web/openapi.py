"""The OpenAPI document, made from the routes and the schemas they use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from flask import Flask
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from werkzeug.routing import Rule

import tandem
from tandem.web.faces import LIBRETRANSLATE, NATIVE, Face
from tandem.web.operations import ANY, HTML, JSON, TEXT, Operation, operation_of

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_PAGE, _FILE = Operation(gives=(HTML,), is_open=True), Operation(gives=(ANY,), errors=(404,), is_open=True)
_STATE = Operation(answer=dict[str, Any], is_open=True)
# Routes that are described here and not beside their functions, and what they give.
_PLAIN = {
    "pages.get_page": _PAGE,
    "pages.get_asset": _FILE,
    "pages.get_page_data": _STATE,
    "pages.get_status": _STATE,
    "ops.get_health": _STATE,
    "ops.get_ready": replace(_STATE, errors=(503,)),
    "ops.get_metrics": Operation(gives=(TEXT,), is_open=True),
}
_CODES = {  # our statuses, and the codes of problems that have them
    400: ("invalid_request",),
    401: ("missing_key",),
    403: ("wrong_key", "quota_spent"),
    404: ("not_found",),
    409: ("conflict",),
    410: ("gone",),
    413: ("too_large",),
    415: ("unsupported_type",),
    422: ("unprocessable",),
    429: ("overloaded", "rate_limited"),
    500: ("internal",),
    503: ("not_ready",),
    504: ("deadline",),
}
_WITH_KEY = (401, 403, 429, 503)
_WITH_BODY = (400, 413, 415)
_WITH_MODEL = (429, 500, 503, 504)
_REASONS = {456: "Quota exceeded"}
_CONVERTER = re.compile(r"<(?:\w+(?:\([^)]*\))?:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    """One method of one path.

    Attributes:
        rule: Where.
        method: In capitals.
        view: The function.
        operation: What the documentation says.
    """

    rule: Rule
    method: str
    view: Callable[..., Any]
    operation: Operation

    @property
    def path(self) -> str:
        """The path as OpenAPI writes it."""
        return _CONVERTER.sub(r"{\1}", self.rule.rule)

    @property
    def face(self) -> Face:
        """Whose clients it is for."""
        return self.operation.face

    @property
    def description(self) -> str:
        """The function's docstring."""
        return (self.view.__doc__ or "").strip()


def find_routes(app: Flask) -> list[Route]:
    """Return every route of an application, by path.

    Raises:
        LookupError: A route says nothing about itself; `documented` or this module's table makes it.
    """
    return sorted(_walk(app), key=lambda route: (route.path, route.method))


def build_document(app: Flask) -> dict[str, Any]:
    """Return the OpenAPI document of an application.

    Raises:
        LookupError: See `find_routes`.
    """
    routes = find_routes(app)
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tandem",
            "version": tandem.__version__,
            "description": "Chinese translation and embeddings, also in the interfaces of other products.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.definitions,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Only where keys are required; DeepL-Auth-Key and api_key work too.",
                }
            },
        },
    }


class _Schemas:
    """JSON schemas of all bodies and answers, with those they have in common under `components`."""

    def __init__(self, routes: Sequence[Route]) -> None:
        wanted: dict[tuple[str, JsonSchemaMode], TypeAdapter[Any]] = {}
        for route in routes:
            for part in (route.operation.body, route.operation.answer, route.face.error):
                if part is not None:
                    mode: JsonSchemaMode = "validation" if part is route.operation.body else "serialization"
                    wanted[(repr(part), mode)] = TypeAdapter(part)
        found, shared = TypeAdapter.json_schemas(
            [(key, mode, adapter) for (key, mode), adapter in wanted.items()],
            ref_template="#/components/schemas/{model}",
        )
        self._found = found
        self.definitions: dict[str, Any] = shared.get("$defs", {})

    def of(self, part: Any, mode: JsonSchemaMode) -> dict[str, Any]:
        """Return the schema of a body ("validation") or an answer ("serialization")."""
        return self._found[(repr(part), mode)]


def _walk(app: Flask) -> Iterator[Route]:
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        operation = operation_of(view) or _PLAIN.get(rule.endpoint)
        if operation is None:
            raise LookupError(f"{rule.rule} ({rule.endpoint}) says nothing of itself; see tandem.web.operations")
        for method in _METHODS:
            if method in (rule.methods or ()):
                yield Route(rule, method, view, operation)


def _describe(route: Route, schemas: _Schemas) -> dict[str, Any]:
    operation = route.operation
    described: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{route.rule.endpoint}{route.path}").rstrip("_"),
        "tags": [route.face.name],
        "summary": route.description.split("\n")[0],
        "parameters": _parameters(route),
        "responses": _responses(route, schemas),
    }
    if operation.body is not None:
        schema = schemas.of(operation.body, "validation")
        content = {media: {"schema": schema} for media in operation.takes}
        described["requestBody"] = {"required": True, "content": content}
    if not operation.is_open:
        described["security"] = [{}, {"key": []}]
    return described


def _parameters(route: Route) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in sorted(route.rule.arguments)
    ]
    return in_path + [{"name": name, "in": "query", "schema": schema} for name, schema in route.operation.query]


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    operation = route.operation
    answer = {} if operation.answer is None else {"schema": schemas.of(operation.answer, "serialization")}
    content = {media: answer if media == JSON else {} for media in operation.gives}
    responses: dict[str, Any] = {"200": {"description": "What was asked for.", "content": content}}
    is_ready = route.rule.endpoint == "ops.get_ready"  # it has the same body whatever its status
    error = schemas.of(operation.answer if is_ready else route.face.error, "serialization")
    for status in sorted(_errors(route)):
        reason = _REASONS.get(status) or HTTPStatus(status).phrase
        responses[str(status)] = {"description": reason, "content": {JSON: {"schema": error}}}
    return responses


def _errors(route: Route) -> set[int]:
    """Return the statuses of errors as the route's clients see them."""
    operation = route.operation
    ours = set(operation.errors)
    if not operation.is_open:
        ours |= set(_WITH_KEY)
    if operation.body is not None:
        ours |= {*_WITH_BODY, *_WITH_MODEL}
    faces = (NATIVE, LIBRETRANSLATE) if route.rule.rule == "/translate" else (route.face,)
    return {face.status(code, status) for face in faces for status in ours for code in _CODES[status]}
