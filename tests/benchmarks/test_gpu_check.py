"""The GPU check's own code, on the CPU in emulated float16."""

from __future__ import annotations

import torch

from benchmarks.gpu_check import Figure, check_fixtures


def test_the_fixtures_reach_their_bar_in_float16() -> None:
    figures = check_fixtures(torch.device("cpu"))
    assert len(figures) == 3
    assert all(figure.is_met for figure in figures), figures


def test_a_missed_bar_shows() -> None:
    assert not Figure("x", 0.5, "", bar=0.9).is_met
    assert Figure("x", 0.5, "").is_met
