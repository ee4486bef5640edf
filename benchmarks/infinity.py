"""Question: how many single texts a second does our server embed beside Infinity's, with 32 clients at once?

Both servers answer the same bytes: a POST of an OpenAI embedding request on each connection, the next one when the last
is answered. Neither keeps a cache.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.embedder import BASE_NAME, random_texts, write_base
from benchmarks.harness import Row, Settings, WorkerError, alternate, build_row, worker_environment
from benchmarks.peers import INFINITY
from benchmarks.starting import free_port, serving, serving_ours
from tandem.nn.precision import Precision

CLIENTS = 32
_TEXTS_A_ROUND = 96
_LEAST_COSINE = 0.99
_MODEL = "embedder"  # what both servers are asked for
_PATHS = {"ours": "/v1/embeddings", "theirs": "/embeddings"}
_TIMEOUT_S = 120.0  # of an answer


def measure(settings: Settings, demo_dir: Path, precisions: list[Precision]) -> list[Row]:
    """Measure the demo encoder and one of BERT-base's size, in each precision that both servers have.

    Args:
        settings: How to measure.
        demo_dir: An encoder in GTE's layout.
        precisions: Ours; Infinity's torch engine has no int8 on a CPU.
    """
    base_dir = write_base(settings, demo_dir)
    texts = random_texts(demo_dir)[:_TEXTS_A_ROUND]
    shared = [str(precision) for precision in precisions if precision is not Precision.INT8]
    return [
        row
        for name, model_dir in (("demo-gte", demo_dir), (BASE_NAME, base_dir))
        for row in _measure_model(settings, name, model_dir, texts, shared)
    ]


def _measure_model(
    settings: Settings, name: str, model_dir: Path, texts: list[str], precisions: list[str]
) -> list[Row]:
    with ExitStack() as stack:
        apart = stack.enter_context(ProcessPoolExecutor(1))  # the clients do not share an interpreter with anything
        sides = {}
        for precision in precisions:
            ports = {
                "ours": stack.enter_context(_serve_ours(settings, model_dir, precision)),
                "theirs": stack.enter_context(_serve_theirs(settings, model_dir, precision)),
            }
            _check_vectors(name, precision, ports, texts[:4])
            for side, port in ports.items():
                sides[f"{side} {precision}"] = partial(_run_apart, apart, port, _PATHS[side], texts)
        spreads = alternate(sides, settings.rounds)
    pairs = [(mine, other) for mine in precisions for other in dict.fromkeys((mine, "float32")) if other in precisions]
    return [
        build_row(
            spreads[f"ours {mine}"], spreads[f"theirs {other}"], peer=INFINITY.name, batch=CLIENTS, precision=mine,
            peer_precision=other, model=name, rounds=settings.rounds,
        )
        for mine, other in pairs
    ]  # fmt: skip


def send_all(port: int, path: str, texts: Sequence[str]) -> float:
    """Have all clients send texts, each the next one of those that are left, until all are answered.

    Args:
        port: On this machine.
        path: Of the embedding route.
        texts: One a request.

    Returns:
        Milliseconds a text: how long it all took, divided by the number of texts.

    Raises:
        WorkerError: A request was not answered 200.
    """
    work = iter(texts)
    refused: list[int] = []

    def send(_: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
        for text in work:  # the interpreter's lock makes sure that no text is taken twice
            status, _body = _post(connection, path, text)
            if status != http.HTTPStatus.OK:
                refused.append(status)
        connection.close()

    with ThreadPoolExecutor(CLIENTS) as clients:
        started_s = time.perf_counter()
        list(clients.map(send, range(CLIENTS)))
        elapsed_s = time.perf_counter() - started_s
    if refused:
        raise WorkerError(f"{len(refused)} of {len(texts)} requests were answered {sorted(set(refused))}")
    return elapsed_s * 1000 / len(texts)


def _run_apart(apart: ProcessPoolExecutor, port: int, path: str, texts: Sequence[str]) -> float:
    return apart.submit(send_all, port, path, texts).result()


def _post(connection: http.client.HTTPConnection, path: str, text: str) -> tuple[int, bytes]:
    body = json.dumps({"input": text, "model": _MODEL})
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


@contextmanager
def _serve_ours(settings: Settings, model_dir: Path, precision: str) -> Iterator[int]:
    with serving_ours(
        settings.work_dir / "infinity-ours.log", EMBEDDING_MODEL=str(model_dir), PRECISION=precision,
        THREADS=str(settings.threads), OMP_NUM_THREADS=str(settings.threads),
        CACHE_DIR=str(settings.work_dir / "cache"), MEMORY_CACHE_BYTES="0", REDIS_URL="",
    ) as server:  # fmt: skip
        yield server.port


@contextmanager
def _serve_theirs(settings: Settings, model_dir: Path, precision: str) -> Iterator[int]:
    """Run Infinity with its defaults, its batch of 32 among them, and without its reports to its makers."""
    port = free_port()
    command = [
        str(settings.peer_python(INFINITY.environment).parent / "infinity_emb"), "v2", "--model-id", str(model_dir),
        "--served-model-name", _MODEL, "--engine", "torch", "--device", "cpu", "--dtype", precision,
        "--batch-size", str(CLIENTS), "--host", "127.0.0.1", "--port", str(port), "--log-level", "warning",
    ]  # fmt: skip
    environment = worker_environment(settings.threads) | {"DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    with serving(command, environment, port, "/health", settings.work_dir / "infinity-theirs.log") as server:
        yield server.port


def _check_vectors(name: str, precision: str, ports: dict[str, int], texts: list[str]) -> None:
    """Compare the vectors of both servers by cosine.

    Raises:
        WorkerError: They differ.
    """
    mine, other = (np.array([_embed(port, _PATHS[side], text) for text in texts]) for side, port in ports.items())
    norms = np.linalg.norm(mine, axis=1) * np.linalg.norm(other, axis=1)
    least = float(((mine * other).sum(1) / norms).min())
    print(f"infinity, {name}, {precision}: vectors agree to a cosine of {least:.5f}", flush=True)
    if least < _LEAST_COSINE:
        raise WorkerError("the servers do not compute the same")


def _embed(port: int, path: str, text: str) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    _, body = _post(connection, path, text)
    connection.close()
    vector: list[float] = json.loads(body)["data"][0]["embedding"]
    return vector
