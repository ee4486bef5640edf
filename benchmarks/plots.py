"""Draw the results as SVG, light and dark, into docs/benchmarks: `python -m benchmarks.plots`.

One plot for each peer with all of its rows, and `overview` with the rows where both sides compute in float32. A bar is
our speed over theirs; the thin line on it reaches from the most unfavourable rounds to the most favourable ones.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.harness import ROOT
from benchmarks.record import Record, read_record
from benchmarks.table import RESULTS, ratio_spread

FOLDER = ROOT / "docs" / "benchmarks"
OVERVIEW = "overview"
_WIDTH, _LABELS, _VALUES = 760, 150, 130  # pixels: whole plot, column of labels, column of ratios
_LINE, _HEAD, _BAR = 22, 30, 12
_MOST_TICKS = 10

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours.

    Attributes:
        ground: Behind everything.
        text: Of titles and values.
        faint: Of labels, axis and the line at 1.
        ahead: Bars where we are faster.
        behind: Bars where the peer is.
    """

    ground: str
    text: str
    faint: str
    ahead: str
    behind: str


THEMES = {
    "light": Theme(ground="#ffffff", text="#1f2328", faint="#656d76", ahead="#0969da", behind="#bc4c00"),
    "dark": Theme(ground="#0d1117", text="#e6edf3", faint="#8d96a0", ahead="#4493f8", behind="#db6d28"),
}


def plan_plots(rows: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the rows of each plot by its name."""
    plots: dict[str, list[Entry]] = {}
    for row in rows:
        plots.setdefault(row["peer"], []).append(row)
    exact = [row for row in rows if (row["precision"], row["peer_precision"]) == ("float32", "float32")]
    return {OVERVIEW: exact, **plots} if exact else plots


def draw(title: str, rows: Sequence[Entry], theme: Theme) -> str:
    """Return a plot as SVG: a bar a row, under the heading of its peer, model and precisions."""
    groups: dict[str, list[Entry]] = {}
    for row in rows:
        groups.setdefault(_heading(row), []).append(row)
    height = _HEAD * (len(groups) + 2) + _LINE * len(rows)
    scale = _Scale(max(max(ratio_spread(row)[1], row["ratio"]) for row in rows))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape('; '.join(f'{_heading(row)}, {_label(row)}: {_value(row)}' for row in rows))}</desc>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{theme.ground}"/>',
        _text(8, 20, title, theme.text, weight=600),
        *_draw_axis(scale, height, theme),
    ]
    top = _HEAD
    for heading, members in groups.items():
        parts.append(_text(8, top + 20, heading, theme.text))
        top += _HEAD
        parts.append(_draw_line_at_one(scale, top, top + _LINE * len(members), theme))
        for row in members:
            parts += _draw_row(row, top, scale, theme)
            top += _LINE
    return "\n".join([*parts, "</svg>"]) + "\n"


def write_plots(record: Record, folder: Path) -> list[Path]:
    """Draw a record in every theme; plots of an earlier record go. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    written = []
    for name, rows in plan_plots(record["rows"]).items():
        title = "Our speed over theirs, float32 on both sides" if name == OVERVIEW else f"Our speed over that of {name}"
        for theme_name, theme in THEMES.items():
            path = folder / f"{name}-{theme_name}.svg"
            path.write_text(draw(title, rows, theme), encoding="utf-8")
            written.append(path)
    return written


class _Scale:
    """Ratios to pixels, from 0 to a round number that holds the largest one."""

    def __init__(self, largest: float) -> None:
        steps = (step * ten for ten in (0.1, 1.0, 10.0, 100.0) for step in (1.0, 2.0, 5.0))
        self.step = next(step for step in steps if step * _MOST_TICKS >= largest)
        self.count = math.ceil(max(largest, 1.0) / self.step)

    def __call__(self, ratio: float) -> float:
        return round(_LABELS + (_WIDTH - _LABELS - _VALUES) * ratio / (self.count * self.step), 1)

    def ticks(self) -> Iterator[float]:
        """Yield the ratios that the axis names."""
        yield from (self.step * number for number in range(self.count + 1))


def _draw_axis(scale: _Scale, height: int, theme: Theme) -> Iterator[str]:
    for ratio in scale.ticks():
        yield _text(scale(ratio), height - 10, f"{ratio:g}×", theme.faint, anchor="middle")


def _draw_line_at_one(scale: _Scale, top: int, bottom: int, theme: Theme) -> str:
    x = scale(1.0)
    return (
        f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{theme.faint}" stroke-dasharray="3 3">'
        "<title>equally fast</title></line>"
    )


def _draw_row(row: Entry, top: int, scale: _Scale, theme: Theme) -> Iterator[str]:
    color = theme.ahead if row["ratio"] >= 1 else theme.behind
    low, high = ratio_spread(row)
    middle, start = top + _LINE // 2, scale(0.0)
    yield _text(_LABELS - 8, middle + 4, _label(row), theme.faint, anchor="end")
    yield (
        f'<rect class="row" x="{start}" y="{middle - _BAR // 2}" width="{round(scale(row["ratio"]) - start, 1)}" '
        f'height="{_BAR}" rx="2" fill="{color}"/>'
    )
    yield f'<line x1="{scale(low)}" y1="{middle}" x2="{scale(high)}" y2="{middle}" stroke="{theme.text}"/>'
    yield _text(_WIDTH - 8, middle + 4, _value(row), theme.text, anchor="end")


def _text(x: float, y: float, words: str, color: str, *, anchor: str = "start", weight: int = 400) -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def _heading(row: Entry) -> str:
    return f"{row['peer']} · {row['model']} · ours {row['precision']}, theirs {row['peer_precision']}"


def _label(row: Entry) -> str:
    return f"{row['batch']} at a time" if row["batch"] > 1 else "one at a time"


def _value(row: Entry) -> str:
    low, high = ratio_spread(row)
    return f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots", description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    record = read_record(arguments.results)
    if record is None:
        raise SystemExit(f"{arguments.results} is missing: run `make bench` first")
    for path in write_plots(record, arguments.folder):
        print(path)


if __name__ == "__main__":
    main()
