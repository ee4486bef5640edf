"""Servers and the clients that load them, for `make load`."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = 32
_HEALTH_EVERY_S = 0.02
_PIECES = (
    ("打开", "关闭", "保存", "删除", "重新启动", "检查", "更新", "安装"),
    ("这个", "所有", "默认的", "旧的", "选中的", "第一个", "最后一个"),
    ("文件", "窗口", "设置", "服务器", "插件", "网络连接", "用户", "目录"),
    ("。", "，然后重试。", "吗？", "，请稍候。", "时出错。"),
)


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a question is measured.

    Attributes:
        seconds: Length of one load.
        rounds: Loads of each side.
        threads: Threads of each server and engine.
        work_dir: Folder for made-up models and logs.
    """

    seconds: float
    rounds: int
    threads: int
    work_dir: Path


@dataclass(frozen=True, slots=True)
class Run:
    """What a load gave.

    Attributes:
        latencies_ms: Of the answered requests.
        failures: Requests that were not answered 200.
        seconds: How long the load lasted.
        health_ms: Of /health, asked meanwhile.
    """

    latencies_ms: list[float]
    failures: int
    seconds: float
    health_ms: list[float]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.latencies_ms) / self.seconds

    def percentile(self, share: float) -> float:
        """Return a percentile of the latencies in milliseconds."""
        return percentile(self.latencies_ms, share)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def median_rate(runs: Sequence[Run]) -> float:
    """Return the median of the rates of several loads."""
    return statistics.median(run.rate for run in runs)


def made_up_sentences(seed: int) -> Iterator[str]:
    """Yield short sentences without end; hardly any comes twice."""
    chance = random.Random(seed)
    for number in itertools.count(chance.randrange(1_000_000)):
        yield "".join(chance.choice(piece) for piece in _PIECES[:3]) + str(number % 9973) + chance.choice(_PIECES[3])


def translate_body(text: str | list[str]) -> bytes:
    """Return the body of a translation request."""
    return json.dumps({"text": text, "source": "zh", "target": "en"}).encode()


def predict_body(text: str | list[str]) -> bytes:
    """Return the body of an embedding request."""
    return json.dumps({"task_type": "embedding", "input_text": text}).encode()


BODIES: dict[str, Callable[[str | list[str]], bytes]] = {"/translate": translate_body, "/predict": predict_body}


def post(connection: http.client.HTTPConnection, path: str, body: bytes) -> tuple[int, float]:
    """Send a request; return the status and how long it took in milliseconds."""
    start_s = time.perf_counter()
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    return response.status, (time.perf_counter() - start_s) * 1000


@contextmanager
def connected(port: int, timeout_s: float = 60) -> Iterator[http.client.HTTPConnection]:
    """Open a connection to a server on this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        yield connection
    finally:
        connection.close()


class _Clients:
    """Clients that send their next request when the last is answered, and one that asks /health meanwhile."""

    def __init__(self, port: int, path: str, seconds: float) -> None:
        self.latencies_ms: list[float] = []
        self.health_ms: list[float] = []
        self.failures = 0
        self._port, self._path = port, path
        self._stop_s = time.perf_counter() + seconds

    def send(self, texts: Iterator[str]) -> None:
        with connected(self._port) as connection:
            while time.perf_counter() < self._stop_s:
                status, elapsed_ms = post(connection, self._path, BODIES[self._path](next(texts)))
                self.failures += status != 200
                self.latencies_ms.append(elapsed_ms)

    def watch(self) -> None:
        with connected(self._port) as connection:
            while time.perf_counter() < self._stop_s:
                start_s = time.perf_counter()
                connection.request("GET", "/health")
                connection.getresponse().read()
                self.health_ms.append((time.perf_counter() - start_s) * 1000)
                time.sleep(_HEALTH_EVERY_S)


def load(
    port: int, path: str, seconds: float, clients: int = CLIENTS, texts: Sequence[str] = (), is_watched: bool = True
) -> Run:
    """Load a server; runs in a process of its own.

    Args:
        port: On this machine.
        path: A key of `BODIES`.
        seconds: How long.
        clients: How many at once.
        texts: Sent over and over, each by one client, beginning anywhere; made-up sentences where there are none.
        is_watched: Whether /health is asked meanwhile.
    """
    work = _Clients(port, path, seconds)
    threads = [threading.Thread(target=work.send, args=(_texts_of(texts, who, clients),)) for who in range(clients)]
    if is_watched:
        threads.append(threading.Thread(target=work.watch))
    begin_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Run(work.latencies_ms, work.failures, time.perf_counter() - begin_s, work.health_ms)


def _texts_of(texts: Sequence[str], who: int, clients: int) -> Iterator[str]:
    if not texts:
        return made_up_sentences(random.randrange(1 << 30))
    share = texts[who::clients] or texts
    start = random.randrange(len(share))
    return itertools.cycle([*share[start:], *share[:start]])


@contextmanager
def serve(app: str = "app:create_app()", log: IO[bytes] | None = None, **environment: str) -> Iterator[int]:
    """Run a server with the demo models and without a cache; yields its port.

    Args:
        app: What gunicorn serves.
        log: Where its log goes; None for standard error.
        environment: Further settings.
    """
    port = 20_000 + random.randrange(20_000)
    settings = {
        **os.environ, "PORT": str(port), "MEMORY_CACHE_BYTES": "0", "PRECISION": "float32", "LOG_LEVEL": "WARNING",
        **environment,
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "gunicorn", app], cwd=ROOT, env=settings, stderr=log)
    try:
        _wait_until_ready(process, port)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(1500):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except OSError:
            if process.poll() is not None:
                raise SystemExit("the server ended") from None
            time.sleep(0.2)
    raise SystemExit("the server did not become ready")


def alternate(
    ports: Sequence[int], path: str, conditions: Conditions, clients: int = CLIENTS, texts: Sequence[str] = ()
) -> list[list[Run]]:
    """Load servers in turn, after a round that does not count; returns the runs of each."""
    found: list[list[Run]] = [[] for _ in ports]
    with ProcessPoolExecutor(1) as apart:
        for number in range(conditions.rounds + 1):
            seconds = conditions.seconds if number else min(conditions.seconds, 2.0)
            for place, port in enumerate(ports):
                run = apart.submit(load, port, path, seconds, clients, texts).result()
                if number:
                    found[place].append(run)
    return found
