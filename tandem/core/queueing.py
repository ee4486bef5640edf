"""The waiting room of a scheduler: what callers and the engine's thread share, behind one native lock."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic

from tandem.core.errors import CancelledError, DeadlineError, NotReadyError, OverloadedError
from tandem.core.futures import Future
from tandem.core.loops import Waker, new_waker
from tandem.core.native import NativeCondition
from tandem.core.types import Item, Priority, ResultT


@dataclass(frozen=True, slots=True)
class Outcome(Generic[ResultT]):
    """What a waiter gets.

    Attributes:
        result: The engine's.
        queue_ms: From submission to the start of its admission, in milliseconds.
        compute_ms: From there to the result, in milliseconds; restarts after a failed step included.
    """

    result: ResultT
    queue_ms: float
    compute_ms: float


@dataclass(eq=False, slots=True)
class Ticket(Generic[ResultT]):
    """An accepted item and its future.

    Attributes:
        item: What is to be computed.
        future: Where its outcome goes.
        arrived_s: When it was submitted, on the scheduler's clock.
        admitted_s: When the engine first began on it; None before.
        place: Position in the order of arrival, given at the door.
    """

    item: Item
    future: Future[Outcome[ResultT]]
    arrived_s: float
    admitted_s: float | None = None
    place: int = 0


@dataclass(eq=False, slots=True)
class _Backlog(Generic[ResultT]):
    """The rest of a request larger than the free places, and how its caller is woken once all of it is in."""

    tickets: deque[Ticket[ResultT]]
    waker: Waker | None = None


@dataclass(slots=True)
class _Doors:
    is_open: bool = True
    has_changed: bool = False
    next_place: int = 0
    counts: Counter[str] = field(default_factory=Counter)


def _kind(error: Exception | None) -> str:
    if error is None:
        return "finished"
    if isinstance(error, CancelledError):
        return "cancelled"
    return "expired" if isinstance(error, DeadlineError) else "failed"


class WaitingRoom(Generic[ResultT]):
    """Accepted items in order of arrival, and the requests that trickle in behind them.

    A ticket is accepted until it is settled; only those that wait take a place. Every method may be called from any
    thread. Futures are resolved outside the lock, since their callbacks may come back in.
    """

    def __init__(self, places: int, bulk_places: int) -> None:
        """Open an empty room.

        Args:
            places: Items that may wait.
            bulk_places: Items that may wait when a bulk item asks for a place; the rest is for interactive ones.
        """
        self._places = {Priority.INTERACTIVE: places, Priority.BULK: bulk_places}
        self._condition = NativeCondition()
        self._accepted: dict[Item, Ticket[ResultT]] = {}
        self._waiting: dict[Item, Ticket[ResultT]] = {}
        self._backlogs: deque[_Backlog[ResultT]] = deque()
        self._empty_wakers: list[Waker] = []
        self._doors = _Doors()

    @property
    def is_open(self) -> bool:
        """Whether new items are accepted."""
        return self._doors.is_open

    @property
    def waiting(self) -> int:
        """Items that take a place."""
        return len(self._waiting)

    @property
    def backlog(self) -> int:
        """Accepted items that have no place yet."""
        with self._condition:
            return sum(len(backlog.tickets) for backlog in self._backlogs)

    def counts(self) -> dict[str, int]:
        """Return how many items were finished, failed, expired, cancelled and refused so far."""
        with self._condition:
            return dict(self._doors.counts)

    def enter(self, tickets: Sequence[Ticket[ResultT]], *, is_follow_up: bool = False) -> Waker | None:
        """Accept a request: as many of its items as there are places, the others as places become free.

        Args:
            tickets: At least one.
            is_follow_up: They belong to a request that was accepted before: it is not refused, its own items may be
                what fills the room.

        Returns:
            None when all are in; otherwise what wakes the caller as soon as they are.

        Raises:
            NotReadyError: The room is closed.
            OverloadedError: There is no place for the first item; none is accepted.
            ValueError: An item is here already.
        """
        with self._condition:
            self._check(tickets, is_follow_up)
            self._accepted.update((ticket.item, ticket) for ticket in tickets)
            backlog = _Backlog(deque(tickets))
            if not is_follow_up:
                # Seated before anyone's backlog: the place has just been seen to be free.
                self._seat(backlog.tickets.popleft())
            self._backlogs.append(backlog)
            self._refill()
            self._announce()
            if backlog.tickets:
                backlog.waker = new_waker()
            return backlog.waker

    def find(self, item: Item) -> Ticket[ResultT] | None:
        """Return the ticket of an accepted item."""
        with self._condition:
            return self._accepted.get(item)

    def snapshot(self) -> list[Ticket[ResultT]]:
        """Return the tickets that wait, in order of arrival."""
        with self._condition:
            return list(self._waiting.values())

    def holds(self, priority: Priority) -> bool:
        """Say whether an item of a priority waits."""
        with self._condition:
            return any(item.priority == priority for item in self._waiting)

    def accepted(self) -> list[Ticket[ResultT]]:
        """Return every ticket that is not settled: waiting, in a backlog, or with the engine."""
        with self._condition:
            return list(self._accepted.values())

    def take(self, items: Collection[Item]) -> list[Ticket[ResultT]]:
        """Give up the places of items that go to the engine; those that have left meanwhile are not in the result."""
        with self._condition:
            taken = [self._waiting.pop(item) for item in items if item in self._waiting]
            self._refill()
            return taken

    def put_back(self, tickets: Collection[Ticket[ResultT]]) -> None:
        """Let taken items wait again where they stood, even if the room is full now."""
        with self._condition:
            returned = [ticket for ticket in tickets if ticket.item in self._accepted]
            ordered = sorted([*self._waiting.values(), *returned], key=lambda ticket: ticket.place)
            self._waiting = {ticket.item: ticket for ticket in ordered}

    def settle(self, ticket: Ticket[ResultT], outcome: Outcome[ResultT] | Exception) -> None:
        """Resolve a ticket's future and forget the ticket; a ticket that is settled already stays as it is."""
        if isinstance(outcome, Exception):
            ticket.future.set_exception(outcome)
        else:
            ticket.future.set_result(outcome)
        # After the future: who waits for the room to be empty may rely on every result being there.
        with self._condition:
            if self._accepted.pop(ticket.item, None) is None:
                return
            self._waiting.pop(ticket.item, None)
            self._doors.counts[_kind(ticket.future.exception())] += 1
            self._refill()
            if not self._accepted:
                self._wake_all()

    def announce(self) -> None:
        """Wake the engine's thread: something it should look at has changed."""
        with self._condition:
            self._refill()
            self._announce()

    def wait_for_change(self, timeout_s: float) -> None:
        """Block the engine's thread until something was announced since the last call, `timeout_s` seconds at most."""
        with self._condition:
            if not self._doors.has_changed:
                self._condition.wait(timeout_s)
            self._doors.has_changed = False

    def close(self) -> None:
        """Refuse new requests from now on; those accepted stay, with their backlogs."""
        with self._condition:
            self._doors.is_open = False
            self._announce()

    def wait_until_empty(self, timeout_s: float | None) -> bool:
        """Wait until every ticket is settled; False when `timeout_s` seconds passed first."""
        with self._condition:
            if not self._accepted:
                return True
            waker = new_waker()
            self._empty_wakers.append(waker)
        waker.wait(timeout_s)
        with self._condition:
            if waker in self._empty_wakers:
                self._empty_wakers.remove(waker)
            return not self._accepted

    def _check(self, tickets: Sequence[Ticket[ResultT]], is_follow_up: bool) -> None:
        if not self._doors.is_open:
            raise NotReadyError("The service is stopping; send the request again shortly.")
        items = {ticket.item for ticket in tickets}
        if len(items) < len(tickets) or not self._accepted.keys().isdisjoint(items):
            raise ValueError("an item can be submitted only once")
        if not is_follow_up and not self._has_place(tickets[0]):
            self._doors.counts["refused"] += len(tickets)
            raise OverloadedError("Too many requests are waiting; send this one again shortly.")

    def _has_place(self, ticket: Ticket[ResultT]) -> bool:
        return len(self._waiting) < self._places[ticket.item.priority]

    def _seat(self, ticket: Ticket[ResultT]) -> None:
        ticket.place = self._doors.next_place
        self._doors.next_place += 1
        self._waiting[ticket.item] = ticket

    def _refill(self) -> None:
        """Seat items of the backlogs in turn, one of each request, until nobody can move."""
        stuck = 0
        while stuck < len(self._backlogs):
            backlog = self._backlogs.popleft()
            stuck = 0 if self._advance(backlog) else stuck + 1
            if backlog.tickets:
                self._backlogs.append(backlog)
            elif backlog.waker is not None:
                backlog.waker.wake()

    def _advance(self, backlog: _Backlog[ResultT]) -> bool:
        """Move the first ticket of a backlog on; False when there is no place for it."""
        if not backlog.tickets:
            return True
        is_settled = backlog.tickets[0].item not in self._accepted
        if not is_settled and not self._has_place(backlog.tickets[0]):
            return False
        ticket = backlog.tickets.popleft()
        if not is_settled:
            self._seat(ticket)
            self._announce()
        return True

    def _announce(self) -> None:
        self._doors.has_changed = True
        self._condition.notify_all()

    def _wake_all(self) -> None:
        wakers, self._empty_wakers = self._empty_wakers, []
        for waker in wakers:
            waker.wake()
