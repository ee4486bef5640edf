"""The table as Markdown and as drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import Spread
from benchmarks.plots import THEMES, draw, plan_plots, write_plots
from benchmarks.record import merge, read_record
from benchmarks.service_answers import answer
from benchmarks.table import RESULTS, render_markdown
from tests.benchmarks.support import MACHINE, made_up_row
from tests.conftest import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def rows() -> list[dict[str, Any]]:
    behind = Spread(5.0, 4.0, 6.0)
    made = [
        made_up_row(batch=1), made_up_row(batch=8, model="a < b & c"), made_up_row(batch=32, theirs=behind),
        made_up_row(peer="infinity", precision="bfloat16", batch=32),
    ]  # fmt: skip
    return list(merge(None, MACHINE, made)["rows"])


def bars(svg: str) -> list[ET.Element]:
    return [rect for rect in ET.fromstring(svg).iter(f"{SVG}rect") if rect.get("class") == "row"]


@pytest.mark.parametrize("theme", THEMES)
def test_every_row_is_a_bar_with_its_ratio_and_its_spread(theme: str) -> None:
    svg = draw("Title", rows(), THEMES[theme])
    root = ET.fromstring(svg)
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert len(bars(svg)) == 4
    assert words.count("2.00 (1.50–2.67)") == 3 and words.count("0.50 (0.33–0.67)") == 1
    assert "official · a < b & c · ours float32, theirs float32" in words
    assert root.findtext(f"{SVG}title") == "Title"
    assert (root.findtext(f"{SVG}desc") or "").count("2.00") == 3


def test_a_bar_is_as_long_as_its_ratio_and_tells_who_is_ahead() -> None:
    theme = THEMES["light"]
    one, eight, behind, _ = bars(draw("", rows(), theme))  # rows of one heading come together
    by_fill = {bar.get("fill"): float(bar.get("width") or 0) for bar in (one, eight, behind)}
    assert set(by_fill) == {theme.ahead, theme.behind}
    assert by_fill[theme.ahead] == pytest.approx(4 * by_fill[theme.behind], abs=0.5)


def test_nothing_is_drawn_outside_of_the_plot() -> None:
    fast = made_up_row(theirs=Spread(730.0, 700.0, 900.0))
    root = ET.fromstring(draw("", merge(None, MACHINE, [fast])["rows"], THEMES["dark"]))
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for element in root.iter():
        for name in ("x", "x1", "x2"):
            assert 0 <= float(element.get(name, 0)) <= width
        for name in ("y", "y1", "y2"):
            assert 0 <= float(element.get(name, 0)) <= height


def test_plots_are_one_a_peer_and_an_overview_of_equal_precision() -> None:
    plots = plan_plots(rows())
    assert {name: len(members) for name, members in plots.items()} == {"overview": 3, "official": 3, "infinity": 1}
    assert "overview" not in plan_plots([row for row in rows() if row["peer"] == "infinity"])


def test_every_plot_is_written_light_and_dark_and_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / "gone-light.svg").touch()
    written = write_plots({"rows": rows()}, tmp_path)
    names = ("overview", "official", "infinity")
    assert {path.name for path in written} == {f"{name}-{theme}.svg" for name in names for theme in THEMES}
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written}
    light, dark = (path.read_text(encoding="utf-8") for path in written[:2])
    assert THEMES["light"].ground in light and THEMES["dark"].ground in dark


def test_the_table_has_a_column_a_size_and_a_line_a_comparison() -> None:
    figures = [answer("start", "seconds to /ready", [4.0, 3.0, 5.0], "<= 5")]
    text = render_markdown(merge(None, MACHINE, [made_up_row(batch=1), made_up_row(batch=32)], figures))
    assert "| against | model | ours | theirs | 1 | 32 |" in text
    assert "| official | demo | float32 | float32 | 2.00 (1.50–2.67) | 2.00 (1.50–2.67) |" in text
    assert "| seconds to /ready | 4.00 (3.00–5.00) | <= 5 |" in text
    assert "a processor (avx2), 2 cores, 2 threads a side, torch 2, 2026-01-01." in text


def test_the_stored_plots_are_those_of_the_stored_results(tmp_path: Path) -> None:
    record = read_record(RESULTS)
    assert record is not None
    for path in write_plots(record, tmp_path):
        assert (ROOT / "docs" / "benchmarks" / path.name).read_text(encoding="utf-8") == path.read_text(
            encoding="utf-8"
        )
    assert "docs/benchmarks/overview-dark.svg" in (ROOT / "README.md").read_text(encoding="utf-8")
