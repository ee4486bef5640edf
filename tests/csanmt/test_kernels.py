"""Pieces of the compiled search, each against an obvious version; when there are kernels at all."""

from __future__ import annotations

import importlib.util
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.compiled import availability
from tandem.core.types import Item
from tandem.csanmt.backend import count_cores, make_kernels
from tandem.csanmt.candidates import rescore as rescore_by_torch
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.constraints import RepetitionGuard
from tandem.csanmt.kernel_search import Kernels, kernel_precisions
from tandem.csanmt.kernels.beam import rescore
from tandem.csanmt.kernels.top import clear, find_maxima, find_top, new_maxima
from tandem.csanmt.live import DecodingOptions
from tandem.nn.precision import Precision
from tests.conftest import MODELS
from tests.csanmt.support import best, build_engine, demo, fixture_model, items_of


@pytest.fixture(scope="module")
def demo_kernels() -> Kernels:
    kernels = make_kernels(load_model(MODELS / "demo-zh2en"), Precision.FLOAT32, 64, threads=2)
    assert kernels is not None
    return kernels


NUMBERS = st.lists(st.integers(-5, 5).map(float) | st.just(-math.inf), min_size=1, max_size=300)


@settings(deadline=None)  # the first call compiles
@given(NUMBERS, NUMBERS, st.integers(1, 12))
def test_top_finds_the_largest_and_among_equals_the_earlier(some: list[float], more: list[float], count: int) -> None:
    found, places = np.empty(count, np.float32), np.empty(count, np.int64)
    clear(found, places)
    for first, part in ((0, some), (len(some), more)):
        values, maxima = np.array(part, np.float32), new_maxima(len(part))
        find_maxima(values, maxima)
        find_top(values, maxima, first, found, places)
    numbers = some + more
    order = sorted(range(len(numbers)), key=lambda place: (-numbers[place], place))
    kept = [place for place in order if numbers[place] > -math.inf][:count]
    assert places[: len(kept)].tolist() == kept
    assert found.tolist() == [numbers[place] for place in kept] + [-math.inf] * (count - len(kept))


def test_rescoring_is_that_of_torch() -> None:
    random = torch.Generator().manual_seed(3)
    hidden, weight = torch.randn(1, 64, generator=random), torch.randn(500, 64, generator=random) / 4
    logits = (hidden.bfloat16() @ weight.bfloat16().T).float()
    total = logits.logsumexp(-1, keepdim=True)
    rounded, tokens = logits.topk(16)
    rounded = rounded - total
    rounded[0, 3] = -math.inf
    expected = rescore_by_torch(hidden, weight, rounded, tokens, total)
    found = rounded[0].numpy().copy()
    rescore(hidden[0].numpy(), (weight * 8).numpy(), np.float32(total.item()), tokens[0].numpy(), found)
    np.testing.assert_allclose(found, expected[0].numpy(), rtol=0, atol=1e-5)


def test_without_numba_torch_computes_and_translates_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = fixture_model("rel_shared")
    ids = np.array([[7, 8, 9], [20, 21, 0]])
    kernels = make_kernels(model, Precision.FLOAT32, 64)
    with_kernels = best(build_engine(model, kernels=kernels), items_of(ids))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert not availability.prepare_kernels(tmp_path)
    assert make_kernels(model, Precision.FLOAT32, 64) is None
    for fast, plain in zip(with_kernels, best(build_engine(model), items_of(ids)), strict=True):
        assert fast.ids == plain.ids
        assert fast.score == pytest.approx(plain.score, abs=1e-5)


def test_what_the_processor_has_no_instructions_for_is_left_to_torch() -> None:
    for precision in Precision:
        kernels = make_kernels(fixture_model("abs_shared"), precision, 64)
        assert (kernels is not None) == (precision in kernel_precisions())
    assert Precision.FLOAT16 not in kernel_precisions()


def test_positions_beyond_those_of_the_weights_are_an_error_and_touch_no_memory() -> None:
    kernels = make_kernels(fixture_model("abs_shared"), Precision.FLOAT32, 8)
    assert kernels is not None
    with pytest.raises(ValueError, match="output limit"):
        kernels.build_search(DecodingOptions(max_target_tokens=101), None)
    search = kernels.build_search(DecodingOptions(), None)
    with pytest.raises(IndexError, match="longer"):
        search.admit([Item((5,) * 8)], [[]])
    search.admit([Item((5,) * 7)], [[]])
    assert len(search) == 1


def test_cores_are_counted_where_the_system_has_no_affinity_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert count_cores() == os.cpu_count()


def test_a_step_of_several_positions_gives_what_single_ones_give(demo_kernels: Kernels) -> None:
    items = [Item(ids) for ids in demo("demo-zh2en").ids[:6]]
    found = []
    for most in (1, 8):
        search = demo_kernels.build_search(DecodingOptions(), most_positions=most)
        search.admit(items, [[]] * 6)
        steps, done = 0, {}
        while len(search):
            done |= {id(finished.item): finished for finished in search.step()}
            steps += 1
        found.append([done[id(item)].result for item in items])
        longest = max(len(one.result[0].ids) + 1 for one in done.values())
        assert longest / most <= steps <= DecodingOptions().max_target_tokens / most + 1
    assert found[0] == found[1]


def test_a_step_is_short_where_rows_are_many_or_the_model_is_large(demo_kernels: Kernels) -> None:
    search = demo_kernels.build_search(DecodingOptions(), most_positions=8)
    positions = []
    for count in (1, 31, 68):
        search.admit([Item((5, 6, 7))] * count, [[]] * count)
        positions.append(search._ahead())
        assert len(search) == sum((1, 31, 68)[: len(positions)])
    assert positions == [8, 4, 1]
    search._decoder_weights *= 100
    search.drop(search.items[1:])
    assert search._ahead() == 1


def test_a_constrained_row_goes_one_position_at_a_time(demo_kernels: Kernels) -> None:
    search = demo_kernels.build_search(DecodingOptions(), most_positions=8)
    search.admit([Item((5, 6, 7)), Item((8, 9))], [[], [RepetitionGuard(3, 4)]])
    search.step()
    assert [row.position for row in search._live] == [1, 1]


def test_rows_that_take_the_places_of_others_go_on_as_before(demo_kernels: Kernels) -> None:
    items = [Item(ids) for ids in demo("demo-zh2en").ids[:5]]

    def decode_some(dropped: list[int]) -> dict[int, object]:
        search, found = demo_kernels.build_search(DecodingOptions()), {}
        search.admit(items, [[]] * len(items))
        for _ in range(3):
            search.step()
        search.drop([items[place] for place in dropped])
        while len(search):
            found |= {id(finished.item): finished.result for finished in search.step()}
        return found

    everything = decode_some([])
    # The last row takes the place of the fourth, then, from there, that of the second.
    some = decode_some([1, 3])
    assert some == {id(items[place]): everything[id(items[place])] for place in (0, 2, 4)}
