"""Question: how many texts does the embedder take a second beside sentence-transformers, at natural lengths?"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Row, Settings, Worker, WorkerError, alternate, build_row
from benchmarks.made_up import BERT_BASE_SIZES, once, write_bert
from benchmarks.peers import SENTENCE_TRANSFORMERS
from tandem.nn.precision import Precision

LIST_SIZE = 512
_MEDIAN_TOKENS, _SIGMA = 30, 0.8
_SHORTEST, _LONGEST = 5, 400
_MARKS = 2
_SINGLES = 16  # requests of a round when texts come one at a time
_LEAST_COSINE = 0.99


def measure(settings: Settings, demo_dir: Path, precisions: list[Precision]) -> list[Row]:
    """Measure the demo encoder and one of BERT-base's size, in equal precisions and our best against their default.

    Args:
        settings: How to measure.
        demo_dir: An encoder in GTE's layout.
        precisions: Ours.
    """
    base_dir = once(settings.work_dir / "bert-base", lambda folder: write_bert(folder, demo_dir, BERT_BASE_SIZES))
    texts = random_texts(demo_dir)
    return [
        row
        for name, model_dir in (("demo-gte", demo_dir), ("BERT-base size, random", base_dir))
        for row in _measure_model(settings, name, model_dir, texts, precisions)
    ]


def random_lengths(count: int) -> list[int]:
    """Return lengths in tokens, marks included: log-normal, median 30, from 5 to 400; always the same."""
    generator = np.random.default_rng(1)
    drawn = generator.lognormal(np.log(_MEDIAN_TOKENS), _SIGMA, count)
    lengths: list[int] = np.clip(np.round(drawn), _SHORTEST, _LONGEST).astype(int).tolist()
    return lengths


def random_texts(model_dir: Path) -> list[str]:
    """Return texts of these lengths, of Chinese characters that are one token each."""
    tokens = (model_dir / "vocab.txt").read_text(encoding="utf-8").splitlines()
    characters = [token for token in tokens if len(token) == 1 and "一" <= token <= "鿿"]
    generator = np.random.default_rng(2)
    return ["".join(generator.choice(characters, length - _MARKS)) for length in random_lengths(LIST_SIZE)]


def plan_requests(texts: list[str], size: int) -> list[list[str]]:
    """Return the requests of a round."""
    return [[text] for text in texts[:_SINGLES]] if size == 1 else [texts[:size]]


def _measure_model(
    settings: Settings, name: str, model_dir: Path, texts: list[str], precisions: list[Precision]
) -> list[Row]:
    python = settings.peer_python(SENTENCE_TRANSFORMERS.environment)
    halves = {"bfloat16"} & set(map(str, precisions))
    with ExitStack() as stack:
        theirs = {
            dtype: stack.enter_context(
                Worker("sentence_transformers_peer", [model_dir, dtype, settings.threads], settings, python)
            )
            for dtype in sorted({"float32"} | halves)
        }
        ours = {
            str(precision): stack.enter_context(
                Worker("ours_embedder", [model_dir, precision, settings.threads], settings)
            )
            for precision in precisions
        }
        for precision, worker in ours.items():
            _check_vectors(name, precision, worker, theirs["float32"], texts[:4])
        sizes = (1, 32, LIST_SIZE)
        return [
            row for size in sizes for row in _measure_size(settings, name, ours, theirs, plan_requests(texts, size))
        ]


def _measure_size(
    settings: Settings, name: str, ours: dict[str, Worker], theirs: dict[str, Worker], requests: list[list[str]]
) -> list[Row]:
    sides = {}
    for precision, worker in ours.items():
        sides[f"ours {precision}"] = partial(_run, worker, requests)
        if precision in theirs:
            sides[f"peer {precision}"] = partial(_run, theirs[precision], requests)
    spreads = alternate(sides, settings.rounds)
    pairs = [
        (precision, peer) for precision in ours for peer in dict.fromkeys((precision, "float32")) if peer in theirs
    ]
    return [
        build_row(
            spreads[f"ours {precision}"], spreads[f"peer {peer}"], peer=SENTENCE_TRANSFORMERS.name,
            batch=len(requests[0]), precision=precision, peer_precision=peer, model=name, rounds=settings.rounds,
        )
        for precision, peer in pairs
    ]  # fmt: skip


def _run(worker: Worker, requests: list[list[str]]) -> float:
    return worker.time_ms("run", requests=requests) / len(requests)


def _check_vectors(name: str, precision: str, ours: Worker, theirs: Worker, texts: list[str]) -> None:
    """Compare vectors by cosine.

    Raises:
        WorkerError: They differ.
    """
    mine, other = (np.array(side.call("encode", texts=texts)) for side in (ours, theirs))
    norms = np.linalg.norm(mine, axis=1) * np.linalg.norm(other, axis=1)
    least = float(((mine * other).sum(1) / norms).min())
    print(f"sentence-transformers, {name}, {precision}: vectors agree to a cosine of {least:.5f}", flush=True)
    if least < _LEAST_COSINE:
        raise WorkerError("the embedders do not compute the same")
