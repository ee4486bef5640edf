"""API keys: one small database for all processes of a host; the keys themselves are kept as hashes only."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tandem.core.errors import InvalidRequestError, NotReadyError, TandemError
from tandem.core.native import native_lock

_PREFIX = "tdm_"
_SECRET_BYTES = 32  # far too many to guess, so that one round of SHA-256 hides a key well enough
_HINT_CHARS = 10
_BUSY_S = 1.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    requests_per_minute INTEGER,
    character_limit INTEGER,
    requests INTEGER NOT NULL DEFAULT 0,
    month TEXT NOT NULL DEFAULT '',
    characters INTEGER NOT NULL DEFAULT 0,
    allowance REAL NOT NULL DEFAULT 0,
    refilled_s REAL NOT NULL DEFAULT 0,
    created_s REAL NOT NULL,
    used_s REAL,
    revoked_s REAL
);
CREATE UNIQUE INDEX IF NOT EXISTS active_names ON keys (name) WHERE revoked_s IS NULL;
"""
# A bucket of one minute's requests that fills up steadily; a request takes one out.
_FILLED = "MIN(requests_per_minute, allowance + (:now_s - refilled_s) * requests_per_minute / 60.0)"
_ADMIT = f"""
UPDATE keys SET requests = requests + 1, used_s = :now_s, refilled_s = :now_s, allowance = COALESCE({_FILLED} - 1, 0)
WHERE id = :id AND (requests_per_minute IS NULL OR {_FILLED} >= 1)
"""
_WAIT = f"SELECT (1 - {_FILLED}) * 60.0 / requests_per_minute FROM keys WHERE id = :id"
_SPENT = "(CASE WHEN month = :month THEN characters ELSE 0 END + :characters)"
_RESERVE = f"""
UPDATE keys SET characters = {_SPENT}, month = :month
WHERE id = :id AND (character_limit IS NULL OR {_SPENT} <= character_limit)
"""
_REFUND = "UPDATE keys SET characters = MAX(characters - :characters, 0) WHERE id = :id AND month = :month"


class MissingKeyError(TandemError):
    """A key is required, and the request has none."""

    status = 401
    code = "missing_key"


class WrongKeyError(TandemError):
    """The key is not known, or was revoked."""

    status = 403
    code = "wrong_key"


class RateError(TandemError):
    """The key's requests of this minute are used up."""

    status = 429
    code = "rate_limited"

    def __init__(self, message: str, retry_after_s: float) -> None:
        """Note when the next request is welcome."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaError(TandemError):
    """The key's characters of this month are used up."""

    status = 403
    code = "quota_spent"


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used this month.

    Attributes:
        characters: Source characters.
        limit: Most of them; None for no limit.
    """

    characters: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What can be told about a key; the key itself cannot.

    Attributes:
        name: Who it is for.
        hint: Its first characters.
        requests_per_minute: Most requests; None for no limit.
        usage: Characters of this month.
        requests: Requests since it was made.
        created: When it was made.
        used: When it was last used.
        is_revoked: It is not accepted any more.
    """

    name: str
    hint: str
    requests_per_minute: int | None
    usage: Usage
    requests: int
    created: datetime
    used: datetime | None
    is_revoked: bool


class Permit(Protocol):
    """Leave to do one request, and to use up characters for it or for the job it starts."""

    def reserve(self, characters: int) -> None:
        """Use up characters.

        Raises:
            QuotaError: There are not as many left; none is used up.
        """
        ...

    def refund(self, characters: int) -> None:
        """Give reserved characters back, because nothing came of them."""
        ...

    def usage(self) -> Usage:
        """Return what was used."""
        ...


class OpenPermit:
    """What everybody has while keys are off: no limits, and nothing is counted."""

    def reserve(self, characters: int) -> None:
        """Do nothing. See `Permit`."""

    def refund(self, characters: int) -> None:
        """Do nothing. See `Permit`."""

    def usage(self) -> Usage:
        """Return nothing used, no limit. See `Permit`."""
        return Usage(0, None)


class KeyPermit:
    """What the holder of a key has.

    Args:
        store: Where the key is kept.
        key_id: Its number there.
    """

    def __init__(self, store: KeyStore, key_id: int) -> None:
        """Remember whose it is."""
        self._store = store
        self._key_id = key_id

    def reserve(self, characters: int) -> None:
        """Use up characters. See `Permit`."""
        self._store.reserve(self._key_id, characters)

    def refund(self, characters: int) -> None:
        """Give characters back. See `Permit`."""
        self._store.refund(self._key_id, characters)

    def usage(self) -> Usage:
        """Return what was used. See `Permit`."""
        return self._store.usage(self._key_id)


@contextmanager
def charged(permit: Permit, characters: int) -> Iterator[None]:
    """Use up characters for what is done inside; they are given back when it fails.

    Raises:
        QuotaError: There are not as many left.
    """
    permit.reserve(characters)
    try:
        yield
    except BaseException:
        permit.refund(characters)
        raise


class KeyStore:
    """The keys of a host; several processes may use one database.

    A statement takes microseconds and nothing else runs in between, so it is safe on the event loop and on threads.

    Args:
        path: Of the database; made when it is missing.
        clock: Seconds since 1970.

    Raises:
        NotReadyError: It cannot be opened.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Open the database."""
        self._clock = clock
        self._lock = native_lock()
        with _explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            path.chmod(0o600)
            self._database.row_factory = sqlite3.Row
            # Readers do not block writers, and a commit waits for no disk; the last moments may be lost with the power.
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # -- for who runs the service ------------------------------------------------------------------------------------

    def add(self, name: str, requests_per_minute: int | None = None, character_limit: int | None = None) -> str:
        """Make a key.

        Args:
            name: Who it is for; no two keys in use have the same.
            requests_per_minute: Most requests; None for no limit.
            character_limit: Most source characters of a month (UTC); None for no limit.

        Returns:
            The key. It is told this once and kept nowhere.

        Raises:
            InvalidRequestError: The name is taken.
            NotReadyError: The database cannot be written.
        """
        key = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        values = {
            "name": name,
            "digest": _digest(key),
            "hint": key[:_HINT_CHARS],
            "requests_per_minute": requests_per_minute,
            "character_limit": character_limit,
            "created_s": self._clock(),
        }
        columns, places = ", ".join(values), ", ".join(f":{column}" for column in values)
        try:
            self._run(f"INSERT INTO keys ({columns}) VALUES ({places})", values)
        except sqlite3.IntegrityError:
            raise InvalidRequestError(f"There is a key for {name} already; revoke it, or take another name.") from None
        return key

    def revoke(self, name: str) -> bool:
        """Refuse a key from now on; return False when there is none of that name."""
        sql = "UPDATE keys SET revoked_s = :now_s WHERE name = :name AND revoked_s IS NULL"
        return self._run(sql, {"now_s": self._clock(), "name": name}) == 1

    def describe(self) -> list[KeyInfo]:
        """Return what can be told about every key, the oldest first."""
        return [self._info(row) for row in self._read("SELECT * FROM keys ORDER BY id", {})]

    # -- for requests ------------------------------------------------------------------------------------------------

    def admit(self, key: str) -> Permit:
        """Let a request in and count it.

        Raises:
            WrongKeyError: The key is not known, or was revoked.
            RateError: Its requests of this minute are used up.
            NotReadyError: The database cannot be used.
        """
        found = self._read("SELECT id FROM keys WHERE digest = :digest AND revoked_s IS NULL", {"digest": _digest(key)})
        if not found:
            raise WrongKeyError("This API key is not known here, or was revoked.")
        values = {"id": found[0]["id"], "now_s": self._clock()}
        if not self._run(_ADMIT, values):
            [wait] = self._read(_WAIT, values)
            raise RateError("This API key's requests of this minute are used up. Try again shortly.", max(wait[0], 1.0))
        return KeyPermit(self, found[0]["id"])

    def reserve(self, key_id: int, characters: int) -> None:
        """Use up characters of a key. See `Permit`.

        Raises:
            QuotaError: There are not as many left.
            NotReadyError: The database cannot be used.
        """
        if not self._run(_RESERVE, {"id": key_id, "characters": characters, "month": self._month()}):
            raise QuotaError("This API key's characters of this month are used up, or do not suffice for this request.")

    def refund(self, key_id: int, characters: int) -> None:
        """Give characters of a key back. See `Permit`."""
        self._run(_REFUND, {"id": key_id, "characters": characters, "month": self._month()})

    def usage(self, key_id: int) -> Usage:
        """Return what was used of a key this month."""
        [row] = self._read("SELECT * FROM keys WHERE id = :id", {"id": key_id})
        return self._usage(row)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _month(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m")

    def _usage(self, row: sqlite3.Row) -> Usage:
        return Usage(row["characters"] if row["month"] == self._month() else 0, row["character_limit"])

    def _info(self, row: sqlite3.Row) -> KeyInfo:
        return KeyInfo(
            name=row["name"],
            hint=row["hint"],
            requests_per_minute=row["requests_per_minute"],
            usage=self._usage(row),
            requests=row["requests"],
            created=datetime.fromtimestamp(row["created_s"], UTC),
            used=datetime.fromtimestamp(row["used_s"], UTC) if row["used_s"] else None,
            is_revoked=row["revoked_s"] is not None,
        )

    def _run(self, sql: str, values: dict[str, Any]) -> int:
        """Change rows; return how many."""
        with _explained(), self._lock, closing(self._database.execute(sql, values)) as cursor:
            return cursor.rowcount

    def _read(self, sql: str, values: dict[str, Any]) -> list[sqlite3.Row]:
        with _explained(), self._lock, closing(self._database.execute(sql, values)) as cursor:
            return cursor.fetchall()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the database's troubles into an error that a caller can be told.

    Raises:
        NotReadyError: The database cannot be opened, read or written.
    """
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise NotReadyError(f"The database of API keys cannot be used ({type(error).__name__}).") from error
