"""Whose turn it is on the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from tandem.core.native import NativeCondition

# What an engine that did not use the device may catch up on, in seconds: enough to be next when it asks.
_CREDIT_S = 0.1
# An engine that had less than the others keeps its turn while its thread settles results and comes back, in seconds.
_GRACE_S = 0.002


class DeviceLock:
    """A lock that shares a device by time: among the engines that want it, the one that used it least is next.

    Turns alone would not be fair. A step of one engine may be a tenth of the other's, and the engine of short steps
    would have a tenth of the device.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Make it free; `clock` gives seconds."""
        self._clock = clock
        self._changed = NativeCondition()
        self._holder: DeviceShare | None = None
        self._waiting: list[DeviceShare] = []
        self._last: DeviceShare | None = None  # who may come back until `_grace_until_s`
        self._grace_until_s = 0.0
        self._most_used_s = 0.0

    @property
    def is_held(self) -> bool:
        """Whether an engine has it."""
        return self._holder is not None

    @property
    def waiting(self) -> int:
        """Engines that wait for it."""
        return len(self._waiting)

    def share(self, cost: float = 1.0) -> DeviceShare:
        """Return the lock of one engine, which one thread at a time uses.

        Args:
            cost: What a second of it counts; an engine of cost 2 gets half as much as one of cost 1.
        """
        return DeviceShare(self, cost)

    def acquire(self, share: DeviceShare) -> None:
        """Block this operating-system thread until it is the engine's turn."""
        with self._changed:
            share.used_s = max(share.used_s, self._most_used_s - _CREDIT_S)
            self._waiting.append(share)
            while self._holder is not None or self._next() is not share:
                is_free = self._holder is None
                self._changed.wait(max(self._grace_until_s - self._clock(), 0.0) if is_free else None)
            self._waiting.remove(share)
            self._holder = share
            share.since_s = self._clock()

    def release(self, share: DeviceShare) -> None:
        """Book the time and wake those who wait.

        Raises:
            RuntimeError: The engine does not hold the lock.
        """
        with self._changed:
            if self._holder is not share:
                raise RuntimeError("release of a device lock that this engine does not hold")
            now_s = self._clock()
            share.used_s += (now_s - share.since_s) * share.cost
            self._most_used_s = max(self._most_used_s, share.used_s)
            self._holder, self._last, self._grace_until_s = None, share, now_s + _GRACE_S
            self._changed.notify_all()

    def _next(self) -> DeviceShare:
        """Return whose turn it is among those who wait and the one that is about to come back; first come, first."""
        contenders = list(self._waiting)
        if self._last is not None and self._clock() < self._grace_until_s:
            contenders.append(self._last)
        return min(contenders, key=lambda share: share.used_s)


class DeviceShare:
    """One engine's side of a device lock: `with share:` around every call of the engine.

    Attributes:
        cost: What a second counts.
        used_s: Time on the device, in seconds times cost, as far as it is not forgiven.
        since_s: When it was acquired last, on the lock's clock.
    """

    def __init__(self, lock: DeviceLock, cost: float) -> None:
        """Begin without any use."""
        self.cost = cost
        self.used_s = 0.0
        self.since_s = 0.0
        self._lock = lock

    def __enter__(self) -> None:
        """Acquire the device."""
        self._lock.acquire(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Release it."""
        self._lock.release(self)
