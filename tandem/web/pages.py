"""The page, and what it needs to know when it starts."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, render_template

from tandem.text.languages import language_info
from tandem.web.runtime import Runtime


def build_pages(runtime: Runtime) -> Blueprint:
    """Return the blueprint of the page."""
    pages = Blueprint("pages", __name__)

    @pages.get("/")
    def get_page() -> str:
        """Show the translator."""
        return render_template("index.html", max_chars=runtime.settings.max_text_chars)

    @pages.get("/page.json")
    def get_page_data() -> Response:
        """Give the directions that are loaded, whether they are demo models, and the limits."""
        services = runtime.loaded
        directions = services.translation.directions if services else []
        codes = dict.fromkeys(code for pair in directions for code in pair)
        return jsonify(
            {
                "ready": runtime.why_not_ready() is None,
                "reason": runtime.why_not_ready(),
                "engine": services.engine_name if services else None,
                "is_demo": bool(services and services.engine_name == "CSANMT-demo"),
                "directions": directions,
                "languages": [
                    {"code": code, "name": language_info(code).name, "chinese_name": language_info(code).chinese_name}
                    for code in codes
                ],
                "max_chars": runtime.settings.max_text_chars,
            }
        )

    return pages
