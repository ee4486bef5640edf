"""What the questions of `make load` answer: one line each, and rows of a JSON list."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Answer:
    """One row.

    Attributes:
        question: Name of the question.
        measure: What was measured, with its unit.
        value: The median of the rounds, or what all rounds together give.
        bar: What it is to be, such as ">= 1.3"; "" where it is only reported.
        low: Of the rounds.
        high: Of the rounds.
        detail: The figures behind it, with their units in their names.
    """

    question: str
    measure: str
    value: float
    bar: str = ""
    low: float | None = None
    high: float | None = None
    detail: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None without one."""
        if not self.bar:
            return None
        relation, limit = self.bar.split()
        return self.value >= float(limit) if relation == ">=" else self.value <= float(limit)

    def render(self) -> str:
        """Return the line for people."""
        spread = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        verdict = {None: "", True: f"; met: {self.bar}", False: f"; NOT met: {self.bar}"}[self.is_met]
        detail = ", ".join(f"{name} {_short(value)}" for name, value in self.detail.items())
        return f"{self.question}: {self.measure} {self.value:.2f}{spread}{verdict}; {detail}"


def answer(
    question: str, measure: str, rounds: Sequence[float], bar: str = "", detail: Mapping[str, object] | None = None
) -> Answer:
    """Return the row of a value that each round gives."""
    value = round(statistics.median(rounds), 3)
    return Answer(question, measure, value, bar, round(min(rounds), 3), round(max(rounds), 3), detail or {})


def write_answers(path: Path, machine: Mapping[str, object], answers: Sequence[Answer]) -> None:
    """Write machine and rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(one) | {"is_met": one.is_met} for one in answers]
    text = json.dumps({"machine": dict(machine), "rows": rows}, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _short(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
