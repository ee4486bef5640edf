"""`tandem translate`: files without a server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandem.cli import main
from tandem.commands import translate_file
from tests.conftest import ROOT
from tests.documents.support import ShoutingService


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> ShoutingService:
    """The command with a service that needs no model."""
    service = ShoutingService()

    @contextmanager
    def load(_: object) -> Iterator[ShoutingService]:
        yield service

    monkeypatch.setattr(translate_file, "load_translation", load)
    return service


def test_the_result_lies_beside_the_file(
    shouting: ShoutingService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("some words\n")
    assert main(["translate", str(tmp_path / "a.txt")]) == 0
    assert (tmp_path / "a.zh.txt").read_text() == "SOME WORDS\n"
    assert capsys.readouterr().out.strip() == str(tmp_path / "a.zh.txt")


def test_languages_output_and_columns_are_chosen(shouting: ShoutingService, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,title\nred,red words\n")
    output = tmp_path / "out.csv"
    arguments = [
        "translate",
        str(tmp_path / "a.csv"),
        "--from",
        "en",
        "--to",
        "zh",
        "-o",
        str(output),
        "--columns",
        "title",
    ]
    assert main(arguments) == 0
    assert output.read_text() == "key,title\nred,RED WORDS\n"
    assert main([*arguments[:-1], "1,2", "--no-header"]) == 0
    assert output.read_text() == "KEY,TITLE\nRED,RED WORDS\n"


_WRONG = [
    ("a.pdf", "x", [], "cannot be translated"),
    ("a.json", "[1,", [], "not valid JSON"),
    ("a.txt", "some words", ["--to", "xx"], "not known"),
    ("a.txt", "some words", ["-o", "{file}"], "overwrite"),
    ("a.txt", "some words", ["-o", "{file}/b"], "cannot be written"),
    ("a.txt", None, [], "cannot be read"),
]


@pytest.mark.parametrize("wrong", _WRONG, ids=[words for *_, words in _WRONG])
def test_what_is_wrong_is_one_line(
    shouting: ShoutingService,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wrong: tuple[str, str | None, list[str], str],
) -> None:
    name, content, further, words = wrong
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert main(["translate", str(path), *(part.format(file=path) for part in further)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert words in lines[-1]
    assert lines[-1].startswith("tandem: ")


def test_the_command_works_with_the_demo_models(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# 使用说明\n\n请打开 `config.json` 文件。\n")
    done = subprocess.run(
        [sys.executable, "-m", "tandem", "translate", str(path), "--to", "en"],
        cwd=ROOT, env={**os.environ, "PRECISION": "float32"}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "a.en.md")
    result = (tmp_path / "a.en.md").read_text()
    assert result.startswith("# ")
    assert "`config.json`" in result
