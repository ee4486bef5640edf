"""Whether the one who asked is still there."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any


def watch_caller(environ: Mapping[str, Any]) -> Callable[[], bool]:
    """Return a function that says whether a request's caller has hung up; WSGI itself does not tell.

    Args:
        environ: Of the request; gunicorn puts the connection there.
    """
    connection = environ.get("gunicorn.socket")
    raw = getattr(connection, "_sock", connection)  # beneath gevent's socket, whose `recv` would wait
    if raw is None:
        return lambda: False

    def is_gone() -> bool:
        try:
            return bool(raw.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"")
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    return is_gone
