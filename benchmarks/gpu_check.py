"""On a CUDA machine, in a few minutes: does float16 give what float32 gives, and how fast? `make gpu-check`.

Parity: the official graph's fixtures, the demo models' 500 lines each, the encoder's reference vectors, with CUDA
graphs and without. Figures: one sentence, 32, 128 and 512 together, graphs on and off; CTranslate2 and
sentence-transformers in float16 on the same card, where `make bench-peers` has installed them; memory. Exits 1 when a
bar is missed. `--device cpu --tiny` runs the same code without a GPU, to test this script.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.gpu_parity import Figure, check_demos, check_embedder, check_fixtures, check_memory, check_waits
from benchmarks.gpu_speed import measure_demos, measure_embedder, measure_twin
from benchmarks.harness import ROOT, Row, Settings, render_table
from benchmarks.machine import describe_machine
from benchmarks.made_up import BASE_SIZES, BERT_BASE_SIZES

_SIZES, _ROUNDS = (1, 32, 128, 512), 5
_TINY_SIZES, _TINY_ROUNDS, _TINY_LINES = (1, 2), 1, 4
_TINY_TWIN: Mapping[str, int | bool] = {
    **BASE_SIZES, "hidden_size": 64, "filter_size": 128, "num_heads": 2, "num_encoder_layers": 1,
    "num_decoder_layers": 1, "num_semantic_encoder_layers": 1, "src_vocab_size": 500, "trg_vocab_size": 500,
}  # fmt: skip
_TINY_BERT: Mapping[str, int] = {
    **BERT_BASE_SIZES, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2,
}  # fmt: skip


def check(device: torch.device, *, is_tiny: bool) -> list[Figure]:
    """Return the figures that have bars, and those of memory."""
    figures = [*check_fixtures(device), *check_demos(device, _TINY_LINES if is_tiny else None), check_embedder(device)]
    return [*figures, *check_waits(device), *check_memory(device)] if device.type == "cuda" else figures


def measure(settings: Settings, *, is_tiny: bool) -> list[Row]:
    """Return the rows of all comparisons."""
    twin, twin_sizes = ("tiny twin", _TINY_TWIN) if is_tiny else ("en2zh_base twin", BASE_SIZES)
    embedder = measure_embedder(settings, ROOT / "models" / "demo-gte", _TINY_BERT if is_tiny else BERT_BASE_SIZES)
    return [*measure_demos(settings), *measure_twin(settings, twin, twin_sizes), *embedder]


def write(path: Path, machine: Mapping[str, object], rows: list[Row], figures: list[Figure]) -> None:
    """Write JSON: machine and rows as `make bench` does, and the figures beside them."""
    document = {"machine": machine, "rows": list(map(asdict, rows)), "figures": list(map(asdict, figures))}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def render_figures(figures: list[Figure]) -> str:
    """Return the figures as text, a line each."""
    lines = []
    for figure in figures:
        limit = "at most" if figure.is_ceiling else "at least"
        bar = "" if figure.bar is None else f"  ({limit} {figure.bar}: {'met' if figure.is_met else 'MISSED'})"
        lines.append(f"{figure.what}: {figure.value:.4g} {figure.unit}{bar}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parse(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu-check: no CUDA device is here; --device cpu --tiny tests this script without one", file=sys.stderr)
        return 1
    started_s = time.perf_counter()
    device, work_dir = torch.device(options.device), options.work_dir.absolute()
    work_dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        rounds=_TINY_ROUNDS if options.tiny else _ROUNDS, threads=torch.get_num_threads(),
        peers_dir=options.peers_dir.absolute(), work_dir=work_dir, device=options.device,
        sizes=_TINY_SIZES if options.tiny else _SIZES,
    )  # fmt: skip
    figures = check(device, is_tiny=options.tiny)
    print(render_figures(figures), flush=True)
    rows = measure(settings, is_tiny=options.tiny)
    print(render_table(rows))
    machine = {**describe_machine(settings.threads), "seconds": round(time.perf_counter() - started_s, 1)}
    if device.type == "cuda":
        machine["gpu"] = torch.cuda.get_device_name()
    write(options.out, machine, rows, figures)
    return 0 if all(figure.is_met for figure in figures) else 1


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small models, few lines, one round")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "build" / "bench", help="made-up models and logs")
    parser.add_argument(
        "--peers-dir", type=Path, default=Path(os.environ.get("BENCH_PEERS", ROOT / "build" / "peers")),
        help="folder of the peers' virtual environments (default BENCH_PEERS, else build/peers)",
    )  # fmt: skip
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
