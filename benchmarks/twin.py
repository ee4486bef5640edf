"""Question: how fast is the translator itself beside CTranslate2, on the same weights, for the same number of steps?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Row, Settings, Spread, Worker, WorkerError, alternate, build_row
from benchmarks.made_up import once, write_twin
from benchmarks.peers import CTRANSLATE2
from tandem.nn.precision import Precision

SOURCE_TOKENS = 20
_COMPUTE_TYPES = ("float32", "int8")
_PEER_PRECISIONS = {"float32": "float32", "bfloat16": "int8", "int8": "int8"}  # CTranslate2 has no bfloat16 on a CPU
_TOLERANCE = 2e-3  # of a log-prob, after 24 layers in float32
_SPECIAL_IDS = 2

Workers = dict[str, Worker]
Sizes = Mapping[str, int | bool]


def measure(settings: Settings, name: str, sizes: Sizes, precisions: list[Precision]) -> list[Row]:
    """Check that the twins compute the same, then measure them.

    Args:
        settings: How to measure.
        name: What the results call the model.
        sizes: The model's.
        precisions: Ours; each is measured beside CTranslate2's nearest.
    """
    model_dir = once(settings.work_dir / f"twin-{name}", lambda folder: write_twin(folder, sizes))
    with ExitStack() as stack:
        theirs = {kind: stack.enter_context(_start_peer(settings, model_dir, kind)) for kind in _COMPUTE_TYPES}
        ours = {
            str(precision): stack.enter_context(Worker("ours_twin", [model_dir, precision, settings.threads], settings))
            for precision in precisions
        }
        vocabulary = int(sizes["src_vocab_size"])
        if "float32" in ours:
            check_twins(ours["float32"], theirs["float32"], vocabulary)
        return [
            row
            for size in settings.sizes
            for row in _measure_size(settings, name, ours, theirs, random_sources(size, vocabulary))
        ]


def random_sources(count: int, vocabulary: int, seed: int = 1) -> list[list[int]]:
    """Return source sentences of equal length, without end marks and special ids."""
    generator = np.random.default_rng(seed)
    ids: list[list[int]] = generator.integers(1, vocabulary - _SPECIAL_IDS, (count, SOURCE_TOKENS)).tolist()
    return ids


def check_twins(ours: Worker, theirs: Worker, vocabulary: int) -> None:
    """Compare log-probs of given targets and the targets found, ancestors as they come.

    Raises:
        WorkerError: The twins differ: what follows would compare different computations.
    """
    sources = random_sources(4, vocabulary, seed=2)
    targets = random_sources(4, vocabulary, seed=3)
    scores = [np.array(side.call("score", sources=sources, targets=targets)) for side in (ours, theirs)]
    found = [side.call("search", sources=sources) for side in (ours, theirs)]
    difference = float(np.abs(scores[0] - scores[1]).max())
    gaps = [abs(mine[1] - other[1]) for mine, other in zip(*found, strict=True)]
    same = sum(mine[0] == other[0] for mine, other in zip(*found, strict=True))
    print(
        f"ctranslate2 twin: log-probs of given targets differ by at most {difference:.1e}; {same} of {len(sources)} "
        f"searches end in the same tokens, log-probs of whole targets within {max(gaps):.1e}",
        flush=True,
    )
    length = len(found[0][0][0])
    if difference > _TOLERANCE or max(gaps) > _TOLERANCE * length:
        raise WorkerError("the twins do not compute the same")


def best_pair(spreads: Mapping[str, Spread], ours: list[str], theirs: list[str]) -> tuple[str, str]:
    """Return the fastest side of each."""
    return min(ours, key=lambda name: spreads[name].median_ms), min(theirs, key=lambda name: spreads[name].median_ms)


def _start_peer(settings: Settings, model_dir: Path, compute_type: str) -> Worker:
    out = settings.work_dir / f"{model_dir.name}-ctranslate2"
    python = settings.peer_python(CTRANSLATE2.environment)
    return Worker("ctranslate2_twin", [model_dir, out, compute_type, settings.threads], settings, python)


def _measure_size(settings: Settings, name: str, ours: Workers, theirs: Workers, sources: list[list[int]]) -> list[Row]:
    """Run every precision of both sides in the same rounds; ours with and without the semantic encoder."""
    sides = {}
    for precision, worker in ours.items():
        sides[f"ours {precision}"] = partial(worker.time_ms, "run", sources=sources, semantic=False)
        peer = _PEER_PRECISIONS[precision]
        sides[f"peer {peer}"] = partial(theirs[peer].time_ms, "run", sources=sources)
        sides[f"whole {precision}"] = partial(worker.time_ms, "run", sources=sources, semantic=True)
    spreads = alternate(sides, settings.rounds)
    pairs = [(precision, _PEER_PRECISIONS[precision]) for precision in ours]
    best = best_pair(spreads, [f"ours {mine}" for mine, _ in pairs], [f"peer {peer}" for peer in {p for _, p in pairs}])
    best_precisions = (best[0].split()[1], best[1].split()[1])
    if best_precisions not in pairs:
        pairs.append(best_precisions)
    build = partial(_build_row, spreads, settings=settings, size=len(sources))
    rows = [build(f"ours {mine}", f"peer {peer}", model=name) for mine, peer in pairs]
    return rows + [build(f"whole {mine}", f"peer {peer}", model=f"{name} + semantic") for mine, peer in pairs]


def _build_row(
    spreads: Mapping[str, Spread], mine: str, other: str, *, settings: Settings, size: int, model: str
) -> Row:
    precision, peer_precision = mine.split()[1], other.split()[1]
    return build_row(
        spreads[mine], spreads[other], peer=f"ctranslate2-{peer_precision}", batch=size, precision=precision,
        peer_precision=peer_precision, model=model, rounds=settings.rounds,
    )  # fmt: skip
