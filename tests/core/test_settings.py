"""Settings: defaults, values, errors, and the table that documents them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tandem.core.errors import SettingsError
from tandem.core.settings import Settings, load_settings
from tests.conftest import ROOT


def test_nothing_set_gives_the_demo_on_the_default_port() -> None:
    settings = load_settings({})
    assert (settings.translation_model, settings.embedding_model, settings.port) == ("demo", "demo", 5000)


def test_values_come_from_variables_in_capitals() -> None:
    settings = load_settings({"PORT": "8080", "LOG_LEVEL": "debug", "REDIS_URL": "redis://r:6379/0", "MAX_WAIT_MS": ""})
    assert (settings.port, settings.log_level, settings.redis_url) == (8080, "DEBUG", "redis://r:6379/0")
    assert settings.max_wait_ms == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "eighty"), ("PORT", "70000"), ("DEVICE", "gpu"), ("PRECISION", "half"), ("MAX_BATCH_SIZE", "0"),
        ("MAX_QUEUE", "-1"), ("CACHE_TTL_S", "0"), ("LOG_LEVEL", "loud"), ("TRANSLATION_MODEL", " , "),
    ],
)  # fmt: skip
def test_an_impossible_value_names_setting_and_value(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as caught:
        load_settings({name: value})
    assert value.upper() in str(caught.value).upper()


def test_several_impossible_values_are_all_named() -> None:
    with pytest.raises(SettingsError, match=r"PORT.*DEVICE"):
        load_settings({"PORT": "x", "DEVICE": "y"})


def test_every_setting_has_help_text() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_documented_table_is_the_codes() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tandem.core.settings"], capture_output=True, check=True, cwd=ROOT, encoding="utf-8"
    )
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == ran.stdout, "run `make settings`"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings({}).port = 1  # type: ignore[misc]
