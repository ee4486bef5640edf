"""Question: how long does the service take from its start until it is ready? `python -m benchmarks.start_time`.

With the demo models and default settings. The first start converts and measures into an empty cache folder; the second
finds all that there. What the system has read before stays in its memory, as after any first start.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.harness import ROOT
from benchmarks.service_answers import Answer, answer
from benchmarks.starting import serving_ours

QUESTION = "start"
_BOUND_S = 5


def measure(rounds: int, work_dir: Path) -> list[Answer]:
    """Start the service twice in each of some rounds, after one round that does not count.

    Args:
        rounds: Empty cache folders to begin with.
        work_dir: For the log.
    """
    log = work_dir / "start.log"
    first, second = [], []
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory(prefix="tandem-start-") as cache:
            first.append(_start_s(log, Path(cache)))
            second.append(_start_s(log, Path(cache)))
    return [
        answer(QUESTION, "seconds to /ready, demo models, first start", first[1:]),
        answer(QUESTION, "seconds to /ready, demo models, second start", second[1:], f"<= {_BOUND_S}"),
    ]


def _start_s(log: Path, cache: Path) -> float:
    with serving_ours(log, CACHE_DIR=str(cache)) as server:
        return server.ready_s


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_time", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="empty cache folders to begin with (default 7)")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "build" / "bench", help="for the log")
    options = parser.parse_args()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    for found in measure(options.rounds, options.work_dir):
        print(found.render())


if __name__ == "__main__":
    main()
