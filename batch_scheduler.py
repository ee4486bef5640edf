"""The micro-batcher: requests from every side join what the engine is running, at its next step.

One operating-system thread a scheduler repeats `plan -> admit -> step -> resolve`. It knows no torch, no Flask and no
Redis: the engine computes, `tandem.core.planning` decides, `tandem.core.queueing` holds what waits, and
`tandem.core.runner` does the rounds. Here is what callers see of it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tandem.core.device_lock import DeviceLock, DeviceShare
from tandem.core.errors import CancelledError, DeadlineError, NotReadyError
from tandem.core.futures import Future
from tandem.core.loops import Waker, current_loop, run_quietly
from tandem.core.planning import BatchPolicy, plan_batch
from tandem.core.queueing import Outcome, Ticket, WaitingRoom
from tandem.core.runner import HEARTBEAT_S, Clock, EventKind, Runner, SchedulerEvent
from tandem.core.threads import NativeThread
from tandem.core.types import Engine, Item, Priority, ResultT

__all__ = ["BatchPolicy", "BatchScheduler", "Outcome", "SchedulerEvent", "SchedulerStats", "plan_batch"]


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """Where a scheduler stands; counters count since its start.

    Attributes:
        waiting: Items in the waiting room.
        backlog: Items of accepted requests for which there is no place yet.
        live: Items the engine is working on.
        oldest_wait_ms: How long the oldest waiting item has waited.
        batches: Successful admissions.
        admitted: Items in them; divide by `batches` for the mean batch size.
        tokens: Tokens in them.
        padded_tokens: Longest x number of items, summed.
        steps: Successful steps.
        queue_ms: Waits of the admitted items, summed.
        finished: Items with a result.
        failed: Items with an error.
        expired: Items whose deadline passed.
        cancelled: Items nobody waited for any more.
        refused: Items of requests that were turned away.
        step_failures: Steps that raised.
        out_of_memory: Admissions and steps that ran out of memory.
        unexpected: Errors of the scheduler's thread itself, or of an engine outside its contract.
        token_ceiling: Padded tokens that may be live while memory is short; None otherwise.
    """

    waiting: int
    backlog: int
    live: int
    oldest_wait_ms: float
    batches: int
    admitted: int
    tokens: int
    padded_tokens: int
    steps: int
    queue_ms: float
    finished: int
    failed: int
    expired: int
    cancelled: int
    refused: int
    step_failures: int
    out_of_memory: int
    unexpected: int
    token_ceiling: int | None


class BatchScheduler(Generic[ResultT]):
    """Runs one engine for many callers.

    Callers live on any greenlet or thread; the engine is called from one operating-system thread only.
    """

    def __init__(
        self,
        engine: Engine[ResultT],
        policy: BatchPolicy,
        *,
        name: str,
        device: DeviceShare | None = None,
        clock: Clock = time.monotonic,
        on_event: Callable[[SchedulerEvent], object] | None = None,
    ) -> None:
        """Prepare it on the thread whose loop is to apply its events; `start` begins.

        Args:
            engine: Its methods are called under `device`, from one thread.
            policy: How to batch.
            name: For events.
            device: The engine's share of a lock that all engines on the device have; None for a device of its own.
            clock: Seconds, monotonic; the clock of every item's `deadline_s`.
            on_event: Told of events after each turn, on the loop's side.
        """
        self._name = name
        self._clock = clock
        self._on_event = on_event
        self._loop = current_loop()
        self._events: list[SchedulerEvent] = []
        self._room: WaitingRoom[ResultT] = WaitingRoom(policy.max_queue, policy.bulk_places)
        self._runner = Runner(engine, policy, self._room, device or DeviceLock().share(), clock, self._tell)
        self._thread = NativeThread(self._run)
        self._is_closed = False
        self._heartbeat_s = clock()

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: It was started before.
        """
        self._heartbeat_s = self._clock()
        self._thread.start()

    def submit(self, item: Item) -> Future[Outcome[ResultT]]:
        """Accept an item; never blocks.

        Args:
            item: Not submitted before. Its priority, deadline and `cancelled` may change while it is here.

        Returns:
            Its future: an Outcome, or DeadlineError, CancelledError, EngineError or another TandemError of the engine.

        Raises:
            OverloadedError: The waiting room is full.
            NotReadyError: The scheduler is draining or closed.
        """
        return self.submit_many([item])[0]

    def submit_many(self, items: Sequence[Item], *, is_follow_up: bool = False) -> list[Future[Outcome[ResultT]]]:
        """Accept a request's items; those that find no place enter as places become free, and until then this blocks.

        Only the calling greenlet or thread waits, until the last deadline at most. When it is killed meanwhile, the
        whole request is cancelled.

        Args:
            items: Not submitted before.
            is_follow_up: They belong to a request that was accepted before, and wait for room instead of being refused.

        Returns:
            Their futures, in order, as `submit` gives them.

        Raises:
            OverloadedError: There is no place for the first item; nothing is accepted.
            NotReadyError: The scheduler is draining or closed; nothing is accepted.
        """
        if not items:
            return []
        now_s = self._clock()
        tickets: list[Ticket[ResultT]] = [
            Ticket(item, Future(on_cancel=functools.partial(self.cancel, item)), now_s) for item in items
        ]
        waker = self._room.enter(tickets, is_follow_up=is_follow_up)
        if waker is not None:
            self._wait_for_entry(waker, tickets)
        return [ticket.future for ticket in tickets]

    def cancel(self, item: Item) -> bool:
        """Stop working for an item: dropped at once where it waits, at the next step boundary where it runs.

        Returns:
            False when it is not here, finished perhaps.
        """
        item.cancelled = True
        ticket = self._room.find(item)
        if ticket is None:
            return False
        self._room.settle(ticket, CancelledError("The request was cancelled."))
        self._room.announce()
        return True

    def raise_priority(self, item: Item) -> None:
        """Make an item interactive, because somebody now waits for it at a page."""
        item.priority = Priority.INTERACTIVE
        self._room.announce()

    def drain(self, timeout_s: float | None = None) -> bool:
        """Refuse new requests and wait until those accepted are finished; not to be called from a signal handler.

        Args:
            timeout_s: Seconds to wait; None for no limit.

        Returns:
            Whether everything is finished.
        """
        self._room.close()
        return self._room.wait_until_empty(timeout_s)

    def close(self, timeout_s: float | None = 5.0) -> bool:
        """Give up whatever is still accepted, with NotReadyError, and end the thread after its current step.

        Args:
            timeout_s: Seconds to wait for the thread; None for no limit.

        Returns:
            Whether the thread has ended.
        """
        self._is_closed = True
        self._room.close()
        for ticket in self._room.accepted():
            self._room.settle(ticket, NotReadyError("The service is stopping; send the request again shortly."))
        return not self._thread.is_alive() or self._thread.join(timeout_s)

    def is_alive(self, stalled_s: float = 60.0) -> bool:
        """Say whether the thread runs and has reached a boundary between calls of the engine within `stalled_s`."""
        return self._thread.is_alive() and self._clock() - self._heartbeat_s < stalled_s

    def turn(self) -> bool:
        """Do one round of plan, admit, step and resolve; for the scheduler's thread, or a test that has not started it.

        Returns:
            False when there was nothing to do.
        """
        self._heartbeat_s = self._clock()
        try:
            return self._runner.turn()
        except BaseException as error:
            self._runner.fail_everything(error)
            # Not True: an engine that always raises must not be asked again and again without a pause.
            return False
        finally:
            self._flush_events()

    def stats(self) -> SchedulerStats:
        """Return where it stands."""
        now_s = self._clock()
        arrivals = [ticket.arrived_s for ticket in self._room.snapshot()]
        counts, tally = self._room.counts(), self._runner.tally
        events = (
            "batches",
            "admitted",
            "tokens",
            "padded_tokens",
            "steps",
            "step_failures",
            "out_of_memory",
            "unexpected",
        )
        return SchedulerStats(
            waiting=len(arrivals),
            backlog=self._room.backlog,
            live=len(self._runner.live),
            oldest_wait_ms=(now_s - min(arrivals, default=now_s)) * 1000,
            queue_ms=self._runner.queue_ms,
            token_ceiling=self._runner.ceiling.limit(now_s),
            **{name: counts.get(name, 0) for name in ("finished", "failed", "expired", "cancelled", "refused")},
            **{name: tally[name] for name in events},
        )

    def _wait_for_entry(self, waker: Waker, tickets: Sequence[Ticket[ResultT]]) -> None:
        last_s = max(ticket.item.deadline_s for ticket in tickets)
        try:
            is_in = waker.wait(last_s - self._clock())
        except BaseException:
            for ticket in tickets:
                self.cancel(ticket.item)
            raise
        # The thread buries what is too late, unless the engine is stuck; the caller is not to be stuck with it.
        for ticket in () if is_in else tickets:
            self._room.settle(ticket, DeadlineError("The request's time passed before there was room for it."))

    def _run(self) -> None:
        while not self._is_closed:
            if not self.turn():
                self._room.wait_for_change(self._sleep_s())
        self._runner.abandon(NotReadyError("The service is stopping; send the request again shortly."))

    def _sleep_s(self) -> float:
        # The thread outlives everything, an item with an impossible deadline too.
        try:
            return self._runner.idle_s()
        except Exception:
            return HEARTBEAT_S

    def _tell(self, kind: EventKind, **fields: Any) -> None:
        if self._on_event is not None:
            self._events.append(SchedulerEvent(kind, self._name, **fields))

    def _flush_events(self) -> None:
        if self._events and self._on_event is not None:
            events, self._events = self._events, []
            self._loop.call(_apply, self._on_event, events)


def _apply(on_event: Callable[[SchedulerEvent], object], events: Sequence[SchedulerEvent]) -> None:
    for event in events:
        run_quietly(on_event, (event,))
