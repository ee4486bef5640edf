"""Whose turn it is on the device."""

from __future__ import annotations

import _thread
from collections import deque
from types import TracebackType

from tandem.core.native import native_lock


class DeviceLock:
    """A lock that engine threads get in the order in which they asked for it.

    It is handed from owner to owner: a thread that releases it and asks again stands behind everyone who waits already.
    """

    def __init__(self) -> None:
        """Make it free."""
        self._guard = native_lock()
        self._is_held = False
        self._queue: deque[_thread.LockType] = deque()

    @property
    def is_held(self) -> bool:
        """Whether a thread has it."""
        return self._is_held

    @property
    def waiting(self) -> int:
        """Threads in the queue."""
        return len(self._queue)

    def acquire(self) -> None:
        """Block this operating-system thread until its turn has come."""
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return
            turn = native_lock()
            turn.acquire()
            self._queue.append(turn)
        turn.acquire()

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest."""
        with self._guard:
            if not self._is_held:
                raise RuntimeError("release of a device lock that nobody holds")
            if self._queue:
                self._queue.popleft().release()
            else:
                self._is_held = False

    def __enter__(self) -> None:
        """Acquire it."""
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Release it."""
        self.release()
