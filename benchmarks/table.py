"""Print the results as Markdown: `python -m benchmarks.table`, for docs/benchmarks.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT
from benchmarks.record import Record, read_record

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"


def render_markdown(record: Record) -> str:
    """Return machine, comparisons and figures as Markdown."""
    parts = [_render_machine(record["machine"]), render_ratios(record["rows"])]
    if record.get("figures"):
        parts.append(_render_figures(record["figures"]))
    return "\n\n".join(parts) + "\n"


def render_ratios(rows: Sequence[dict[str, Any]]) -> str:
    """Return the ratios, a column for each size of a request; in brackets from the worst rounds to the best."""
    sizes = sorted({row["batch"] for row in rows})
    lines: dict[tuple[str, ...], dict[int, str]] = {}
    for row in rows:
        key = (row["peer"], row["model"], row["precision"], row["peer_precision"])
        lines.setdefault(key, {})[row["batch"]] = _cell(row)
    header = ["against", "model", "ours", "theirs", *map(str, sizes)]
    body = [[*key, *(cells.get(size, "") for size in sizes)] for key, cells in lines.items()]
    return _render_table(header, body)


def ratio_spread(row: dict[str, Any]) -> tuple[float, float]:
    """Return the ratio of our slowest round to their fastest and the other way round."""
    return row["peer_min_ms"] / row["ours_max_ms"], row["peer_max_ms"] / row["ours_min_ms"]


def _cell(row: dict[str, Any]) -> str:
    low, high = ratio_spread(row)
    return f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})"


def _render_figures(figures: Sequence[dict[str, Any]]) -> str:
    body = [[figure["measure"], _figure_cell(figure), figure["bar"]] for figure in figures]
    return _render_table(["measure", "figure", "bound"], body)


def _figure_cell(figure: dict[str, Any]) -> str:
    spread = "" if figure["low"] is None else f" ({figure['low']:.2f}–{figure['high']:.2f})"
    return f"{figure['value']:.2f}{spread}"


def _render_machine(machine: dict[str, Any]) -> str:
    sets = [name for name, is_present in machine["instruction_sets"].items() if is_present]
    return (
        f"{machine['cpu']} ({', '.join(sets)}), {machine['cores']} cores, {machine['threads']} threads a side, "
        f"torch {machine['torch']}, {machine['date'][:10]}."
    )


def _render_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *body))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    path = parser.parse_args().results
    record = read_record(path)
    if record is None:
        raise SystemExit(f"{path} is missing: run `make bench` first")
    print(render_markdown(record), end="")


if __name__ == "__main__":
    main()
