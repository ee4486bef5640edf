"""gunicorn's gevent worker, which hangs up idle connections when it is told to stop and writes a response at once.

Clients keep connections open for their next request. gunicorn's own worker waits for them, too, before it ends: with
one idle client a stop takes the whole graceful timeout, and who stops it may lose patience first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import gevent
from gunicorn.workers.ggevent import GeventWorker

from tandem.web.joined_writes import JoinedWrites

_LAST_WAIT_S = 1.0  # for requests that are on their way


class Worker(GeventWorker):  # type: ignore[misc]
    """Serves until SIGTERM; then finishes what was asked, and waits for nothing that was not."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        """Start without connections."""
        super().__init__(*arguments, **settings)
        self._waiting: dict[gevent.Greenlet, gevent.Timeout] = {}

    @contextmanager
    def timeout_ctx(self) -> Iterator[None]:
        """Bound the wait for a connection's next request."""
        greenlet = gevent.getcurrent()
        with gevent.Timeout(self.cfg.keepalive, False) as limit:
            self._waiting[greenlet] = limit
            try:
                yield
            finally:
                del self._waiting[greenlet]

    def handle_request(self, listener_name: object, req: object, sock: Any, addr: object) -> None:
        """Answer a request; an event of a stream leaves at once, the first one with the response's head."""
        joined = JoinedWrites(sock)
        try:
            super().handle_request(listener_name, req, joined, addr)
        finally:
            joined.flush()

    def handle_exit(self, number: int, frame: FrameType | None) -> None:
        """Stop: called on SIGTERM."""
        super().handle_exit(number, frame)
        gevent.spawn_later(_LAST_WAIT_S, self._hang_up)

    def _hang_up(self) -> None:
        for greenlet, limit in list(self._waiting.items()):
            greenlet.kill(limit, block=False)
