"""Results to come, for greenlets and threads alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from tandem.core.errors import CancelledError
from tandem.core.loops import Waker, current_loop, new_waker, run_quietly
from tandem.core.native import native_lock

T = TypeVar("T")


class Future(Generic[T]):
    """A result to come. Resolved by any thread; waited for by greenlets and threads alike.

    `concurrent.futures.Future` keeps a `threading.Condition`, which under gevent no native thread may touch. This one
    has the same methods. The first of a result, an error and a cancellation stays; later ones change nothing.
    Done-callbacks run on the loop of the creating thread: under gevent in a greenlet of their own, otherwise in the
    thread that resolves. There they must not wait, neither for this engine nor for room in its queue.
    """

    def __init__(self, on_cancel: Callable[[], object] | None = None) -> None:
        """Make it unresolved.

        Args:
            on_cancel: Called once, in the cancelling thread, when `cancel` was in time.
        """
        self._lock = native_lock()
        self._loop = current_loop()
        self._on_cancel = on_cancel
        self._is_done = False
        self._result: T | None = None
        self._error: Exception | None = None
        self._wakers: list[Waker] = []
        self._callbacks: list[Callable[[Future[T]], object]] = []

    def done(self) -> bool:
        """Say whether it is resolved."""
        return self._is_done

    def cancelled(self) -> bool:
        """Say whether it was cancelled before it was resolved."""
        return isinstance(self._error, CancelledError)

    def cancel(self) -> bool:
        """Resolve it with CancelledError; False when something else came first."""
        won = self.set_exception(CancelledError("The request was cancelled."))
        if won and self._on_cancel is not None:
            self._on_cancel()
        return won

    def set_result(self, result: T) -> bool:
        """Resolve it; False when something else came first."""
        return self._resolve(result, None)

    def set_exception(self, error: Exception) -> bool:
        """Resolve it with an error that every waiter gets; False when something else came first."""
        return self._resolve(None, error)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result.

        Args:
            timeout: Seconds; None for no limit.

        Returns:
            The result.

        Raises:
            TimeoutError: The time passed first; the future lives on.
            Exception: What the future was resolved with.
        """
        error = self.exception(timeout)
        if error is not None:
            # Without this, every waiter's frames would be chained to the one error they share.
            raise error.with_traceback(None)
        return cast(T, self._result)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait like `result` and return the error, or None for a result.

        Raises:
            TimeoutError: The time passed first; the future lives on.
        """
        if not self._is_done and not self._wait(timeout):
            raise TimeoutError
        return self._error

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn(self)` once resolved; at once, in this thread, when it is already. What it raises is logged."""
        with self._lock:
            if not self._is_done:
                self._callbacks.append(fn)
                return
        run_quietly(fn, (self,))

    def _wait(self, timeout_s: float | None) -> bool:
        waker = new_waker()
        with self._lock:
            if self._is_done:
                return True
            self._wakers.append(waker)
        try:
            waker.wait(timeout_s)
        finally:
            # The waiter's greenlet may have been killed, or its time is up: many short waits must not pile up here.
            with self._lock:
                if waker in self._wakers:
                    self._wakers.remove(waker)
        return self._is_done

    def _resolve(self, result: T | None, error: Exception | None) -> bool:
        with self._lock:
            if self._is_done:
                return False
            self._result, self._error = result, error
            # Last: readers look at it without the lock.
            self._is_done = True
            wakers, self._wakers = self._wakers, []
            callbacks, self._callbacks = self._callbacks, []
        for waker in wakers:
            waker.wake()
        for callback in callbacks:
            self._loop.call(callback, self)
        return True
