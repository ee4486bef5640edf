"""A real Chromium on the page of a real server. Load it with `pytest_plugins = ["tests.support.browser"]`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.server import Server, run_server

SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
LOCALES = {"en": "en-US", "zh": "zh-CN"}
TIMEOUT_MS = 30_000
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip

OpenPage = Callable[..., Any]


def find_chromium() -> str | None:
    """Return the path of a Chromium: $CHROMIUM, or what is on the PATH."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


@pytest.fixture(scope="session")
def page_server() -> Iterator[Server]:
    """The server that all page tests share."""
    with run_server(THREADS="1") as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser; skips all its tests where there is none."""
    binary = find_chromium()
    if binary is None:
        pytest.skip("NO CHROMIUM FOUND: the page was not tested. Install chromium, or point CHROMIUM to one.")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: the page was not tested")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, page_server: Server) -> Iterator[OpenPage]:
    """Open the page in a fresh browser profile; afterwards nothing may have failed or asked another host."""
    contexts: list[Any] = []
    problems: list[str] = []

    def note_request(request: Any) -> None:
        if not request.url.startswith((page_server.url, "blob:", "data:")):
            problems.append(f"another host was asked: {request.url}")

    def open_one(
        size: str = "desktop", language: str = "en", theme: str = "light", *, view: str = "", script: str = "",
        prepare: Callable[[Any], object] = lambda page: None, **options: Any,
    ) -> Any:  # fmt: skip
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, locale=LOCALES[language], color_scheme=theme,
            has_touch=size == "phone", permissions=["clipboard-read", "clipboard-write"], **options,
        )  # fmt: skip
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
        page.on("request", note_request)
        if script:
            page.add_init_script(script)
        prepare(page)
        page.goto(f"{page_server.url}/{view}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not problems, problems
