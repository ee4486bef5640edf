"""What happens around every request: its id, its line in the access log, its place in the metrics, headers."""

from __future__ import annotations

import logging
import re
import time
import uuid

from flask import Flask, Response, g, request

from tandem.core.logs import log_fields
from tandem.web.access import Gate
from tandem.web.runtime import Runtime

ACCESS = logging.getLogger("tandem.access")
_SANE_ID = re.compile(r"[\w.:-]{1,80}")
_QUIET = {"/health", "/ready", "/metrics"}  # asked every few seconds by machines
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
        seconds = time.perf_counter() - g.get("start_s", time.perf_counter())
        response.headers["X-Request-Id"] = g.get("request_id", "")
        response.headers.extend({name: value for name, value in _SECURITY.items() if name not in response.headers})
        route = request.url_rule.rule if request.url_rule else "unknown"
        runtime.metrics.requests.labels(route, response.status_code).inc()
        runtime.metrics.request_seconds.labels(route).observe(seconds)
        log_fields(
            ACCESS,
            logging.DEBUG if request.path in _QUIET else logging.INFO,
            "request",
            request_id=g.get("request_id", ""),
            method=request.method,
            path=request.path,
            status=response.status_code,
            ms=round(seconds * 1000, 2),
            bytes_in=request.content_length or 0,
        )
        return response
