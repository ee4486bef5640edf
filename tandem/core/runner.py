"""The engine's side of a scheduler: rounds of `plan -> admit -> step -> resolve`, and what happens when one fails."""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from tandem.core.device_lock import DeviceShare
from tandem.core.errors import CancelledError, DeadlineError, EngineError, TandemError
from tandem.core.planning import BatchPolicy, BulkPace, Gathering, TokenCeiling, padded_tokens, plan_batch
from tandem.core.queueing import Outcome, Ticket, WaitingRoom
from tandem.core.types import Budget, Engine, Finished, Item, Priority, ResultT

T = TypeVar("T")
Clock = Callable[[], float]
EventKind = Literal["admitted", "stepped", "failed", "step_failed", "out_of_memory", "unexpected"]

# A scheduler's thread looks around at least this often: its heartbeat tells a sleeping thread from a stuck one.
HEARTBEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class SchedulerEvent:
    """Something for metrics and logs, told on the loop's side. It never holds user text.

    Attributes:
        kind: What happened. `failed` is one item; `step_failed` and `out_of_memory` mean that items run again.
        scheduler: Its name.
        items: Items it concerns.
        tokens: Their tokens, end marks included.
        padded_tokens: Longest x number of items.
        duration_ms: Time on the device, in milliseconds, without the wait for the device lock.
        queue_ms: How long each admitted item waited, in milliseconds.
        detail: Type and stack of an error, without its message.
    """

    kind: EventKind
    scheduler: str
    items: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    duration_ms: float = 0.0
    queue_ms: tuple[float, ...] = ()
    detail: str = ""


def _public_error(error: BaseException, is_out_of_memory: bool = False) -> TandemError:
    """Return what callers are told: never the message of a foreign error, which may hold user text."""
    if isinstance(error, TandemError):
        return error
    if is_out_of_memory:
        return EngineError("This text does not fit into the device's memory; send a shorter one.")
    return EngineError(f"The engine could not compute this text ({type(error).__name__}).")


def _describe_and_release(error: BaseException) -> str:
    """Return an error's type and stack, and drop the stack: its frames keep tensors alive."""
    stack = "".join(traceback.format_tb(error.__traceback__))
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}\n{stack}"


def _halves(group: Sequence[T]) -> list[list[T]]:
    middle = (len(group) + 1) // 2
    return [list(half) for half in (group[:middle], group[middle:]) if half]


def _death(ticket: Ticket[ResultT], now_s: float) -> TandemError | None:
    """Return why nobody needs a ticket's result any more; None while somebody does."""
    if ticket.item.cancelled or ticket.future.done():
        return CancelledError("The request was cancelled.")
    if now_s >= ticket.item.deadline_s:
        return DeadlineError("The request's time passed before its result was there.")
    return None


@dataclass(eq=False, slots=True)
class _Failure:
    error: Exception
    detail: str
    is_out_of_memory: bool


class Runner(Generic[ResultT]):
    """Moves items between the waiting room and the engine; everything here happens on the scheduler's thread.

    Attributes:
        live: The items that the engine is working on.
        ceiling: What holds after memory ran out.
        tally: Counts of batches, steps, tokens and failures.
        queue_ms: Waits of the admitted items, summed, in milliseconds.
    """

    def __init__(
        self,
        engine: Engine[ResultT],
        policy: BatchPolicy,
        room: WaitingRoom[ResultT],
        device: DeviceShare,
        clock: Clock,
        tell: Callable[..., None],
    ) -> None:
        """Begin with nothing live; `tell` takes the fields of a SchedulerEvent, without its `scheduler`."""
        self.live: dict[Item, Ticket[ResultT]] = {}
        self.ceiling = TokenCeiling(policy.recovery_s)
        self.tally: Counter[str] = Counter()
        self.queue_ms = 0.0
        self._engine, self._policy, self._room = engine, policy, room
        self._device, self._clock, self._tell = device, clock, tell
        # Groups under suspicion after a failure: each runs with nobody else, in halves of itself when it fails again.
        self._suspects: deque[list[Ticket[ResultT]]] = deque()
        self._plans_without_bulk = 0
        self._steps_before_bulk = 0
        self._gathering = Gathering()
        self._pace = BulkPace()
        # Padded tokens and milliseconds of the bulk piece that was admitted last; None once the pace knows of it.
        self._piece: tuple[int, float] | None = None

    def turn(self) -> bool:
        """Do one round of the loop; False when there was nothing to do."""
        self._bury_dead()
        is_planned = not self._suspects  # a group under suspicion steps before anybody joins it
        batch = self._next_batch()
        if batch:
            self._admit(batch)
        if batch and is_planned and self._somebody_came_during(batch):
            return True
        has_rows = bool(self._engine.live())
        if has_rows:
            self._step()
        return bool(batch) or has_rows

    def idle_s(self) -> float:
        """Return how long the thread may sleep if nothing changes, in seconds."""
        now_s = self._clock()
        waiting = self._room.snapshot()
        times = [self._hold_until_s(waiting), *(ticket.item.deadline_s for ticket in waiting)]
        return max(0.0, min(HEARTBEAT_S, min(times) - now_s))

    def fail_everything(self, error: BaseException) -> None:
        """Start afresh after something unforeseen: every accepted item gets an error."""
        self.tally["unexpected"] += 1
        public = _public_error(error)
        self._tell("unexpected", detail=_describe_and_release(error))
        self.abandon(public)

    def abandon(self, error: TandemError) -> None:
        """Give up every accepted item with one error and empty the engine."""
        self.live, self._suspects = {}, deque()
        # The error at hand is the one to tell; an engine that cannot even be reset will show again.
        with contextlib.suppress(Exception), self._device:
            self._engine.reset()
        for ticket in self._room.accepted():
            self._room.settle(ticket, error)

    def _alive(self, tickets: Iterable[Ticket[ResultT]]) -> list[Ticket[ResultT]]:
        """Settle the tickets that nobody needs any more and return the others."""
        now_s = self._clock()
        alive = []
        for ticket in tickets:
            death = _death(ticket, now_s)
            if death is None:
                alive.append(ticket)
            else:
                self._room.settle(ticket, death)
        return alive

    def _bury_dead(self) -> None:
        """Drop what was cancelled or is too late, wherever it is, and whatever the engine and we do not both know."""
        self._alive(self._room.snapshot())
        self._suspects = deque(group for group in map(self._alive, self._suspects) if group)
        running = set(self._engine.live())
        wanted = {ticket.item: ticket for ticket in self._alive(self.live.values())}
        self.live = {item: ticket for item, ticket in wanted.items() if item in running}
        unwanted = [item for item in running if item not in wanted]
        if unwanted:
            with self._device:
                self._engine.cancel(unwanted)
        for item, ticket in wanted.items():
            if item not in running:
                self._room.settle(ticket, EngineError("The engine lost this text; send it again."))

    def _next_batch(self) -> list[Ticket[ResultT]]:
        if self._suspects:
            return [] if self._engine.live() else self._suspects.popleft()
        if not self._policy.continuous and self._engine.live():
            return []
        waiting = self._room.snapshot()
        if not waiting or self._clock() < self._hold_until_s(waiting):
            return []
        return self._room.take(self._plan([ticket.item for ticket in waiting]))

    def _somebody_came_during(self, batch: Sequence[Ticket[ResultT]]) -> bool:
        """Say whether an interactive item waits behind the admission of a bulk batch; it is not to wait for a step too.

        It never holds bulk up for longer: the next round admits no bulk before it steps.
        """
        is_bulk = all(ticket.item.priority == Priority.BULK for ticket in batch)
        return self._policy.pause_bulk and is_bulk and self._room.holds(Priority.INTERACTIVE)

    def _hold_until_s(self, waiting: Sequence[Ticket[ResultT]]) -> float:
        """Return when the waiting items may be planned, on the scheduler's clock; infinity when nothing waits."""
        if not waiting:
            return float("inf")
        policy, oldest_s = self._policy, min(ticket.arrived_s for ticket in waiting)
        if policy.max_wait_ms == 0 or not self._room.is_open:
            return oldest_s
        padded = padded_tokens(ticket.item for ticket in waiting)
        is_full = len(waiting) >= policy.max_batch_size or padded >= policy.max_batch_tokens
        return oldest_s if is_full else oldest_s + policy.max_wait_ms / 1000

    def _plan(self, waiting: list[Item]) -> list[Item]:
        """Plan under both priorities' rights: interactive first, but bulk that gets nothing at all takes its turn."""
        bulk_waits = any(item.priority == Priority.BULK for item in waiting)
        bulk_is_due = bulk_waits and self._plans_without_bulk >= self._policy.bulk_every - 1
        is_paused = self._policy.pause_bulk and not bulk_is_due and self._has_live(Priority.INTERACTIVE)
        if is_paused:
            waiting = [item for item in waiting if item.priority == Priority.INTERACTIVE]
        batch = plan_batch(
            waiting,
            self._policy,
            {priority: self._room_for(priority) for priority in Priority},
            first=Priority.BULK if bulk_is_due else Priority.INTERACTIVE,
            idle=not self._engine.live(),
            piece_tokens=self._pace.tokens if self._policy.pause_bulk and self._policy.continuous else None,
        )
        if batch and not self._gathering.is_complete(len(batch), self._held_up_by(batch)):
            batch = []
        # Bulk is passed over only when the others got something instead; a device full of bulk neglects nobody.
        if self._has_live(Priority.BULK) or any(item.priority == Priority.BULK for item in batch):
            self._plans_without_bulk = 0
        elif bulk_waits and (batch or is_paused):
            self._plans_without_bulk += 1
        return batch

    def _held_up_by(self, batch: Sequence[Item]) -> int:
        """Return how many running rows would wait for a batch's admission, without those that pause for it anyway."""
        least = min(item.priority for item in batch) if self._policy.pause_bulk else Priority.BULK
        return sum(item.priority >= least for item in self.live)

    def _has_live(self, priority: Priority) -> bool:
        return any(item.priority == priority for item in self.live)

    def _room_for(self, priority: Priority) -> Budget:
        room = self._engine.room(priority)
        limit = self.ceiling.limit(self._clock())
        if limit is None:
            return room
        return Budget(room.segments, min(room.tokens, max(0, limit - padded_tokens(self.live))))

    def _admit(self, batch: list[Ticket[ResultT]]) -> None:
        """Admit a batch, in halves where it fails, down to the one item that does."""
        pending = [batch]
        while pending:
            group = pending.pop()
            started_s = self._clock()
            finished, failure, duration_ms = self._attempt(self._engine.admit, [ticket.item for ticket in group])
            if failure is None:
                self._note_admission(group, started_s, duration_ms)
                self._resolve(finished)
            elif failure.is_out_of_memory:
                self._retreat(group, [ticket for rest in reversed(pending) for ticket in rest], failure)
                return
            elif len(group) == 1:
                self._fail(group[0], failure)
            else:
                pending += reversed(_halves(group))

    def _note_admission(self, group: list[Ticket[ResultT]], started_s: float, duration_ms: float) -> None:
        items = [ticket.item for ticket in group]
        waits = tuple((started_s - ticket.arrived_s) * 1000 for ticket in group if ticket.admitted_s is None)
        for ticket in group:
            ticket.admitted_s = started_s if ticket.admitted_s is None else ticket.admitted_s
            self.live[ticket.item] = ticket
        tokens, padded = sum(item.length for item in items), padded_tokens(items)
        self.tally.update(batches=1, admitted=len(items), tokens=tokens, padded_tokens=padded)
        self.queue_ms += sum(waits)
        self._gathering.note_admission(padded, duration_ms)
        if items[0].priority == Priority.BULK:
            self._piece = (padded, duration_ms)
        self._tell(
            "admitted",
            items=len(items),
            tokens=tokens,
            padded_tokens=padded,
            duration_ms=duration_ms,
            queue_ms=waits,
        )

    def _retreat(self, group: list[Ticket[ResultT]], rest: list[Ticket[ResultT]], failure: _Failure) -> None:
        """Try an admission that ran out of memory again: later beside fewer rows, or in halves in an empty engine."""
        self._lower_ceiling([*self.live, *(ticket.item for ticket in group)], failure)
        if self.live:
            self._room.put_back([*group, *rest])
            return
        self._reset()
        if rest:
            self._suspects.appendleft(rest)
        if len(group) == 1:
            self._fail(group[0], failure)
        else:
            self._suspects.extendleft(reversed(_halves(group)))

    def _step(self) -> None:
        at_least = self._step_priority()
        finished, failure, duration_ms = self._attempt(self._engine.step, at_least)
        if failure is None:
            self.tally["steps"] += 1
            self._gathering.note_step(duration_ms)
            self._tell("stepped", items=len(self.live), duration_ms=duration_ms)
            self._resolve(finished)
            if at_least == Priority.BULK:
                self._learn_pace(duration_ms)
        else:
            self._restart(failure)

    def _learn_pace(self, step_ms: float) -> None:
        """Book the last bulk piece after a step of bulk rows, which belongs to it where it finished all of them."""
        if self._piece is not None:
            tokens, admission_ms = self._piece
            self._piece = None
            self._pace.note(tokens, admission_ms + (0.0 if self._has_live(Priority.BULK) else step_ms))

    def _step_priority(self) -> Priority:
        """Let bulk rows pause beside interactive ones, but have one step in `bulk_every`.

        Steps that bulk rows had before count too, `bulk_every` of them at most: a person who comes now and then is not
        made to wait for a list that has had the device to itself until now.
        """
        earned = self._policy.bulk_every - 1
        if self._policy.pause_bulk and self._has_live(Priority.INTERACTIVE):
            if not self._has_live(Priority.BULK):
                return Priority.INTERACTIVE
            if self._steps_before_bulk > 0:
                self._steps_before_bulk -= 1
                return Priority.INTERACTIVE
        self._steps_before_bulk = min(self._steps_before_bulk + earned, earned * self._policy.bulk_every)
        return Priority.BULK

    def _restart(self, failure: _Failure) -> None:
        """Start the live items again in halves, each half alone; a single one has failed for good."""
        tickets = sorted(self.live.values(), key=lambda ticket: -ticket.item.priority)
        self.tally["step_failures"] += 1
        self._tell("step_failed", items=len(tickets), detail=failure.detail)
        if failure.is_out_of_memory:
            self._lower_ceiling(list(self.live), failure)
        self.live = {}
        self._reset()
        if len(tickets) == 1:
            self._fail(tickets[0], failure)
        else:
            self._suspects.extendleft(reversed(_halves(tickets)))

    def _lower_ceiling(self, items: list[Item], failure: _Failure) -> None:
        self.tally["out_of_memory"] += 1
        padded = padded_tokens(items)
        self._tell("out_of_memory", items=len(items), padded_tokens=padded, detail=failure.detail)
        self.ceiling.lower(padded, self._clock())

    def _reset(self) -> None:
        with self._device:
            self._engine.reset()

    def _resolve(self, finished: Sequence[Finished[ResultT]]) -> None:
        now_s = self._clock()
        for done in finished:
            ticket = self.live.pop(done.item, None)
            if ticket is None or ticket.admitted_s is None:
                continue
            if done.error is not None:
                self._fail(ticket, self._failure(done.error))
                continue
            queue_ms = (ticket.admitted_s - ticket.arrived_s) * 1000
            # An engine's result type may include None, so None is no sign of failure.
            result: ResultT = done.result  # type: ignore[assignment]
            self._room.settle(ticket, Outcome(result, queue_ms, (now_s - ticket.admitted_s) * 1000))

    def _fail(self, ticket: Ticket[ResultT], failure: _Failure) -> None:
        self._tell("failed", items=1, tokens=ticket.item.length, detail=failure.detail)
        self._room.settle(ticket, _public_error(failure.error, failure.is_out_of_memory))

    def _failure(self, error: Exception) -> _Failure:
        return _Failure(error, _describe_and_release(error), self._engine.is_out_of_memory(error))

    def _attempt(
        self, call: Callable[[T], list[Finished[ResultT]]], argument: T
    ) -> tuple[list[Finished[ResultT]], _Failure | None, float]:
        """Call the engine under the device lock; return what it finished, or why it failed, and the milliseconds."""
        finished: list[Finished[ResultT]] = []
        error: Exception | None = None
        with self._device:
            started_s = self._clock()
            try:
                finished = call(argument)
            except Exception as caught:
                error = caught
            duration_ms = (self._clock() - started_s) * 1000
        return finished, None if error is None else self._failure(error), duration_ms
