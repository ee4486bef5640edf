"""Starting servers on this machine, ours or a peer's, and waiting until they answer."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT, WorkerError

OUR_COMMAND = (sys.executable, "-m", "gunicorn", "app:create_app()")
_LOOK_EVERY_S = 0.01
_STOP_TIMEOUT_S = 30.0
_LOG_END = 2000  # characters of it in an error


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers.

    Attributes:
        port: On this machine.
        process: What was started.
        ready_s: Seconds from starting the process until it said that it is ready.
    """

    port: int
    process: subprocess.Popen[bytes]
    ready_s: float


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@contextmanager
def serving(
    command: Sequence[str],
    environment: Mapping[str, str],
    port: int,
    ready_path: str,
    log: Path,
    timeout_s: float = 300,
) -> Iterator[Server]:
    """Run a server until the end of the block.

    Args:
        command: Its program and arguments.
        environment: All of its environment variables.
        port: Where it will listen.
        ready_path: Is answered 200 once it is ready.
        log: Where its output is added.
        timeout_s: How long it may take to be ready.

    Raises:
        WorkerError: It ended, or is not ready in time; the message holds the end of its log.
    """
    started_s = time.perf_counter()
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        while not _is_ready(port, ready_path):
            if process.poll() is not None or time.perf_counter() > started_s + timeout_s:
                end = log.read_text(encoding="utf-8", errors="replace")[-_LOG_END:]
                raise WorkerError(f"{command[0]} is not ready; the end of {log.name}:\n{end}")
            time.sleep(_LOOK_EVERY_S)
        yield Server(port, process, time.perf_counter() - started_s)
    finally:
        _stop(process)


@contextmanager
def serving_ours(log: Path, timeout_s: float = 300, **settings: str) -> Iterator[Server]:
    """Run our own server with some settings, and without those of this process; see `serving`."""
    port = free_port()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PORT": str(port), "LOG_LEVEL": "WARNING", **settings}
    with serving(OUR_COMMAND, environment, port, "/ready", log, timeout_s) as server:
        yield server


def _is_ready(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and what it started."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
