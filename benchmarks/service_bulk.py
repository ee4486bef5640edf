"""Question: does a person notice a batch job, and does the job notice the person?"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator

from benchmarks.natural_mix import read_natural_mix
from benchmarks.service_answers import Answer, answer
from benchmarks.service_clients import (
    Conditions,
    connected,
    made_up_sentences,
    percentile,
    post,
    serve,
    translate_body,
)

_EVERY_S = 1.0
_IDLE_REQUESTS = 20  # of each round
_LIST_TIMEOUT_S = 1800.0


def measure_bulk(conditions: Conditions) -> list[Answer]:
    """Translate a list of 2,500 sentences alone, and again while one short sentence comes every second.

    A round asks short sentences on an idle server, then sends the list alone, then both.
    """
    sentences = read_natural_mix()
    idle_ms: list[float] = []
    beside_ms: list[float] = []
    alone_s: list[float] = []
    together_s: list[float] = []
    with serve(THREADS=str(conditions.threads)) as port:
        _translate_list(port, sentences[:64])
        for number in range(conditions.rounds):
            texts = made_up_sentences(number)
            with _Person(port, texts) as person:
                time.sleep(_EVERY_S * _IDLE_REQUESTS)
            idle_ms += person.latencies_ms
            alone_s.append(_translate_list(port, sentences))
            with _Person(port, texts) as person:
                together_s.append(_translate_list(port, sentences))
            beside_ms += person.latencies_ms
    detail = {
        "idle_p50_ms": round(percentile(idle_ms, 0.5), 1),
        "idle_p95_ms": round(percentile(idle_ms, 0.95), 1),
        "beside_p50_ms": round(percentile(beside_ms, 0.5), 1),
        "beside_p95_ms": round(percentile(beside_ms, 0.95), 1),
        "short_sentences": len(beside_ms),
        "alone_s": round(statistics.median(alone_s), 2),
        "together_s": round(statistics.median(together_s), 2),
    }
    tail = percentile(beside_ms, 0.95) / percentile(idle_ms, 0.95)
    slower = [a / b for a, b in zip(together_s, alone_s, strict=True)]
    return [
        Answer(
            "bulk",
            f"a list of {len(sentences)}: p95 of short sentences over idle",
            round(tail, 3),
            "<= 2",
            detail=detail,
        ),
        answer("bulk", "the list's time over alone", slower, "<= 1.15", detail),
    ]


def _translate_list(port: int, sentences: list[str]) -> float:
    """Send a list as one request; return its seconds."""
    with connected(port, _LIST_TIMEOUT_S) as connection:
        status, elapsed_ms = post(connection, "/translate", translate_body(sentences))
    if status != 200:
        raise SystemExit(f"the list was answered {status}")
    return elapsed_ms / 1000


class _Person:
    """Sends a short sentence every second while the context lasts."""

    def __init__(self, port: int, texts: Iterator[str]) -> None:
        self.latencies_ms: list[float] = []
        self._port, self._texts = port, texts
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> _Person:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _ask(self) -> None:
        due_s = time.monotonic()
        with connected(self._port) as connection:
            while not self._is_over.wait(max(0.0, due_s - time.monotonic())):
                status, elapsed_ms = post(connection, "/translate", translate_body(next(self._texts)))
                if status == 200:
                    self.latencies_ms.append(elapsed_ms)
                due_s += _EVERY_S
