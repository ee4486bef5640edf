"""Cache, flights and patience: what is computed, for whom, and how long anybody waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from cache import MemoryCache
from tandem.core.errors import CancelledError, DeadlineError, EngineError, OverloadedError
from tandem.core.futures import Future
from tandem.core.queueing import Outcome
from tandem.core.types import Item, Priority
from tandem.services.computing import Codec, Computation, Times
from tandem.services.flights import FlightBoard
from tandem.services.patience import Patience


class HandScheduler:
    """Accepts items and finishes them when the test says so."""

    def __init__(self) -> None:
        self.futures: dict[int, Future[Outcome[str]]] = {}
        self.items: list[Item] = []
        self.cancelled: list[Item] = []
        self.raised: list[Item] = []
        self.is_full = False

    def submit_many(self, items: Sequence[Item], *, is_follow_up: bool = False) -> list[Future[Outcome[str]]]:
        if self.is_full and not is_follow_up:
            raise OverloadedError("full")
        self.items += items
        futures = [Future[Outcome[str]]() for _ in items]
        self.futures.update({id(item): future for item, future in zip(items, futures, strict=True)})
        return futures

    def cancel(self, item: Item) -> bool:
        self.cancelled.append(item)
        return self.futures[id(item)].set_exception(CancelledError("cancelled"))

    def raise_priority(self, item: Item) -> None:
        item.priority = Priority.INTERACTIVE
        self.raised.append(item)

    def finish(self, result: str = "done") -> None:
        for future in self.futures.values():
            future.set_result(Outcome(result, queue_ms=3.0, compute_ms=7.0))


@dataclass(frozen=True)
class Call:
    key: str


def unpack(stored: bytes) -> str:
    if stored == b"rubbish":
        raise ValueError
    return stored.decode()


@pytest.fixture
def scheduler() -> HandScheduler:
    return HandScheduler()


@pytest.fixture
def cache() -> MemoryCache:
    return MemoryCache(1 << 20)


@pytest.fixture
def computation(scheduler: HandScheduler, cache: MemoryCache) -> Computation[Call, str, str]:
    codec = Codec[Call, str, str](
        build_items=lambda calls: [Item((len(call.key),)) for call in calls],
        finish=lambda call, _, result: f"{call.key}={result}",
        pack=str.encode,
        unpack=unpack,
    )
    return Computation(scheduler, cache, codec, ttl_s=60)


def test_equal_calls_are_computed_once_and_cached(
    computation: Computation[Call, str, str], scheduler: HandScheduler, cache: MemoryCache
) -> None:
    times = Times()
    with computation.open(Patience(5), times) as errand:
        calls = [Call("a"), Call("b"), Call("a")]
        assert errand.look_up(calls) == 3
        pending = errand.start(calls)
        assert len(scheduler.items) == 2
        scheduler.finish()
        assert [errand.finish(one) for one in pending] == ["a=done", "b=done", "a=done"]
    assert cache.get_many(["a", "b"]) == [b"a=done", b"b=done"]
    assert (times.hits, times.misses, times.queue_ms, times.compute_ms) == (0, 3, 3.0, 7.0)


def test_what_the_cache_has_is_not_computed(
    computation: Computation[Call, str, str], scheduler: HandScheduler, cache: MemoryCache
) -> None:
    cache.set_many({"a": b"old", "b": b"rubbish"}, 60)
    times = Times()
    with computation.open(Patience(5), times) as errand:
        calls = [Call("a"), Call("b")]
        assert errand.look_up(calls) == 1
        pending = errand.start(calls)
        scheduler.finish()
        assert [errand.finish(one) for one in pending] == ["old", "b=done"]
    assert len(scheduler.items) == 1
    assert (times.hits, times.misses) == (1, 1)


def test_two_requests_share_a_flight_and_each_gets_the_result(
    computation: Computation[Call, str, str], scheduler: HandScheduler
) -> None:
    with (
        computation.open(Patience(5), Times()) as first,
        computation.open(Patience(5), Times()) as second,
    ):
        one, two = first.start([Call("a")])[0], second.start([Call("a")])[0]
        assert len(scheduler.items) == 1
        scheduler.finish()
        assert first.finish(one) == second.finish(two) == "a=done"


def test_an_item_is_cancelled_when_its_last_waiter_has_gone(
    computation: Computation[Call, str, str], scheduler: HandScheduler
) -> None:
    with computation.open(Patience(5), Times()) as first:
        first.start([Call("a")])
        with computation.open(Patience(5), Times()) as second:
            second.start([Call("a")])
        assert scheduler.cancelled == []
    assert scheduler.cancelled == scheduler.items


def test_a_cancelled_flight_is_not_joined(computation: Computation[Call, str, str], scheduler: HandScheduler) -> None:
    with computation.open(Patience(5), Times()) as first:
        first.start([Call("a")])
    with computation.open(Patience(5), Times()) as second:
        pending = second.start([Call("a")])[0]
        assert len(scheduler.items) == 2
        scheduler.finish()
        assert second.finish(pending) == "a=done"


def test_a_waiter_of_higher_priority_raises_the_item(
    computation: Computation[Call, str, str], scheduler: HandScheduler
) -> None:
    bulk = Patience(5)
    bulk.become_bulk()
    with computation.open(bulk, Times()) as first, computation.open(Patience(5), Times()) as second:
        first.start([Call("a")])
        assert scheduler.items[0].priority is Priority.BULK
        second.start([Call("a")])
        assert scheduler.raised == scheduler.items
        scheduler.finish()


def test_a_refused_request_leaves_the_flights_it_had_joined(
    computation: Computation[Call, str, str], scheduler: HandScheduler
) -> None:
    with computation.open(Patience(5), Times()) as first:
        first.start([Call("a")])
        scheduler.is_full = True
        with pytest.raises(OverloadedError), computation.open(Patience(5), Times()) as second:
            second.start([Call("a"), Call("b")])
        assert scheduler.cancelled == []
    assert scheduler.cancelled == scheduler.items


def test_an_error_reaches_every_waiter_and_is_not_cached(
    computation: Computation[Call, str, str], scheduler: HandScheduler, cache: MemoryCache
) -> None:
    with computation.open(Patience(5), Times()) as errand:
        pending = errand.start([Call("a")])[0]
        scheduler.futures[id(scheduler.items[0])].set_exception(EngineError("broken"))
        with pytest.raises(EngineError, match="broken"):
            errand.finish(pending)
    assert cache.get_many(["a"]) == [None]


def test_finished_values_are_kept_when_a_later_one_fails(
    computation: Computation[Call, str, str], scheduler: HandScheduler, cache: MemoryCache
) -> None:
    with pytest.raises(EngineError), computation.open(Patience(5), Times()) as errand:
        good, bad = errand.start([Call("a"), Call("b")])
        scheduler.futures[id(scheduler.items[0])].set_result(Outcome("done", 0.0, 0.0))
        scheduler.futures[id(scheduler.items[1])].set_exception(EngineError("broken"))
        errand.finish(good)
        errand.finish(bad)
    assert cache.get_many(["a", "b"]) == [b"a=done", None]


def test_a_landed_flight_leaves_the_board(scheduler: HandScheduler) -> None:
    board: FlightBoard[str] = FlightBoard(scheduler)
    board.launch({"a": Item((1,))})
    scheduler.finish()
    assert board.board(["a"], Priority.INTERACTIVE, 1.0) == {}


# -- patience --------------------------------------------------------------------------------------------------------


class Ticking:
    """A clock that moves by a step at every look."""

    def __init__(self, step_s: float) -> None:
        self.now_s = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s


def test_patience_ends_at_the_deadline() -> None:
    patience = Patience(0.3, clock=Ticking(0.1))
    with pytest.raises(DeadlineError, match=r"longer than 0\.3 s"):
        patience.wait(Future[str]())


def test_a_result_that_is_there_is_taken_even_when_the_time_is_up() -> None:
    future: Future[str] = Future()
    future.set_result("late")
    assert Patience(0.05, clock=Ticking(1.0)).wait(future) == "late"


def test_a_caller_that_hung_up_is_not_waited_for() -> None:
    with pytest.raises(CancelledError):
        Patience(60, is_gone=lambda: True).wait(Future[str]())


def test_a_caller_that_hung_up_is_noticed_while_results_keep_coming() -> None:
    clock, gone = Ticking(0.1), []
    patience = Patience(60, is_gone=lambda: bool(gone), clock=clock)
    done: Future[str] = Future()
    done.set_result("x")
    assert patience.wait(done) == "x"
    gone.append(True)
    with pytest.raises(CancelledError):
        for _ in range(10):
            patience.wait(done)


def test_bulk_work_is_extended_while_it_makes_progress_and_no_longer() -> None:
    clock = Ticking(0.0)
    patience = Patience(10, clock=clock)
    patience.become_bulk()
    for _ in range(5):
        clock.now_s += 9
        patience.note_progress()
    clock.now_s += 11
    with pytest.raises(DeadlineError):
        patience.wait(Future[str]())


def test_any_result_of_a_bulk_request_counts_as_progress(
    computation: Computation[Call, str, str], scheduler: HandScheduler
) -> None:
    clock = Ticking(0.0)
    patience = Patience(10, clock=clock)
    patience.become_bulk()
    with computation.open(patience, Times()) as errand:
        first, _ = errand.start([Call("a"), Call("b")])
        clock.now_s += 9
        scheduler.futures[id(scheduler.items[1])].set_result(Outcome("done", 0.0, 0.0))
        clock.now_s += 9
        scheduler.futures[id(scheduler.items[0])].set_result(Outcome("done", 0.0, 0.0))
        assert errand.finish(first) == "a=done"
        clock.now_s += 11
        with pytest.raises(DeadlineError):
            patience.wait(Future[str]())


def test_interactive_work_is_not_extended() -> None:
    clock = Ticking(0.0)
    patience = Patience(10, clock=clock)
    clock.now_s += 9
    patience.note_progress()
    clock.now_s += 2
    with pytest.raises(DeadlineError):
        patience.wait(Future[str]())


def test_a_pending_value_is_there_once_it_can_be_had_without_waiting(
    computation: Computation[Call, str, str], scheduler: HandScheduler, cache: MemoryCache
) -> None:
    cache.set_many({"known": b"stored"}, 60)
    with computation.open(Patience(60), Times()) as errand:
        calls = [Call("known"), Call("new"), Call("wrong")]
        errand.look_up(calls)
        known, new, wrong = errand.start(calls)
        assert known.is_there
        assert not new.is_there
        scheduler.futures[id(scheduler.items[0])].set_result(Outcome("done", 1.0, 2.0))
        scheduler.futures[id(scheduler.items[1])].set_exception(EngineError("no"))
        assert new.is_there
        assert not wrong.is_there  # what there is, is an error: whoever waits for it gets it in its turn


def test_what_an_accepted_request_wants_next_is_not_refused_though_others_are(
    computation: Computation[Call, str, str], scheduler: HandScheduler
) -> None:
    with computation.open(Patience(60), Times()) as errand, computation.open(Patience(60), Times()) as other:
        errand.look_up([Call("a")])
        errand.start([Call("a")])
        scheduler.is_full = True
        with pytest.raises(OverloadedError):
            other.start([Call("b")])
        errand.look_up([Call("a again")])
        errand.start([Call("a again")])
    assert len(scheduler.items) == 2
