"""The results file: one machine, each question its newest entries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness import Spread
from benchmarks.record import OtherMachineError, check_same_machine, merge, read_record, write_record
from benchmarks.service_answers import answer
from tests.benchmarks.support import MACHINE, made_up_row
from tests.conftest import ROOT

LATER = {**MACHINE, "date": "2026-01-02T00:00:00+00:00"}


def test_a_written_record_holds_machine_rows_and_figures(tmp_path: Path) -> None:
    path = tmp_path / "results" / "latest.json"
    write_record(path, merge(None, MACHINE, [made_up_row()], [answer("start", "seconds", [4.0, 3.0, 5.0], "<= 5")]))
    record = read_record(path)
    assert record is not None
    assert record["machine"] == MACHINE
    [row], [figure] = record["rows"], record["figures"]
    wanted = {"peer", "batch", "ours_ms", "peer_ms", "ratio", "precision", "model", "peer_precision", "rounds"}
    wanted |= {"ours_min_ms", "ours_max_ms", "peer_min_ms", "peer_max_ms", "date"}
    assert row.keys() == wanted
    assert (row["ratio"], row["date"]) == (2.0, MACHINE["date"])
    assert (figure["value"], figure["low"], figure["high"], figure["bar"]) == (4.0, 3.0, 5.0, "<= 5")


def test_there_is_no_record_before_the_first_run(tmp_path: Path) -> None:
    assert read_record(tmp_path / "latest.json") is None


def test_measuring_again_replaces_the_same_row_where_it_stands_and_keeps_the_others() -> None:
    names = ("official", "ctranslate2-int8", "infinity")
    before = merge(None, MACHINE, [made_up_row(peer=name) for name in names])
    slower = made_up_row(peer="ctranslate2-int8", theirs=Spread(5.0, 4.0, 6.0))
    after = merge(before, LATER, [slower])
    assert [row["peer"] for row in after["rows"]] == list(names)
    assert [row["ratio"] for row in after["rows"]] == [2.0, 0.5, 2.0]
    assert [row["date"] for row in after["rows"]] == [MACHINE["date"], LATER["date"], MACHINE["date"]]
    assert after["machine"] == LATER


@pytest.mark.parametrize(
    "changed", [{"model": "other"}, {"precision": "int8"}, {"peer_precision": "int8"}, {"batch": 32}], ids=str
)
def test_a_row_of_something_else_is_added(changed: dict[str, object]) -> None:
    after = merge(merge(None, MACHINE, [made_up_row()]), LATER, [made_up_row(**changed)])
    assert len(after["rows"]) == 2


def test_figures_are_replaced_by_what_they_measure() -> None:
    before = merge(None, MACHINE, [], [answer("start", "first", [7.0]), answer("start", "second", [4.0])])
    after = merge(before, LATER, [], [answer("start", "second", [3.0])])
    assert [(figure["measure"], figure["value"]) for figure in after["figures"]] == [("first", 7.0), ("second", 3.0)]


@pytest.mark.parametrize("changed", [{"cpu": "another"}, {"threads": 1}, {"torch": "3"}, {"clock": "cpu"}], ids=str)
def test_entries_of_another_machine_are_not_mixed_in(changed: dict[str, object]) -> None:
    record = merge(None, MACHINE, [made_up_row()])
    with pytest.raises(OtherMachineError, match=f"{next(iter(changed))} differ"):
        check_same_machine(record, {**LATER, **changed}, Path("latest.json"))
    check_same_machine(record, LATER, Path("latest.json"))
    check_same_machine(None, LATER, Path("latest.json"))


def test_measuring_one_question_on_another_machine_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "latest.json"
    write_record(path, merge(None, MACHINE, [made_up_row()]))
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "start", "--out", str(path), "--work-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "another machine" in ran.stderr and "--out" in ran.stderr
    assert json.loads(path.read_text(encoding="utf-8"))["machine"] == MACHINE


def test_a_missing_peer_is_skipped_with_a_line_that_says_how_to_install_it(tmp_path: Path) -> None:
    path = tmp_path / "latest.json"
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "official", "infinity", "--out", str(path), "--work-dir",
         str(tmp_path), "--plots", str(tmp_path / "plots"), "--peers-dir", str(tmp_path / "peers")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "official: skipped" in ran.stdout and "infinity: skipped" in ran.stdout
    assert "make bench-peers" in ran.stdout and "requirements-infinity.txt" in ran.stdout
    assert not path.exists()
