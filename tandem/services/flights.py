"""Single flight: identical items that are on their way, in one request or in several, are computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from tandem.core.futures import Future
from tandem.core.native import native_lock
from tandem.core.queueing import Outcome
from tandem.core.types import Item, Priority, ResultT
from tandem.services.ports import Scheduler


@dataclass(eq=False, slots=True)
class Flight(Generic[ResultT]):
    """An item on its way, and how many wait for it.

    Attributes:
        key: What decides the result.
        item: Shared by all who wait.
        future: The scheduler's.
        waiters: Callers that have not left; the last one to leave cancels the item.
    """

    key: str
    item: Item
    future: Future[Outcome[ResultT]]
    waiters: int = 1


class FlightBoard(Generic[ResultT]):
    """All flights of one scheduler.

    Args:
        scheduler: Where new items go.
    """

    def __init__(self, scheduler: Scheduler[ResultT]) -> None:
        """Start with an empty board."""
        self._scheduler = scheduler
        self._lock = native_lock()
        self._flights: dict[str, Flight[ResultT]] = {}

    def board(self, keys: Sequence[str], priority: Priority, deadline_s: float) -> dict[str, Flight[ResultT]]:
        """Join the flights that are already on their way.

        A waiter of higher priority raises the item; a later deadline extends it.

        Args:
            keys: What is wanted.
            priority: Of the caller.
            deadline_s: Of the caller, on the scheduler's clock.

        Returns:
            The flights that there are, by key; `leave` each when it is not waited for any more.
        """
        found: dict[str, Flight[ResultT]] = {}
        with self._lock:
            for key in keys:
                flight = self._flights.get(key)
                if flight is not None and not flight.future.done() and not flight.item.cancelled:
                    flight.waiters += 1
                    flight.item.deadline_s = max(flight.item.deadline_s, deadline_s)
                    found[key] = flight
        for flight in found.values():
            if priority > flight.item.priority:
                self._scheduler.raise_priority(flight.item)
        return found

    def launch(self, items: Mapping[str, Item], *, is_follow_up: bool = False) -> dict[str, Flight[ResultT]]:
        """Submit new items; blocks while a request larger than the waiting room trickles in.

        Args:
            items: Not submitted before, by key.
            is_follow_up: They belong to a request that was accepted before, and are not refused.

        Returns:
            Their flights, by key.

        Raises:
            OverloadedError: There is no room; nothing was accepted.
            NotReadyError: The scheduler is draining.
        """
        futures = self._scheduler.submit_many(list(items.values()), is_follow_up=is_follow_up)
        launched = {key: Flight(key, item, future) for (key, item), future in zip(items.items(), futures, strict=True)}
        with self._lock:
            self._flights.update(launched)
        for flight in launched.values():
            flight.future.add_done_callback(lambda _, flight=flight: self._land(flight))  # type: ignore[misc]
        return launched

    def leave(self, flight: Flight[ResultT]) -> None:
        """Stop waiting; the last one to leave an unfinished flight cancels its item."""
        with self._lock:
            flight.waiters -= 1
            is_empty = flight.waiters <= 0 and not flight.future.done()
            if is_empty:
                flight.item.cancelled = True
        if is_empty:
            self._scheduler.cancel(flight.item)

    def _land(self, flight: Flight[ResultT]) -> None:
        with self._lock:
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]
