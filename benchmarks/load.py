"""A server under load: `make load`. Throughput, latency and the loop's patience, each against a named other side.

Servers run side by side and are loaded in turn, so that both sides meet the same machine: continuous batching against
the same server limited to one sentence at a time, and both models at once against each alone.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

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


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def sentences(seed: int) -> Iterator[str]:
    """Yield sentences without end; hardly any comes twice."""
    chance = random.Random(seed)
    for number in itertools.count(chance.randrange(1_000_000)):
        yield "".join(chance.choice(piece) for piece in _PIECES[:3]) + str(number % 9973) + chance.choice(_PIECES[3])


def translate_body(text: str) -> bytes:
    """Return the body of a translation request."""
    return json.dumps({"text": text, "source": "zh", "target": "en"}).encode()


def predict_body(text: str) -> bytes:
    """Return the body of an embedding request."""
    return json.dumps({"task_type": "embedding", "input_text": text}).encode()


BODIES: dict[str, Callable[[str], bytes]] = {"/translate": translate_body, "/predict": predict_body}


class _Clients:
    """Clients that send their next request when the last is answered, and one that asks /health meanwhile."""

    def __init__(self, port: int, path: str, seconds: float, fixed: str | None) -> None:
        self.latencies_ms: list[float] = []
        self.health_ms: list[float] = []
        self.failures = 0
        self._port, self._path, self._fixed = port, path, fixed
        self._stop_s = time.perf_counter() + seconds

    def send(self, seed: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        texts = sentences(seed)
        while time.perf_counter() < self._stop_s:
            body = BODIES[self._path](self._fixed or next(texts))
            start_s = time.perf_counter()
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            self.failures += response.status != 200
            self.latencies_ms.append((time.perf_counter() - start_s) * 1000)
        connection.close()

    def watch(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while time.perf_counter() < self._stop_s:
            start_s = time.perf_counter()
            connection.request("GET", "/health")
            connection.getresponse().read()
            self.health_ms.append((time.perf_counter() - start_s) * 1000)
            time.sleep(_HEALTH_EVERY_S)
        connection.close()


def load(port: int, path: str, seconds: float, clients: int = CLIENTS, fixed: str | None = None) -> Run:
    """Load a server; runs in a process of its own.

    Args:
        port: On this machine.
        path: A key of `BODIES`.
        seconds: How long.
        clients: How many at once.
        fixed: A text that all of them send; new sentences by default.
    """
    work = _Clients(port, path, seconds, fixed)
    threads = [threading.Thread(target=work.send, args=(random.randrange(1 << 30),)) for _ in range(clients)]
    threads.append(threading.Thread(target=work.watch))
    begin_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Run(work.latencies_ms, work.failures, time.perf_counter() - begin_s, work.health_ms)


@contextmanager
def serve(**environment: str) -> Iterator[int]:
    """Run a server with the demo models and without a cache; yields its port."""
    port = 20_000 + random.randrange(20_000)
    settings = {
        **os.environ, "PORT": str(port), "MEMORY_CACHE_BYTES": "0", "PRECISION": "float32", "LOG_LEVEL": "WARNING",
        **environment,
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "gunicorn", "app:create_app()"], cwd=ROOT, env=settings)
    try:
        _wait_until_ready(port)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_until_ready(port: int) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server did not become ready")


def alternate(ports: list[int], path: str, seconds: float, rounds: int) -> list[list[Run]]:
    """Load servers in turn; returns the runs of each."""
    found: list[list[Run]] = [[] for _ in ports]
    with ProcessPoolExecutor(1) as apart:
        for _ in range(rounds):
            for place, port in enumerate(ports):
                found[place].append(apart.submit(load, port, path, seconds).result())
    return found


def compare_batching(seconds: float, rounds: int) -> None:
    """Print continuous batching against one sentence at a time, for both routes."""
    with ExitStack() as servers:
        ports = [servers.enter_context(serve()), servers.enter_context(serve(MAX_BATCH_SIZE="1"))]
        for path in BODIES:
            batched, single = alternate(ports, path, seconds, rounds)
            ratios = [a.rate / b.rate for a, b in zip(batched, single, strict=True)]
            health = [value for run in batched for value in run.health_ms]
            print(
                f"{path}, {CLIENTS} clients: {_median(batched):.0f}/s against {_median(single):.0f}/s one at a time, "
                f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
                f"p95 {statistics.median(run.percentile(0.95) for run in batched):.0f} ms against "
                f"{statistics.median(run.percentile(0.95) for run in single):.0f} ms; "
                f"/health p99 {percentile(health, 0.99):.1f} ms; "
                f"failures {sum(run.failures for run in batched + single)}"
            )


def compare_together(seconds: float, rounds: int) -> None:
    """Print both models under load at once against each alone."""
    with serve() as port, ProcessPoolExecutor(2) as apart:
        alone: dict[str, list[float]] = {path: [] for path in BODIES}
        together: dict[str, list[float]] = {path: [] for path in BODIES}
        for _ in range(rounds):
            for path in BODIES:
                alone[path].append(apart.submit(load, port, path, seconds).result().rate)
            both = {path: apart.submit(load, port, path, seconds) for path in BODIES}
            for path, run in both.items():
                together[path].append(run.result().rate)
        for path in BODIES:
            ratio = statistics.median(a / b for a, b in zip(together[path], alone[path], strict=True))
            print(
                f"{path} beside the other model: {statistics.median(together[path]):.0f}/s, alone "
                f"{statistics.median(alone[path]):.0f}/s, ratio {ratio:.2f}"
            )


def measure_cached(seconds: float) -> None:
    """Print the latency of a sentence that the cache has, with one connection."""
    with serve(MEMORY_CACHE_BYTES="1000000") as port, ProcessPoolExecutor(1) as apart:
        for path in BODIES:
            run = apart.submit(load, port, path, seconds, 1, "保存文件。").result()
            median, slow = run.percentile(0.5), run.percentile(0.99)
            print(f"{path} from the cache, one client: median {median:.2f} ms, p99 {slow:.2f} ms")


def _median(runs: list[Run]) -> float:
    return statistics.median(run.rate for run in runs)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3, help="loads of each side")
    options = parser.parse_args()
    compare_batching(options.seconds, options.rounds)
    compare_together(options.seconds, options.rounds)
    measure_cached(options.seconds)


if __name__ == "__main__":
    main()
