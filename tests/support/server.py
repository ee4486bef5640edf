"""A real gunicorn with its gevent worker on a free port, as a user would start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.support.redis_server import free_port

_START_S = 120.0
_LOOK_EVERY_S = 0.1


@dataclass
class Server:
    """A running server.

    Attributes:
        url: Where it listens, without a trailing slash.
        process: The gunicorn master.
        log: Everything it wrote.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Send a GET, or a POST with a JSON body; return status and parsed answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data=data, headers={"Content-Type": "application/json", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def wait_until_ready(self) -> None:
        """Wait for /ready."""
        limit_s = time.monotonic() + _START_S
        while time.monotonic() < limit_s:
            assert self.process.poll() is None, f"the server ended:\n{self.log.read_text()[-4000:]}"
            try:
                if self.ask("/ready")[0] == 200:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(_LOOK_EVERY_S)
        raise AssertionError(f"the server is not ready after {_START_S} s:\n{self.log.read_text()[-4000:]}")

    def log_lines(self) -> list[dict[str, Any]]:
        """Return the JSON lines of the log."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@contextmanager
def run_server(*, ready: bool = True, **environment: str) -> Iterator[Server]:
    """Start a server with the demo models in float32, stop it at the end.

    Args:
        ready: Wait until it is.
        environment: Further settings.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tandem-test-") as folder:
        log = Path(folder) / "server.log"
        settings = {
            **os.environ, "PORT": str(port), "PRECISION": "float32", "OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1",
            **environment,
        }  # fmt: skip
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "app:create_app()"], cwd=ROOT, env=settings, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        server = Server(f"http://127.0.0.1:{port}", process, log)
        try:
            if ready:
                server.wait_until_ready()
            yield server
        finally:
            stop_server(process)


def stop_server(process: subprocess.Popen[bytes]) -> None:
    """End a server and everything it started."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(15)
