"""The rows' tensors: what is in them stays wherever they grow, shrink and move to, within their limits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.csanmt.rows import RowLimits, Rows, RowTensor

CPU = torch.device("cpu")
LAYOUT = {
    "target": RowTensor((2, "R", "T", 3), torch.float32),
    "source": RowTensor((2, "R", 2, "S"), torch.float32),
    "mask": RowTensor(("R", "S"), torch.float32, -math.inf),
    "position": RowTensor(("R",), torch.int64),
}
LIMITS = RowLimits(rows=24, positions=512, target=50)


def fill(rows: Rows, count: int, source: int, target: int) -> dict[str, torch.Tensor]:
    """Write numbers into the used part; return a copy of them."""
    used = parts(rows, count, source, target)
    for part in used.values():
        part.copy_(torch.arange(part.numel()).view(part.shape))
    return {name: part.clone() for name, part in used.items()}


def parts(rows: Rows, count: int, source: int, target: int) -> dict[str, torch.Tensor]:
    return {
        "target": rows["target"][:, :count, :target],
        "source": rows["source"][:, :count, :, :source],
        "mask": rows["mask"][:count, :source],
        "position": rows["position"][:count],
    }


needs = st.tuples(st.integers(1, 24), st.integers(1, 512), st.integers(1, 50))


@settings(max_examples=60, deadline=None)
@given(st.lists(needs, min_size=1, max_size=8), st.booleans())
def test_rows_stay_within_their_limits_and_keep_what_is_in_them(
    wanted: list[tuple[int, int, int]], claim: bool
) -> None:
    rows = Rows(LAYOUT, CPU, LIMITS)
    if claim:
        rows.claim()
    before: dict[str, torch.Tensor] = {}
    kept = (0, 0, 0)
    for count, source, target in wanted:
        if not rows.fits(count, source):
            continue
        rows.reserve({"R": count, "S": source, "T": target})
        capacity = rows.capacity
        assert capacity["R"] >= count
        assert capacity["S"] >= source
        assert capacity["T"] >= target
        assert capacity["R"] * capacity["S"] <= LIMITS.positions
        assert rows.allocated_bytes <= rows.most_bytes()
        common = tuple(map(min, kept, (count, source, target)))
        now = parts(rows, *common)
        for name, part in now.items():
            old = before.get(name)
            if old is not None:
                index = tuple(slice(size) for size in part.shape)
                assert torch.equal(part, old[index])
        kept = (count, source, target)
        before = fill(rows, *kept)


def test_new_places_hold_the_fill_value() -> None:
    rows = Rows(LAYOUT, CPU, LIMITS)
    rows.reserve({"R": 2, "S": 20, "T": 4})
    fill(rows, 2, 20, 4)
    rows.reserve({"R": 5, "S": 90, "T": 4})
    assert (rows["mask"][:2, 20:] == -math.inf).all()
    assert (rows["mask"][2:] == -math.inf).all()
    assert not rows["target"][:, 2:].any()


def test_claimed_memory_stays_where_it_is() -> None:
    rows = Rows(LAYOUT, CPU, LIMITS)
    rows.claim()
    places = {name: rows[name].data_ptr() for name in LAYOUT}
    for count, source in ((24, 16), (1, 512), (8, 60), (24, 20)):
        rows.reserve({"R": count, "S": source, "T": 50})
    rows.release()
    assert {name: rows[name].data_ptr() for name in LAYOUT} == places
    assert (rows["mask"] == -math.inf).all()


def test_rows_without_limits_have_no_bound() -> None:
    rows = Rows(LAYOUT, CPU)
    assert rows.fits(10**6, 10**6)
    with pytest.raises(ValueError, match="limits"):
        rows.most_bytes()
    with pytest.raises(ValueError, match="limits"):
        rows.claim()


def test_a_single_row_may_be_as_long_as_it_is() -> None:
    rows = Rows(LAYOUT, CPU, LIMITS)
    assert rows.fits(1, 512)
    assert not rows.fits(2, 300)
    rows.claim()
    assert not rows.fits(3, 200), "200 positions take 256 once the memory is claimed"
