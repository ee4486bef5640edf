"""Engines without a model: they count, and misbehave on purpose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from tandem.core.device_lock import DeviceLock
from tandem.core.errors import NonFiniteError
from tandem.core.types import Budget, Finished, Item, Priority
from tests.support.clock import FakeClock

Result = tuple[str, tuple[int, ...], int]


class OutOfFakeMemoryError(Exception):
    """The fake device is full."""


class FakeEngine:
    """Finishes an item after `steps` steps, with its ids and the number of steps it saw since its admission.

    Token ids decide who misbehaves, so that the scheduler cannot know beforehand.

    Attributes:
        steps: Steps an item needs.
        rooms: Places for each priority; a bulk item counts all live rows, an interactive one too.
        bad_at_admit: Token ids that make `admit` raise.
        bad_at_step: Token ids that make `step` raise.
        not_finite: Token ids whose item ends in an error of its own.
        memory_tokens: Live tokens (longest x count) above which memory is out; None for endless memory.
        clock, seconds_per_call: What a call takes, on a fake clock.
        seconds_per_token: What each token of an admission takes besides.
        before_admit, before_step: Called during each admission or step.
    """

    def __init__(
        self,
        *,
        steps: int | Callable[[Item], int] = 1,
        rooms: dict[Priority, Budget] | None = None,
        memory_tokens: int | None = None,
        clock: FakeClock | None = None,
        lock: DeviceLock | None = None,
    ) -> None:
        """Start empty and well-behaved."""
        self.needs = steps if callable(steps) else lambda item: steps
        self.rooms = rooms or {priority: Budget(10_000, 10_000_000) for priority in Priority}
        self.memory_tokens = memory_tokens
        self.clock = clock
        self.seconds_per_call = 0.0
        self.seconds_per_token = 0.0
        self.lock = lock
        self.bad_at_admit: Collection[int] = ()
        self.bad_at_step: Collection[int] = ()
        self.not_finite: Collection[int] = ()
        self.error: Callable[[], Exception] = lambda: RuntimeError("secret user text")
        self.before_admit: Callable[[], None] = lambda: None
        self.before_step: Callable[[], None] = lambda: None
        self.rows: dict[Item, int] = {}
        self.calls = Calls()

    def admit(self, items: Sequence[Item]) -> list[Finished[Result]]:
        """Take items in, all or none."""
        self._account(sum(item.length for item in items) * self.seconds_per_token)
        self.before_admit()
        self.calls.tried.append([item.ids for item in items])
        if any(set(item.ids) & set(self.bad_at_admit) for item in items):
            raise self.error()
        self._check_memory([*self.rows, *items])
        self.calls.admitted.append([item.ids for item in items])
        self.rows.update((item, 0) for item in items)
        return []

    def step(self, at_least: Priority) -> list[Finished[Result]]:
        """Advance rows; hand back what is done."""
        self._account()
        self.before_step()
        moving = [item for item in self.rows if item.priority >= at_least]
        self.calls.steps.append((at_least, len(moving)))
        if any(set(item.ids) & set(self.bad_at_step) for item in moving):
            raise self.error()
        self._check_memory(list(self.rows))
        for item in moving:
            self.rows[item] += 1
        done = [item for item in moving if self.rows[item] >= self.needs(item)]
        return [self._finish(item) for item in done]

    def room(self, priority: Priority) -> Budget:
        """Return what is left of the room for a priority."""
        room = self.rooms[priority]
        longest = max((item.length for item in self.rows), default=0)
        return Budget(max(0, room.segments - len(self.rows)), max(0, room.tokens - longest * len(self.rows)))

    def live(self) -> Sequence[Item]:
        """Return the rows."""
        return list(self.rows)

    def cancel(self, items: Sequence[Item]) -> None:
        """Drop rows."""
        self.calls.cancelled += [item.ids for item in items]
        for item in items:
            self.rows.pop(item, None)

    def reset(self) -> list[Item]:
        """Drop everything."""
        self.calls.resets += 1
        items = list(self.rows)
        self.rows.clear()
        return items

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Recognise the error of this device."""
        return isinstance(error, OutOfFakeMemoryError)

    def _finish(self, item: Item) -> Finished[Result]:
        steps = self.rows.pop(item)
        if set(item.ids) & set(self.not_finite):
            return Finished(item, error=NonFiniteError("The model gave no finite number for this text."))
        return Finished(item, ("done", item.ids, steps))

    def _account(self, extra_s: float = 0.0) -> None:
        if self.lock is not None:
            self.calls.unlocked += not self.lock.is_held
        if self.clock is not None:
            self.clock.advance(self.seconds_per_call + extra_s)

    def _check_memory(self, items: Sequence[Item]) -> None:
        needed = max((item.length for item in items), default=0) * len(items)
        if self.memory_tokens is not None and needed > self.memory_tokens:
            raise OutOfFakeMemoryError


@dataclass
class Calls:
    """What was asked of a fake engine: ids of the items, and steps with the number of their rows."""

    tried: list[list[tuple[int, ...]]] = field(default_factory=list)
    admitted: list[list[tuple[int, ...]]] = field(default_factory=list)
    steps: list[tuple[Priority, int]] = field(default_factory=list)
    cancelled: list[tuple[int, ...]] = field(default_factory=list)
    resets: int = 0
    unlocked: int = 0
