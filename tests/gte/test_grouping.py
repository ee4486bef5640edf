from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.gte.grouping import plan_groups

lengths_of_texts = st.lists(st.integers(1, 512), max_size=200)


def padded_tokens(lengths: Sequence[int], groups: Sequence[Sequence[int]]) -> int:
    return sum(max(lengths[index] for index in group) * len(group) for group in groups)


@given(lengths_of_texts, st.integers(1, 4096), st.floats(0, 0.5))
def test_every_text_is_in_exactly_one_group(lengths: list[int], budget: int, share: float) -> None:
    groups = plan_groups(lengths, budget, share)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(groups)


@given(lengths_of_texts, st.integers(1, 4096), st.floats(0, 0.5))
def test_a_group_of_several_texts_never_exceeds_its_budget(lengths: list[int], budget: int, share: float) -> None:
    groups = plan_groups(lengths, budget, share)
    assert all(len(group) == 1 or padded_tokens(lengths, [group]) <= budget for group in groups)


@given(lengths_of_texts, st.integers(1, 4096))
def test_padding_stays_under_a_tenth_whatever_the_lengths(lengths: list[int], budget: int) -> None:
    padded = padded_tokens(lengths, plan_groups(lengths, budget))
    assert padded - sum(lengths) <= 0.1 * padded


@given(lengths_of_texts, st.integers(1, 4096))
def test_a_share_of_zero_puts_only_equal_lengths_together(lengths: list[int], budget: int) -> None:
    assert all(len({lengths[index] for index in group}) == 1 for group in plan_groups(lengths, budget, 0.0))


@given(lengths_of_texts)
def test_groups_and_their_texts_go_from_long_to_short(lengths: list[int]) -> None:
    order = [lengths[index] for group in plan_groups(lengths, 2048) for index in group]
    assert order == sorted(lengths, reverse=True)


@pytest.mark.parametrize("count", [8, 32, 512])
def test_log_normal_lengths_need_few_groups_for_under_a_tenth_of_padding(count: int) -> None:
    drawn = np.random.default_rng(0).lognormal(np.log(30), 0.8, count)
    lengths = np.clip(drawn, 5, 400).astype(int).tolist()
    groups = plan_groups(lengths, 1 << 20)
    padded = padded_tokens(lengths, groups)
    one_group = max(lengths) * count
    assert (padded - sum(lengths)) / padded < 0.1 < (one_group - sum(lengths)) / one_group
    assert len(groups) <= min(count, 32)


def test_equal_lengths_fill_groups_up_to_the_budget() -> None:
    assert plan_groups([10] * 5, 20) == [[0, 1], [2, 3], [4]]


def test_a_text_longer_than_the_budget_runs_alone() -> None:
    assert plan_groups([4, 100, 4], 8) == [[1], [0, 2]]
