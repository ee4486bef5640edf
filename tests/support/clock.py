"""A clock that stands still until a test moves it."""

from __future__ import annotations


class FakeClock:
    """Seconds that pass only when told to."""

    def __init__(self, now_s: float = 1000.0) -> None:
        """Start at a time in seconds."""
        self.now_s = now_s

    def __call__(self) -> float:
        """Return the time, as `time.monotonic` does."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds
