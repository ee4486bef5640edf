"""Synchronisation with threads that offer nothing to wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TIMEOUT_S = 10.0


def eventually(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Return as soon as a condition holds; fail when it has not within the time."""
    pause = threading.Event()
    limit_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < limit_s, "the condition never came true"
        pause.wait(0.001)
