"""Measure our engines beside their peers, print one table and write it as JSON."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from benchmarks import embedder, official, twin
from benchmarks.harness import ROOT, Row, Settings, render_table, write_results
from benchmarks.machine import describe_machine
from benchmarks.made_up import BASE_SIZES, LARGE_SIZES
from benchmarks.ours import precisions
from benchmarks.peers import CTRANSLATE2, OFFICIAL, SENTENCE_TRANSFORMERS, Peer
from tandem.nn.precision import Precision

_BASE_TWIN, _LARGE_TWIN = "en2zh_base twin", "zh2en twin"


def main() -> None:
    """Run the questions whose peer is installed."""
    arguments = _parse_arguments()
    settings = Settings(
        rounds=arguments.rounds, threads=arguments.threads, peers_dir=arguments.peers_dir.absolute(),
        work_dir=arguments.work_dir.absolute(), sizes=tuple(arguments.sizes),
        clock=arguments.clock,
    )  # fmt: skip
    settings.work_dir.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name, (peer, measure) in _questions(arguments, settings).items():
        if name not in arguments.only:
            continue
        if not peer.is_installed(settings):
            print(peer.explain_absence(settings), flush=True)
            continue
        rows += measure()
        print(f"{name}: measured", flush=True)
    print("\n" + render_table(rows))
    write_results(arguments.out, {**describe_machine(settings.threads), "clock": settings.clock}, rows)


def _questions(arguments: argparse.Namespace, settings: Settings) -> dict[str, tuple[Peer, Callable[[], list[Row]]]]:
    wanted = [precision for precision in precisions() if precision in arguments.precisions]
    translator: Path = arguments.model.absolute()
    encoder: Path = arguments.embedding_model.absolute()
    return {
        "official": (OFFICIAL, lambda: official.measure(settings, translator, wanted)),
        "ctranslate2": (CTRANSLATE2, lambda: twin.measure(settings, _BASE_TWIN, BASE_SIZES, wanted)),
        "ctranslate2-large": (CTRANSLATE2, lambda: twin.measure(settings, _LARGE_TWIN, LARGE_SIZES, wanted)),
        "sentence-transformers": (SENTENCE_TRANSFORMERS, lambda: embedder.measure(settings, encoder, wanted)),
    }


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    questions = ["official", "ctranslate2", "ctranslate2-large", "sentence-transformers"]
    parser.add_argument(
        "--only", nargs="+", choices=questions, default=[q for q in questions if q != "ctranslate2-large"]
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (default 7)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each side (default 2)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time, with --threads 1 on a busy machine",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 32], help="sentences of a request")
    parser.add_argument("--precisions", type=Precision, nargs="+", default=list(Precision), help="ours")
    parser.add_argument(
        "--peers-dir", type=Path, default=Path(os.environ.get("BENCH_PEERS", ROOT / "build" / "peers")),
        help="folder of the peers' virtual environments (default BENCH_PEERS, else build/peers)",
    )  # fmt: skip
    parser.add_argument(
        "--model", type=Path, default=ROOT / "models" / "demo-zh2en", help="official layout, from Chinese"
    )
    parser.add_argument("--embedding-model", type=Path, default=ROOT / "models" / "demo-gte", help="GTE layout")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "build" / "bench", help="made-up models and logs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "latest.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
