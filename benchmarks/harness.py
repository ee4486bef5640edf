"""Measuring two or more engines fairly: each in a process of its own, one active at a time, in alternating rounds."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tandem.core import openmp

ROOT = Path(__file__).resolve().parent.parent
_QUIET_S = 0.1  # between two sides: the threads of the one before stop spinning and go to sleep


class WorkerError(RuntimeError):
    """A worker ended or answered nonsense; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run measures.

    Attributes:
        rounds: Rounds that count; one more before them is thrown away.
        threads: Threads of each side.
        peers_dir: Folder of the peers' virtual environments, one subfolder each.
        work_dir: Folder for made-up models and logs.
        sizes: Sentences of a request.
        clock: "wall", or "cpu" for the processor time of one thread where the machine is not idle.
        device: "cpu", or "cuda", which workers see only then.
    """

    rounds: int
    threads: int
    peers_dir: Path
    work_dir: Path
    sizes: tuple[int, ...]
    clock: str = "wall"
    device: str = "cpu"

    def peer_python(self, environment: str) -> Path:
        """Return the interpreter of a peer's virtual environment; it may not exist."""
        return self.peers_dir / environment / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Spread:
    """What several rounds of one side gave, in milliseconds a request."""

    median_ms: float
    min_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        peer: Whom we are compared with.
        batch: Sentences (or texts) of a request.
        ours_ms: Our median, milliseconds a request.
        peer_ms: The peer's median, milliseconds a request.
        ratio: Our speed over theirs: above 1, we are faster.
        precision: Ours.
        model: What both ran.
        peer_precision: The peer's.
        ours_min_ms: Our fastest round.
        ours_max_ms: Our slowest round.
        peer_min_ms: The peer's fastest round.
        peer_max_ms: The peer's slowest round.
        rounds: Rounds that counted.
    """

    peer: str
    batch: int
    ours_ms: float
    peer_ms: float
    ratio: float
    precision: str
    model: str
    peer_precision: str
    ours_min_ms: float
    ours_max_ms: float
    peer_min_ms: float
    peer_max_ms: float
    rounds: int


class Worker:
    """A process that holds one engine.

    Args:
        module: Name below `benchmarks.workers`.
        arguments: Its command line.
        settings: Threads and folders.
        python: Interpreter to run it with; ours when None.

    Raises:
        WorkerError: The engine could not be loaded.
    """

    def __init__(
        self, module: str, arguments: Sequence[object], settings: Settings, python: Path | None = None
    ) -> None:
        """Start the process and wait until its engine is loaded."""
        self._clock = f"{settings.clock}_ms"
        self._log_path = settings.work_dir / f"{module}.log"
        environment = worker_environment(settings.threads, settings.device)
        if python is None:
            environment |= openmp.ENVIRONMENT  # as the service has it; peers have their own defaults
        command = [str(python or sys.executable), "-m", f"benchmarks.workers.{module}", *map(str, arguments)]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        if self._receive() != {"ready": True}:
            raise WorkerError(f"{module} did not say that it is ready")

    def __enter__(self) -> Worker:
        """Return the worker."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the process."""
        self.close()

    def call(self, op: str, **arguments: object) -> Any:
        """Run a command and return its result."""
        return self._request(op, arguments)["result"]

    def time_ms(self, op: str, **arguments: object) -> float:
        """Run a command and return its time in milliseconds, on the clock of the settings."""
        return float(self._request(op, arguments)[self._clock])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _request(self, op: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            end = self._log_path.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise WorkerError(f"the worker ended; the end of {self._log_path.name}:\n{end}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def worker_environment(threads: int, device: str = "cpu") -> dict[str, str]:
    """Return the environment of every worker: as many threads for each library, no network, a GPU only if asked for."""
    count = str(threads)
    names = ("OMP", "MKL", "OPENBLAS", "RAYON")
    limits = {f"{name}_NUM_THREADS": count for name in names}
    limits |= {"TF_NUM_INTRAOP_THREADS": count, "TF_NUM_INTEROP_THREADS": count}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TOKENIZERS_PARALLELISM": "true", "PYTHONUNBUFFERED": "1"}
    offline = {"HF_HUB_OFFLINE": "1"} | ({"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {})
    return {**os.environ, **limits, **quiet, **offline}


def alternate(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Spread]:
    """Run all sides one after the other, round after round, after one round that does not count.

    Args:
        sides: Functions that run a side once and return milliseconds a request.
        rounds: Rounds that count.
    """
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            time.sleep(_QUIET_S)
            elapsed_ms = run()
            if number:
                samples[name].append(elapsed_ms)
    return {name: summarise(values) for name, values in samples.items()}


def summarise(samples_ms: Sequence[float]) -> Spread:
    """Return median and extremes."""
    return Spread(statistics.median(samples_ms), min(samples_ms), max(samples_ms))


def build_row(
    ours: Spread, theirs: Spread, *, peer: str, batch: int, precision: str, peer_precision: str, model: str, rounds: int
) -> Row:
    """Put two sides that ran in the same rounds beside each other."""
    return Row(
        peer=peer, batch=batch, model=model, precision=precision, peer_precision=peer_precision, rounds=rounds,
        ours_ms=round(ours.median_ms, 3), peer_ms=round(theirs.median_ms, 3),
        ratio=round(theirs.median_ms / ours.median_ms, 3),
        ours_min_ms=round(ours.min_ms, 3), ours_max_ms=round(ours.max_ms, 3),
        peer_min_ms=round(theirs.min_ms, 3), peer_max_ms=round(theirs.max_ms, 3),
    )  # fmt: skip


def render_table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text; times are median (fastest to slowest) milliseconds a request."""
    header = ("peer", "model", "batch", "ours", "theirs", "ours ms", "theirs ms", "ratio")
    lines = [header] + [
        (
            row.peer, row.model, str(row.batch), row.precision, row.peer_precision,
            _time(row.ours_ms, row.ours_min_ms, row.ours_max_ms),
            _time(row.peer_ms, row.peer_min_ms, row.peer_max_ms), f"{row.ratio:.2f}",
        )
        for row in rows
    ]  # fmt: skip
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 5 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _time(median_ms: float, min_ms: float, max_ms: float) -> str:
    return f"{median_ms:.1f} ({min_ms:.1f} to {max_ms:.1f})"
