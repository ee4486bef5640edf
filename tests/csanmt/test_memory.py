"""The memory of a running translator is bounded by its settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tandem.core.types import Budget, Item, Priority
from tandem.csanmt.engine import EngineLimits
from tandem.csanmt.memory import weight_bytes
from tandem.nn.precision import Precision
from tests.conftest import ROOT
from tests.csanmt.devices import TapeRecorder
from tests.csanmt.support import best, build_engine, demo

LIMITS = EngineLimits(segments=16, tokens=512, source_tokens=256)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="asks Linux for the peak of a process")
def test_the_largest_batches_stay_within_the_memory_that_was_computed() -> None:
    command = [sys.executable, "-m", "tests.csanmt.memory_scenario"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    bound = found["caches"] + found["working"] + found["libraries"]
    assert bound / 3 < found["grown"] <= bound, found  # below a third the bound would say nothing


def test_one_long_source_waits_until_it_does_not_lengthen_too_many_rows() -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=LIMITS)
    short, long = [Item(ids[:20]) for ids in demo("demo-zh2en").ids[:10]], Item((5,) * 199)
    engine.admit(short)
    engine.admit([long])
    assert set(engine.live()) == {*short, long}
    assert engine.room(Priority.INTERACTIVE) == Budget(0, 0), "who came later must not keep it waiting"
    results = {}
    while engine.live():
        for finished in engine.step(Priority.BULK):
            results[id(finished.item)] = finished
        capacity = engine._lanes[Priority.INTERACTIVE]._rows.capacity
        assert capacity["R"] * capacity["S"] <= 512
    assert results[id(long)].error is None
    found = [results[id(item)].result[0].ids for item in short]
    assert found == [hypothesis.ids for hypothesis in best(demo("demo-zh2en").engine, short)]


def test_an_item_that_waits_inside_can_be_cancelled_raised_and_given_back() -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=LIMITS)
    rows = [Item((5,) * 30, priority=Priority.BULK) for _ in range(10)]
    cancelled, raised = (Item((6,) * 199, priority=Priority.BULK) for _ in range(2))
    engine.admit(rows)
    engine.admit([cancelled, raised])
    engine.cancel([cancelled])
    assert set(engine.live()) == {*rows, raised}
    raised.priority = Priority.INTERACTIVE
    engine.step(Priority.INTERACTIVE)
    assert raised in engine._lanes[Priority.INTERACTIVE].items
    assert set(engine.reset()) == {*rows, raised}
    assert engine.live() == []


def test_claimed_memory_is_what_was_computed() -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=LIMITS)
    growing = engine.memory()
    engine.record_steps(TapeRecorder())
    claimed = engine.memory()
    lanes = {id(lane): lane for lane in engine._lanes.values()}.values()
    assert sum(lane._rows.allocated_bytes for lane in lanes) == claimed.caches < growing.caches
    assert claimed.total == claimed.weights + claimed.caches + claimed.working + claimed.libraries


def test_packed_and_shared_weights_are_counted_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(4, 8))
    model[1].weight = model[0].weight
    assert weight_bytes(model) == 4 * (32 + 8 + 8)
    packed = demo("demo-zh2en").model
    sizes = [parameter.numel() for parameter in packed.parameters()]
    assert weight_bytes(packed) > 4 * sum(sizes), "linear layers are packed and no parameters any more"
    assert weight_bytes(demo("demo-zh2en", Precision.INT8).model) < weight_bytes(packed)
