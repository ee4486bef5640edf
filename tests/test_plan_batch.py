"""plan_batch is pure: its properties hold for every queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_scheduler import BatchPolicy, plan_batch
from tandem.core.errors import SettingsError
from tandem.core.planning import FREE_PADDING_TOKENS, BulkPace, Gathering, TokenCeiling, padded_tokens
from tandem.core.types import Budget, Item, Priority

AMPLE = {priority: Budget(10_000, 10_000_000) for priority in Priority}


def item(length: int, priority: Priority = Priority.INTERACTIVE) -> Item:
    return Item(ids=(7,) * (length - 1), priority=priority)


lengths = st.integers(2, 200)
priorities = st.sampled_from(list(Priority))
queues = st.lists(st.builds(item, lengths, priorities), max_size=40)
budgets = st.builds(Budget, st.integers(0, 40), st.integers(0, 3000))
rooms = st.builds(
    lambda bulk, more: {Priority.BULK: bulk, Priority.INTERACTIVE: Budget(bulk.segments + more, bulk.tokens + more)},
    budgets,
    st.integers(0, 50),
)
policies = st.builds(
    BatchPolicy,
    max_batch_size=st.integers(1, 20),
    max_batch_tokens=st.integers(1, 2000),
    window=st.integers(1, 30),
    max_padding=st.sampled_from([0.0, 0.3, 0.5, 0.9]),
    pause_bulk=st.booleans(),
)


@given(queues, policies, rooms, priorities, st.booleans())
def test_a_batch_never_exceeds_its_token_budget_unless_it_is_a_single_item(queue, policy, room, first, idle):
    batch = plan_batch(queue, policy, room, first=first, idle=idle)
    if len(batch) > 1:
        assert padded_tokens(batch) <= min(policy.max_batch_tokens, room[Priority.INTERACTIVE].tokens)
        assert len(batch) <= min(policy.max_batch_size, room[Priority.INTERACTIVE].segments)


@given(queues, policies, rooms, priorities)
def test_a_batch_with_bulk_items_stays_in_the_room_for_bulk_unless_interactive_items_fill_up_behind(
    queue, policy, room, first
):
    batch = plan_batch(queue, policy, room, first=first)
    bulk = [i for i in batch if i.priority == Priority.BULK]
    if bulk and batch[0].priority == Priority.INTERACTIVE:
        assert len(batch) <= room[Priority.BULK].segments
        assert padded_tokens(batch) <= room[Priority.BULK].tokens
    assert len(bulk) <= room[Priority.BULK].segments


@given(queues, policies, rooms, priorities, st.booleans())
def test_every_planned_item_waits_and_none_is_planned_twice(queue, policy, room, first, idle):
    batch = plan_batch(queue, policy, room, first=first, idle=idle)
    assert len(set(batch)) == len(batch)
    assert set(batch) <= set(queue)


@given(queues, policies, rooms, priorities, st.booleans())
def test_the_oldest_item_of_the_leading_priority_is_in_every_batch(queue, policy, room, first, idle):
    leading = [i for i in queue if i.priority == first] or queue
    batch = plan_batch(queue, policy, room, first=first, idle=idle)
    assert not batch or leading[0] in batch


@given(queues.filter(bool), policies, rooms, priorities)
def test_an_idle_engine_always_gets_something(queue, policy, room, first):
    assert plan_batch(queue, policy, room, first=first, idle=True)


@given(queues, policies, rooms)
def test_nothing_outside_the_window_is_planned(queue, policy, room):
    windows = [[i for i in queue if i.priority == p][: policy.window] for p in Priority]
    batch = plan_batch(queue, policy, room)
    assert set(batch) <= {i for window in windows for i in window}


@given(st.lists(st.builds(item, lengths), min_size=1, max_size=40), policies, st.data())
def test_the_oldest_item_is_planned_before_more_batches_than_items_were_ahead_of_it(queue, policy, data):
    """An adversary adds items after every batch; the one that was last at first still gets its turn."""
    waiting, last = list(queue), queue[-1]
    for _ in range(len(queue)):
        batch = plan_batch(waiting, policy, AMPLE, idle=True)
        if last in batch:
            return
        waiting = [i for i in waiting if i not in batch] + data.draw(st.lists(st.builds(item, lengths), max_size=5))
    raise AssertionError("the item starved")


def best_run_by_trying_all(queue, policy, room):
    """Return the size and padded tokens of the best run in length order around the head: slow and obvious."""
    head, window = queue[0], sorted(queue[: policy.window], key=lambda i: i.length)
    size, tokens = min(policy.max_batch_size, room.segments), min(policy.max_batch_tokens, room.tokens)
    best = (1, -head.length)
    for low in range(len(window)):
        for high in range(low + 1, len(window) + 1):
            run = window[low:high]
            padding = padded_tokens(run) - sum(i.length for i in run)
            is_good = padding <= max(FREE_PADDING_TOKENS, policy.max_padding * padded_tokens(run))
            # By length, since items of one length are interchangeable.
            has_head = run[0].length <= head.length <= run[-1].length
            if has_head and is_good and len(run) <= size and padded_tokens(run) <= tokens:
                best = max(best, (len(run), -padded_tokens(run)))
    return best


@given(st.lists(st.builds(item, lengths), min_size=1, max_size=14), policies, budgets)
def test_the_batch_is_as_large_and_then_as_dense_as_the_best_run_found_by_trying_all(queue, policy, budget):
    room = {priority: budget for priority in Priority}
    batch = plan_batch(queue, policy, room)
    fits = budget.segments >= 1 and queue[0].length <= min(policy.max_batch_tokens, budget.tokens)
    if fits:
        assert (len(batch), -padded_tokens(batch)) == best_run_by_trying_all(queue, policy, budget)
    else:
        # What is too long for a batch but not for the engine's room goes alone.
        assert batch in ([], [queue[0]])


def test_an_item_larger_than_the_whole_budget_runs_alone():
    large, small = item(500), item(10)
    policy = BatchPolicy(max_batch_tokens=100)
    assert plan_batch([large, small], policy, AMPLE) == [large]


def test_an_item_larger_than_the_room_waits_until_the_engine_is_idle_and_nothing_overtakes_it():
    large, small = item(500), item(10)
    room = {priority: Budget(8, 100) for priority in Priority}
    assert plan_batch([large, small], BatchPolicy(), room) == []
    assert plan_batch([large, small], BatchPolicy(), room, idle=True) == [large]


def test_items_of_like_length_are_grouped():
    short, long = [item(10) for _ in range(3)], [item(150) for _ in range(3)]
    queue = [short[0], long[0], short[1], long[1], short[2], long[2]]
    assert set(plan_batch(queue, BatchPolicy(max_batch_tokens=450), AMPLE)) == set(short)


def test_a_few_short_items_are_not_split_over_a_little_padding():
    queue = [item(2), item(2), item(2), item(10)]
    assert set(plan_batch(queue, BatchPolicy(), AMPLE)) == set(queue)


def test_a_long_item_does_not_pad_many_short_ones_even_when_the_budget_would_hold_them():
    shorts, long = [item(8) for _ in range(20)], item(200)
    assert set(plan_batch([*shorts, long], BatchPolicy(max_batch_tokens=100_000), AMPLE)) == set(shorts)


def test_the_oldest_item_is_not_left_behind_for_a_larger_batch_of_longer_ones():
    queue = [item(2), item(3), item(200), item(200), item(200)]
    assert plan_batch(queue, BatchPolicy(max_batch_size=3), AMPLE) == queue[:2]


def test_among_equal_lengths_the_older_items_go_first():
    queue = [item(20), *(item(10) for _ in range(5))]
    assert set(plan_batch(queue, BatchPolicy(max_batch_size=3), AMPLE)) == set(queue[:3])
    queue = [item(10) for _ in range(5)]
    assert plan_batch(queue, BatchPolicy(max_batch_size=3), AMPLE) == queue[:3]


def test_interactive_items_are_planned_before_older_bulk_items():
    bulk, page = item(10, Priority.BULK), item(10)
    assert plan_batch([bulk, page], BatchPolicy(), AMPLE) == [page]


def test_bulk_items_ride_along_only_where_they_do_not_pause_and_make_the_batch_no_longer():
    page, fits, longer = item(10), item(9, Priority.BULK), item(11, Priority.BULK)
    assert plan_batch([fits, longer, page], BatchPolicy(pause_bulk=False), AMPLE) == [page, fits]


def test_when_bulk_leads_interactive_items_fill_what_is_left():
    bulk, page = item(10, Priority.BULK), item(10)
    assert plan_batch([page, bulk], BatchPolicy(), AMPLE, first=Priority.BULK) == [bulk, page]


def test_an_empty_queue_gives_an_empty_batch():
    assert plan_batch([], BatchPolicy(), AMPLE, idle=True) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_batch_size", 0),
        ("max_batch_tokens", -1),
        ("max_queue", 0),
        ("window", 0),
        ("max_wait_ms", -0.1),
        ("max_padding", 1.0),
        ("interactive_share", -0.1),
        ("bulk_every", 0),
        ("recovery_s", 0),
    ],
)
def test_an_impossible_policy_names_the_field_and_the_value(name, value):
    with pytest.raises(SettingsError, match=rf"{name}.*{value}"):
        BatchPolicy(**{name: value})


def test_bulk_always_has_a_place():
    assert BatchPolicy(max_queue=1, interactive_share=0.9).bulk_places == 1
    assert BatchPolicy(max_queue=100, interactive_share=0.25).bulk_places == 75


def test_there_is_no_ceiling_before_memory_ran_out():
    assert TokenCeiling(10.0).limit(1e9) is None


def test_the_ceiling_is_half_of_what_failed_and_rises_slowly_until_it_is_gone():
    ceiling = TokenCeiling(recovery_s=10.0)
    ceiling.lower(1000, now_s=50.0)
    assert [ceiling.limit(50.0 + t) for t in (0, 9.9, 10, 20, 30, 40)] == [500, 500, 625, 781, 976, None]


def test_a_second_shortage_halves_the_ceiling_again_and_it_still_rises_to_the_first_goal():
    ceiling = TokenCeiling(recovery_s=10.0)
    ceiling.lower(1000, now_s=0.0)
    ceiling.lower(400, now_s=1.0)
    assert ceiling.limit(1.0) == 200
    assert ceiling.limit(71.0) == 953
    assert ceiling.limit(81.0) is None


def test_a_tiny_ceiling_is_gone_at_last():
    ceiling = TokenCeiling(recovery_s=1.0)
    for _ in range(40):
        ceiling.lower(10**9, now_s=0.0)
    assert ceiling.limit(0.0) == 1
    assert ceiling.limit(1e9) is None


# Pieces of bulk work


@given(queues, policies, st.integers(1, 500))
def test_a_piece_of_bulk_work_holds_its_limit_or_a_single_item(queue, policy, piece):
    bulk = [i for i in queue if i.priority == Priority.BULK]
    batch = plan_batch(bulk, policy, AMPLE, piece_tokens=piece)
    assert bool(batch) == bool(bulk and bulk[0].length <= policy.max_batch_tokens) or len(batch) == 1
    assert len(batch) <= 1 or padded_tokens(batch) <= max(piece, bulk[0].length)


@given(queues, policies)
def test_interactive_items_are_not_cut_into_pieces(queue, policy):
    people = [i for i in queue if i.priority == Priority.INTERACTIVE]
    assert plan_batch(people, policy, AMPLE, piece_tokens=1) == plan_batch(people, policy, AMPLE)


def test_pieces_grow_to_what_the_device_does_in_twenty_milliseconds():
    pace = BulkPace()
    sizes = []
    for _ in range(6):
        sizes.append(pace.tokens)
        pace.note(pace.tokens, 4.0 + pace.tokens * 0.02)
    assert sizes[:3] == [64, 128, 256]
    assert sizes[-1] == pytest.approx(16.0 / 0.02, rel=0.1)


def test_pieces_shrink_at_once_but_never_below_what_a_product_needs():
    pace = BulkPace()
    for _ in range(5):
        pace.note(pace.tokens, 1.0)
    pace.note(100, 2000.0)
    assert pace.tokens == 64


# Gathering


def test_items_wait_together_as_long_as_an_admission_would_hold_up_what_runs():
    gathering = Gathering()
    gathering.note_admission(64, 8.0)  # of which half would be there for a single token too
    arrivals, held = [1, 2, 3, 4, 5], []
    for items in arrivals:
        held.append(not gathering.is_complete(items, running=15))
        gathering.note_step(10.0)
    # 15 rows x 4 ms = 60 ms are 10 + 20 + 30; the admission of the fourth turn ends the wait, and a new one begins.
    assert held == [True, True, True, False, True]


@given(st.integers(1, 50), st.integers(0, 50))
def test_nothing_is_held_while_nothing_runs_or_nothing_is_known(items, running):
    gathering = Gathering()
    assert gathering.is_complete(items, running)
    gathering.note_admission(64, 8.0)
    assert gathering.is_complete(items, 0)


def test_a_slow_admission_is_forgotten_at_once_and_a_fast_one_soon():
    gathering = Gathering()
    for duration_ms in (100.0, 1.0):
        gathering.note_admission(0, duration_ms)
    gathering.is_complete(1, running=2)
    gathering.note_step(2.0)
    assert gathering.is_complete(1, running=2)
    for _ in range(20):
        gathering.note_admission(0, 5.0)
    gathering.is_complete(1, running=2)
    gathering.note_step(9.0)
    assert not gathering.is_complete(1, running=2)
