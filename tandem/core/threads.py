"""Work on threads of the operating system, with and without gevent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from tandem.core.futures import Future
from tandem.core.loops import Loop, current_loop, native_state, run_quietly
from tandem.core.native import is_patched, original

T = TypeVar("T")
P = ParamSpec("P")


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
        original("start_new_thread")(self._run, ())

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
        native_state.loop = self._loop
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
    if native_state.loop is not None or not is_patched():
        return fn(*args, **kwargs)
    import gevent

    # Caught inside: the pool prints what its tasks raise, with their messages, which may hold user text.
    result, error = gevent.get_hub().threadpool.apply(_outcome, (current_loop(), fn, args, kwargs))
    if error is not None:
        raise error
    return cast(T, result)


def _outcome(loop: Loop, fn: Callable[..., T], args: Any, kwargs: Any) -> tuple[T | None, BaseException | None]:
    native_state.loop = loop
    try:
        return fn(*args, **kwargs), None
    except BaseException as error:
        return None, error
    finally:
        # The pool's threads also serve others, such as the resolver.
        native_state.loop = None


def start_background(fn: Callable[[], object]) -> None:
    """Run something beside the caller: a greenlet under gevent, a thread elsewhere; it ends with the process.

    Args:
        fn: May wait for futures; heavy work in it goes through `run_native`. What it raises is logged.
    """
    if is_patched():
        import gevent

        gevent.spawn(run_quietly, fn, ())
    else:
        original("start_new_thread")(run_quietly, (fn, ()))
