"""`tandem keys`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.cli import main
from tandem.services.keys import KeyStore, WrongKeyError


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys.sqlite3"
    monkeypatch.setenv("KEYS_DB", str(path))
    return path


def test_add_prints_a_key_that_works(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "add", "alice", "--requests-per-minute", "60", "--characters", "1000"]) == 0
    shown = capsys.readouterr()
    assert KeyStore(database).admit(shown.out.strip()).usage().limit == 1000
    assert "KEYS_REQUIRED" in shown.err


def test_list_shows_everything_but_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    main(["keys", "add", "alice", "--characters", "1000"])
    key = capsys.readouterr().out.strip()
    assert main(["keys", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(word in listed for word in ("alice", "0 of 1000", "no limit", "never", "in use", key[:8]))
    assert key not in listed


def test_revoke_ends_a_key(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["keys", "add", "alice"])
    key = capsys.readouterr().out.strip()
    assert main(["keys", "revoke", "alice"]) == 0
    with pytest.raises(WrongKeyError):
        KeyStore(database).admit(key)
    assert main(["keys", "revoke", "alice"]) == 1
    assert "alice" in capsys.readouterr().err


def test_a_taken_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    main(["keys", "add", "alice"])
    assert main(["keys", "add", "alice"]) == 1
    assert "revoke" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["keys"], ["keys", "add"], ["keys", "add", "a", "--characters", "0"]])
def test_what_is_wrong_ends_with_the_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
