"""The interface's documentation: for programs and for people."""

from __future__ import annotations

from functools import cache
from typing import Any

from flask import Blueprint, Response, current_app, jsonify, render_template

from tandem.core.settings import ROOT
from tandem.web.assets import Assets
from tandem.web.openapi import build_document
from tandem.web.operations import HTML, Operation, documented
from tandem.web.runtime import Runtime

_REF = "#/components/schemas/"


def build_docs(_: Runtime) -> Blueprint:
    """Return the blueprint of the documentation; the page needs no script and no other host."""
    docs = Blueprint("docs", __name__)
    version = Assets(ROOT / "static").version

    @cache
    def document() -> dict[str, Any]:
        return build_document(current_app)

    @docs.get("/openapi.json")
    @documented(Operation(answer=dict[str, Any], is_open=True))
    def get_openapi() -> Response:
        """Give the interface's description as OpenAPI 3.1."""
        return jsonify(document())

    @docs.get("/docs")
    @documented(Operation(gives=(HTML,), is_open=True))
    def get_docs() -> str:
        """Show the interface's documentation."""
        return render_template(
            "docs.html", document=document(), groups=group_operations(document()), kind=kind_of, version=version
        )

    return docs


def group_operations(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Return method, path and description of every operation, by the product it is for."""
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return groups


def kind_of(schema: dict[str, Any]) -> str:
    """Return a JSON schema in a few words, such as `string or list of strings`."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    if "anyOf" in schema:
        return " or ".join(kind_of(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
