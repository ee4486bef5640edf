"""Recorded steps: the same translations, in memory that never moves, and a way on when recording fails."""

from __future__ import annotations

import logging
import random

import numpy as np
import pytest
import torch

from tandem.core.types import Finished, Hypothesis, Item, Priority
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.graphs import StepGraphs
from tests.csanmt.devices import PretendCuda, TapeRecorder
from tests.csanmt.support import (
    FIXTURES,
    KINDS,
    best,
    build_engine,
    demo,
    fixture_model,
    golden_cases,
    items_of,
    run,
    until_end,
)

LIMITS = EngineLimits(segments=24, tokens=768, source_tokens=64)
TOLERANCE = 1e-4


def recorded(name: str = "demo-zh2en", limits: EngineLimits = LIMITS) -> tuple[TranslationEngine, TapeRecorder]:
    model = demo(name)
    engine, recorder = build_engine(model.model, model.tokenizer, limits=limits), TapeRecorder()
    engine.record_steps(recorder)
    return engine, recorder


def in_waves(engine: TranslationEngine, items: list[Item], dropped: list[Item]) -> list[Finished[list[Hypothesis]]]:
    """Let items join a few at a time while others run; drop some of them on the way."""
    waiting, dice = list(items), random.Random(7)
    done: dict[int, Finished[list[Hypothesis]]] = {}
    while waiting or engine.live():
        room = min(engine.room(Priority.INTERACTIVE).segments, dice.choice((0, 1, 2, 5, 9)))
        wave, waiting = waiting[:room], waiting[room:]
        engine.admit(wave)
        engine.cancel([item for item in dropped if item in engine.live() and dice.random() < 0.2])
        for finished in engine.step(Priority.BULK):
            done[id(finished.item)] = finished
    return [done[id(item)] for item in items if item not in dropped]


@pytest.mark.parametrize("name", ["demo-zh2en", "demo-en2zh"])
def test_rows_that_join_and_leave_a_recorded_step_are_translated_the_same(name: str) -> None:
    engine, recorder = recorded(name)
    ids = [ids for ids in demo(name).ids if len(ids) < 60][:90]
    items = [Item(row) for row in ids]
    found = in_waves(engine, items, dropped=items[::11])
    expected = run(demo(name).engine, [Item(row) for index, row in enumerate(ids) if index % 11])
    for mine, plain in zip(found, expected, strict=True):
        assert mine.result is not None
        assert plain.result is not None
        assert [h.ids for h in mine.result] == [h.ids for h in plain.result]
        np.testing.assert_allclose([h.score for h in mine.result], [h.score for h in plain.result], atol=TOLERANCE)
    assert recorder.replays > 4 * recorder.records > 0


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_steps_give_the_official_ids_and_scores(kind: str) -> None:
    engine, recorder = build_engine(fixture_model(kind), limits=EngineLimits(16, 1024, 128)), TapeRecorder()
    engine.record_steps(recorder)
    for case in golden_cases(kind):
        ranks = case["seqs"].shape[1] if len(case["input"]) == 1 else 1
        for row, finished in enumerate(run(engine, items_of(case["input"], n_best=ranks))):
            assert finished.result is not None
            assert [h.ids for h in finished.result] == [until_end(ids) for ids in case["seqs"][row, :ranks]]
            scores = [h.score for h in finished.result]
            np.testing.assert_allclose(scores, case["scores"][row, :ranks], atol=TOLERANCE)
    assert recorder.replays > 0


def test_the_memory_of_recorded_steps_never_moves() -> None:
    engine, _ = recorded()
    search = engine._lanes[Priority.INTERACTIVE]
    places = {name: store.data_ptr() for name, store in search._rows._stores.items()}
    in_waves(engine, [Item(ids) for ids in demo("demo-zh2en").ids[:60] if len(ids) < 60], dropped=[])
    engine.admit([Item((5,) * 50), Item((6,) * 3)])
    engine.reset()
    assert {name: store.data_ptr() for name, store in search._rows._stores.items()} == places


def test_a_reset_forgets_the_records_and_what_was_in_the_rows() -> None:
    engine, recorder = recorded()
    items = [Item(ids) for ids in demo("demo-zh2en").ids[:5]]
    expected = best(engine, items)
    rows = engine._lanes[Priority.INTERACTIVE]._rows
    with torch.inference_mode():
        rows["self_value"].fill_(float("nan"))  # as a device error may leave it
    engine.admit(items)
    engine.step(Priority.BULK)
    engine.reset()
    before = recorder.records
    assert [h.ids for h in best(engine, items)] == [h.ids for h in expected]
    assert recorder.records > before


def test_rows_with_constraints_are_computed_without_records() -> None:
    engine, recorder = recorded()
    items = [Item(ids, strict=True) for ids in demo("demo-zh2en").ids[:3]]
    best(engine, items)
    assert recorder.warm_ups == recorder.records == 0


def test_a_row_that_overflows_in_a_recorded_step_leaves_its_neighbours_alone() -> None:
    model = load_model(FIXTURES / "abs_shared")
    model.semantic_embedding.weight.data[33] = float("nan")
    engine = build_engine(model, limits=LIMITS)
    engine.record_steps(TapeRecorder())
    good = [Item((7, 8, number)) for number in range(9, 15)]
    results = run(engine, [*good[:2], Item((33, 8)), *good[2:]])
    assert [index for index, finished in enumerate(results) if finished.error is not None] == [2]
    # What the broken row left behind must not reach the rows that take its place, nor the ones beside it.
    again = best(engine, [Item(item.ids) for item in good])
    plain = best(build_engine(fixture_model("abs_shared")), [Item(item.ids) for item in good])
    assert [h.ids for h in again] == [h.ids for h in plain]


class FailingRecorder(TapeRecorder):
    def record(self, work):  # type: ignore[no-untyped-def]
        raise RuntimeError("operation not permitted when stream is capturing")


def test_when_recording_fails_everything_runs_without_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = demo("demo-zh2en")
    engine = build_engine(model.model, limits=LIMITS)
    engine.record_steps(FailingRecorder())
    with caplog.at_level(logging.WARNING):
        found = best(engine, [Item(ids) for ids in model.ids[:20]])
    plain = best(model.engine, [Item(ids) for ids in model.ids[:20]])
    assert [h.ids for h in found] == [h.ids for h in plain]
    assert len([record for record in caplog.records if "not permitted" in record.getMessage()]) == 1


def test_a_bucket_is_recorded_at_its_second_step_and_old_ones_are_forgotten() -> None:
    recorder, done = TapeRecorder(), []
    graphs = StepGraphs(recorder)
    x = torch.zeros(2)

    def work() -> None:
        x.add_(1)

    for _ in range(4):
        graphs.run("a", work)
    assert (recorder.warm_ups, recorder.records, recorder.replays) == (1, 1, 3)
    assert x.tolist() == [4, 4], "each step is done once, the recorded one too"
    for number in range(200):
        graphs.run(number, lambda: done.append(1))
    assert len(done) == 200
    graphs.run("a", work)
    assert recorder.warm_ups == 202, "the bucket that was not used for longest is new again"


def test_the_attention_taken_on_cuda_translates_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, recorder = recorded()
    ids, fused = demo("demo-zh2en").ids[:20], []
    original = torch.nn.functional.scaled_dot_product_attention

    def counting(*args: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
        fused.append(1)
        return original(*args, **more)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", counting)
    with PretendCuda():
        found = best(engine, [Item(row) for row in ids])
    assert fused
    assert recorder.replays > 0
    assert [h.ids for h in found] == [h.ids for h in best(demo("demo-zh2en").engine, [Item(row) for row in ids])]
