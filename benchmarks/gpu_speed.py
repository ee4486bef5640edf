"""How fast is a GPU: recorded steps against others, our twin against CTranslate2's, the embedders side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.embedder import plan_requests, random_texts
from benchmarks.gpu_parity import DEMOS, Ids, build, demo_sources, translate
from benchmarks.harness import ROOT, Row, Settings, Spread, Worker, WorkerError, alternate, build_row
from benchmarks.made_up import BERT_BASE_SIZES, once, write_bert, write_twin
from benchmarks.peers import CTRANSLATE2, SENTENCE_TRANSFORMERS
from benchmarks.twin import random_sources
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.nn.precision import Precision

WITHOUT_GRAPHS = "without-cuda-graphs"
_HALF = "float16"
_SCORE_TOLERANCE = 0.05  # of a log-prob, both sides in float16
_VECTOR_TOLERANCE = 0.01  # of a cosine
_SOURCE_TOKENS = 64


def measure_demos(settings: Settings) -> list[Row]:
    """Measure both demo models with recorded steps beside the same without."""
    return [row for name in DEMOS for row in _measure_demo(settings, name, torch.device(settings.device))]


def measure_twin(settings: Settings, name: str, sizes: Mapping[str, int | bool]) -> list[Row]:
    """Measure a made-up model with recorded steps, the same without, and CTranslate2 where it is installed.

    Args:
        settings: How to measure; `sizes` says how many sentences together.
        name: What the results call the model.
        sizes: The model's.

    Raises:
        WorkerError: The twins do not compute the same.
    """
    model_dir = once(settings.work_dir / f"twin-{name}", lambda folder: write_twin(folder, sizes))
    vocabulary = int(sizes["src_vocab_size"])
    with ExitStack() as stack:
        start = partial(_start, stack, settings)
        ours: list[object] = [model_dir, _HALF, settings.device, max(settings.sizes)]
        sides = {"ours": start("gpu_twin", [*ours, "--record"]), WITHOUT_GRAPHS: start("gpu_twin", ours)}
        if CTRANSLATE2.is_installed(settings):
            kind = _HALF if settings.device == "cuda" else "float32"  # it knows no float16 on a CPU
            peer = [model_dir, settings.work_dir / f"{model_dir.name}-ctranslate2", kind, settings.threads]
            python = settings.peer_python(CTRANSLATE2.environment)
            sides[f"ctranslate2-{kind}"] = start("ctranslate2_twin", [*peer, "--device", settings.device], python)
            _check_scores(sides["ours"], sides[f"ctranslate2-{kind}"], vocabulary)
        else:
            print(CTRANSLATE2.explain_absence(settings), flush=True)
        rows: list[Row] = []
        for size in settings.sizes:
            sources = random_sources(size, vocabulary)
            runs = {side: partial(worker.time_ms, "run", sources=sources) for side, worker in sides.items()}
            rows += _compare(settings, runs, name, size)
        return rows


def measure_embedder(settings: Settings, demo_dir: Path, base_sizes: Mapping[str, int] = BERT_BASE_SIZES) -> list[Row]:
    """Measure the demo encoder and one of BERT-base's size beside sentence-transformers, both in float16.

    Args:
        settings: How to measure; `sizes` says how many texts in a request.
        demo_dir: An encoder in GTE's layout.
        base_sizes: Of the second encoder.

    Raises:
        WorkerError: The embedders do not compute the same.
    """
    if not SENTENCE_TRANSFORMERS.is_installed(settings):
        print(SENTENCE_TRANSFORMERS.explain_absence(settings), flush=True)
        return []
    base_dir = once(settings.work_dir / "bert-base", lambda folder: write_bert(folder, demo_dir, base_sizes))
    texts = random_texts(demo_dir)
    models = (("demo-gte", demo_dir), ("BERT-base size, random", base_dir))
    return [row for name, folder in models for row in _measure_encoder(settings, name, folder, texts)]


def _measure_demo(settings: Settings, name: str, device: torch.device) -> list[Row]:
    sources = [ids for ids in demo_sources(name) if len(ids) < _SOURCE_TOKENS] * 2
    rows: list[Row] = []
    limits = EngineLimits(max(settings.sizes), max(settings.sizes) * _SOURCE_TOKENS, _SOURCE_TOKENS)
    load = partial(build, ROOT / "models" / name, Precision.FLOAT16, device, limits=limits)
    engines = {"ours": load(record=True), WITHOUT_GRAPHS: load()}
    for size in settings.sizes:
        runs = {side: partial(_time_ms, engine, sources[:size], device) for side, engine in engines.items()}
        rows += _compare(settings, runs, name, size)
    return rows


def _measure_encoder(settings: Settings, name: str, model_dir: Path, texts: list[str]) -> list[Row]:
    with ExitStack() as stack:
        python = settings.peer_python(SENTENCE_TRANSFORMERS.environment)
        common: list[object] = [model_dir, _HALF, settings.threads]
        placed = ["--device", settings.device]
        ours = _start(stack, settings, "ours_embedder", [*common, settings.work_dir / "cache", *placed])
        theirs = _start(stack, settings, "sentence_transformers_peer", [*common, *placed], python)
        _check_vectors(ours, theirs, texts[:4])
        rows: list[Row] = []
        for size in settings.sizes:
            requests = plan_requests(texts, size)
            sides = {"ours": ours, SENTENCE_TRANSFORMERS.name: theirs}
            runs = {side: partial(_time_requests_ms, worker, requests) for side, worker in sides.items()}
            rows += _compare(settings, runs, name, size)
        return rows


def _start(
    stack: ExitStack, settings: Settings, module: str, arguments: Sequence[object], python: Path | None = None
) -> Worker:
    return stack.enter_context(Worker(module, arguments, settings, python))


def _compare(settings: Settings, runs: Mapping[str, Callable[[], float]], model: str, size: int) -> list[Row]:
    """Run all sides in the same rounds; return a row for each one that is not ours."""
    spreads: dict[str, Spread] = alternate(runs, settings.rounds)
    return [
        build_row(
            spreads["ours"], spread, peer=side, batch=size, precision=_HALF, model=model, rounds=settings.rounds,
            peer_precision="float32" if side.endswith("float32") else _HALF,
        )
        for side, spread in spreads.items()
        if side != "ours"
    ]  # fmt: skip


def _time_ms(engine: TranslationEngine, sources: Ids, device: torch.device) -> float:
    start_s = time.perf_counter()
    translate(engine, sources)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start_s) * 1000


def _time_requests_ms(worker: Worker, requests: list[list[str]]) -> float:
    return worker.time_ms("run", requests=requests) / len(requests)


def _check_scores(ours: Worker, theirs: Worker, vocabulary: int) -> None:
    sources, targets = random_sources(4, vocabulary, seed=2), random_sources(4, vocabulary, seed=3)
    scores = [np.array(side.call("score", sources=sources, targets=targets)) for side in (ours, theirs)]
    difference = float(np.abs(scores[0] - scores[1]).max())
    print(f"ctranslate2 twin: log-probs of given targets differ by at most {difference:.1e}", flush=True)
    if difference > _SCORE_TOLERANCE:
        raise WorkerError("the twins do not compute the same")


def _check_vectors(ours: Worker, theirs: Worker, texts: list[str]) -> None:
    mine, other = (np.array(side.call("encode", texts=texts)) for side in (ours, theirs))
    norms = np.linalg.norm(mine, axis=1) * np.linalg.norm(other, axis=1)
    least = float(((mine * other).sum(1) / norms).min())
    print(f"sentence-transformers: vectors agree to a cosine of {least:.5f}", flush=True)
    if least < 1 - _VECTOR_TOLERANCE:
        raise WorkerError("the embedders do not compute the same")
