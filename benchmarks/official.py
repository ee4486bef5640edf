"""Question: how much faster is a whole request, text in and text out, than in the official TensorFlow pipeline?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.harness import ROOT, Row, Settings, Worker, alternate, build_row
from benchmarks.made_up import BASE_SIZES, once, write_official_twin
from benchmarks.peers import OFFICIAL
from tandem.nn.precision import Precision

SENTENCES = ROOT / "benchmarks" / "sentences.zh"
_SENTENCES_A_ROUND = 32  # at every size the same ones, so that sizes can be compared


def measure(settings: Settings, demo_dir: Path, precisions: list[Precision]) -> list[Row]:
    """Measure the demo model and one of en2zh_base's size; the official pipeline computes in float32 only.

    Args:
        settings: How to measure.
        demo_dir: A translation model in the official layout whose source is Chinese.
        precisions: Ours.
    """
    base_dir = once(settings.work_dir / "csanmt-base", lambda folder: write_official_twin(folder, demo_dir, BASE_SIZES))
    return [
        row
        for name, model_dir in (("demo-zh2en", demo_dir), ("en2zh_base size, random", base_dir))
        for row in _measure_model(settings, name, model_dir, precisions)
    ]


def plan_requests(sentences: list[str], size: int) -> list[list[str]]:
    """Return the requests of a round: the same sentences at every size, except what does not fill a last request."""
    count = max(_SENTENCES_A_ROUND, size)
    return [sentences[first : first + size] for first in range(0, count - size + 1, size)]


def _measure_model(settings: Settings, name: str, model_dir: Path, precisions: list[Precision]) -> list[Row]:
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()
    rows = []
    python = settings.peer_python(OFFICIAL.environment)
    with Worker("official", [model_dir], settings, python) as official:
        for precision in precisions:
            with Worker("ours_text", [model_dir, precision, settings.threads], settings) as ours:
                _compare_texts(name, precision, ours, official, sentences[:8])
                rows += [
                    _measure_size(settings, name, precision, (ours, official), plan_requests(sentences, size))
                    for size in settings.sizes
                ]
    return rows


def _measure_size(
    settings: Settings, name: str, precision: Precision, workers: tuple[Worker, Worker], requests: list[list[str]]
) -> Row:
    sides = {side: partial(_run, worker, requests) for side, worker in zip(("ours", "theirs"), workers, strict=True)}
    spreads = alternate(sides, settings.rounds)
    return build_row(
        spreads["ours"], spreads["theirs"], peer=OFFICIAL.name, batch=len(requests[0]), precision=precision,
        peer_precision="float32", model=name, rounds=settings.rounds,
    )  # fmt: skip


def _run(worker: Worker, requests: list[list[str]]) -> float:
    return worker.time_ms("run", requests=requests) / len(requests)


def _compare_texts(name: str, precision: Precision, ours: Worker, official: Worker, sentences: list[str]) -> None:
    """Say whether both sides translate alike; in float32 they must."""
    pairs = zip(ours.call("run", requests=[sentences])[0], official.call("run", requests=[sentences])[0], strict=True)
    equal = sum(mine == theirs for mine, theirs in pairs)
    print(f"official, {name}, {precision}: {equal} of {len(sentences)} translations are the same", flush=True)
