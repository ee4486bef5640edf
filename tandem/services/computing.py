"""Results by way of the cache, then of a flight that is already up, then of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tandem.core.types import Item, ResultT
from tandem.services.flights import Flight, FlightBoard
from tandem.services.patience import Patience
from tandem.services.ports import Cache, Scheduler


class Call(Protocol):
    """One result that is wanted."""

    @property
    def key(self) -> str:
        """Cache key: everything that decides the result."""
        ...


_FILLED_TOGETHER = 32  # values that go to the cache in one round trip

CallT = TypeVar("CallT", bound=Call)
ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Codec(Generic[CallT, ResultT, ValueT]):
    """How calls become items and results become values.

    Attributes:
        build_items: Tokenise calls; heavy for many, and run off the event loop then.
        finish: The value of a call's item and the engine's result for it; may do text work.
        pack: A value as bytes for the cache.
        unpack: The other way round; raises ValueError, KeyError or TypeError on rubbish.
    """

    build_items: Callable[[Sequence[CallT]], list[Item]]
    finish: Callable[[CallT, Item, ResultT], ValueT]
    pack: Callable[[ValueT], bytes]
    unpack: Callable[[bytes], ValueT]


@dataclass(slots=True)
class Times:
    """Where a request's time went; filled while it runs.

    Attributes:
        queue_ms: Longest wait of an item for its admission.
        compute_ms: Longest computation of an item.
        hits: Results from the cache.
        misses: Results that were computed.
    """

    queue_ms: float = 0.0
    compute_ms: float = 0.0
    hits: int = 0
    misses: int = 0


@dataclass(slots=True)
class Pending(Generic[CallT, ResultT, ValueT]):
    """A value that is there, or on its way."""

    call: CallT
    value: ValueT | None
    flight: Flight[ResultT] | None

    @property
    def is_there(self) -> bool:
        """Whether `Errand.finish` has its value without waiting."""
        future = self.flight.future if self.flight is not None else None
        return self.value is not None or (future is not None and future.done() and future.exception() is None)


class Computation(Generic[CallT, ResultT, ValueT]):
    """One engine's results.

    Args:
        scheduler: Batches items into the engine.
        cache: Where finished values are kept.
        codec: How calls become items and results become values.
        ttl_s: How long values are kept, in seconds.
    """

    def __init__(
        self, scheduler: Scheduler[ResultT], cache: Cache, codec: Codec[CallT, ResultT, ValueT], ttl_s: float
    ) -> None:
        """Start with nothing on its way."""
        self.board: FlightBoard[ResultT] = FlightBoard(scheduler)
        self.codec = codec
        self._cache = cache
        self._ttl_s = ttl_s

    def open(self, patience: Patience, times: Times) -> Errand[CallT, ResultT, ValueT]:
        """Begin one request's dealings; use it as a context, so that nothing is computed for a caller that has gone."""
        return Errand(self, patience, times)

    def look_up(self, keys: Sequence[str]) -> dict[str, ValueT]:
        """Return what the cache has, by key; one round trip."""
        stored = self._cache.get_many(keys)
        pairs = zip(keys, stored, strict=True)
        return {key: value for key, packed in pairs if packed and (value := self._unpack(packed)) is not None}

    def fill(self, values: Mapping[str, ValueT]) -> None:
        """Keep finished values."""
        self._cache.set_many({key: self.codec.pack(value) for key, value in values.items()}, self._ttl_s)

    def _unpack(self, stored: bytes) -> ValueT | None:
        try:
            return self.codec.unpack(stored)
        except (ValueError, KeyError, TypeError):
            return None  # written by another version: computed again


class Errand(Generic[CallT, ResultT, ValueT]):
    """One request's dealings with one computation.

    Args:
        computation: What computes.
        patience: The caller's.
        times: Filled with what happens.
    """

    def __init__(self, computation: Computation[CallT, ResultT, ValueT], patience: Patience, times: Times) -> None:
        """Start with nothing wanted."""
        self._computation = computation
        self._patience = patience
        self._times = times
        self._known: dict[str, ValueT] = {}
        self._flights: list[Flight[ResultT]] = []
        self._fills: dict[str, ValueT] = {}
        self._is_accepted = False

    def __enter__(self) -> Errand[CallT, ResultT, ValueT]:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Keep what was finished and stop waiting for the rest; what nobody else waits for is not computed."""
        self._flush()
        for flight in self._flights:
            self._computation.board.leave(flight)

    def look_up(self, calls: Sequence[CallT]) -> int:
        """Look calls up in the cache, in one round trip; return how many are not there."""
        found = self._computation.look_up(list(dict.fromkeys(call.key for call in calls)))
        self._known |= found
        hits = sum(call.key in found for call in calls)
        self._times.hits += hits
        self._times.misses += len(calls) - hits
        return len(calls) - hits

    def start(self, calls: Sequence[CallT]) -> list[Pending[CallT, ResultT, ValueT]]:
        """Get the value of every call that was looked up on its way; equal ones are computed once.

        What a request wants after its first calls were accepted waits for room: its own may be what fills the queue.

        Raises:
            OverloadedError: There is no room for the first calls; nothing was accepted.
            NotReadyError: The engine is draining.
        """
        wanted = {call.key: call for call in calls if call.key not in self._known}
        board, patience = self._computation.board, self._patience
        flights = board.board(list(wanted), patience.priority, patience.deadline_s)
        self._flights += flights.values()
        new = [call for key, call in wanted.items() if key not in flights]
        if new:
            items = self._computation.codec.build_items(new)
            for item in items:
                item.priority, item.deadline_s = patience.priority, patience.deadline_s
            launched = board.launch(
                {call.key: item for call, item in zip(new, items, strict=True)}, is_follow_up=self._is_accepted
            )
            self._flights += launched.values()
            flights |= launched
        self._is_accepted = True
        for flight in flights.values():
            flight.future.add_done_callback(lambda _: patience.note_progress())
        return [Pending(call, self._known.get(call.key), flights.get(call.key)) for call in calls]

    def finish(self, pending: Pending[CallT, ResultT, ValueT]) -> ValueT:
        """Wait for one value.

        Raises:
            TandemError: The engine's, the scheduler's or the caller's time.
        """
        if pending.value is None:
            key = pending.call.key
            if key not in self._known:
                self._known[key] = self._fills[key] = self._collect(pending)
                if len(self._fills) >= _FILLED_TOGETHER:
                    self._flush()
            pending.value = self._known[key]
        return pending.value

    def _collect(self, pending: Pending[CallT, ResultT, ValueT]) -> ValueT:
        flight = pending.flight
        assert flight is not None, "a call is either known or on its way"
        outcome = self._patience.wait(flight.future)
        self._times.queue_ms = max(self._times.queue_ms, outcome.queue_ms)
        self._times.compute_ms = max(self._times.compute_ms, outcome.compute_ms)
        return self._computation.codec.finish(pending.call, flight.item, outcome.result)

    def _flush(self) -> None:
        fills, self._fills = self._fills, {}
        if fills:
            self._computation.fill(fills)
