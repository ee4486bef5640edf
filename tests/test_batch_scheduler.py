"""The scheduler with engines that misbehave: turned by hand on a fake clock, on its own thread where that matters."""

from __future__ import annotations

import math
import random
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch_scheduler import BatchPolicy, BatchScheduler
from tandem.core.device_lock import DeviceLock
from tandem.core.errors import (
    CancelledError,
    DeadlineError,
    EngineError,
    NonFiniteError,
    NotReadyError,
    OverloadedError,
    TandemError,
    TooLargeError,
)
from tandem.core.queueing import WaitingRoom
from tandem.core.threads import NativeThread
from tandem.core.types import Budget, Finished, Item, Priority
from tests.support.clock import FakeClock
from tests.support.engines import FakeEngine
from tests.support.waiting import TIMEOUT_S, eventually

BULK, INTERACTIVE = Priority.BULK, Priority.INTERACTIVE
SECRET = "secret user text"


def make(engine, clock=None, **policy):
    return BatchScheduler(engine, BatchPolicy(**policy), name="test", clock=clock or FakeClock())


def item(*ids, priority=INTERACTIVE, deadline_s=math.inf):
    return Item(ids=ids or (1,), priority=priority, deadline_s=deadline_s)


def items(count, first=1, **fields):
    return [item(first + n, **fields) for n in range(count)]


def drive(scheduler, limit=2000):
    """Turn until there is nothing to do."""
    for _ in range(limit):
        if not scheduler.turn():
            return
    raise AssertionError("the scheduler never came to rest")


def results(futures):
    return [future.result(0).result for future in futures]


def errors(futures):
    return [future.exception(0) for future in futures]


@contextmanager
def callers(scheduler):
    """Give threads for calls that block; a test that fails does not leave them blocked."""
    pool = ThreadPoolExecutor(2)
    try:
        yield pool
    except BaseException:
        scheduler.close(0)
        raise
    finally:
        pool.shutdown()


@pytest.fixture
def threaded():
    """Start schedulers on their own threads and close them afterwards."""
    started = []

    def start(engine, **policy):
        scheduler = BatchScheduler(engine, BatchPolicy(**policy), name="test")
        scheduler.start()
        started.append(scheduler)
        return scheduler

    yield start
    for scheduler in started:
        assert scheduler.close(TIMEOUT_S)


# Results and timing


def test_the_first_item_starts_at_once_when_the_engine_is_idle():
    engine = FakeEngine()
    scheduler = make(engine)
    future = scheduler.submit(item(5))
    assert scheduler.turn()
    assert future.result(0).result == ("done", (5,), 1)


def test_an_outcome_says_how_long_the_item_waited_and_was_computed():
    clock = FakeClock()
    engine = FakeEngine(steps=3, clock=clock)
    engine.seconds_per_call = 0.25
    scheduler = make(engine, clock)
    future = scheduler.submit(item(5))
    clock.advance(2.0)
    drive(scheduler)
    outcome = future.result(0)
    assert (outcome.queue_ms, outcome.compute_ms) == (2000.0, 1000.0)


def test_what_arrives_while_the_engine_is_busy_runs_together_afterwards():
    engine = FakeEngine()
    scheduler = make(engine)
    engine.before_step = lambda: late.extend(scheduler.submit_many(items(5, 10))) if not late else None
    late = []
    scheduler.submit(item(1))
    drive(scheduler)
    assert [len(batch) for batch in engine.calls.admitted] == [1, 5]
    assert results(late) == [("done", (n,), 1) for n in range(10, 15)]


def test_an_item_joins_a_running_batch_at_the_next_step_and_a_short_one_leaves_before_a_long_one():
    engine = FakeEngine(steps=lambda i: i.ids[0])
    scheduler = make(engine)
    long = scheduler.submit(item(9))
    scheduler.turn()
    short = scheduler.submit(item(2))
    scheduler.turn()
    scheduler.turn()
    assert short.done() and not long.done()
    drive(scheduler)
    assert results([long, short]) == [("done", (9,), 9), ("done", (2,), 2)]


def test_an_item_larger_than_every_budget_still_runs_alone():
    engine = FakeEngine(rooms={p: Budget(4, 20) for p in Priority})
    scheduler = make(engine, max_batch_tokens=10)
    futures = scheduler.submit_many([item(*range(50)), *items(3)])
    drive(scheduler)
    assert all(error is None for error in errors(futures))
    assert [len(batch) for batch in engine.calls.admitted] == [1, 3]


def test_the_engines_room_is_never_exceeded():
    engine = FakeEngine(steps=3, rooms={INTERACTIVE: Budget(4, 1000), BULK: Budget(3, 1000)})
    peak = []
    engine.before_step = lambda: peak.append(len(engine.rows))
    scheduler = make(engine)
    futures = scheduler.submit_many(items(20)) + scheduler.submit_many(items(20, 100, priority=BULK))
    drive(scheduler)
    assert len(results(futures)) == 40
    assert max(peak) == 4


def test_an_item_can_be_submitted_only_once():
    scheduler = make(FakeEngine())
    twice = item(1)
    scheduler.submit(twice)
    with pytest.raises(ValueError, match="only once"):
        scheduler.submit(twice)
    with pytest.raises(ValueError, match="only once"):
        scheduler.submit_many([other := item(2), other])


def test_an_empty_request_has_no_futures():
    assert make(FakeEngine()).submit_many([]) == []


# max_wait_ms


def test_the_first_item_is_held_back_until_the_oldest_has_waited_long_enough():
    clock, engine = FakeClock(), FakeEngine()
    scheduler = make(engine, clock, max_wait_ms=10)
    scheduler.submit(item(1))
    clock.advance(0.006)
    scheduler.submit(item(2))
    assert not scheduler.turn()
    clock.advance(0.005)
    assert scheduler.turn()
    assert engine.calls.admitted == [[(1,), (2,)]]


def test_a_full_batch_is_not_held_back():
    scheduler = make(engine := FakeEngine(), max_wait_ms=10, max_batch_size=2)
    scheduler.submit_many(items(2))
    scheduler.turn()
    assert engine.calls.admitted == [[(1,), (2,)]]


def test_nothing_is_held_back_while_draining_since_nobody_else_will_come():
    scheduler = make(FakeEngine(), max_wait_ms=10)
    future = scheduler.submit(item(1))
    assert not scheduler.drain(0)
    drive(scheduler)
    assert future.done()


# The waiting room


def test_a_full_waiting_room_refuses_and_computes_nothing():
    scheduler = make(engine := FakeEngine(), max_queue=2)
    scheduler.submit_many(items(2))
    with pytest.raises(OverloadedError) as caught:
        scheduler.submit(refused := item(99))
    assert caught.value.status == 429
    drive(scheduler)
    assert refused.ids not in chain(*engine.calls.tried)
    assert scheduler.stats().refused == 1
    assert scheduler.submit(refused)


def test_a_request_larger_than_the_waiting_room_trickles_in_and_only_its_caller_waits():
    scheduler = make(FakeEngine(steps=2), max_queue=4, max_batch_size=2)
    with callers(scheduler) as pool:
        request = pool.submit(scheduler.submit_many, items(10))
        eventually(lambda: scheduler.stats().backlog == 6)
        assert scheduler.stats().waiting == 4
        scheduler.turn()
        assert (scheduler.stats().waiting, scheduler.stats().backlog) == (4, 4)
        assert not request.done()
        drive(scheduler)
        assert results(request.result(TIMEOUT_S)) == [("done", (n,), 2) for n in range(1, 11)]


def test_a_request_whose_first_item_finds_no_place_is_refused_as_a_whole():
    scheduler = make(engine := FakeEngine(), max_queue=1)
    scheduler.submit(item(1))
    with pytest.raises(OverloadedError):
        scheduler.submit_many(items(3, 10))
    drive(scheduler)
    assert engine.calls.admitted == [[(1,)]]


def test_what_an_accepted_request_wants_next_waits_for_room_that_its_own_items_fill():
    scheduler = make(FakeEngine(), max_queue=4, interactive_share=0.5, max_batch_size=1)
    first = scheduler.submit_many(items(2, priority=BULK))
    with callers(scheduler) as pool:
        more = pool.submit(scheduler.submit_many, items(2, 10, priority=BULK), is_follow_up=True)
        eventually(lambda: scheduler.stats().backlog == 2)
        assert scheduler.stats().waiting == 2
        drive(scheduler)
        assert len(results(first + more.result(TIMEOUT_S))) == 4
    assert scheduler.stats().refused == 0


def test_two_large_requests_trickle_in_by_turns():
    scheduler = make(engine := FakeEngine(), max_queue=3, max_batch_size=1, interactive_share=0.34)
    with callers(scheduler) as pool:
        bulk = items(4, 10, priority=BULK)
        first = pool.submit(scheduler.submit_many, bulk)
        eventually(lambda: scheduler.stats().backlog == 2)
        # The only place that is open to a second request is one that bulk may not take.
        second = pool.submit(scheduler.submit_many, items(3, 20))
        eventually(lambda: scheduler.stats().backlog == 4)
        for one in bulk:
            scheduler.raise_priority(one)
        drive(scheduler)
        assert len(results(first.result(TIMEOUT_S) + second.result(TIMEOUT_S))) == 7
    assert [ids[0] for (ids,) in engine.calls.admitted] == [10, 11, 20, 12, 21, 13, 22]


def waiting_ids(scheduler):
    return [ticket.item.ids for ticket in scheduler._room.snapshot()]


def test_bulk_items_cannot_take_the_last_places():
    scheduler = make(FakeEngine(), max_queue=4, interactive_share=0.5)
    scheduler.submit(item(1, priority=BULK))
    scheduler.submit(item(2, priority=BULK))
    with pytest.raises(OverloadedError):
        scheduler.submit(item(3, priority=BULK))
    assert scheduler.submit(item(4))


def test_a_cancelled_item_gives_its_place_up_at_once():
    scheduler = make(FakeEngine(), max_queue=1)
    scheduler.submit(first := item(1))
    scheduler.cancel(first)
    assert scheduler.submit(item(2))


def test_items_of_a_backlog_can_be_cancelled_and_then_their_caller_waits_no_longer():
    scheduler = make(engine := FakeEngine(), max_queue=1)
    request = items(3)
    with callers(scheduler) as pool:
        pending = pool.submit(scheduler.submit_many, request)
        eventually(lambda: scheduler.stats().backlog == 2)
        for one in request[1:]:
            assert scheduler.cancel(one)
        futures = pending.result(TIMEOUT_S)
    drive(scheduler)
    assert [type(error) for error in errors(futures)] == [type(None), CancelledError, CancelledError]
    assert engine.calls.tried == [[(1,)]]


# Deadlines


def test_an_item_whose_deadline_passes_while_it_waits_costs_nothing():
    clock, engine = FakeClock(), FakeEngine()
    scheduler = make(engine, clock)
    late = scheduler.submit(item(1, deadline_s=clock() + 1))
    kept = scheduler.submit(item(2, deadline_s=clock() + 3))
    clock.advance(2)
    drive(scheduler)
    assert isinstance(late.exception(0), DeadlineError)
    assert kept.result(0)
    assert engine.calls.tried == [[(2,)]]
    assert scheduler.stats().expired == 1


def test_a_running_item_whose_deadline_passes_is_dropped_at_the_next_step_boundary():
    clock, engine = FakeClock(), FakeEngine(steps=5)
    scheduler = make(engine, clock)
    late, kept = scheduler.submit_many([item(1, deadline_s=clock() + 1), item(2)])
    scheduler.turn()
    clock.advance(2)
    scheduler.turn()
    assert isinstance(late.exception(0), DeadlineError)
    assert engine.calls.cancelled == [(1,)]
    drive(scheduler)
    assert kept.result(0).result == ("done", (2,), 5)


def test_a_result_that_is_there_is_delivered_even_if_its_deadline_passed_during_the_step():
    clock = FakeClock()
    engine = FakeEngine(clock=clock)
    engine.seconds_per_call = 5
    scheduler = make(engine, clock)
    future = scheduler.submit(item(1, deadline_s=clock() + 1))
    scheduler.turn()
    assert future.result(0).result == ("done", (1,), 1)


def test_a_deadline_that_is_moved_while_the_item_waits_is_obeyed():
    clock = FakeClock()
    scheduler = make(FakeEngine(), clock)
    future = scheduler.submit(moved := item(1, deadline_s=clock() + 1))
    moved.deadline_s += 10
    clock.advance(2)
    drive(scheduler)
    assert future.result(0)


def test_places_that_expired_items_leave_go_to_the_backlog():
    clock = FakeClock()
    scheduler = make(FakeEngine(), clock, max_queue=2)
    with callers(scheduler) as pool:
        request = pool.submit(scheduler.submit_many, [*items(2, deadline_s=clock() + 1), *items(2, 10)])
        eventually(lambda: scheduler.stats().backlog == 2)
        clock.advance(2)
        drive(scheduler)
        futures = request.result(TIMEOUT_S)
    assert [type(error) for error in errors(futures)] == [DeadlineError, DeadlineError, type(None), type(None)]


def test_a_caller_is_not_stuck_in_the_queue_beyond_its_deadline_even_if_the_engine_is():
    scheduler = BatchScheduler(FakeEngine(), BatchPolicy(max_queue=1), name="test")
    futures = scheduler.submit_many(items(3, deadline_s=time.monotonic() + 0.02))
    assert all(isinstance(error, DeadlineError) for error in errors(futures))
    assert scheduler.drain(0)


# Cancellation


def test_a_cancelled_waiting_item_is_never_computed():
    scheduler = make(engine := FakeEngine())
    future = scheduler.submit(gone := item(1))
    assert scheduler.cancel(gone)
    assert isinstance(future.exception(0), CancelledError)
    drive(scheduler)
    assert engine.calls.tried == []
    assert not scheduler.cancel(gone)
    assert scheduler.stats().cancelled == 1


def test_setting_cancelled_on_the_item_is_enough():
    scheduler = make(engine := FakeEngine())
    future = scheduler.submit(gone := item(1))
    gone.cancelled = True
    drive(scheduler)
    assert future.cancelled() and engine.calls.tried == []


def test_a_cancelled_running_item_leaves_the_engine_at_the_next_step_boundary():
    scheduler = make(engine := FakeEngine(steps=4))
    gone, kept = scheduler.submit_many([item(1), item(2)])
    scheduler.turn()
    assert gone.cancel()
    scheduler.turn()
    assert engine.calls.cancelled == [(1,)]
    assert engine.calls.steps[-1] == (INTERACTIVE, 1)
    drive(scheduler)
    assert kept.result(0) and gone.cancelled()
    assert scheduler.stats().cancelled == 1


def test_a_finished_item_cannot_be_cancelled():
    scheduler = make(FakeEngine())
    future = scheduler.submit(done := item(1))
    drive(scheduler)
    assert not scheduler.cancel(done)
    assert not future.cancel()
    assert future.result(0)


# Priorities


def test_interactive_items_go_before_bulk_items_that_wait_longer():
    scheduler = make(engine := FakeEngine(), max_batch_size=2)
    scheduler.submit_many(items(4, 10, priority=BULK))
    scheduler.submit(item(1))
    drive(scheduler)
    assert engine.calls.admitted[0] == [(1,)]


def test_a_raised_item_overtakes():
    scheduler = make(engine := FakeEngine(), max_batch_size=1)
    bulk = items(3, 10, priority=BULK)
    scheduler.submit_many(bulk)
    scheduler.raise_priority(bulk[2])
    drive(scheduler)
    assert engine.calls.admitted == [[(12,)], [(10,)], [(11,)]]


def test_running_bulk_rows_pause_for_interactive_ones_but_get_one_step_in_ten():
    scheduler = make(engine := FakeEngine(steps=lambda i: 30 if i.priority else 1000))
    scheduler.submit(item(1, priority=BULK))
    scheduler.turn()
    page = scheduler.submit(item(2))
    engine.calls.steps.clear()
    while not page.done():
        scheduler.turn()
    assert [n for n, (at_least, _) in enumerate(engine.calls.steps) if at_least == BULK] == [9, 19, 29]


def test_waiting_bulk_items_get_in_beside_endless_interactive_ones():
    scheduler = make(engine := FakeEngine(steps=3))
    bulk = scheduler.submit(item(1, priority=BULK))
    for n in range(100):
        scheduler.submit(item(100 + n))
        scheduler.turn()
    assert bulk.done()
    assert (1,) not in chain(*engine.calls.admitted[:9])


def test_bulk_gets_in_even_if_interactive_items_would_fill_every_place_for_ever():
    rooms = {INTERACTIVE: Budget(4, 1000), BULK: Budget(3, 1000)}
    scheduler = make(FakeEngine(steps=5, rooms=rooms), pause_bulk=False)
    bulk = scheduler.submit(item(1, priority=BULK))
    for n in range(200):
        scheduler.submit_many(items(2, 1000 + 2 * n))
        scheduler.turn()
    assert bulk.done()


def test_a_device_full_of_bulk_does_not_hold_interactive_items_back():
    rooms = {INTERACTIVE: Budget(4, 1000), BULK: Budget(3, 1000)}
    scheduler = make(FakeEngine(steps=lambda i: 1 if i.priority else 500, rooms=rooms), pause_bulk=False)
    scheduler.submit_many(items(6, priority=BULK))
    for n in range(50):
        page = scheduler.submit(item(100 + n))
        scheduler.turn()
        assert page.done()


def test_bulk_rides_along_where_it_does_not_pause():
    scheduler = make(engine := FakeEngine(), pause_bulk=False)
    scheduler.submit_many([item(1, priority=BULK), item(2)])
    scheduler.turn()
    assert sorted(engine.calls.admitted[0]) == [(1,), (2,)]
    assert engine.calls.steps == [(BULK, 2)]


def bulk_items(count, tokens=15):
    return [item(*range(100 * n, 100 * n + tokens), priority=BULK) for n in range(count)]


def test_a_person_who_comes_during_a_bulk_admission_waits_for_that_piece_only():
    clock = FakeClock()
    engine = FakeEngine(steps=lambda i: 3 if i.priority else 20, clock=clock)
    engine.seconds_per_call, engine.seconds_per_token = 0.001, 0.0005
    scheduler = make(engine, clock)
    scheduler.submit_many(bulk_items(32))
    people = []

    def come():
        if len(engine.calls.tried) == 1 and not people:
            people.append(scheduler.submit(item(1)))

    engine.before_admit = come
    while not (people and people[0].done()):
        scheduler.turn()
    # Behind the piece at hand (its time passed before `come`) nothing comes first, not even a step of bulk rows.
    assert people[0].result(0).queue_ms == 0
    assert engine.calls.admitted[2] == [(1,)]
    assert [len(batch) for batch in engine.calls.admitted[:2]] == [4, 4]


def test_a_list_is_encoded_in_pieces_of_twenty_milliseconds_and_comes_in_whole():
    clock = FakeClock()
    engine = FakeEngine(steps=20, clock=clock)
    engine.seconds_per_call, engine.seconds_per_token = 0.001, 0.0001
    scheduler = make(engine, clock)
    futures = scheduler.submit_many(bulk_items(64))
    drive(scheduler)
    assert len(results(futures)) == 64
    assert [len(batch) for batch in engine.calls.admitted] == [4, 8, 11, 11, 11, 11, 8]


def test_a_piece_of_an_engine_that_finishes_all_in_one_step_is_bounded_with_its_step():
    clock = FakeClock()
    engine = FakeEngine(steps=1, clock=clock)
    scheduler = make(engine, clock)
    engine.before_step = lambda: clock.advance(0.001 * sum(i.length for i in engine.rows))
    scheduler.submit_many(bulk_items(32))
    drive(scheduler)
    # A token takes a millisecond: twenty of them are less than the smallest piece, four items of 16.
    assert {len(batch) for batch in engine.calls.admitted} == {4}


def test_a_bulk_item_longer_than_a_piece_gets_in_beside_others():
    engine = FakeEngine(steps=50)
    scheduler = make(engine)
    scheduler.submit_many([item(1, priority=BULK), item(*range(10, 400), priority=BULK)])
    scheduler.turn()
    scheduler.turn()
    assert [len(batch[0]) for batch in engine.calls.admitted] == [1, 390]


def test_where_bulk_rides_along_it_is_not_cut_into_pieces():
    scheduler = make(engine := FakeEngine(), pause_bulk=False)
    scheduler.submit_many(bulk_items(32))
    scheduler.turn()
    assert [len(batch) for batch in engine.calls.admitted] == [32]


def test_a_list_that_had_the_device_to_itself_waits_longer_for_a_person_but_not_for_ever():
    scheduler = make(engine := FakeEngine(steps=lambda i: 200 if i.priority else 1000))
    scheduler.submit(item(1, priority=BULK))
    for _ in range(50):
        scheduler.turn()
    engine.calls.steps.clear()
    page = scheduler.submit(item(2))
    while not page.done():
        scheduler.turn()
    bulk_steps = [n for n, (at_least, _) in enumerate(engine.calls.steps) if at_least == BULK]
    assert bulk_steps[:3] == [90, 100, 110]


def test_a_person_who_comes_now_and_then_never_waits_for_a_step_of_a_list():
    scheduler = make(engine := FakeEngine(steps=lambda i: 20 if i.priority else 10_000))
    scheduler.submit(item(1, priority=BULK))
    for n in range(5):
        for _ in range(10):
            scheduler.turn()
        engine.calls.steps.clear()
        page = scheduler.submit(item(2 + n))
        while not page.done():
            scheduler.turn()
        assert [at_least for at_least, _ in engine.calls.steps] == [INTERACTIVE] * 20


def test_people_who_come_one_after_the_other_do_not_starve_bulk_rows():
    scheduler = make(engine := FakeEngine(steps=lambda i: 6 if i.priority else 1000))
    scheduler.submit(item(1, priority=BULK))
    scheduler.turn()
    engine.calls.steps.clear()
    for n in range(20):
        page = scheduler.submit(item(2 + n))
        while not page.done():
            scheduler.turn()
    assert [at_least for at_least, _ in engine.calls.steps].count(BULK) == len(engine.calls.steps) // 10


# Gathering


def slow_engine(steps):
    engine = FakeEngine(steps=steps, clock=FakeClock())
    engine.seconds_per_call = 0.004
    return engine


def test_those_who_come_one_by_one_while_many_run_are_admitted_together():
    engine = slow_engine(lambda i: 3 if i.ids[0] >= 100 else 1000)
    scheduler = make(engine, engine.clock)
    scheduler.submit_many(items(20))
    scheduler.turn()
    engine.calls.admitted.clear()
    late = []
    for n in range(30):
        late.append(scheduler.submit(item(100 + n)))
        scheduler.turn()
    # 20 rows would stand still for each of 30 admissions.
    assert 3 <= len(engine.calls.admitted) <= 7
    while not all(future.done() for future in late):
        scheduler.turn()


def test_the_first_to_come_is_not_held_and_neither_is_a_person_beside_a_list():
    engine = slow_engine(1000)
    scheduler = make(engine, engine.clock)
    scheduler.submit_many(bulk_items(4))
    scheduler.turn()
    scheduler.submit(item(1))
    scheduler.turn()
    assert engine.calls.admitted[1] == [(1,)]


# Whole batches


def test_a_batch_of_whole_batches_is_closed_once_it_has_started_and_its_finished_rows_leave_it():
    engine = FakeEngine(steps=lambda i: i.ids[0])
    scheduler = make(engine, continuous=False, max_batch_size=2)
    short, long = scheduler.submit_many([item(2), item(4)])
    scheduler.turn()
    late = scheduler.submit(item(1))
    scheduler.turn()
    assert short.done() and not long.done()
    drive(scheduler)
    assert engine.calls.admitted == [[(2,), (4,)], [(1,)]]
    assert [rows for _, rows in engine.calls.steps] == [2, 2, 1, 1, 1]
    assert results([short, long, late]) == [("done", (n,), n) for n in (2, 4, 1)]


def test_whole_batches_are_closed_to_people_too_and_take_all_of_a_list_that_fits():
    engine = FakeEngine(steps=3)
    scheduler = make(engine, continuous=False)
    scheduler.submit_many(bulk_items(32))
    scheduler.turn()
    person = scheduler.submit(item(1))
    scheduler.turn()
    assert not person.done()
    drive(scheduler)
    assert [len(batch) for batch in engine.calls.admitted] == [32, 1]


def test_whole_batches_isolate_the_item_at_fault_too():
    engine = FakeEngine(steps=3)
    engine.bad_at_step = {3}
    futures = (scheduler := make(engine, continuous=False)).submit_many(items(6))
    drive(scheduler)
    assert [n for n, error in enumerate(errors(futures), start=1) if error] == [3]


# Failures of the engine


def test_when_admit_raises_only_the_item_at_fault_gets_an_error():
    engine = FakeEngine()
    engine.bad_at_admit = {5}
    futures = (scheduler := make(engine)).submit_many(items(8))
    drive(scheduler)
    failed = [n for n, error in enumerate(errors(futures), start=1) if error]
    assert failed == [5]
    assert isinstance(futures[4].exception(0), EngineError)
    # 8, then halves down to the one: two tries a level.
    assert len(engine.calls.tried) == 7


def test_when_step_raises_the_live_items_start_again_and_only_the_one_at_fault_fails():
    engine = FakeEngine(steps=3)
    engine.bad_at_step = {5}
    futures = (scheduler := make(engine)).submit_many(items(8))
    drive(scheduler)
    assert [n for n, error in enumerate(errors(futures), start=1) if error] == [5]
    assert engine.calls.resets == 4
    # Three whole steps since their last admission: nothing partial was kept.
    assert results(futures[:4] + futures[5:]) == [("done", (n,), 3) for n in (1, 2, 3, 4, 6, 7, 8)]


def test_new_items_do_not_join_a_group_under_suspicion():
    engine = FakeEngine(steps=2)
    engine.bad_at_step = {2}
    scheduler = make(engine)
    scheduler.submit_many(items(4))
    scheduler.turn()
    late = scheduler.submit(item(99))
    drive(scheduler)
    assert late.result(0)
    assert engine.calls.tried[-1] == [(99,)]


def test_when_everything_fails_everybody_gets_an_error_of_his_own():
    engine = FakeEngine()
    engine.bad_at_step = range(100)
    futures = (scheduler := make(engine)).submit_many(items(9))
    drive(scheduler)
    assert all(isinstance(error, EngineError) for error in errors(futures))
    assert len(set(map(id, errors(futures)))) == 9


def test_an_item_that_gives_nan_fails_alone():
    engine = FakeEngine()
    engine.not_finite = {2}
    futures = (scheduler := make(engine)).submit_many(items(3))
    drive(scheduler)
    assert [type(error) for error in errors(futures)] == [type(None), NonFiniteError, type(None)]
    assert engine.calls.resets == 0


@pytest.mark.parametrize("where", ["bad_at_admit", "bad_at_step"])
def test_neither_callers_nor_events_see_the_message_of_a_foreign_error(where):
    told = []
    engine = FakeEngine()
    setattr(engine, where, {1})
    scheduler = BatchScheduler(engine, BatchPolicy(), name="test", clock=FakeClock(), on_event=told.append)
    future = scheduler.submit(item(1))
    drive(scheduler)
    error = future.exception(0)
    assert SECRET not in str(error) and "RuntimeError" in str(error)
    assert error.__cause__ is None and error.__context__ is None
    failed = [event for event in told if event.kind == "failed"]
    assert len(failed) == 1 and SECRET not in failed[0].detail
    assert "RuntimeError" in failed[0].detail and "engines.py" in failed[0].detail


def test_an_error_made_for_callers_reaches_them_as_it_is():
    engine = FakeEngine()
    engine.bad_at_admit = {1}
    engine.error = lambda: TooLargeError("A text may have 512 tokens at most.")
    futures = (scheduler := make(engine)).submit_many(items(2))
    drive(scheduler)
    assert isinstance(futures[0].exception(0), TooLargeError)
    assert futures[1].result(0)


def test_an_item_that_the_engine_loses_gets_an_error_instead_of_waiting_for_ever():
    engine = FakeEngine(steps=3)
    future = (scheduler := make(engine)).submit(item(1))
    scheduler.turn()
    engine.rows.clear()
    scheduler.turn()
    assert isinstance(future.exception(0), EngineError)


def test_rows_that_nobody_knows_are_cancelled():
    engine = FakeEngine(steps=3)
    scheduler = make(engine)
    engine.rows[item(77)] = 0
    scheduler.turn()
    assert engine.calls.cancelled == [(77,)] and not engine.rows


def test_a_result_for_an_item_nobody_knows_is_ignored():
    engine = FakeEngine()
    scheduler = make(engine)
    real_step = engine.step
    engine.step = lambda at_least: [Finished(item(55), ("done", (), 0)), *real_step(at_least)]
    future = scheduler.submit(item(1))
    drive(scheduler)
    assert future.result(0).result == ("done", (1,), 1)


def test_what_a_failed_step_held_is_free_before_the_engine_is_reset():
    class Tensor:
        pass

    engine, tensors, alive_at_reset = FakeEngine(), [], []

    def compute():
        tensor = Tensor()
        tensors.append(weakref.ref(tensor))
        raise ValueError(SECRET)

    real_reset = engine.reset
    engine.before_step = compute
    engine.reset = lambda: (alive_at_reset.append(tensors[-1]()), real_reset())[1]
    future = (scheduler := make(engine)).submit(item(1))
    drive(scheduler)
    assert isinstance(future.exception(0), EngineError)
    assert alive_at_reset == [None]


# Memory


def test_an_admission_that_runs_out_of_memory_is_halved_and_everybody_gets_a_result():
    engine = FakeEngine(memory_tokens=10)
    futures = (scheduler := make(engine)).submit_many(items(16))
    drive(scheduler)
    assert results(futures) == [("done", (n,), 1) for n in range(1, 17)]
    assert scheduler.stats().out_of_memory >= 1


def test_after_memory_ran_out_batches_stay_small_for_a_while_and_grow_again():
    clock = FakeClock()
    engine = FakeEngine(memory_tokens=40, clock=clock)
    scheduler = make(engine, clock, recovery_s=10)
    scheduler.submit_many(items(32))
    drive(scheduler)
    engine.memory_tokens = None
    engine.calls.admitted.clear()

    def largest_batch(first):
        engine.calls.admitted.clear()
        scheduler.submit_many(items(32, first))
        drive(scheduler)
        return max(len(batch) for batch in engine.calls.admitted)

    sizes = [largest_batch(100)]
    for n in range(8):
        clock.advance(10)
        sizes.append(largest_batch(200 + 100 * n))
    assert sizes[0] <= 16
    assert sizes == sorted(sizes)
    assert sizes[-1] == 32
    assert scheduler.stats().token_ceiling is None


def test_a_step_that_runs_out_of_memory_starts_again_in_halves():
    engine = FakeEngine(steps=3)
    futures = (scheduler := make(engine)).submit_many(items(16))
    scheduler.turn()
    engine.memory_tokens = 17
    drive(scheduler)
    assert results(futures) == [("done", (n,), 3) for n in range(1, 17)]
    # 16 items of 2 tokens were too many.
    assert scheduler.stats().token_ceiling == 16


def test_an_item_that_does_not_fit_into_memory_alone_fails_and_the_others_do_not():
    engine = FakeEngine(memory_tokens=20)
    huge = item(*range(100, 150))
    scheduler = make(engine)
    futures = scheduler.submit_many([huge, *items(6)])
    drive(scheduler)
    assert "memory" in str(futures[0].exception(0))
    assert isinstance(futures[0].exception(0), EngineError)
    assert len(results(futures[1:])) == 6


def test_an_item_for_which_there_is_no_memory_beside_others_waits_until_they_are_done():
    engine = FakeEngine(steps=6, memory_tokens=22)
    scheduler = make(engine)
    first = scheduler.submit_many([item(n, n, n, n) for n in range(4)])
    scheduler.turn()
    late = scheduler.submit(item(*range(10, 30)))
    drive(scheduler)
    assert results(first) == [("done", (n, n, n, n), 6) for n in range(4)]
    assert late.result(0).result[2] == 6


def test_items_put_back_for_want_of_memory_keep_their_order_and_can_still_be_cancelled():
    engine = FakeEngine(steps=3, memory_tokens=8)
    scheduler = make(engine, max_batch_size=4)
    scheduler.submit_many(items(4))
    scheduler.turn()
    requests = items(3, 10)
    futures = scheduler.submit_many(requests)
    scheduler.turn()
    assert waiting_ids(scheduler) == [(10,), (11,), (12,)]
    scheduler.cancel(requests[1])
    drive(scheduler)
    assert [future.cancelled() for future in futures] == [False, True, False]


# The unforeseen


def break_once(engine, name):
    """Make a method of an engine raise the first time it is called with work at hand."""
    real, is_broken = getattr(engine, name), [True]

    def method(*args):
        if is_broken:
            is_broken.clear()
            raise ZeroDivisionError(SECRET)
        return real(*args)

    setattr(engine, name, method)


@pytest.mark.parametrize("name", ["room", "live"])
def test_an_engine_outside_its_contract_fails_what_is_accepted_and_the_scheduler_goes_on(name):
    engine = FakeEngine()
    futures = (scheduler := make(engine)).submit_many(items(3))
    break_once(engine, name)
    assert not scheduler.turn()
    assert all(isinstance(error, EngineError) and SECRET not in str(error) for error in errors(futures))
    again = scheduler.submit(item(9))
    drive(scheduler)
    assert again.result(0) and scheduler.stats().unexpected == 1


def test_a_failing_reset_is_survived_too():
    engine = FakeEngine()
    engine.bad_at_step = {1}
    break_once(engine, "reset")
    future = (scheduler := make(engine)).submit(item(1))
    drive(scheduler)
    assert isinstance(future.exception(0), EngineError)
    again = scheduler.submit(item(9))
    drive(scheduler)
    assert again.result(0)


def test_the_thread_outlives_an_error_that_is_not_even_an_exception(threaded):
    engine = FakeEngine()
    scheduler = threaded(engine)
    engine.bad_at_step, engine.error = {1}, SystemExit
    assert isinstance(scheduler.submit(item(1)).exception(TIMEOUT_S), EngineError)
    assert scheduler.submit(item(2)).result(TIMEOUT_S)
    assert scheduler.is_alive()


def test_a_done_callback_that_raises_disturbs_nobody():
    scheduler = make(FakeEngine())
    first, second = scheduler.submit_many(items(2))
    first.add_done_callback(lambda future: 1 / 0)
    drive(scheduler)
    assert first.result(0) and second.result(0)


def test_a_done_callback_may_submit_again():
    scheduler = make(FakeEngine())
    again = []
    scheduler.submit(item(1)).add_done_callback(lambda future: again.append(scheduler.submit(item(2))))
    drive(scheduler)
    assert results(again) == [("done", (2,), 1)]


def test_a_change_between_two_looks_at_the_room_is_not_slept_through():
    room = WaitingRoom(1, 1)
    room.announce()
    thread = NativeThread(lambda: room.wait_for_change(TIMEOUT_S))
    thread.start()
    assert thread.join(TIMEOUT_S / 2)


# The device


def test_the_device_lock_is_held_for_every_admission_and_step_and_free_between():
    lock = DeviceLock()
    engine = FakeEngine(steps=3, lock=lock)
    scheduler = BatchScheduler(engine, BatchPolicy(), name="test", device=lock.share(), clock=FakeClock())
    scheduler.submit_many(items(3))
    while scheduler.turn():
        assert not lock.is_held
    assert engine.calls.unlocked == 0 and len(engine.calls.steps) == 3


def test_an_engine_that_is_never_idle_does_not_starve_the_other_on_its_device():
    lock = DeviceLock()
    translator = FakeEngine(steps=lambda i: 10**9)
    busy = BatchScheduler(translator, BatchPolicy(), name="busy", device=lock.share())
    other = BatchScheduler(FakeEngine(), BatchPolicy(), name="other", device=lock.share())
    busy.submit(item(1))
    for scheduler in (busy, other):
        scheduler.start()
    try:
        for n in range(50):
            assert other.submit(item(n)).result(TIMEOUT_S)
    finally:
        assert busy.close(TIMEOUT_S) and other.close(TIMEOUT_S)


# Life and death


def test_draining_refuses_what_is_new_and_finishes_what_is_accepted():
    scheduler = make(FakeEngine(steps=3), max_queue=2)
    with callers(scheduler) as pool:
        request = pool.submit(scheduler.submit_many, items(5))
        eventually(lambda: scheduler.stats().backlog == 3)
        drained = pool.submit(scheduler.drain, 3 * TIMEOUT_S)
        eventually(lambda: not scheduler._room.is_open)
        with pytest.raises(NotReadyError):
            scheduler.submit(item(9))
        drive(scheduler)
        assert drained.result(TIMEOUT_S)
        assert len(results(request.result(TIMEOUT_S))) == 5


def test_a_drain_that_runs_out_of_time_says_so():
    scheduler = make(FakeEngine())
    scheduler.submit(item(1))
    assert not scheduler.drain(0)
    drive(scheduler)
    assert scheduler.drain(0)


def test_closing_gives_everybody_an_answer(threaded):
    engine, entered, leave = FakeEngine(steps=2), threading.Event(), threading.Event()
    engine.before_step = lambda: (entered.set(), leave.wait(TIMEOUT_S))
    scheduler = threaded(engine, max_batch_size=1)
    futures = scheduler.submit_many(items(3))
    assert entered.wait(TIMEOUT_S)
    assert not scheduler.close(0)
    assert all(isinstance(future.exception(TIMEOUT_S), NotReadyError) for future in futures)
    leave.set()
    assert scheduler.close(TIMEOUT_S)
    assert not scheduler.is_alive()
    with pytest.raises(NotReadyError):
        scheduler.submit(item(1))


def test_closing_before_the_start_answers_too():
    scheduler = make(FakeEngine())
    future = scheduler.submit(item(1))
    assert scheduler.close(0)
    assert isinstance(future.exception(0), NotReadyError)


def test_a_stuck_engine_shows_in_the_heartbeat_and_an_idle_one_does_not():
    clock, engine = FakeClock(), FakeEngine()
    entered, leave = threading.Event(), threading.Event()
    engine.before_step = lambda: (entered.set(), leave.wait(TIMEOUT_S))
    scheduler = make(engine, clock)
    assert not scheduler.is_alive()
    scheduler.start()
    assert scheduler.is_alive(stalled_s=30)
    future = scheduler.submit(item(1))
    assert entered.wait(TIMEOUT_S)
    clock.advance(31)
    assert not scheduler.is_alive(stalled_s=30)
    leave.set()
    assert future.result(TIMEOUT_S)
    eventually(lambda: scheduler.is_alive(stalled_s=30))
    clock.advance(31)
    eventually(lambda: scheduler.is_alive(stalled_s=30))
    assert scheduler.close(TIMEOUT_S)


def test_a_scheduler_starts_once(threaded):
    with pytest.raises(RuntimeError):
        threaded(FakeEngine()).start()


# Numbers


def test_stats_count_items_batches_and_padding():
    clock = FakeClock()
    scheduler = make(FakeEngine(), clock)
    scheduler.submit_many([item(1), item(1, 2, 3)])
    clock.advance(0.5)
    assert (scheduler.stats().waiting, scheduler.stats().oldest_wait_ms) == (2, 500.0)
    drive(scheduler)
    stats = scheduler.stats()
    assert (stats.batches, stats.admitted, stats.tokens, stats.padded_tokens) == (1, 2, 6, 8)
    assert (stats.steps, stats.finished, stats.queue_ms, stats.waiting, stats.live) == (1, 2, 1000.0, 0, 0)


def test_events_tell_of_admissions_and_steps_and_one_listener_that_raises_is_borne():
    told = []

    def listen(event):
        told.append(event)
        raise RuntimeError

    scheduler = BatchScheduler(FakeEngine(), BatchPolicy(), name="mt", clock=FakeClock(), on_event=listen)
    future = scheduler.submit(item(1, 2))
    drive(scheduler)
    assert future.result(0)
    assert [(e.kind, e.scheduler, e.items) for e in told] == [("admitted", "mt", 1), ("stepped", "mt", 1)]
    assert (told[0].tokens, told[0].padded_tokens, told[0].queue_ms) == (3, 3, (0.0,))


# Everything at once

plans = st.lists(
    st.tuples(st.integers(1, 30), st.sampled_from(list(Priority)), st.sampled_from(["", "cancel", "expire", "raise"])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(plans, st.sets(st.integers(0, 29)), st.sets(st.integers(0, 29)), st.sampled_from([None, 30, 90]), st.booleans())
def test_every_future_is_resolved_and_only_those_at_fault_get_errors(plan, bad_admit, bad_step, memory, pause):
    clock = FakeClock()
    engine = FakeEngine(steps=lambda i: 1 + len(i.ids) % 4, memory_tokens=memory, clock=clock)
    engine.bad_at_admit, engine.bad_at_step = bad_admit, bad_step
    scheduler = make(engine, clock, max_batch_size=8, max_batch_tokens=120, pause_bulk=pause)
    request = [Item(ids=(n,) * length, priority=priority) for n, (length, priority, _) in enumerate(plan)]
    futures = [scheduler.submit(one) for one in request]
    fates = [fate for _, _, fate in plan]
    scheduler.turn()
    early = [future.done() for future in futures]
    for one, fate in zip(request, fates, strict=True):
        if fate == "cancel":
            scheduler.cancel(one)
        elif fate == "expire":
            one.deadline_s = clock()
        elif fate == "raise":
            scheduler.raise_priority(one)
    drive(scheduler)
    assert not engine.rows and scheduler.drain(0)
    for n, future in enumerate(futures):
        error, steps = future.exception(0), 1 + len(request[n].ids) % 4
        if fates[n] in ("cancel", "expire") and not early[n]:
            assert isinstance(error, CancelledError if fates[n] == "cancel" else DeadlineError)
        elif n in bad_admit | bad_step or (memory is not None and request[n].length > memory):
            assert isinstance(error, EngineError)
        else:
            assert future.result(0).result == ("done", request[n].ids, steps)


class Client:
    """Sends requests of random size and priority, cancels some, and notes the items with a wrong answer."""

    def __init__(self, scheduler, is_bad):
        self._scheduler, self._is_bad = scheduler, is_bad

    def run(self, number):
        rng, wrong = random.Random(number), []
        for n in range(20):
            request = items(rng.randint(1, 20), number * 400 + n * 20, priority=rng.choice(list(Priority)))
            futures = []
            eventually(lambda request=request, futures=futures: self._is_accepted(request, futures), 6 * TIMEOUT_S)
            if rng.random() < 0.2:
                futures[-1].cancel()
            wrong += [one.ids for one, f in zip(request, futures, strict=True) if not self._is_right(one, f)]
        return wrong

    def _is_accepted(self, request, futures):
        try:
            futures += self._scheduler.submit_many(request)
        except OverloadedError:
            return False
        return True

    def _is_right(self, one, future):
        try:
            return future.result(TIMEOUT_S).result == ("done", one.ids, 1 + one.ids[0] % 3) and not self._is_bad(one)
        except CancelledError:
            return one.cancelled
        except TandemError:
            return self._is_bad(one)


def test_many_threads_at_once_all_get_their_own_result(threaded):
    engine = FakeEngine(steps=lambda i: 1 + i.ids[0] % 3)
    engine.bad_at_admit, engine.bad_at_step = range(0, 4000, 97), range(5, 4000, 101)
    scheduler = threaded(engine, max_queue=16, max_batch_size=8, max_batch_tokens=64)
    client = Client(scheduler, lambda one: one.ids[0] in engine.bad_at_admit or one.ids[0] in engine.bad_at_step)
    with ThreadPoolExecutor(8) as pool:
        assert list(chain(*pool.map(client.run, range(8)))) == []
    assert scheduler.drain(TIMEOUT_S)
    stats = scheduler.stats()
    assert (stats.waiting, stats.backlog, stats.live, stats.unexpected) == (0, 0, 0, 0)
    assert stats.finished > 500 and stats.failed > 0 and stats.refused > 0
