"""The results file: what was measured on one machine, question by question.

Rows compare us with a peer; figures are ours alone, in the form of `make load`'s answers. Measuring one question again
replaces its own entries and keeps the others, each with the date of its own run; entries of another machine are never
mixed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import Row
from benchmarks.service_answers import Answer

Entry = dict[str, Any]
Record = dict[str, Any]

_ROW_KEY = ("peer", "model", "precision", "peer_precision", "batch")
_FIGURE_KEY = ("question", "measure")
_DATE = "date"


class OtherMachineError(RuntimeError):
    """The file holds results of another machine, or of another way to measure."""


def read_record(path: Path) -> Record | None:
    """Return what a results file holds; None where there is none."""
    if not path.is_file():
        return None
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def check_same_machine(record: Record | None, machine: Mapping[str, object], path: Path) -> None:
    """Make sure that new entries may stand beside those of a record.

    Raises:
        OtherMachineError: They were measured on another machine; the message names what differs and what to do.
    """
    stored = {} if record is None else record["machine"]
    different = sorted(
        name for name in stored.keys() & machine.keys() if name != _DATE and stored[name] != machine[name]
    )
    if different:
        raise OtherMachineError(
            f"{path} holds results of another machine or version ({', '.join(different)} differ): measure every "
            "question, without --only, or choose another file with --out"
        )


def merge(
    record: Record | None, machine: Mapping[str, object], rows: Sequence[Row], figures: Sequence[Answer] = ()
) -> Record:
    """Return a record with new entries in the place of those that they repeat.

    Args:
        record: What was measured before on this machine; None begins anew.
        machine: As `describe_machine` gives it, with the date of this run.
        rows: New comparisons.
        figures: New figures of ours.
    """
    before = record or {}
    return {
        "machine": dict(machine),
        "rows": _replace(before.get("rows", []), [asdict(row) for row in rows], _ROW_KEY, machine),
        "figures": _replace(before.get("figures", []), [asdict(figure) for figure in figures], _FIGURE_KEY, machine),
    }


def write_record(path: Path, record: Record) -> None:
    """Write a record as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _replace(
    old: Sequence[Entry], new: Sequence[Entry], names: Sequence[str], machine: Mapping[str, object]
) -> list[Entry]:
    """Keep the order: a repeated entry stands where it stood, any other one at the end."""

    def key(entry: Entry) -> tuple[Any, ...]:
        return tuple(entry.get(name) for name in names)

    entries = {key(entry): entry for entry in old}
    entries.update({key(entry): {**entry, _DATE: machine[_DATE]} for entry in new})
    return list(entries.values())
