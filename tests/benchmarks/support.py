"""Rows and machines that were never measured."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Row, Spread, build_row

MACHINE = {
    "cpu": "a processor", "cores": 2, "instruction_sets": {"avx2": True, "amx": False}, "torch": "2", "threads": 2,
    "clock": "wall", "date": "2026-01-01T00:00:00+00:00",
}  # fmt: skip


def made_up_row(**changed: Any) -> Row:
    """Return a row in which we are twice as fast."""
    row = {
        "peer": "official",
        "batch": 8,
        "precision": "float32",
        "peer_precision": "float32",
        "model": "demo",
        "rounds": 3,
    }
    return build_row(Spread(10.0, 9.0, 12.0), changed.pop("theirs", Spread(20.0, 18.0, 24.0)), **{**row, **changed})
