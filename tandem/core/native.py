"""Locks and conditions of the operating system, whatever gevent has patched.

Under gunicorn's gevent worker `threading` is patched: its threads are greenlets and its locks switch greenlets, so
neither may be used on a thread that computes. Everything here is built from primitives taken before patching. Whether
gevent rules is looked up when an object is made, never at import: gunicorn patches after some modules are loaded.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
from collections import deque
from functools import cache
from types import TracebackType
from typing import Any, cast


def is_patched() -> bool:
    """Say whether gevent has replaced `threading` in this process."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def original(name: str) -> Any:
    """Return an attribute of `_thread` as it was before gevent patched it."""
    return getattr(_thread, name) if "gevent.monkey" not in sys.modules else _saved(name)


@cache
def _saved(name: str) -> Any:
    """Return what gevent has put aside, or will: the same object, before it patches and after."""
    return sys.modules["gevent.monkey"].get_original("_thread", name)


def native_lock() -> _thread.LockType:
    """Make a lock that blocks the whole thread: hold it for microseconds and never across a greenlet switch."""
    return cast(_thread.LockType, original("allocate_lock")())


def bounded(timeout_s: float | None) -> float | None:
    """Return a timeout in seconds that the operating system accepts, None for no limit."""
    if timeout_s is None or timeout_s >= _thread.TIMEOUT_MAX:
        return None
    return max(0.0, timeout_s)


def _acquire(lock: _thread.LockType, timeout_s: float | None) -> bool:
    limit_s = bounded(timeout_s)
    return lock.acquire(True, -1 if limit_s is None else limit_s)


class NativeCondition:
    """A condition between operating-system threads; that of `threading` would make patched locks inside `wait`."""

    def __init__(self) -> None:
        """Make it with a lock of its own, taken by `with condition:`."""
        self._lock = native_lock()
        self._waiters: deque[_thread.LockType] = deque()

    def __enter__(self) -> None:
        """Acquire it."""
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Release it."""
        self._lock.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Release the lock, wait for a notification, take the lock again.

        Args:
            timeout_s: Seconds to wait; None for no limit.

        Returns:
            False when the time was up first.
        """
        waiter = native_lock()
        waiter.acquire()
        self._waiters.append(waiter)
        self._lock.release()
        notified = False
        try:
            notified = _acquire(waiter, timeout_s)
        finally:
            self._lock.acquire()
            if not notified:
                with contextlib.suppress(ValueError):
                    self._waiters.remove(waiter)
        return notified

    def notify_all(self) -> None:
        """Wake every waiting thread; the caller holds the lock."""
        while self._waiters:
            self._waiters.popleft().release()


class NativeEvent:
    """A flag between operating-system threads."""

    def __init__(self) -> None:
        """Make it unset."""
        self._condition = NativeCondition()
        self._is_set = False

    def is_set(self) -> bool:
        """Say whether the flag is up."""
        return self._is_set

    def set(self) -> None:
        """Raise the flag and wake everybody who waits for it."""
        with self._condition:
            self._is_set = True
            self._condition.notify_all()

    def clear(self) -> None:
        """Lower the flag."""
        with self._condition:
            self._is_set = False

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block this operating-system thread until the flag is up; False when `timeout_s` seconds passed first."""
        with self._condition:
            return self._is_set or self._condition.wait(timeout_s) or self._is_set
