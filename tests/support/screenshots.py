"""Pictures of the page, kept for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conftest import ROOT

ARTIFACTS = ROOT / "test-artifacts"


def shoot(page: Any, name: str, *, whole: bool = False) -> Path:
    """Keep a picture of the screen, or of the `whole` page; return its path."""
    ARTIFACTS.mkdir(exist_ok=True)
    path = ARTIFACTS / f"{name}.png"
    page.screenshot(path=path, full_page=whole)
    return path
