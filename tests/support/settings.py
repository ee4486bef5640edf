"""Settings for tests."""

from __future__ import annotations

from pathlib import Path

from tandem.core.settings import Settings, load_settings


def settings_in(folder: Path, **given: object) -> Settings:
    values = {"CACHE_DIR": str(folder), "PRECISION": "float32", **{name: str(value) for name, value in given.items()}}
    return load_settings(values)
