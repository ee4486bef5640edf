"""On a CUDA machine, in a few minutes: does float16 give what float32 gives, and how fast? `make gpu-check`.

Parity: the official graph's fixtures, the demo models' 500 lines each, the encoder's reference vectors. Figures:
latency of one sentence, throughput of many at once, memory. Exits 1 when a bar is missed. `--device cpu` runs the same
code without a GPU, to test this script.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import sacrebleu
import torch

from benchmarks.machine import describe_machine
from tandem.core.types import Item, Priority
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.decoding import DecodingOptions
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.packing import pack_model
from tandem.csanmt.tokenizer import Tokenizer
from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
FIXTURES = ("abs_shared", "rel_shared", "abs_unshared")
DEMOS = ("demo-zh2en", "demo-en2zh")
_BLEU_BAR, _COSINE_BAR, _FIXTURE_BAR = 99.5, 0.9999, 0.9
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes:
        what: In words.
        value: The figure.
        unit: Of the figure.
        bar: What it must reach; None for a figure that is only reported.
    """

    what: str
    value: float
    unit: str
    bar: float | None = None

    @property
    def is_met(self) -> bool:
        """True when there is no bar, or it is reached."""
        return self.bar is None or self.value >= self.bar


def build(model_dir: Path, precision: Precision, device: torch.device, segments: int = 512) -> TranslationEngine:
    """Load a model as the service does."""
    model = load_model(model_dir, precision.dtype if device.type == "cuda" else torch.float32).to(device)
    pack_model(model, precision, device)
    config = model.config
    return TranslationEngine(
        model,
        prefix_index=lambda: Tokenizer(model_dir, config).prefix_index,
        options=DecodingOptions(config.beam_size, config.lp_rate, config.max_decoded_trg_len),
        limits=EngineLimits(segments, 1 << 20),
        precision=precision,
    )


def translate(engine: TranslationEngine, sources: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Translate everything together; returns the best target ids in order."""
    items = [Item(ids) for ids in sources]
    finished = engine.admit(items)
    while engine.live():
        finished += engine.step(Priority.BULK)
    found = {id(done.item): done.result[0].ids if done.result else () for done in finished}
    return [found[id(item)] for item in items]


def check_fixtures(device: torch.device) -> list[Figure]:
    """Compare float16 with the official graph's best translations."""
    figures = []
    cases = len(json.loads((GOLDEN / "csanmt" / "cases.json").read_text(encoding="utf-8")))
    for kind in FIXTURES:
        engine = build(GOLDEN / "csanmt" / kind, Precision.FLOAT16, device)
        data = np.load(GOLDEN / "csanmt" / kind / "golden.npz")
        same = total = 0
        for case in range(cases):
            sources = [tuple(int(i) for i in row if i) for row in data[f"{case}/input"]]
            wanted = [until_end(ids) for ids in data[f"{case}/seqs"][:, 0]]
            same += sum(a == b for a, b in zip(translate(engine, sources), wanted, strict=True))
            total += len(sources)
        what = f"{kind}: share of the official graph's best translations, float16"
        figures.append(Figure(what, same / total, "", _FIXTURE_BAR))
    return figures


def until_end(ids: np.ndarray) -> tuple[int, ...]:
    """Return ids up to the end mark."""
    listed = [int(i) for i in ids]
    return tuple(listed[: listed.index(0)] if 0 in listed else listed)


def check_demos(device: torch.device) -> list[Figure]:
    """Compare float16 with float32 on the demo models' lines, and time float16."""
    figures = []
    for name in DEMOS:
        ids = json.loads((GOLDEN / "csanmt" / name / "official.ids.json").read_text(encoding="utf-8"))
        sources = [tuple(row) for row in ids]
        exact = words(translate(build(ROOT / "models" / name, Precision.FLOAT32, device), sources))
        engine = build(ROOT / "models" / name, Precision.FLOAT16, device)
        bleu = sacrebleu.corpus_bleu(words(translate(engine, sources)), [exact], tokenize="none", force=True)
        figures.append(Figure(f"{name}: BLEU of float16 against float32", bleu.score, "", _BLEU_BAR))
        seconds = time_median(partial(translate, engine, sources[:1]), device)
        figures.append(Figure(f"{name}: one sentence", seconds * 1000, "ms"))
        for count in (32, 128, 512):
            seconds = time_median(partial(translate, engine, (sources * 2)[:count]), device)
            figures.append(Figure(f"{name}: {count} together", count / seconds, "sentences/s"))
    if device.type == "cuda":
        figures.append(Figure("GPU memory, peak", torch.cuda.max_memory_allocated() / 1e9, "GB"))
    return figures


def words(targets: list[tuple[int, ...]]) -> list[str]:
    """Return target ids as words for BLEU."""
    return [" ".join(map(str, ids)) for ids in targets]


def check_embedder(device: torch.device) -> list[Figure]:
    """Compare float16 with the reference vectors, and time it."""
    texts = (GOLDEN / "gte" / "reference.txt").read_text(encoding="utf-8").splitlines()
    wanted = np.load(GOLDEN / "gte" / "reference.npy")
    embedder = load_embedder(ROOT / "models" / "demo-gte", Precision.FLOAT16, device)
    ids = [text.ids for text in embedder.tokenizer.encode_many(texts)]
    found = embedder.encoder.vectors(ids)
    cosine = float((found * wanted).sum(1).min() / max(np.linalg.norm(found, axis=1).max(), 1e-9))
    seconds = time_median(lambda: embedder.encoder.vectors(ids * 10), device)
    return [
        Figure("demo-gte: lowest cosine against the reference, float16", cosine, "", _COSINE_BAR),
        Figure("demo-gte: 500 texts", 10 * len(ids) / seconds, "texts/s"),
    ]


def time_median(work: Callable[[], object], device: torch.device) -> float:
    """Return the median seconds of some rounds, after one that does not count."""
    times = []
    for _ in range(_ROUNDS + 1):
        start_s = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start_s)
    return statistics.median(times[1:])


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu-check: no CUDA device is here; --device cpu tests this script without one", file=sys.stderr)
        return 1
    device = torch.device(options.device)
    figures = [*check_fixtures(device), *check_demos(device), *check_embedder(device)]
    for figure in figures:
        bar = "" if figure.bar is None else f"  (at least {figure.bar}: {'met' if figure.is_met else 'MISSED'})"
        print(f"{figure.what}: {figure.value:.4g} {figure.unit}{bar}")
    machine = describe_machine(torch.get_num_threads())
    if device.type == "cuda":
        machine["gpu"] = torch.cuda.get_device_name()
    rows = [{"what": figure.what, "value": figure.value, "unit": figure.unit, "bar": figure.bar} for figure in figures]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    return 0 if all(figure.is_met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
