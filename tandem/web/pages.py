"""The page, its files, and what it needs to know when it starts and while it watches the service."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from typing import Any

from flask import Blueprint, Response, abort, jsonify, render_template, request

from tandem.core.settings import ROOT
from tandem.documents.formats import supported_extensions
from tandem.text.languages import language_info
from tandem.web.assets import Assets, render_compressed
from tandem.web.runtime import Runtime, Services

_DEMO = "demo"
_THEMES = ("light", "dark")
_BEST_COMPRESSION, _QUICK_COMPRESSION = 9, 5


def build_pages(runtime: Runtime) -> Blueprint:
    """Return the blueprint of the page."""
    pages = Blueprint("pages", __name__)
    settings = runtime.settings
    assets = Assets(ROOT / "static")
    is_demo = _DEMO in settings.translation_model.split(",")

    @lru_cache(maxsize=8)
    def render_page(language: str, theme: str) -> tuple[bytes, bytes]:
        strings = assets.strings(language)
        body = render_template(
            "index.html",
            t=strings.__getitem__,
            language=language,
            theme=theme,
            assets=f"/assets/{assets.version}",
            is_demo=is_demo,
            max_chars=settings.max_text_chars,
        ).encode()
        return body, gzip.compress(body, _BEST_COMPRESSION, mtime=0)

    @pages.get("/")
    def get_page() -> Response:
        """Show the translator, in the visitor's language and theme."""
        language = request.cookies.get("tandem_language") or request.accept_languages.best_match(["en", "zh"])
        theme = request.cookies.get("tandem_theme")
        body, packed = render_page("zh" if language == "zh" else "en", theme if theme in _THEMES else "")
        response = render_compressed(body, packed, "text/html")
        response.vary.update(["Accept-Language", "Cookie"])
        response.headers["Cache-Control"] = "no-cache"
        return response

    @pages.get("/assets/<version>/<path:name>")
    def get_asset(version: str, name: str) -> Response:
        """Give a file of the page; an old version's address is gone, so that nobody keeps new content under it."""
        response = assets.respond(name) if version == assets.version else None
        return response or abort(404)

    @pages.get("/page.json")
    def get_page_data() -> Response:
        """Give the directions that are loaded, whether they are demo models, and the limits."""
        return jsonify(_describe_page(runtime))

    @pages.get("/status.json")
    def get_status() -> Response:
        """Give /health, /ready and /metrics as one JSON, for the page's charts."""
        reason = runtime.why_not_ready()
        status = {"ready": reason is None, "reason": reason, "samples": _samples(runtime), **_describe(runtime.loaded)}
        body = json.dumps(status).encode()
        response = render_compressed(body, gzip.compress(body, _QUICK_COMPRESSION, mtime=0), "application/json")
        response.headers["Cache-Control"] = "no-store"
        return response

    return pages


def _describe_page(runtime: Runtime) -> dict[str, Any]:
    services, settings, reason = runtime.loaded, runtime.settings, runtime.why_not_ready()
    directions = services.translation.directions if services else []
    codes = dict.fromkeys(code for pair in directions for code in pair)
    return {
        "ready": reason is None,
        "reason": reason,
        "engine": services.engine_name if services else None,
        "is_demo": bool(services and services.engine_name == "CSANMT-demo"),
        "directions": directions,
        "languages": [
            {"code": code, "name": language_info(code).name, "chinese_name": language_info(code).chinese_name}
            for code in codes
        ],
        "max_chars": settings.max_text_chars,
        "max_items": settings.max_items,
        "file_extensions": supported_extensions(),
    }


def _describe(services: Services | None) -> dict[str, Any]:
    if services is None:
        return {"engine": None, "device": None, "gpu_mem_used_gb": None, "models": {}, "queue": {}}
    return {
        "engine": services.engine_name,
        "device": services.device,
        "gpu_mem_used_gb": services.memory(),
        "models": services.models,
        "queue": services.queues(),
    }


def _samples(runtime: Runtime) -> dict[str, list[dict[str, Any]]]:
    """Return what /metrics says, by name of the sample."""
    samples: dict[str, list[dict[str, Any]]] = {}
    for family in runtime.metrics.registry.collect():
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                samples.setdefault(sample.name, []).append({"labels": sample.labels, "value": sample.value})
    return samples
