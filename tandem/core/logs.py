"""Log records as JSON lines, from any thread. They never hold user text."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from tandem.core.native import native_lock

_FIELDS = "fields"  # the attribute of a record that holds further values


class JsonHandler(logging.Handler):
    """Writes a record as one JSON line to standard error.

    Its lock is a native one: records come from the engines' threads too, which must not touch gevent's.
    """

    def createLock(self) -> None:  # noqa: N802 - the base class's name
        """Make the lock."""
        self.lock = native_lock()  # type: ignore[assignment]

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            sys.stderr.write(render_record(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody reads the log any more


def render_record(record: logging.LogRecord) -> str:
    """Return a record as a JSON object on one line."""
    line: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **getattr(record, _FIELDS, {}),
    }
    if record.exc_info:
        line["stack"] = logging.Formatter().formatException(record.exc_info)
    return json.dumps(line, ensure_ascii=False)


def log_fields(logger: logging.Logger, level: int, message: str, **fields: object) -> None:
    """Write a record with further values."""
    logger.log(level, message, extra={_FIELDS: fields})


def set_up_logging(level: str) -> None:
    """Send all records of a level and above to standard error, in place of whatever was set up before."""
    root = logging.getLogger()
    root.handlers[:] = [JsonHandler()]
    root.setLevel(level)
    for noisy in ("urllib3", "filelock", "httpx", "jieba", "accelerate"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
