"""A step never waits for the device but where its result is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from tandem.core.types import Item, Priority
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tests.csanmt.devices import PretendCuda, TapeRecorder, counting_waits
from tests.csanmt.support import KINDS, build_engine, demo, fixture_model

WAITING: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x[0].item(),
    "bool": lambda x: bool((x > 0).any()),
    "int": lambda x: int(x.sum()),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "numpy": lambda x: x.numpy(),
    "nonzero": lambda x: x.nonzero(),
    "mask as an index": lambda x: x[x > 0],
    "mask as a place": lambda x: x.__setitem__(x > 0, x.new_zeros(2)),
    "masked_select": lambda x: x.masked_select(x > 0),
    "equal": lambda x: torch.equal(x, x),
    "unique": lambda x: x.unique(),
    "if": lambda x: 1 if x.amax() > 2 else 0,
    "upload": lambda x: torch.tensor([1, 2], device=x.device),
}


@pytest.mark.parametrize("name", WAITING)
def test_what_waits_is_noticed(name: str) -> None:
    with counting_waits() as waits:
        WAITING[name](torch.tensor([0.0, 1.0, 3.0]))
    assert len(waits.found) == 1, waits.found


def test_what_does_not_wait_is_not_counted() -> None:
    x, places = torch.rand(4, 3), torch.tensor([2, 0])
    with counting_waits() as waits:
        x[places] = x[places].topk(3).values.masked_fill(x[places] > 0.5, 0.0)
        host = (x @ x.T).cpu()
        host.tolist()
    assert waits.found == ["cpu"]


def steps(engine: TranslationEngine, items: list[Item]) -> list[tuple[list[str | None], int]]:
    """Return the log of each step and how many rows it ended."""
    engine.admit(items)
    logs = []
    while engine.live():
        with counting_waits() as waits:
            finished = engine.step(Priority.BULK)
        logs.append((waits.log, len(finished)))
    return logs


def check(logs: list[tuple[list[str | None], int]]) -> None:
    assert any(ended for _, ended in logs)
    assert any(not ended for _, ended in logs)
    for log, ended in logs:
        waits = [name for name in log if name is not None]
        # The rows that end hand over their hypotheses, all together in one more transfer.
        assert waits == ["tolist", *["cpu"] * bool(ended)], waits
        if not ended:
            assert log[-1] == "tolist", "something still runs after the host has waited"


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("pretend", [nullcontext, PretendCuda])
def test_a_step_waits_once_at_its_end(is_recorded: bool, pretend: Callable[[], PretendCuda]) -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=EngineLimits(16, 512, 64))
    if is_recorded:
        engine.record_steps(TapeRecorder())
    with pretend():
        check(steps(engine, [Item(ids) for ids in demo("demo-zh2en").ids[:12]]))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_waits_once_a_step(kind: str) -> None:
    engine = build_engine(fixture_model(kind))
    check(steps(engine, [Item((7, 8, 9)), Item((20, 21)), Item(tuple(range(5, 17)))]))
