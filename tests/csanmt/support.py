"""Shared by the translator's tests: fixtures of the official graph, engines, an obvious beam search."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tandem.core.types import Finished, Hypothesis, Item, Priority
from tandem.csanmt.backend import make_kernels
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.kernel_search import Kernels, kernel_precisions
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.csanmt.packing import pack_model
from tandem.csanmt.tokenizer import Tokenizer
from tandem.nn.precision import Precision
from tests.conftest import GOLDEN, MODELS

FIXTURES = GOLDEN / "csanmt"
KINDS = ("abs_shared", "rel_shared", "abs_unshared")
DEMOS = {"demo-zh2en": ("zh", "en"), "demo-en2zh": ("en", "zh")}


class Backend:
    """What the engines of a test compute with; set by the fixture `backend`."""

    name = "torch"


@lru_cache(8)
def fixture_model(kind: str) -> CsanmtForConditionalGeneration:
    return load_model(FIXTURES / kind)


def kernels_of(model: CsanmtForConditionalGeneration, precision: Precision = Precision.FLOAT32) -> Kernels:
    """Return a model's kernels, on two threads; made while its linear layers are not packed."""
    if not hasattr(model, "kernels_of_tests"):
        kernels = make_kernels(model, precision, 1024, threads=2)
        assert kernels is not None
        model.kernels_of_tests = kernels  # type: ignore[assignment]
    return model.kernels_of_tests  # type: ignore[return-value]


def fixture_options(model: CsanmtForConditionalGeneration, limit: int | None = None) -> DecodingOptions:
    config = model.config
    return DecodingOptions(config.beam_size, config.lp_rate, limit or config.max_decoded_trg_len)


def golden_cases(kind: str, name: str = "golden") -> list[dict[str, np.ndarray]]:
    data = np.load(FIXTURES / kind / f"{name}.npz")
    fields = ("input", "encoder", "semantic", "seqs", "scores")
    count = len(json.loads((FIXTURES / "cases.json").read_text(encoding="utf-8")))
    return [{field: data[f"{i}/{field}"] for field in fields if f"{i}/{field}" in data} for i in range(count)]


def until_end(ids: np.ndarray) -> tuple[int, ...]:
    listed = [int(i) for i in ids]
    return tuple(listed[: listed.index(0)] if 0 in listed else listed)


def items_of(batch: np.ndarray, **fields: object) -> list[Item]:
    return [Item(until_end(row), **fields) for row in batch]  # type: ignore[arg-type]


def build_engine(
    model: CsanmtForConditionalGeneration,
    tokenizer: Tokenizer | None = None,
    options: DecodingOptions | None = None,
    **more: object,
) -> TranslationEngine:
    def prefix_index() -> object:
        assert tokenizer is not None
        return tokenizer.prefix_index

    if Backend.name == "kernels" and more.get("precision", Precision.FLOAT32) is Precision.FLOAT32:
        more.setdefault("kernels", kernels_of(model))
    return TranslationEngine(
        model,
        prefix_index=prefix_index,  # type: ignore[arg-type]
        options=options or fixture_options(model),
        limits=more.pop("limits", EngineLimits(segments=1024, tokens=1 << 20)),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def drain(engine: TranslationEngine, done: dict[int, Finished[list[Hypothesis]]]) -> None:
    while engine.live():
        for finished in engine.step(Priority.BULK):
            done[id(finished.item)] = finished


def run(engine: TranslationEngine, items: list[Item]) -> list[Finished[list[Hypothesis]]]:
    done = {id(finished.item): finished for finished in engine.admit(items)}
    drain(engine, done)
    return [done[id(item)] for item in items]


def best(engine: TranslationEngine, items: list[Item]) -> list[Hypothesis]:
    results = run(engine, items)
    assert all(finished.error is None for finished in results)
    return [finished.result[0] for finished in results if finished.result]


class Demo:
    """One of the demo models with its official lines."""

    def __init__(self, name: str, precision: Precision = Precision.FLOAT32) -> None:
        source, target = DEMOS[name]
        folder = FIXTURES / name
        self.directory: Path = MODELS / name
        self.source = (folder / f"official.{source}").read_text(encoding="utf-8").splitlines()
        self.official = (folder / f"official.{target}").read_text(encoding="utf-8").splitlines()
        self.ids = [tuple(row) for row in json.loads((folder / "official.ids.json").read_text(encoding="utf-8"))]
        self.model = load_model(self.directory)
        has_kernels = Backend.name == "kernels" and precision in kernel_precisions()
        if has_kernels:
            kernels_of(self.model, precision)
        pack_model(self.model, precision, torch.device("cpu"))
        self.tokenizer = Tokenizer(self.directory, self.model.config)
        more = {"kernels": kernels_of(self.model)} if has_kernels else {}
        self.engine = build_engine(self.model, self.tokenizer, precision=precision, **more)


def demo(name: str, precision: Precision = Precision.FLOAT32) -> Demo:
    return _demo(name, precision, Backend.name)


@lru_cache(8)
def _demo(name: str, precision: Precision, backend: str) -> Demo:
    assert backend == Backend.name
    return Demo(name, precision)


# -- the slow, obvious version ---------------------------------------------------------------------------------------


@torch.no_grad()
def obvious_beam_search(
    model: CsanmtForConditionalGeneration, ids: tuple[int, ...], options: DecodingOptions, wanted: int = 1
) -> list[tuple[tuple[int, ...], float]]:
    """Search for one sentence, re-reading every hypothesis from its beginning at each step; no caches."""
    encoded = model.encode(torch.tensor([ids]))
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for step in range(options.max_target_tokens):
        penalty = ((5 + step + 1) / 6) ** options.lp_rate
        found = []
        for log_prob, tokens in live:
            for token, value in enumerate(_next_log_probs(model, encoded, tokens).tolist()):
                found.append((log_prob + value, (*tokens, token)))
        found = sorted(found, key=lambda pair: -pair[0])[: 2 * options.beam_size]
        finished += [(log_prob / penalty, tokens[:-1]) for log_prob, tokens in found if tokens[-1] == 0]
        finished = sorted(finished, key=lambda pair: -pair[0])[: options.beam_size]
        live = [pair for pair in found if pair[1][-1] != 0][: options.beam_size]
        bound = live[0][0] / ((5 + options.max_target_tokens) / 6) ** options.lp_rate
        if len(finished) >= wanted and finished[-1][0] > bound:
            break
    best = finished or [(log_prob / penalty, tokens) for log_prob, tokens in live]
    return [(tokens, score) for score, tokens in best[:wanted]]


def _next_log_probs(model: CsanmtForConditionalGeneration, encoded: object, tokens: tuple[int, ...]) -> Tensor:
    embedded = model.target_embedding(torch.tensor([[0, *tokens]])).float() * math.sqrt(model.config.hidden_size)
    embedded[:, 0] = 0
    hidden = model.decoder(embedded, encoded)[:, -1]
    return torch.log_softmax(model.output_projection(hidden).float(), -1)[0]
