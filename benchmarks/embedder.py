"""Question: how many texts does the embedder take a second beside sentence-transformers, at natural lengths?

And which share of the processor's matrix peak does it reach at equal lengths, where nothing is padded?
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Row, Settings, Worker, WorkerError, alternate, build_row
from benchmarks.made_up import BERT_BASE_SIZES, once, write_bert
from benchmarks.peers import SENTENCE_TRANSFORMERS
from tandem.gte.configuration import BertConfig, load_bert_config
from tandem.nn.precision import Precision

LIST_SIZE = 512
BASE_NAME = "BERT-base size, random"
AUTO, DEFAULT, PEAK = "auto", "default", "matrix-peak"
_MEDIAN_TOKENS, _SIGMA = 30, 0.8
_SHORTEST, _LONGEST = 5, 400
_MARKS = 2
_SINGLES = 16  # requests of a round when texts come one at a time
_LEAST_COSINE = 0.99
_EQUAL_TEXTS, _EQUAL_TOKENS = 32, 128
_PEAK_TYPES = ("float32", "bfloat16")  # what a plain matrix product computes in
_PEAK_SIZE, _PEAK_TIMES = 2048, 8


def measure(settings: Settings, demo_dir: Path, precisions: list[Precision]) -> list[Row]:
    """Measure the demo encoder and one of BERT-base's size: equal precisions, against float32, auto against default.

    Args:
        settings: How to measure.
        demo_dir: An encoder in GTE's layout.
        precisions: Ours.
    """
    base_dir = write_base(settings, demo_dir)
    texts = random_texts(demo_dir)
    rows = [
        row
        for name, model_dir in (("demo-gte", demo_dir), (BASE_NAME, base_dir))
        for row in _measure_model(settings, name, model_dir, texts, precisions)
    ]
    return rows + _measure_peak(settings, base_dir, equal_texts(demo_dir), precisions)


def write_base(settings: Settings, demo_dir: Path) -> Path:
    """Return an encoder of BERT-base's size with random weights, made in the first run."""
    return once(settings.work_dir / "bert-base", lambda folder: write_bert(folder, demo_dir, BERT_BASE_SIZES))


def random_lengths(count: int) -> list[int]:
    """Return lengths in tokens, marks included: log-normal, median 30, from 5 to 400; always the same."""
    generator = np.random.default_rng(1)
    drawn = generator.lognormal(np.log(_MEDIAN_TOKENS), _SIGMA, count)
    lengths: list[int] = np.clip(np.round(drawn), _SHORTEST, _LONGEST).astype(int).tolist()
    return lengths


def random_texts(model_dir: Path) -> list[str]:
    """Return texts of these lengths, of Chinese characters that are one token each."""
    return _write_texts(model_dir, random_lengths(LIST_SIZE))


def equal_texts(model_dir: Path) -> list[str]:
    """Return texts of one length."""
    return _write_texts(model_dir, [_EQUAL_TOKENS] * _EQUAL_TEXTS)


def count_operations(config: BertConfig, texts: int, tokens: int) -> float:
    """Return the floating-point operations of the encoder's matrix products, attention's among them.

    Args:
        config: Sizes of the encoder.
        texts: How many.
        tokens: Of each, marks included.
    """
    size, inner = config.hidden_size, config.filter_size
    linears, attention = 4 * size * size + 2 * size * inner, 2 * tokens * size
    return 2.0 * texts * tokens * config.num_layers * (linears + attention)


def _write_texts(model_dir: Path, lengths: list[int]) -> list[str]:
    tokens = (model_dir / "vocab.txt").read_text(encoding="utf-8").splitlines()
    characters = [token for token in tokens if len(token) == 1 and "一" <= token <= "鿿"]
    generator = np.random.default_rng(2)
    return ["".join(generator.choice(characters, length - _MARKS)) for length in lengths]


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
            for dtype in sorted({"float32", DEFAULT} | halves)
        }
        ours = {
            precision: stack.enter_context(_start_ours(settings, model_dir, precision))
            for precision in [*map(str, precisions), AUTO]
        }
        for precision, worker in ours.items():
            _check_vectors(name, precision, worker, theirs["float32"], texts[:4])
        print(f"{name}: auto is {ours[AUTO].call('precision')}", flush=True)
        sizes = (1, 32, LIST_SIZE)
        return [
            row for size in sizes for row in _measure_size(settings, name, ours, theirs, plan_requests(texts, size))
        ]


def _start_ours(settings: Settings, model_dir: Path, precision: str) -> Worker:
    return Worker("ours_embedder", [model_dir, precision, settings.threads, settings.work_dir / "cache"], settings)


def _measure_size(
    settings: Settings, name: str, ours: dict[str, Worker], theirs: dict[str, Worker], requests: list[list[str]]
) -> list[Row]:
    sides = {}
    for precision, worker in ours.items():
        sides[f"ours {precision}"] = partial(_run, worker, requests)
        for peer in plan_peers(precision, theirs):
            sides[f"peer {peer}"] = partial(_run, theirs[peer], requests)
    spreads = alternate(sides, settings.rounds)
    pairs = [(precision, peer) for precision in ours for peer in plan_peers(precision, theirs)]
    return [
        build_row(
            spreads[f"ours {precision}"], spreads[f"peer {peer}"], peer=SENTENCE_TRANSFORMERS.name,
            batch=len(requests[0]), precision=precision, model=name, rounds=settings.rounds,
            peer_precision=f"{DEFAULT}, {theirs[peer].call('precision')}" if peer == DEFAULT else peer,
        )
        for precision, peer in pairs
    ]  # fmt: skip


def plan_peers(precision: str, theirs: Collection[str]) -> list[str]:
    """Return what one of our precisions is compared with: the same one, then float32; auto with the peer's default."""
    if precision == AUTO:
        return [DEFAULT]
    return [peer for peer in dict.fromkeys((precision, "float32")) if peer in theirs]


def _measure_peak(settings: Settings, model_dir: Path, texts: list[str], precisions: list[Precision]) -> list[Row]:
    """Measure our time for texts of one length beside that of as many operations in plain matrix products."""
    rows = []
    operations = count_operations(load_bert_config(model_dir), len(texts), _EQUAL_TOKENS)
    for precision in map(str, precisions):
        if precision not in _PEAK_TYPES:
            continue
        with _start_ours(settings, model_dir, precision) as worker:
            sides = {"ours": partial(_run, worker, [texts]), "peak": partial(_multiply, worker, precision, operations)}
            spreads = alternate(sides, settings.rounds)
        rows.append(
            build_row(
                spreads["ours"], spreads["peak"], peer=PEAK, batch=len(texts), precision=precision,
                peer_precision=precision, model=f"{BASE_NAME}, {_EQUAL_TOKENS} tokens each", rounds=settings.rounds,
            )
        )  # fmt: skip
    return rows


def _multiply(worker: Worker, dtype: str, operations: float) -> float:
    """Return the milliseconds that so many operations take in products of square matrices."""
    elapsed_ms = worker.time_ms("multiply", dtype=dtype, size=_PEAK_SIZE, times=_PEAK_TIMES)
    return elapsed_ms * operations / (2.0 * _PEAK_SIZE**3 * _PEAK_TIMES)


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
