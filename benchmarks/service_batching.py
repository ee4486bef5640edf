"""Questions: what batching brings under load, what it costs without, and what joining a running batch is worth."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack

from benchmarks.natural_mix import read_natural_mix
from benchmarks.service_answers import Answer, answer
from benchmarks.service_clients import BODIES, CLIENTS, Conditions, Run, alternate, load, median_rate, percentile, serve


def measure_batching(conditions: Conditions) -> list[Answer]:
    """Compare batching with one item at a time, for both routes."""
    with ExitStack() as servers:
        ports = [
            servers.enter_context(serve(THREADS=str(conditions.threads), MAX_BATCH_SIZE=size)) for size in ("32", "1")
        ]
        return [
            answer(
                "batching",
                f"{path}, {CLIENTS} clients: rate over MAX_BATCH_SIZE=1",
                ratios(lambda run: run.rate, batched, single),
                detail=_details(batched, single) | _health(batched),
            )
            for path in BODIES
            for batched, single in [alternate(ports, path, conditions)]
        ]


def measure_static(conditions: Conditions) -> list[Answer]:
    """Compare continuous with whole batches, for sentences of natural lengths."""
    with ExitStack() as servers:
        ports = [
            servers.enter_context(serve(THREADS=str(conditions.threads), BATCHING=how))
            for how in ("continuous", "static")
        ]
        continuous, static = alternate(ports, "/translate", conditions, texts=read_natural_mix())
    detail = _details(continuous, static)
    rates = ratios(lambda run: run.rate, continuous, static)
    tails = ratios(lambda run: run.percentile(0.95), continuous, static)
    return [
        answer("static", f"{CLIENTS} clients, continuous: rate over static", rates, ">= 1.3", detail),
        answer("static", f"{CLIENTS} clients, continuous: p95 over static", tails, "<= 0.7", detail),
    ]


def measure_light(conditions: Conditions) -> list[Answer]:
    """Compare batching with one item at a time when there is one client only."""
    with ExitStack() as servers:
        ports = [
            servers.enter_context(serve(THREADS=str(conditions.threads), MAX_BATCH_SIZE=size)) for size in ("32", "1")
        ]
        batched, single = alternate(ports, "/translate", conditions, clients=1)
    medians = ratios(lambda run: run.percentile(0.5), batched, single)
    return [answer("light", "one client: median over MAX_BATCH_SIZE=1", medians, "<= 1.05", _details(batched, single))]


def measure_together(conditions: Conditions) -> list[Answer]:
    """Compare both models under load at once with each alone."""
    alone: dict[str, list[Run]] = {path: [] for path in BODIES}
    together: dict[str, list[Run]] = {path: [] for path in BODIES}
    with serve(THREADS=str(conditions.threads)) as port, ProcessPoolExecutor(2) as apart:
        for _ in range(conditions.rounds):
            for path in BODIES:
                alone[path].append(apart.submit(load, port, path, conditions.seconds).result())
            both = {path: apart.submit(load, port, path, conditions.seconds) for path in BODIES}
            for path, run in both.items():
                together[path].append(run.result())
    return [
        answer(
            "together",
            f"{path} beside the other model: rate over alone",
            ratios(lambda run: run.rate, together[path], alone[path]),
            detail=_details(together[path], alone[path]),
        )
        for path in BODIES
    ]


def ratios(value: Callable[[Run], float], ours: Sequence[Run], theirs: Sequence[Run]) -> list[float]:
    """Return the ratio of a value of both sides, round by round."""
    return [value(a) / value(b) for a, b in zip(ours, theirs, strict=True)]


def _details(ours: Sequence[Run], theirs: Sequence[Run]) -> dict[str, object]:
    found: dict[str, object] = {}
    for side, runs in (("ours", ours), ("theirs", theirs)):
        found[f"{side}_per_s"] = round(median_rate(runs), 1)
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            found[f"{side}_{name}_ms"] = round(statistics.median(run.percentile(share) for run in runs), 2)
    return {**found, "failures": sum(run.failures for run in (*ours, *theirs))}


def _health(runs: Sequence[Run]) -> dict[str, object]:
    return {"health_p99_ms": round(percentile([value for run in runs for value in run.health_ms], 0.99), 1)}
