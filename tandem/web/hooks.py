"""What happens around every request: its id, its line in the access log, its place in the metrics, headers."""

from __future__ import annotations

import logging
import re
import time
import uuid
from dataclasses import dataclass
from functools import partial

from flask import Flask, Response, g, request

from tandem.core.logs import log_fields
from tandem.web.access import Gate
from tandem.web.runtime import Runtime

ACCESS = logging.getLogger("tandem.access")
_SANE_ID = re.compile(r"[\w.:-]{1,80}")
_QUIET = {"/health", "/ready", "/metrics", "/status.json"}  # asked every few seconds by machines
_SECURITY = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def register_hooks(app: Flask, runtime: Runtime) -> None:
    """Add the hooks.

    Raises:
        SettingsError: The database of API keys cannot be opened.
    """
    gate = Gate(runtime.settings)

    @app.before_request
    def begin() -> None:
        given = request.headers.get("X-Request-Id", "")
        g.request_id = given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex
        g.start_s = time.perf_counter()
        g.permit = gate.admit(request)

    @app.after_request
    def end(response: Response) -> Response:
        response.headers["X-Request-Id"] = g.get("request_id", "")
        response.headers.extend({name: value for name, value in _SECURITY.items() if name not in response.headers})
        book = partial(_book, runtime, _Facts.of_this_request(response.status_code))
        if response.is_streamed:
            response.call_on_close(book)  # a stream takes as long as its last event
        else:
            book()
        return response


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is booked of a request once it is answered."""

    request_id: str
    method: str
    path: str
    route: str
    status: int
    bytes_in: int
    start_s: float

    @classmethod
    def of_this_request(cls, status: int) -> _Facts:
        return cls(
            g.get("request_id", ""),
            request.method,
            request.path,
            request.url_rule.rule if request.url_rule else "unknown",
            status,
            request.content_length or 0,
            g.get("start_s", time.perf_counter()),
        )


def _book(runtime: Runtime, facts: _Facts) -> None:
    """Count a request and write its line in the access log."""
    seconds = time.perf_counter() - facts.start_s
    runtime.metrics.requests.labels(facts.route, facts.status).inc()
    runtime.metrics.request_seconds.labels(facts.route).observe(seconds)
    log_fields(
        ACCESS,
        logging.DEBUG if facts.path in _QUIET else logging.INFO,
        "request",
        request_id=facts.request_id,
        method=facts.method,
        path=facts.path,
        status=facts.status,
        ms=round(seconds * 1000, 2),
        bytes_in=facts.bytes_in,
    )
