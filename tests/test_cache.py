"""One contract for every cache, with a real redis-server; then what a cache does when Redis is in trouble."""

from __future__ import annotations

import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cache import CircuitBreaker, MemoryCache, NullCache, RedisCache, build_cache, cache_key
from tests.support.clock import FakeClock
from tests.support.redis_server import RedisServer, find_redis_server, free_port

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server here")
KEYS = [cache_key("f", str(n)) for n in range(2000)]


@pytest.fixture(scope="module")
def shared_server():
    server = RedisServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def server(shared_server):
    shared_server.client.flushall()
    return shared_server


@pytest.fixture
def own_server():
    """A server that a test may kill."""
    server = RedisServer()
    server.start()
    yield server
    server.close()


class CacheContract:
    """What every cache does. One that remembers nothing may answer every look-up with a miss."""

    remembers = True

    def kept(self, value):
        """Return what a look-up gives for a value that was stored."""
        return value if self.remembers else None

    def test_an_unknown_key_is_a_miss(self, cache):
        assert cache.get_many(KEYS[:2]) == [None, None]

    def test_no_keys_give_no_values(self, cache):
        assert cache.get_many([]) == []
        cache.set_many({}, 60)

    def test_values_come_back_in_the_order_of_the_keys(self, cache):
        cache.set_many({KEYS[0]: b"a", KEYS[1]: b"b"}, 60)
        expected = [self.kept(b"b"), None, self.kept(b"a"), self.kept(b"b")]
        assert cache.get_many([KEYS[1], KEYS[2], KEYS[0], KEYS[1]]) == expected

    @pytest.mark.parametrize(
        "value", [b"", b"\x00\xff\r\n$-1", bytes(range(256)) * 4000], ids=["empty", "odd", "large"]
    )
    def test_any_bytes_come_back_as_they_were(self, cache, value):
        cache.set_many({KEYS[0]: value}, 60)
        assert cache.get_many(KEYS[:1]) == [self.kept(value)]

    def test_a_newer_value_replaces_an_older_one(self, cache):
        cache.set_many({KEYS[0]: b"old"}, 60)
        cache.set_many({KEYS[0]: b"new"}, 60)
        assert cache.get_many(KEYS[:1]) == [self.kept(b"new")]

    def test_two_thousand_values_at_once(self, cache):
        cache.set_many({key: key.encode() for key in KEYS}, 60)
        assert cache.get_many(KEYS) == [self.kept(key.encode()) for key in KEYS]

    def test_it_answers_and_counts(self, cache):
        assert cache.ping() is True
        cache.set_many({KEYS[0]: b"x"}, 60)
        cache.get_many(KEYS[:3])
        stats = cache.stats()
        assert (stats.hits, stats.misses, stats.errors) == ((1, 2, 0) if self.remembers else (0, 3, 0))
        assert stats.fills == self.remembers and stats.is_available

    def test_many_threads_may_use_it_at_once(self, cache):
        def use(number):
            mine = {f"{number}-{n}": b"%d" % number for n in range(20)}
            cache.set_many(mine, 60)
            return cache.get_many(list(mine)) == [self.kept(value) for value in mine.values()]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(use, range(32)))

    def test_it_can_be_closed(self, cache):
        cache.close()


class TestMemoryCacheKeepsTheContract(CacheContract):
    @pytest.fixture
    def cache(self):
        return MemoryCache(10_000_000)


class TestNullCacheKeepsTheContract(CacheContract):
    remembers = False

    @pytest.fixture
    def cache(self):
        return NullCache()


@needs_redis
class TestRedisCacheKeepsTheContract(CacheContract):
    @pytest.fixture
    def cache(self, server):
        # Generous: this is about values, and the machine may be busy.
        return RedisCache(server.url, timeout_s=5)


# Keys


def test_keys_differ_where_anything_differs_and_hold_no_text():
    keys = {cache_key("f", "ab", "c"), cache_key("f", "a", "bc"), cache_key("g", "ab", "c"), cache_key("f", "abc")}
    assert len(keys) == 4
    assert cache_key("f", "ab", "c") == cache_key("f", "ab", "c")
    assert cache_key("f", "你好").startswith("tandem:f:") and "你好" not in cache_key("f", "你好")
    assert cache_key("f", "\ud800")


# Memory


def test_memory_forgets_a_value_when_its_time_is_over():
    clock = FakeClock()
    cache = MemoryCache(10_000, clock=clock)
    cache.set_many({"k": b"v"}, 10)
    clock.advance(9.9)
    assert cache.get_many(["k"]) == [b"v"]
    clock.advance(0.1)
    assert cache.get_many(["k"]) == [None]
    assert (cache.stats().entries, cache.stats().size_bytes) == (0, 0)


def test_memory_stays_within_its_bytes_and_drops_the_least_recently_used():
    cache = MemoryCache(3 * 1300)
    cache.set_many({name: bytes(1000) for name in "abc"}, 60)
    cache.get_many(["a"])
    cache.set_many({"d": bytes(1000)}, 60)
    assert [value is not None for value in cache.get_many(list("abcd"))] == [True, False, True, True]
    assert cache.stats().size_bytes <= 3 * 1300


def test_memory_does_not_store_what_is_larger_than_all_of_it_and_keeps_the_rest():
    cache = MemoryCache(1000)
    cache.set_many({"small": b"s", "large": bytes(5000)}, 60)
    assert cache.get_many(["small", "large"]) == [b"s", None]


def test_memory_counts_a_replaced_value_once():
    cache = MemoryCache(10_000)
    for _ in range(5):
        cache.set_many({"k": bytes(100)}, 60)
    assert cache.stats().entries == 1 and cache.stats().size_bytes < 500


# The breaker


def test_the_breaker_opens_after_failures_in_a_row_and_tries_once_a_pause():
    clock = FakeClock()
    breaker = CircuitBreaker(failures=2, pause_s=5, clock=clock)
    assert not breaker.failed()
    breaker.succeeded()
    assert not breaker.failed() and breaker.allows()
    assert breaker.failed() and breaker.is_open
    assert not breaker.allows()
    clock.advance(5)
    assert breaker.allows() and not breaker.allows()
    clock.advance(5)
    assert breaker.allows()
    breaker.succeeded()
    assert breaker.allows() and breaker.allows() and not breaker.is_open


# Redis in trouble


def redis_cache(url, clock=None, timeout_s=0.1):
    return RedisCache(url, timeout_s=timeout_s, clock=clock or FakeClock())


def test_redis_that_is_down_from_the_start_is_a_miss_and_soon_left_alone():
    cache = redis_cache(f"redis://127.0.0.1:{free_port()}/0")
    for _ in range(5):
        cache.set_many({KEYS[0]: b"x"}, 60)
        assert cache.get_many(KEYS[:2]) == [None, None]
    assert cache.ping() is False
    stats = cache.stats()
    assert (stats.errors, stats.misses, stats.fills, stats.is_available) == (3, 10, 0, False)


@needs_redis
def test_redis_that_is_killed_and_comes_back_is_used_again_after_a_pause(own_server):
    clock = FakeClock()
    cache = redis_cache(own_server.url, clock, timeout_s=1)
    cache.set_many({KEYS[0]: b"x"}, 60)
    assert cache.get_many(KEYS[:1]) == [b"x"]
    own_server.kill()
    for _ in range(4):
        assert cache.get_many(KEYS[:1]) == [None]
    own_server.start()
    assert cache.get_many(KEYS[:1]) == [None] and not cache.stats().is_available
    clock.advance(5)
    cache.set_many({KEYS[0]: b"y"}, 60)
    assert cache.get_many(KEYS[:1]) == [b"y"] and cache.stats().is_available


@needs_redis
def test_a_restart_between_two_calls_goes_unnoticed(own_server):
    cache = redis_cache(own_server.url, timeout_s=1)
    assert cache.ping()
    own_server.kill()
    own_server.start()
    assert cache.ping()


@pytest.fixture
def silent_port():
    """A server that takes connections and never answers; counts them."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted, lock = [], threading.Lock()

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with lock:
                accepted.append(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener.getsockname()[1], accepted
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)
    for connection in accepted:
        connection.close()


def test_redis_that_never_answers_costs_its_timeout_a_few_times_and_then_nothing(silent_port):
    port, accepted = silent_port
    cache = redis_cache(f"redis://127.0.0.1:{port}/0", timeout_s=0.05)
    for _ in range(20):
        assert cache.get_many(KEYS[:1]) == [None]
    assert len(accepted) == 3 and cache.stats().errors == 3


@needs_redis
def test_redis_that_is_full_still_answers_look_ups_and_is_spared_further_writes():
    server = RedisServer("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
    server.start()
    try:
        clock = FakeClock()
        cache = redis_cache(server.url, clock, timeout_s=5)
        cache.set_many({KEYS[0]: b"early"}, 600)
        for n in range(1, 60):
            cache.set_many({KEYS[n]: bytes(100_000)}, 600)
        assert cache.get_many(KEYS[:1]) == [b"early"]
        stats = cache.stats()
        assert stats.errors == 3 and stats.is_available and 0 < stats.fills < 40
        server.client.flushall()
        clock.advance(5)
        cache.set_many({KEYS[0]: b"again"}, 600)
        assert cache.get_many(KEYS[:1]) == [b"again"]
    finally:
        server.close()


@needs_redis
def test_a_value_of_another_type_under_a_key_is_a_miss_and_can_be_replaced(server):
    server.client.lpush(KEYS[0], "a", "b")
    cache = redis_cache(server.url, timeout_s=5)
    assert cache.get_many(KEYS[:1]) == [None]
    cache.set_many({KEYS[0]: b"x"}, 60)
    assert cache.get_many(KEYS[:1]) == [b"x"] and cache.stats().errors == 0


@needs_redis
def test_rubbish_cut_off_and_foreign_values_are_misses(server):
    cache = redis_cache(server.url, timeout_s=5)
    cache.set_many({KEYS[0]: b"value", KEYS[1]: b"other"}, 60)
    good = server.client.get(KEYS[0])
    flipped = good[:-1] + bytes([good[-1] ^ 1])
    rubbish = [b"", b"rubbish", good[:3], good[:10], good[:-1], good + b"x", flipped, b"TC2\x00" + good[4:]]
    # Another key's value, as after an answer to another question.
    rubbish.append(server.client.get(KEYS[1]))
    for value in rubbish:
        server.client.set(KEYS[0], value)
        assert cache.get_many(KEYS[:1]) == [None], value
    server.client.set(KEYS[0], good)
    assert cache.get_many(KEYS[:1]) == [b"value"]


@needs_redis
def test_values_in_redis_have_the_time_to_live_they_were_given(server):
    cache = redis_cache(server.url, timeout_s=5)
    cache.set_many({KEYS[0]: b"x"}, 90)
    assert 80_000 < server.client.pttl(KEYS[0]) <= 90_000


@needs_redis
def test_a_look_up_of_many_keys_is_one_round_trip(server):
    cache = redis_cache(server.url, timeout_s=5)
    server.client.config_resetstat()
    cache.get_many(KEYS)
    assert server.client.info("commandstats")["cmdstat_mget"]["calls"] == 1


FOREIGN = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "unfinished": b"*5\r\n",
    "ok": b"+OK\r\n",
    "zeros": b"\x00" * 64,
}


@pytest.mark.parametrize("reply", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_server_that_does_not_speak_redis_is_a_miss(reply):
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        for _ in range(3):
            connection, _ = listener.accept()
            # The client may have given up before the answer.
            with connection, contextlib.suppress(OSError):
                connection.recv(4096)
                connection.sendall(reply)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    cache = redis_cache(f"redis://127.0.0.1:{listener.getsockname()[1]}/0", timeout_s=0.05)
    for _ in range(3):
        assert cache.get_many(KEYS[:2]) == [None, None]
    thread.join(10)
    listener.close()


def test_a_value_of_a_wrong_type_is_the_callers_error_and_no_trouble_of_redis():
    cache = redis_cache(f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(TypeError):
        cache.set_many({KEYS[0]: "text"}, 60)
    assert cache.stats().errors == 0


# Which cache


def test_build_cache_follows_the_settings():
    assert isinstance(build_cache("redis://localhost:1/0", memory_bytes=5), RedisCache)
    assert isinstance(build_cache(memory_bytes=5), MemoryCache)
    assert isinstance(build_cache(), NullCache)
    with pytest.raises(ValueError, match="scheme"):
        build_cache("http://localhost")
