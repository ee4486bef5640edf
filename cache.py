"""Results by key: in Redis, in this process's memory, or nowhere. A cache never fails a request: trouble is a miss."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tandem.core.native import native_lock

T = TypeVar("T")
Clock = Callable[[], float]

LOGGER = logging.getLogger("tandem.cache")

# Changes with the envelope's layout: values of another layout are misses.
_MAGIC = b"TC1\x00"
_DIGEST_BYTES = 8
# Keeps one pipeline's commands and replies in memory small, and its time within the socket's timeout.
_CHUNK = 512
# What an entry of MemoryCache takes beside its key and value, roughly: the objects' headers and the dictionary's slot.
_ENTRY_OVERHEAD_BYTES = 250


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Where a cache stands; counters count since its start.

    Attributes:
        kind: `redis`, `memory` or `null`.
        hits: Keys found.
        misses: Keys not found, those lost to trouble included.
        fills: Values stored.
        errors: Calls, or values of a call, that met trouble.
        entries: Values held in this process.
        size_bytes: What they take.
        is_available: False while Redis is left alone after repeated failures.
    """

    kind: str
    hits: int = 0
    misses: int = 0
    fills: int = 0
    errors: int = 0
    entries: int = 0
    size_bytes: int = 0
    is_available: bool = True


class Cache(Protocol):
    """Bytes by key. May forget anything at any time; never raises for trouble of its own."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of every key, in order; None for a miss."""
        ...

    def set_many(self, values: Mapping[str, bytes], ttl_s: float) -> None:
        """Store values for so many seconds, if that is possible."""
        ...

    def ping(self) -> bool:
        """Say whether the cache answers now."""
        ...

    def stats(self) -> CacheStats:
        """Return where it stands."""
        ...

    def close(self) -> None:
        """Free connections or memory."""
        ...


def cache_key(fingerprint: str, *parts: str) -> str:
    """Return the key of a result: `tandem:{fingerprint}:{hash of the parts}`. It holds no user text.

    Args:
        fingerprint: Of weights, vocabulary, precision, decoding options and text rules.
        parts: What else decides the result, in a fixed order.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        # The length keeps ("ab", "c") and ("a", "bc") apart.
        digest.update(len(data).to_bytes(8, "big") + data)
    return f"tandem:{fingerprint}:{digest.hexdigest()}"


def _checksum(key: str, value: bytes) -> bytes:
    # With the key: a reply that got out of step with its request is not taken for another key's value.
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES, key=key.encode("utf-8", "surrogatepass")[-64:]).digest()


def _wrap(key: str, value: bytes) -> bytes:
    return _MAGIC + _checksum(key, value) + value


def _unwrap(key: str, stored: object) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    if not isinstance(stored, bytes) or not stored.startswith(_MAGIC) or len(stored) < start:
        return None
    value = stored[start:]
    return value if stored[len(_MAGIC) : start] == _checksum(key, value) else None


class CircuitBreaker:
    """Leaves a failing service alone: after repeated failures only one call a pause is let through, to try again."""

    def __init__(self, failures: int = 3, pause_s: float = 5.0, clock: Clock = time.monotonic) -> None:
        """Start closed, letting every call through.

        Args:
            failures: So many in a row open it.
            pause_s: How long it stays open before one call may try, in seconds.
            clock: Seconds, monotonic.
        """
        self._threshold, self._pause_s, self._clock = failures, pause_s, clock
        self._lock = native_lock()
        self._failures = 0
        self._retry_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are held back."""
        return self._failures >= self._threshold

    def allows(self) -> bool:
        """Say whether a call may be made now; the caller reports how it went."""
        with self._lock:
            if not self.is_open:
                return True
            now_s = self._clock()
            if now_s < self._retry_s:
                return False
            # The next try is a pause away, even if this one's greenlet is killed before it reports.
            self._retry_s = now_s + self._pause_s
            return True

    def succeeded(self) -> None:
        """Report that a call went well."""
        with self._lock:
            self._failures = 0

    def failed(self) -> bool:
        """Report that a call went wrong; True when this has just opened the breaker."""
        with self._lock:
            self._failures += 1
            self._retry_s = self._clock() + self._pause_s
            return self._failures == self._threshold


class RedisCache:
    """Values in Redis, shared by every instance behind it and safe to share with strangers.

    Values travel in an envelope with a version and a checksum: whatever else lies under a key is a miss.
    """

    def __init__(
        self, url: str, *, timeout_s: float = 0.1, breaker: CircuitBreaker | None = None, clock: Clock = time.monotonic
    ) -> None:
        """Prepare it; it connects when first used.

        Args:
            url: `redis://`, `rediss://` or `unix://`.
            timeout_s: For connecting, and for each read and write, in seconds.
            breaker: When to leave Redis alone; None for the default, on `clock`.
            clock: Seconds, monotonic.

        Raises:
            ValueError: The URL is not one of Redis.
        """
        self._link = breaker or CircuitBreaker(clock=clock)
        # A server that is full or read-only still answers reads: it is left alone with writes only.
        self._writes = CircuitBreaker(clock=clock)
        self._lock = native_lock()
        self._counts: Counter[str] = Counter()
        self._client: Any = redis.Redis.from_url(
            url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            # The library's own retries would multiply the timeout; the breaker decides when to try again.
            retry=Retry(NoBackoff(), 0),
            # Nothing to say about the client: one round trip less on every new connection.
            driver_info=None,
            protocol=2,
        )

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of every key, in order, in one round trip; None for a miss."""
        if not keys:
            return []
        stored = self._call(self._client.mget, keys)
        if not isinstance(stored, list) or len(stored) != len(keys):
            stored = [None] * len(keys)
        values = [_unwrap(key, value) for key, value in zip(keys, stored, strict=True)]
        hits = sum(value is not None for value in values)
        self._count(hits=hits, misses=len(keys) - hits)
        return values

    def set_many(self, values: Mapping[str, bytes], ttl_s: float) -> None:
        """Store values for so many seconds, pipelined; as many as Redis takes."""
        ttl_ms = max(1, int(ttl_s * 1000))
        # Wrapped out here, where a value of a wrong type is the caller's error and not Redis's trouble.
        wrapped = [(key, _wrap(key, value)) for key, value in values.items()]
        for chunk in _chunks(wrapped, _CHUNK):
            if not self._writes.allows():
                return
            replies = self._call(self._store, chunk, ttl_ms)
            if replies is None:
                return
            refused = sum(isinstance(reply, Exception) for reply in replies)
            self._count(fills=len(replies) - refused, errors=refused)
            if refused:
                self._warn(
                    self._writes.failed(), "refuses writes", next(r for r in replies if isinstance(r, Exception))
                )
            else:
                self._writes.succeeded()

    def ping(self) -> bool:
        """Say whether Redis answers now; False without asking while it is left alone."""
        return self._call(self._client.ping) is True

    def stats(self) -> CacheStats:
        """Return where it stands."""
        with self._lock:
            return CacheStats("redis", **dict(self._counts), is_available=not self._link.is_open)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _store(self, values: Sequence[tuple[str, bytes]], ttl_ms: int) -> list[object]:
        with self._client.pipeline(transaction=False) as pipeline:
            for key, value in values:
                pipeline.set(key, value, px=ttl_ms)
            replies: list[object] = pipeline.execute(raise_on_error=False)
            return replies

    def _call(self, call: Callable[..., T], *args: object) -> T | None:
        """Make a call, unless Redis is left alone; None for trouble."""
        if not self._link.allows():
            return None
        try:
            reply = call(*args)
        # Everything: a reply that is not of the protocol shows as any error of the parser, and none is the caller's.
        except Exception as error:
            self._count(errors=1)
            self._warn(self._link.failed(), "does not answer", error)
            return None
        self._link.succeeded()
        return reply

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self._counts.update(numbers)

    def _warn(self, is_news: bool, what: str, error: Exception) -> None:
        if is_news:
            LOGGER.warning("Redis %s (%s); it is left alone for a while", what, type(error).__name__)


class MemoryCache:
    """Values in this process, the least recently used dropped first."""

    def __init__(self, max_bytes: int, *, clock: Clock = time.monotonic) -> None:
        """Start empty.

        Args:
            max_bytes: What keys, values and their bookkeeping may take together.
            clock: Seconds, monotonic.
        """
        self._max_bytes, self._clock = max_bytes, clock
        self._lock = native_lock()
        self._entries: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._size_bytes = 0
        self._counts: Counter[str] = Counter()

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of every key, in order; None for a miss."""
        now_s = self._clock()
        with self._lock:
            values = [self._get(key, now_s) for key in keys]
            hits = sum(value is not None for value in values)
            self._counts.update(hits=hits, misses=len(keys) - hits)
        return values

    def set_many(self, values: Mapping[str, bytes], ttl_s: float) -> None:
        """Store values for so many seconds; one that is larger than the whole cache is not stored."""
        expires_s = self._clock() + ttl_s
        with self._lock:
            for key, value in values.items():
                self._drop(key)
                if _entry_bytes(key, value) > self._max_bytes:
                    continue
                self._entries[key] = (value, expires_s)
                self._size_bytes += _entry_bytes(key, value)
                self._counts["fills"] += 1
                while self._size_bytes > self._max_bytes:
                    self._drop(next(iter(self._entries)))

    def ping(self) -> bool:
        """Say that it answers."""
        return True

    def stats(self) -> CacheStats:
        """Return where it stands."""
        with self._lock:
            size_bytes, entries = self._size_bytes, len(self._entries)
            return CacheStats("memory", **self._counts, entries=entries, size_bytes=size_bytes, is_available=True)

    def close(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._size_bytes = 0

    def _get(self, key: str, now_s: float) -> bytes | None:
        if key not in self._entries:
            return None
        value, expires_s = self._entries[key]
        if now_s >= expires_s:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return value

    def _drop(self, key: str) -> None:
        if key in self._entries:
            value, _ = self._entries.pop(key)
            self._size_bytes -= _entry_bytes(key, value)


class NullCache:
    """Remembers nothing, so that nobody has to ask whether there is a cache."""

    def __init__(self) -> None:
        """Start as empty as it stays."""
        self._misses = 0

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return a miss for every key."""
        self._misses += len(keys)
        return [None] * len(keys)

    def set_many(self, values: Mapping[str, bytes], ttl_s: float) -> None:
        """Forget the values."""

    def ping(self) -> bool:
        """Say that it answers."""
        return True

    def stats(self) -> CacheStats:
        """Return where it stands."""
        return CacheStats("null", misses=self._misses)

    def close(self) -> None:
        """Do nothing."""


def build_cache(redis_url: str = "", memory_bytes: int = 0, *, timeout_s: float = 0.1) -> Cache:
    """Build the cache that the settings ask for.

    Args:
        redis_url: Of a Redis server; "" for none.
        memory_bytes: Without Redis, what a cache in this process may take; 0 for no cache at all.
        timeout_s: For connecting to Redis, and for each read and write, in seconds.

    Raises:
        ValueError: The URL is not one of Redis.
    """
    if redis_url:
        return RedisCache(redis_url, timeout_s=timeout_s)
    return MemoryCache(memory_bytes) if memory_bytes > 0 else NullCache()


def _entry_bytes(key: str, value: bytes) -> int:
    return len(key) + len(value) + _ENTRY_OVERHEAD_BYTES


def _chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
