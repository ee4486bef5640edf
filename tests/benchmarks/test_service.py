import json
import math
import statistics

import pytest

from app import build_policy
from benchmarks.natural_mix import LONGEST_CHARS, MEDIAN_CHARS, make_sentences, read_natural_mix
from benchmarks.replaying import ReplayingEngine
from benchmarks.service_answers import Answer, answer, write_answers
from benchmarks.service_batching import ratios
from benchmarks.service_clients import Run, made_up_sentences, percentile
from tandem.core.settings import load_settings
from tandem.core.types import Item, Priority
from tests.support.engines import FakeEngine


def test_the_natural_mix_is_what_its_script_writes():
    assert read_natural_mix() == make_sentences()


def test_the_natural_mix_has_the_lengths_it_claims_and_no_sentence_twice():
    sentences = read_natural_mix()
    lengths = list(map(len, sentences))
    assert len(set(sentences)) == len(sentences) == 2500
    assert abs(statistics.median(lengths) - MEDIAN_CHARS) <= 0.5
    assert 90 <= max(lengths) <= LONGEST_CHARS
    assert statistics.stdev(map(math.log, lengths)) == pytest.approx(0.6, abs=0.05)


def test_made_up_sentences_hardly_ever_come_twice():
    texts = made_up_sentences(1)
    assert len({next(texts) for _ in range(2000)}) == 2000


@pytest.mark.parametrize(
    ("value", "bar", "is_met"), [(1.3, ">= 1.3", True), (1.2, ">= 1.3", False), (0.6, "<= 0.7", True), (1.0, "", None)]
)
def test_a_bar_is_met_or_not_and_none_is_neither(value, bar, is_met):
    assert Answer("static", "ratio", value, bar).is_met is is_met


def test_an_answer_is_the_median_of_its_rounds_with_the_spread_and_one_line():
    found = answer("light", "median over one at a time", [1.0, 1.1, 1.2], "<= 1.05", {"ours_ms": 3.0})
    assert (found.value, found.low, found.high) == (1.1, 1.0, 1.2)
    assert found.render() == ("light: median over one at a time 1.10 (1.00 to 1.20); NOT met: <= 1.05; ours_ms 3.00")


def test_the_answers_file_holds_machine_and_rows(tmp_path):
    path = tmp_path / "results" / "service.json"
    write_answers(path, {"cores": 2}, [Answer("bulk", "p95", 1.5, "<= 2")])
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["machine"] == {"cores": 2}
    assert [(row["question"], row["value"], row["bar"], row["is_met"]) for row in document["rows"]] == [
        ("bulk", 1.5, "<= 2", True)
    ]


def test_ratios_are_taken_round_by_round():
    ours = [Run([1.0] * 20, 0, 2.0, []), Run([1.0] * 30, 0, 2.0, [])]
    theirs = [Run([1.0] * 10, 0, 2.0, []), Run([1.0] * 10, 0, 2.0, [])]
    assert ratios(lambda run: run.rate, ours, theirs) == [2.0, 3.0]


def test_a_percentile_is_the_value_below_which_a_share_lies():
    assert percentile(range(100), 0.95) == 95
    assert percentile([7.0], 0.99) == 7.0


def test_a_replaying_engine_computes_once_and_answers_at_once_afterwards():
    inner = FakeEngine(steps=3)
    engine = ReplayingEngine(inner)
    engine.admit([Item((1, 2))])
    steps = [engine.step(Priority.BULK) for _ in range(3)]
    again = Item((1, 2))
    engine.admit([again])
    assert engine.live() == [again]
    (done,) = engine.step(Priority.BULK)
    assert (done.item, done.result) == (again, steps[2][0].result)
    assert inner.calls.admitted == [[(1, 2)]] and not engine.live()


def test_a_replaying_engine_drops_what_is_cancelled_and_gives_back_what_is_reset():
    engine = ReplayingEngine(FakeEngine())
    engine.admit([Item((1,))])
    engine.step(Priority.BULK)
    kept, gone = Item((1,)), Item((1,))
    engine.admit([kept, gone])
    engine.cancel([gone])
    assert engine.reset() == [kept] and engine.live() == []


@pytest.mark.parametrize(("value", "is_continuous"), [("static", False), ("", True)])
def test_batching_is_continuous_unless_it_is_set_to_static(value, is_continuous):
    assert build_policy(load_settings({"BATCHING": value}), "cpu").continuous is is_continuous
