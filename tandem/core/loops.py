"""Where other threads' calls are run, and how they wake who waits: a gevent hub, or the thread itself without one."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from tandem.core.native import NativeEvent, bounded, is_patched, original

LOGGER = logging.getLogger("tandem.concurrency")
# Results come in bursts, and each wakes a greenlet that has an answer to write. Between a few of them the hub looks at
# its sockets, so that a short request does not wait for all of them. Of a long queue it takes more, so that it ends.
_CALLS_AT_ONCE = 2
_PART_AT_ONCE = 32  # a 32nd of the queue


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
        waiting = len(self._calls)
        for _ in range(min(waiting, max(_CALLS_AT_ONCE, waiting // _PART_AT_ONCE))):
            run_quietly(*self._calls.popleft())
        if self._calls:
            self._watcher.send()


def get_mailbox() -> _Mailbox:
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
        self._mailbox = get_mailbox()

    def call(self, fn: Callable[..., object], *args: object) -> None:
        import gevent

        # A greenlet of its own, since a callback in the hub itself may not block, not even on a logging handler's lock.
        self._mailbox.post(gevent.spawn, run_quietly, fn, args)


class _NativeState(original("_local")):  # type: ignore[misc]
    """What a native thread inherits: the loop of the thread that started it; None on every other thread."""

    loop: Loop | None = None


_DIRECT = _DirectLoop()
native_state = _NativeState()


def current_loop() -> Loop:
    """Return the loop of this thread.

    A native thread started here has no loop: it delivers to its starter's. A loop made on it would never run.
    """
    inherited: Loop | None = native_state.loop
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

        self._mailbox = get_mailbox()
        self._event = gevent.event.Event()

    def wake(self) -> None:
        self._mailbox.post(self._event.set)

    def wait(self, timeout_s: float | None = None) -> bool:
        return bool(self._event.wait(bounded(timeout_s)))


def new_waker() -> Waker:
    """Make a waker for the calling greenlet, or for the calling thread where no greenlets run."""
    if native_state.loop is None and is_patched():
        return _GreenletWaker()
    return _ThreadWaker()
