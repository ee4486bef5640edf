"""Measure our engines beside their peers, print one table, write it as JSON and draw it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import embedder, infinity, official, real_size, start_time, twin
from benchmarks.harness import ROOT, Row, Settings, render_table
from benchmarks.machine import describe_machine
from benchmarks.made_up import BASE_SIZES, LARGE_SIZES
from benchmarks.ours import precisions
from benchmarks.peers import CTRANSLATE2, INFINITY, OFFICIAL, SENTENCE_TRANSFORMERS, Peer
from benchmarks.plots import FOLDER, write_plots
from benchmarks.record import OtherMachineError, Record, check_same_machine, merge, read_record, write_record
from benchmarks.service_answers import Answer
from benchmarks.table import RESULTS
from tandem.nn.precision import Precision

_BASE_TWIN, _LARGE_TWIN = "en2zh_base twin", "zh2en twin"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures.

    Attributes:
        settings: How.
        precisions: Ours.
        translator: A translation model in the official layout, from Chinese.
        encoder: An embedding model in GTE's layout.
    """

    settings: Settings
    precisions: list[Precision]
    translator: Path
    encoder: Path


@dataclass(frozen=True, slots=True)
class Found:
    """What a question answers.

    Attributes:
        rows: Ours beside a peer.
        figures: Ours alone.
    """

    rows: list[Row] = field(default_factory=list)
    figures: list[Answer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Question:
    """What can be measured by itself.

    Attributes:
        measure: Does it.
        peer: Who must be installed; None when it is about ours alone.
    """

    measure: Callable[[Plan], Found]
    peer: Peer | None = None


def _twin(name: str, sizes: twin.Sizes) -> Callable[[Plan], Found]:
    return lambda plan: Found(twin.measure(plan.settings, name, sizes, plan.precisions))


QUESTIONS = {
    "official": Question(
        lambda plan: Found(official.measure(plan.settings, plan.translator, plan.precisions)), OFFICIAL
    ),
    "ctranslate2": Question(_twin(_BASE_TWIN, BASE_SIZES), CTRANSLATE2),
    "ctranslate2-large": Question(_twin(_LARGE_TWIN, LARGE_SIZES), CTRANSLATE2),
    "sentence-transformers": Question(
        lambda plan: Found(embedder.measure(plan.settings, plan.encoder, plan.precisions)), SENTENCE_TRANSFORMERS
    ),
    "infinity": Question(lambda plan: Found(infinity.measure(plan.settings, plan.encoder, plan.precisions)), INFINITY),
    "start": Question(lambda plan: Found(figures=start_time.measure(plan.settings.rounds, plan.settings.work_dir))),
    "real-size": Question(lambda plan: Found(figures=list(real_size.measure(plan.settings.work_dir, plan.translator)))),
}


def main() -> None:
    """Run the questions whose peer is installed."""
    arguments = _parse_arguments()
    plan = _plan(arguments)
    plan.settings.work_dir.mkdir(parents=True, exist_ok=True)
    machine = {**describe_machine(plan.settings.threads), "clock": plan.settings.clock}
    record = read_record(arguments.out) if arguments.only else None
    try:
        check_same_machine(record, machine, arguments.out)
    except OtherMachineError as error:
        sys.exit(f"benchmarks: {error}")
    rows: list[Row] = []
    for name in arguments.only or QUESTIONS:
        found = _ask(name, QUESTIONS[name], plan)
        rows += found.rows
        if found.rows or found.figures:  # written at once: a later question may fail
            record = merge(record, machine, found.rows, found.figures)
            write_record(arguments.out, record)
    print("\n" + render_table(rows))
    _draw(record, arguments.plots)


def _ask(name: str, question: Question, plan: Plan) -> Found:
    if question.peer is not None and not question.peer.is_installed(plan.settings):
        print(question.peer.explain_absence(plan.settings), flush=True)
        return Found()
    found = question.measure(plan)
    for figure in found.figures:
        print(figure.render(), flush=True)
    print(f"{name}: measured", flush=True)
    return found


def _draw(record: Record | None, folder: Path) -> None:
    if record is not None and record["rows"]:
        write_plots(record, folder)


def _plan(arguments: argparse.Namespace) -> Plan:
    settings = Settings(
        rounds=arguments.rounds, threads=arguments.threads, peers_dir=arguments.peers_dir.absolute(),
        work_dir=arguments.work_dir.absolute(), sizes=tuple(arguments.sizes),
        clock=arguments.clock,
    )  # fmt: skip
    wanted = [precision for precision in precisions() if precision in arguments.precisions]
    return Plan(settings, wanted, arguments.model.absolute(), arguments.embedding_model.absolute())


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=QUESTIONS, help="measure these alone, and keep what the results hold of the others"
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
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--plots", type=Path, default=FOLDER, help="folder of the drawings")
    return parser.parse_args()


if __name__ == "__main__":
    main()
