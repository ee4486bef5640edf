"""The GPU check's own code, on the CPU in emulated float16."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from benchmarks.gpu_check import main, render_figures
from benchmarks.gpu_parity import DEMOS, FIXTURES, Figure
from benchmarks.gpu_speed import WITHOUT_GRAPHS
from benchmarks.harness import Row


def test_the_whole_check_runs_on_a_cpu(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    status = main(
        ["--device", "cpu", "--tiny", "--out", str(out), "--work-dir", str(tmp_path / "work"), "--peers-dir", "none"]
    )
    found = json.loads(out.read_text(encoding="utf-8"))
    assert status == 0, found["figures"]
    assert len(found["figures"]) == 2 * len(FIXTURES) + 2 * len(DEMOS) + 1
    assert {row["model"] for row in found["rows"]} == {*DEMOS, "tiny twin"}
    assert {row["peer"] for row in found["rows"]} == {WITHOUT_GRAPHS}
    assert {row["batch"] for row in found["rows"]} == {1, 2}
    assert {field.name for field in fields(Row)} == found["rows"][0].keys()
    assert all(row["ours_ms"] > 0 and row["ratio"] > 0 for row in found["rows"])


def test_without_a_gpu_it_says_what_to_do(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main([]) == 1
    assert "--device cpu" in capsys.readouterr().err


def test_a_missed_bar_shows() -> None:
    missed, ceiling = Figure("x", 0.5, "", bar=0.9), Figure("waits", 2, "", bar=1, is_ceiling=True)
    assert not missed.is_met
    assert not ceiling.is_met
    assert Figure("waits", 1, "", bar=1, is_ceiling=True).is_met
    assert Figure("x", 0.5, "").is_met
    assert render_figures([missed, ceiling]).count("MISSED") == 2
