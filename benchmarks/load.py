"""A server under load: `make load`. Throughput, latency and patience, each against a named other side.

Servers run side by side and are loaded in turn, so that both sides meet the same machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.service_answers import Answer, write_answers
from benchmarks.service_batching import measure_batching, measure_light, measure_static, measure_together
from benchmarks.service_bulk import measure_bulk
from benchmarks.service_cached import measure_cached
from benchmarks.service_clients import ROOT, Conditions
from benchmarks.service_share import measure_share
from benchmarks.service_text import measure_text

QUESTIONS: dict[str, Callable[[Conditions], list[Answer]]] = {
    "batching": measure_batching,
    "together": measure_together,
    "static": measure_static,
    "bulk": measure_bulk,
    "share": measure_share,
    "light": measure_light,
    "cached": measure_cached,
    "text": measure_text,
}


def main() -> None:
    """Run the command line."""
    arguments = _parse_arguments()
    conditions = Conditions(arguments.seconds, arguments.rounds, arguments.threads, arguments.work_dir.absolute())
    conditions.work_dir.mkdir(parents=True, exist_ok=True)
    answers: list[Answer] = []
    for name in arguments.only:
        for found in QUESTIONS[name](conditions):
            print(found.render(), flush=True)
            answers.append(found)
    write_answers(arguments.out, describe_machine(conditions.threads), answers)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3, help="loads of each side")
    parser.add_argument("--threads", type=int, default=2, help="threads of each server and engine (default 2)")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "build" / "bench", help="made-up models and logs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "service.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
