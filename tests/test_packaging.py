"""What a user runs first: the image, start.sh, the Makefile, the requirements."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.conftest import ROOT

DOCKERFILE = (ROOT / "Dockerfile.gpu").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    lines = [line for line in joined.split("\n") if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def test_the_image_copies_only_what_exists_and_everything_that_serves() -> None:
    copied = {path for name, words in instructions() if name == "COPY" for path in words.split()[:-1]}
    assert [path for path in copied if not (ROOT / path).exists()] == []
    needed = {"app.py", "model_loader.py", "batch_scheduler.py", "cache.py", "tandem", "templates", "static", "models"}
    assert needed | {"gunicorn.conf.py", "requirements-gpu.txt"} <= copied


def test_the_image_runs_as_a_user_with_a_volume_and_a_health_check() -> None:
    names = [name for name, _ in instructions()]
    given = dict(instructions())
    assert given["USER"] == "tandem"
    assert given["VOLUME"] == "/var/cache/tandem"
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")
    assert "/ready" in given["HEALTHCHECK"]


def test_the_images_defaults_are_the_released_models() -> None:
    environment = " ".join(words for name, words in instructions() if name == "ENV")
    assert "TRANSLATION_MODEL=iic/nlp_csanmt_translation_zh2en" in environment
    assert "EMBEDDING_MODEL=iic/nlp_gte_sentence-embedding_chinese-large" in environment
    assert "HOST=0.0.0.0" in environment


def test_the_images_torch_is_the_pinned_one() -> None:
    pinned = re.search(r"^torch==([\d.]+)$", (ROOT / "requirements.txt").read_text(), re.M)
    assert pinned is not None
    assert f"ARG BASE_IMAGE=pytorch/pytorch:{pinned[1]}-cuda" in DOCKERFILE


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-gpu.txt", "requirements-dev.txt"])
def test_every_requirement_is_pinned(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith(("#", "-r"))]
    assert [line for line in lines if not re.fullmatch(r"[\w.\[\]-]+==[\w.]+", line)] == []


@pytest.mark.parametrize("script", ["start.sh", "deploy/entrypoint.sh", ".ci/run"])
def test_scripts_are_valid_and_may_be_run(script: str) -> None:
    subprocess.run(["bash", "-n", script], cwd=ROOT, check=True)
    assert (ROOT / script).stat().st_mode & 0o111


def test_a_wrong_word_to_start_sh_says_how_to_use_it() -> None:
    ran = subprocess.run(
        ["./start.sh", "dance"], cwd=ROOT, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )
    assert ran.returncode in (1, 2)
    assert "usage: ./start.sh" in ran.stderr or "Python 3.11" in ran.stderr


def test_the_readme_shows_the_two_commands_first() -> None:
    for name in ("README.md", "README.zh.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert text.index("./start.sh") < text.index("curl")
        assert "make test" in text


def test_every_command_of_the_documentation_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"`make ([\w-]+)`", text)) <= targets, path.name
        links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
        assert [link for link in links if not (path.parent / link).exists()] == [], path.name
