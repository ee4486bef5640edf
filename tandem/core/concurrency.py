"""Operating-system threads, locks and futures that work alike with and without gevent.

Under gunicorn's gevent worker `threading` is patched: its threads are greenlets and its locks switch greenlets, so
neither may be used on a thread that computes. Everything here is built from primitives taken before patching. Whether
gevent rules is looked up when an object is made, never at import: gunicorn patches after some modules are loaded.

Beside import_locks no other module knows gevent.
"""

from __future__ import annotations

import _thread
import contextlib
import logging
import sys
import traceback
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from tandem.core.errors import CancelledError

T = TypeVar("T")
P = ParamSpec("P")

LOGGER = logging.getLogger("tandem.concurrency")


def is_patched() -> bool:
    """Say whether gevent has replaced `threading` in this process."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def _original(name: str) -> Any:
    """Return an attribute of `_thread` as it was before gevent patched it."""
    monkey = sys.modules.get("gevent.monkey")
    return getattr(_thread, name) if monkey is None else monkey.get_original("_thread", name)


def native_lock() -> _thread.LockType:
    """Make a lock that blocks the whole thread: hold it for microseconds and never across a greenlet switch."""
    return cast(_thread.LockType, _original("allocate_lock")())


def _bounded(timeout_s: float | None) -> float | None:
    """Return a timeout in seconds that the operating system accepts, None for no limit."""
    if timeout_s is None or timeout_s >= _thread.TIMEOUT_MAX:
        return None
    return max(0.0, timeout_s)


def _acquire(lock: _thread.LockType, timeout_s: float | None) -> bool:
    limit_s = _bounded(timeout_s)
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


class Loop(Protocol):
    """Where results, metrics and log records are applied."""

    def call(self, fn: Callable[..., object], *args: object) -> None:
        """Have `fn(*args)` run there, from any thread; never blocks on it and never raises."""
        ...


def run_quietly(fn: Callable[..., object], args: tuple[object, ...]) -> None:
    """Call a callback; log the type and place of what it raises, not the message, which may hold user text."""
    try:
        fn(*args)
    except Exception as error:
        stack = "".join(traceback.format_tb(error.__traceback__))
        # Not `exception`, which would log the message.
        LOGGER.error("a callback raised %s\n%s", type(error).__name__, stack)  # noqa: TRY400


class _Mailbox:
    """Calls that other threads leave for a hub, in order.

    gevent's own `run_callback_threadsafe` counts references to the loop from the calling thread, while the loop, which
    runs without the interpreter's lock, counts them too: under load the count is lost sooner or later, and the hub
    ends as if there were nothing left to wait for. Sending to an async watcher is safe from any thread.
    """

    def __init__(self, hub: Any) -> None:
        """Open it, on the hub's thread."""
        self._calls: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._watcher = hub.loop.async_(ref=False)
        self._watcher.start(self._deliver)

    def post(self, fn: Callable[..., object], *args: object) -> None:
        """Leave a call, from any thread."""
        self._calls.append((fn, args))
        # A loop that is being destroyed refuses; nobody is left there to hear of it.
        with contextlib.suppress(Exception):
            self._watcher.send()

    def _deliver(self) -> None:
        while self._calls:
            run_quietly(*self._calls.popleft())


def _mailbox() -> _Mailbox:
    """Return the mailbox of the calling thread's hub."""
    import gevent

    hub = gevent.get_hub()
    if not hasattr(hub, "tandem_mailbox"):
        hub.tandem_mailbox = _Mailbox(hub)
    mailbox: _Mailbox = hub.tandem_mailbox
    return mailbox


class _DirectLoop:
    """Without gevent: in the calling thread, at once."""

    def call(self, fn: Callable[..., object], *args: object) -> None:
        run_quietly(fn, args)


class _HubLoop:
    """With gevent: in a greenlet of the hub's thread."""

    def __init__(self) -> None:
        self._mailbox = _mailbox()

    def call(self, fn: Callable[..., object], *args: object) -> None:
        import gevent

        # A greenlet of its own, since a callback in the hub itself may not block, not even on a logging handler's lock.
        self._mailbox.post(gevent.spawn, run_quietly, fn, args)


class _NativeState(_original("_local")):  # type: ignore[misc]
    """What a native thread inherits: the loop of the thread that started it; None on every other thread."""

    loop: Loop | None = None


_DIRECT = _DirectLoop()
_native = _NativeState()


def current_loop() -> Loop:
    """Return the loop of this thread.

    A native thread started here has no loop: it delivers to its starter's. A loop made on it would never run.
    """
    inherited: Loop | None = _native.loop
    if inherited is not None:
        return inherited
    if not is_patched():
        return _DIRECT
    return _HubLoop()


class Waker(Protocol):
    """Wakes the one greenlet or thread that made it; once, from any thread."""

    def wake(self) -> None:
        """End the wait, or the wait to come; more calls do nothing."""
        ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait, letting other greenlets run; False when `timeout_s` seconds passed first."""
        ...


class _ThreadWaker:
    def __init__(self) -> None:
        self._event = NativeEvent()

    def wake(self) -> None:
        self._event.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        return self._event.wait(timeout_s)


class _GreenletWaker:
    def __init__(self) -> None:
        import gevent.event

        self._mailbox = _mailbox()
        self._event = gevent.event.Event()

    def wake(self) -> None:
        self._mailbox.post(self._event.set)

    def wait(self, timeout_s: float | None = None) -> bool:
        return bool(self._event.wait(_bounded(timeout_s)))


def new_waker() -> Waker:
    """Make a waker for the calling greenlet, or for the calling thread where no greenlets run."""
    if _native.loop is None and is_patched():
        return _GreenletWaker()
    return _ThreadWaker()


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


class NativeThread:
    """An operating-system thread in every server, gevent's included. It ends with the process."""

    def __init__(self, target: Callable[[], object]) -> None:
        """Prepare it; callbacks from it go to the loop of the calling thread.

        Args:
            target: What it runs; what that raises is logged.
        """
        self._target = target
        self._loop = current_loop()
        self._is_started = False
        self._ended: Future[None] = Future()

    def start(self) -> None:
        """Start it.

        Raises:
            RuntimeError: It was started before.
        """
        if self._is_started:
            raise RuntimeError("a thread can be started once")
        self._is_started = True
        _original("start_new_thread")(self._run, ())

    def is_alive(self) -> bool:
        """Say whether it runs."""
        return self._is_started and not self._ended.done()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for its end, letting other greenlets run; False when `timeout_s` seconds passed first."""
        try:
            self._ended.result(timeout_s)
        except TimeoutError:
            return False
        return True

    def _run(self) -> None:
        _native.loop = self._loop
        try:
            run_quietly(self._target, ())
        finally:
            self._ended.set_result(None)


def run_native(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work that would hold up the event loop, and wait for it.

    Under gevent it runs on the hub's pool of native threads while other greenlets go on; elsewhere, in the calling
    thread, which is a native one already.

    Args:
        fn: Computes without gevent: no sockets, no patched locks.
        args: Its arguments.
        kwargs: Its keyword arguments.

    Returns:
        What `fn` returns.

    Raises:
        BaseException: What `fn` raises.
    """
    if _native.loop is not None or not is_patched():
        return fn(*args, **kwargs)
    import gevent

    # Caught inside: the pool prints what its tasks raise, with their messages, which may hold user text.
    result, error = gevent.get_hub().threadpool.apply(_outcome, (current_loop(), fn, args, kwargs))
    if error is not None:
        raise error
    return cast(T, result)


def _outcome(loop: Loop, fn: Callable[..., T], args: Any, kwargs: Any) -> tuple[T | None, BaseException | None]:
    _native.loop = loop
    try:
        return fn(*args, **kwargs), None
    except BaseException as error:
        return None, error
    finally:
        # The pool's threads also serve others, such as the resolver.
        _native.loop = None


def start_background(fn: Callable[[], object]) -> None:
    """Run something beside the caller: a greenlet under gevent, a thread elsewhere; it ends with the process.

    Args:
        fn: May wait for futures; heavy work in it goes through `run_native`. What it raises is logged.
    """
    if is_patched():
        import gevent

        gevent.spawn(run_quietly, fn, ())
    else:
        _original("start_new_thread")(run_quietly, (fn, ()))
