"""Threads that each take a part of one kernel call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tandem.core.native import native_lock
from tandem.core.threads import NativeThread

Part = Callable[[], Any]


class Team:
    """Some threads that wait for work; the caller is one of them.

    A kernel runs without the interpreter's lock and needs nothing of the other parts until all are done, so there is
    one meeting a call, where torch's threads meet at every operation.

    Args:
        size: How many, the caller included.
    """

    def __init__(self, size: int) -> None:
        """Start the others."""
        self.size = size
        self._turn = native_lock()
        self._others = [_Member() for _ in range(size - 1)]

    def run(self, parts: Sequence[Part]) -> None:
        """Run all parts at once and wait for them; raise what one of them raised.

        Args:
            parts: At most as many as there are threads.
        """
        with self._turn:
            others = self._others[: max(len(parts) - 1, 0)]
            for member, part in zip(others, parts[1:], strict=True):
                member.begin(part)
            try:
                for part in parts[:1]:
                    part()
            finally:
                errors = [member.finish() for member in others]
            for error in errors:
                if error is not None:
                    raise error


class _Member:
    def __init__(self) -> None:
        self._started, self._finished = native_lock(), native_lock()
        self._started.acquire()
        self._finished.acquire()
        self._part: Part | None = None
        self._error: BaseException | None = None
        NativeThread(self._serve).start()

    def begin(self, part: Part) -> None:
        self._part, self._error = part, None
        self._started.release()

    def finish(self) -> BaseException | None:
        self._finished.acquire()
        self._part = None
        return self._error

    def _serve(self) -> None:
        while True:
            self._started.acquire()
            try:
                if self._part is not None:
                    self._part()
            except BaseException as error:
                self._error = error
            finally:
                self._finished.release()


@cache
def get_team(size: int) -> Team:
    """Return the process's team of a size; its threads live as long as the process."""
    return Team(size)
