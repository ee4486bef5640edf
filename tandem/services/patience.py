"""How long one caller waits: to its deadline, while it is still there, and longer while bulk work makes progress."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import TypeVar

from tandem.core.errors import CancelledError, DeadlineError
from tandem.core.futures import Future
from tandem.core.types import Priority

T = TypeVar("T")

_LOOK_EVERY_S = 0.25


class Patience:
    """The clock of one request.

    Args:
        timeout_s: Seconds the request may run; for bulk work, seconds without any progress.
        is_gone: Says whether the caller has hung up; asked a few times a second.
        clock: Seconds, monotonic; the schedulers' clock.
    """

    def __init__(
        self, timeout_s: float, is_gone: Callable[[], bool] = lambda: False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the clock."""
        self._timeout_s = timeout_s
        self._is_gone = is_gone
        self._clock = clock
        self._is_bulk = False
        self._until_s = clock() + timeout_s
        self._next_look_s = 0.0

    @property
    def priority(self) -> Priority:
        """Of the items of this request."""
        return Priority.BULK if self._is_bulk else Priority.INTERACTIVE

    @property
    def deadline_s(self) -> float:
        """When its items are dropped, on the schedulers' clock; never for bulk work, whose caller gives up."""
        return math.inf if self._is_bulk else self._until_s

    def become_bulk(self) -> None:
        """Turn the request into bulk work: interactive work precedes it, and it may take long."""
        self._is_bulk = True
        self.note_progress()

    def note_progress(self) -> None:
        """Extend bulk work, because something was finished."""
        if self._is_bulk:
            self._until_s = self._clock() + self._timeout_s

    def wait(self, future: Future[T]) -> T:
        """Wait for a result.

        Raises:
            DeadlineError: The time is up.
            CancelledError: The caller has hung up.
            Exception: What the future holds.
        """
        while True:
            self._look_for_caller()
            left_s = self._until_s - self._clock()
            if left_s <= 0 and not future.done():
                raise DeadlineError(
                    f"The request took longer than {self._timeout_s:g} s. Send less text at once, or try again later."
                )
            with contextlib.suppress(TimeoutError):
                return future.result(timeout=max(min(left_s, _LOOK_EVERY_S), 0))

    def _look_for_caller(self) -> None:
        """Raise CancelledError when the caller has hung up; looks now and then, also while results keep coming."""
        now_s = self._clock()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_EVERY_S
            if self._is_gone():
                raise CancelledError("The caller has hung up.")
