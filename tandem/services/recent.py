"""Finished requests of the last while: what is asked again and again is not taken apart and put together again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from tandem.core.native import native_lock
from tandem.services.computing import Times
from tandem.services.requests import TranslateRequest, TranslateResult

_LONGEST_CHARS = 400  # of a text; taking longer ones apart is little beside sending them
_MOST_ENTRIES = 1024  # at a few kilobytes
_KEEP_S = 60.0

_Key = tuple[tuple[str, ...], str, str, str, int, str]


class RecentResults:
    """Results of short requests in this process, in front of the cache of segments.

    They are kept for a minute at most, the least recently used dropped first.

    Args:
        ttl_s: How long they may be kept, in seconds, if that is less; 0 keeps none.
        clock: Seconds, monotonic.
    """

    def __init__(self, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty."""
        self._ttl_s = min(ttl_s, _KEEP_S)
        self._clock = clock
        self._lock = native_lock()
        self._entries: OrderedDict[_Key, tuple[float, TranslateResult]] = OrderedDict()

    def find(self, request: TranslateRequest) -> TranslateResult | None:
        """Return a request's result, all of it from the cache; None where it has none."""
        key = self._key(request)
        if key is None:
            return None
        with self._lock:
            expires_s, result = self._entries.get(key, (0.0, None))
            if result is None:
                return None
            if self._clock() >= expires_s:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
        return replace(result, times=Times(hits=result.times.hits + result.times.misses))

    def keep(self, request: TranslateRequest, result: TranslateResult) -> None:
        """Keep the result of a request, if it is a short one."""
        key = self._key(request)
        if key is None:
            return
        with self._lock:
            self._entries[key] = (self._clock() + self._ttl_s, result)
            if len(self._entries) > _MOST_ENTRIES:
                self._entries.popitem(last=False)

    def _key(self, request: TranslateRequest) -> _Key | None:
        is_short = len(request.texts) == 1 and len(request.texts[0]) <= _LONGEST_CHARS
        if self._ttl_s <= 0 or not is_short or request.glossary:
            return None
        return (
            request.texts,
            request.source,
            request.target,
            request.format,
            request.alternatives,
            request.target_prefix,
        )
