"""Question: where does the time of one decode step go? Run `python -m benchmarks.profile_step`."""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.forced import ForcedSearch
from benchmarks.harness import ROOT
from benchmarks.made_up import BASE_SIZES, TWIN_TARGET_TOKENS, once, write_twin
from benchmarks.ours import CPU, load_packed, precisions
from benchmarks.twin import random_sources
from tandem.core.types import Item
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.nn.precision import Precision, autocast

_SKIPPED_STEPS = 5  # short targets, first use of every kernel


def main() -> None:
    """Print a step's time and its most expensive operators for each precision and size."""
    arguments = _parse_arguments()
    torch.set_num_threads(arguments.threads)
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    model_dir = once(arguments.work_dir / "twin-en2zh_base twin", lambda folder: write_twin(folder, BASE_SIZES))
    for precision in arguments.precisions:
        model = load_packed(model_dir, precision)
        for size in arguments.sizes:
            print(f"\n{precision}, {size} sentences: {describe(model, precision, size, arguments.top)}", flush=True)


def describe(model: CsanmtForConditionalGeneration, precision: Precision, size: int, top: int) -> str:
    """Return the median time of admission and of a step, and the operators of the steps by their own time.

    Args:
        model: Packed for `precision`.
        precision: What it computes in.
        size: Sentences that run together.
        top: Operators to list.
    """
    admit_ms, steps_ms = time_search(model, precision, size)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        time_search(model, precision, size)
    table = profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=top, max_name_column_width=60)
    usual_ms, fastest_ms = statistics.median(steps_ms), min(steps_ms)
    return f"admission {admit_ms:.1f} ms, a step {usual_ms:.2f} ms (fastest {fastest_ms:.2f} ms)\n{table}"


@torch.inference_mode()
def time_search(model: CsanmtForConditionalGeneration, precision: Precision, size: int) -> tuple[float, list[float]]:
    """Run a search to its end; return the milliseconds of admission and of every step that counts."""
    config = model.config
    options = DecodingOptions(config.beam_size, config.lp_rate, TWIN_TARGET_TOKENS)
    search = ForcedSearch(model, options, CPU)
    sources = random_sources(size, config.src_vocab_size)
    with autocast(precision, CPU):
        started_s = time.perf_counter()
        items = [Item(tuple(ids)) for ids in sources]
        search.join(items, model.encode(torch.tensor(sources)), [[] for _ in items])
        marks_s = [time.perf_counter()]
        while len(search):
            search.step()
            marks_s.append(time.perf_counter())
    steps_ms = [(after - before) * 1000 for before, after in pairwise(marks_s)]
    return (marks_s[0] - started_s) * 1000, steps_ms[_SKIPPED_STEPS:]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_step", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 32], help="sentences that run together")
    parser.add_argument("--precisions", type=Precision, nargs="+", default=precisions())
    parser.add_argument("--top", type=int, default=15, help="operators to list")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "build" / "bench")
    return parser.parse_args()


if __name__ == "__main__":
    main()
