"""The store of API keys."""

from __future__ import annotations

import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tandem.core.errors import InvalidRequestError, NotReadyError
from tandem.services.keys import KeyStore, OpenPermit, QuotaError, RateError, WrongKeyError, charged

JUNE_S = datetime(2026, 6, 15, tzinfo=UTC).timestamp()
JULY_S = datetime(2026, 7, 1, tzinfo=UTC).timestamp()


class Now:
    """A clock that a test sets."""

    def __init__(self, at_s: float = JUNE_S) -> None:
        """Start somewhere."""
        self.at_s = at_s

    def __call__(self) -> float:
        """Tell the time."""
        return self.at_s


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def store(tmp_path: Path, now: Now) -> KeyStore:
    return KeyStore(tmp_path / "deep" / "keys.sqlite3", now)


def test_a_key_is_hashed_at_rest(store: KeyStore, tmp_path: Path) -> None:
    key = store.add("alice")
    store.admit(key)
    store.close()
    files = list((tmp_path / "deep").iterdir())
    assert files
    assert all(key.encode() not in file.read_bytes() for file in files)
    assert (tmp_path / "deep" / "keys.sqlite3").stat().st_mode & 0o077 == 0


def test_keys_differ_and_only_they_are_let_in(store: KeyStore) -> None:
    keys = {store.add(f"number {n}") for n in range(5)}
    assert len(keys) == 5
    for key in keys:
        store.admit(key)
    for wrong in ("", "nonsense", "\ud800", max(keys)[:-1], max(keys).upper()):
        with pytest.raises(WrongKeyError):
            store.admit(wrong)


def test_a_revoked_key_is_refused_and_its_name_is_free_again(store: KeyStore) -> None:
    old = store.add("alice")
    with pytest.raises(InvalidRequestError, match="alice"):
        store.add("alice")
    assert store.revoke("alice")
    assert not store.revoke("alice")
    store.admit(store.add("alice"))
    with pytest.raises(WrongKeyError):
        store.admit(old)
    assert [key.is_revoked for key in store.describe()] == [True, False]


def test_a_minutes_requests_come_back_steadily(store: KeyStore, now: Now) -> None:
    key = store.add("alice", requests_per_minute=6)
    for _ in range(6):
        store.admit(key)
    with pytest.raises(RateError) as caught:
        store.admit(key)
    assert caught.value.retry_after_s == pytest.approx(10)
    now.at_s += 10.001
    store.admit(key)
    with pytest.raises(RateError):
        store.admit(key)
    now.at_s += 3600
    for _ in range(6):
        store.admit(key)
    with pytest.raises(RateError):
        store.admit(key)


def test_refused_requests_are_not_counted(store: KeyStore) -> None:
    key = store.add("alice", requests_per_minute=1)
    store.admit(key)
    with pytest.raises(RateError):
        store.admit(key)
    assert store.describe()[0].requests == 1


def test_characters_are_limited_to_the_last_one(store: KeyStore) -> None:
    permit = store.admit(store.add("alice", character_limit=10))
    permit.reserve(7)
    with pytest.raises(QuotaError):
        permit.reserve(4)
    permit.reserve(3)
    assert (permit.usage().characters, permit.usage().limit) == (10, 10)
    permit.reserve(0)


def test_a_new_month_begins_at_nothing(store: KeyStore, now: Now) -> None:
    permit = store.admit(store.add("alice", character_limit=10))
    permit.reserve(10)
    now.at_s = JULY_S
    assert permit.usage().characters == 0
    permit.refund(10)  # of the month before
    permit.reserve(10)
    assert permit.usage().characters == 10
    with pytest.raises(QuotaError):
        permit.reserve(1)


def test_what_fails_is_given_back(store: KeyStore) -> None:
    permit = store.admit(store.add("alice", character_limit=10))
    with pytest.raises(ZeroDivisionError), charged(permit, 6):
        raise ZeroDivisionError
    assert permit.usage().characters == 0
    with charged(permit, 6):
        assert permit.usage().characters == 6
    assert permit.usage().characters == 6


def test_without_limits_everything_is_counted(store: KeyStore) -> None:
    key = store.add("alice")
    for _ in range(3):
        store.admit(key).reserve(10**9)
    [info] = store.describe()
    assert (info.requests, info.usage.characters, info.usage.limit) == (3, 3 * 10**9, None)
    assert info.used is not None


def test_two_processes_share_one_limit(tmp_path: Path, now: Now) -> None:
    first, second = (KeyStore(tmp_path / "keys.sqlite3", now) for _ in range(2))
    key = first.add("alice", requests_per_minute=2, character_limit=10)
    first.admit(key).reserve(6)
    with pytest.raises(QuotaError):
        second.admit(key).reserve(6)
    with pytest.raises(RateError):
        first.admit(key)


def test_threads_lose_no_request(store: KeyStore) -> None:
    key = store.add("alice")
    threads = [threading.Thread(target=lambda: [store.admit(key).reserve(2) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.describe()[0].requests, store.describe()[0].usage.characters) == (400, 800)


def test_a_broken_database_is_an_error_that_can_be_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite3"
    broken.write_bytes(b"no database at all" * 100)
    with pytest.raises(NotReadyError):
        KeyStore(broken)
    with pytest.raises(NotReadyError):
        KeyStore(broken / "under a file")


def test_a_locked_database_is_an_error_that_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.services.keys._BUSY_S", 0.01)
    store = KeyStore(tmp_path / "keys.sqlite3")
    key = store.add("alice")
    other = sqlite3.connect(tmp_path / "keys.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(NotReadyError):
        store.admit(key)
    other.execute("ROLLBACK")
    other.close()
    store.admit(key)
    store.close()


def test_an_open_permit_has_no_limits() -> None:
    permit = OpenPermit()
    with charged(permit, 10**12):
        assert permit.usage().limit is None
