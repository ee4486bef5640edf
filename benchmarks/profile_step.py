"""Question: where does the time of one decode step go? Run `python -m benchmarks.profile_step`.

The parts of a step are run by themselves, on one thread, on rows that a search has brought to a position.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forced import Forced, forcing
from benchmarks.harness import ROOT
from benchmarks.made_up import BASE_SIZES, TWIN_TARGET_TOKENS, once, write_twin
from benchmarks.ours import precisions
from benchmarks.twin import random_sources
from tandem.compiled.availability import prepare_kernels
from tandem.core.settings import load_settings
from tandem.core.types import Item
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.live import DecodingOptions
from tandem.nn.device import time_rounds
from tandem.nn.precision import Precision

prepare_kernels(load_settings().cache_dir)  # before numba decorates anything

from tandem.compiled.functions import add_exponentials, largest, layer_norm  # noqa: E402
from tandem.compiled.linear import Linear, kernel, linear, new_buffer  # noqa: E402
from tandem.compiled.tile import PLAIN  # noqa: E402
from tandem.csanmt.kernel_search import Kernels, KernelSearch  # noqa: E402
from tandem.csanmt.kernels import decoder  # noqa: E402
from tandem.csanmt.kernels.top import clear, find_maxima, find_top, new_maxima  # noqa: E402
from tandem.csanmt.kernels.weights import Decoder  # noqa: E402

Array = Any
Part = tuple[str, Callable[[], object], float]  # what it is, does it, floating-point operations of a product
_TIMES = 20


@kernel
def multiply_all(x: Array, count: int, layers: Linear, out: Array) -> None:
    """Multiply rows by every one of some layers."""
    for layer in range(layers.bias.shape[0]):
        linear(x, count, layers, layer, out, PLAIN)


@kernel
def add_up(logits: Array, count: int, parts: int) -> np.float32:
    """Find the maxima and the sums of exponentials of rows, `parts` times."""
    maxima, total = new_maxima(logits.shape[1]), np.float32(0)
    for _ in range(parts):
        for m in range(count):
            find_maxima(logits[m], maxima)
            total += add_exponentials(logits[m], largest(maxima), np.float32(0), np.float32(0))[1]
    return total


@kernel
def choose(logits: Array, count: int, parts: int, best: Array, places: Array) -> None:
    """Find the candidates of rows, in `parts` parts."""
    maxima = new_maxima(logits.shape[1])
    for m in range(count):
        clear(best[m], places[m])
        find_maxima(logits[m], maxima)
        for part in range(parts):
            find_top(logits[m], maxima, part * logits.shape[1], best[m], places[m])


def main() -> None:
    """Print the parts of a step for each precision and size."""
    arguments = _parse_arguments()
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    model_dir = arguments.model or once(
        arguments.work_dir / "twin-en2zh_base twin", lambda folder: write_twin(folder, BASE_SIZES)
    )
    model = load_model(model_dir)
    for precision in arguments.precisions:
        with forcing(Forced.ANCESTORS):
            kernels = Kernels(model, precision, 64, 1)
            for size in arguments.sizes:
                search = kernels.build_search(DecodingOptions(), None)
                items = [Item(tuple(ids)) for ids in random_sources(size, model.config.src_vocab_size)]
                search.admit(items, [[] for _ in items])
                for _ in range(arguments.position):
                    search.step()
                print(f"\n{precision}, {size} sentences at position {arguments.position}", flush=True)
                for line in describe(search):
                    print(line, flush=True)


def describe(search: KernelSearch) -> Iterator[str]:
    """Yield a line for each part: milliseconds a step, share of the step, GFLOP/s of products."""
    whole_ms = None
    for name, run, operations in list_parts(search):
        elapsed_ms = time_rounds(run, _TIMES) * 1000
        whole_ms = whole_ms or elapsed_ms
        speed = f"{operations / elapsed_ms / 1e6:8.0f} GFLOP/s" if operations else ""
        yield f"  {name:24}{elapsed_ms:9.3f} ms{100 * elapsed_ms / whole_ms:7.1f} %{speed}"


def list_parts(search: KernelSearch) -> Iterator[Part]:
    """Yield the step up to the candidates, then its parts."""
    view, model = search._view, search._weights
    arguments = (model.decoder, model.heads, model.eps, view.state, np.arange(len(search)), view.scored, False)
    yield "step, to the candidates", lambda: decoder.decode(*arguments), 0
    count = len(search) * view.state.token.shape[1]
    yield from _list_products(model.decoder, count)
    yield from _list_others(search, count)


def _list_products(weights: Decoder, count: int) -> Iterator[Part]:
    size, inner = weights.embedding.shape[1], weights.feed_forward.inner.bias.shape[1]
    for name, linears, inputs in (
        ("queries, keys, values", weights.attention.qkv, size),
        ("self attention's output", weights.attention.output, size),
        ("source queries", weights.cross_query, size),
        ("source attention's output", weights.cross_output, size),
        ("feed-forward, inner", weights.feed_forward.inner, size),
        ("feed-forward, outer", weights.feed_forward.outer, inner),
        ("vocabulary", weights.projection, size),
    ):
        arguments = _some(count, inputs), count, linears, _some(count, linears.bias.shape[1])
        yield name, partial(multiply_all, *arguments), 2.0 * count * inputs * linears.bias.size


def _list_others(search: KernelSearch, count: int) -> Iterator[Part]:
    view, model, rows = search._view, search._weights, np.arange(len(search))
    weights, state, heads = model.decoder, view.state, model.heads
    layers, size = weights.attention.norm.weight.shape[0], weights.embedding.shape[1]
    x, mixed, qkv = (_some(count, columns) for columns in (size, size, 3 * size))

    def attend_self() -> None:
        for layer in range(layers):
            decoder._attend_self(weights, state, layer, heads, rows, qkv, mixed)

    def attend_source() -> None:
        for layer in range(layers):
            decoder._attend_source(state, layer, heads, rows, x, mixed)

    def normalise() -> None:
        for _ in range(3 * layers + 1):
            layer_norm(x, count, weights.norm.weight[0], weights.norm.bias[0], model.eps, mixed)

    parts, width = weights.projection.bias.shape
    logits = _some(count, width)
    yield "self attention", attend_self, 0
    yield "source attention", attend_source, 0
    yield "normalisations", normalise, 0
    yield "sums of exponentials", partial(add_up, logits, count, parts), 0
    yield "candidates", partial(choose, logits, count, parts, view.scored.best, view.scored.place), 0


def _some(count: int, columns: int) -> Array:
    """Return made-up rows with room for whole tiles, float32 [at least `count`, columns]."""
    buffer = new_buffer(count, columns)
    buffer[:] = np.random.default_rng(1).standard_normal(buffer.shape)
    return buffer


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_step", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 32], help="sentences that run together")
    parser.add_argument("--precisions", type=Precision, nargs="+", default=precisions())
    parser.add_argument("--position", type=int, default=TWIN_TARGET_TOKENS // 2 + 2, help="target subwords so far")
    parser.add_argument("--model", type=Path, help="a translation model (default: random weights of en2zh_base's size)")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "build" / "bench")
    return parser.parse_args()


if __name__ == "__main__":
    main()
