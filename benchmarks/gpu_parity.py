"""Does float16 on a GPU give what float32 gives, and do steps wait for the device no more than they must?"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sacrebleu
import torch

from benchmarks.gpu_recording import record_steps
from benchmarks.harness import ROOT
from benchmarks.ours import build_translator, load_packed
from tandem.core.types import Item, Priority
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision

GOLDEN = ROOT / "tests" / "golden"
FIXTURES = ("abs_shared", "rel_shared", "abs_unshared")
DEMOS = ("demo-zh2en", "demo-en2zh")
LIMITS = EngineLimits(segments=512, tokens=512 * 64)
_BLEU_BAR, _COSINE_BAR, _FIXTURE_BAR = 99.5, 0.9999, 0.9
_WARM_STEPS = 3

Ids = list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes:
        what: In words.
        value: The figure.
        unit: Of the figure.
        bar: What it must reach; None for a figure that is only reported.
        is_ceiling: The figure must not exceed the bar instead.
    """

    what: str
    value: float
    unit: str
    bar: float | None = None
    is_ceiling: bool = False

    @property
    def is_met(self) -> bool:
        """True when there is no bar, or it is kept."""
        if self.bar is None:
            return True
        return self.value <= self.bar if self.is_ceiling else self.value >= self.bar


def build(
    model_dir: Path, precision: Precision, device: torch.device, *, record: bool = False, limits: EngineLimits = LIMITS
) -> TranslationEngine:
    """Load a model as the service does."""
    engine = build_translator(load_packed(model_dir, precision, device), precision, limits=limits)
    if record:
        record_steps(engine, device)
    return engine


def translate(engine: TranslationEngine, sources: Ids) -> Ids:
    """Translate everything together; returns the best target ids in order."""
    items = [Item(ids) for ids in sources]
    finished = engine.admit(items)
    while engine.live():
        finished += engine.step(Priority.BULK)
    found = {id(done.item): done.result[0].ids if done.result else () for done in finished}
    return [found[id(item)] for item in items]


def check_fixtures(device: torch.device) -> list[Figure]:
    """Compare float16 with the official graph's best translations, steps as they are and recorded."""
    return [_check_fixture(kind, device, record=record) for kind in FIXTURES for record in (False, True)]


def check_demos(device: torch.device, count: int | None = None) -> list[Figure]:
    """Compare float16 with float32 on the demo models' lines, steps as they are and recorded.

    Args:
        device: Where.
        count: Lines; all by default.
    """
    figures = []
    for name in DEMOS:
        sources = demo_sources(name)[:count]
        exact = words(translate(build(ROOT / "models" / name, Precision.FLOAT32, device), sources))
        for record in (False, True):
            found = words(translate(build(ROOT / "models" / name, Precision.FLOAT16, device, record=record), sources))
            bleu = sacrebleu.corpus_bleu(found, [exact], tokenize="none", force=True).score
            what = f"{name}: BLEU of float16 against float32{_how(record)}"
            figures.append(Figure(what, bleu, "", _BLEU_BAR))
    return figures


def check_embedder(device: torch.device) -> Figure:
    """Compare float16 with the reference vectors."""
    texts = (GOLDEN / "gte" / "reference.txt").read_text(encoding="utf-8").splitlines()
    wanted = np.load(GOLDEN / "gte" / "reference.npy")
    embedder = load_embedder(ROOT / "models" / "demo-gte", Precision.FLOAT16, device)
    found = embedder.encoder.vectors([text.ids for text in embedder.tokenizer.encode_many(texts)])
    cosine = float((found * wanted).sum(1).min() / max(np.linalg.norm(found, axis=1).max(), 1e-9))
    return Figure("demo-gte: lowest cosine against the reference, float16", cosine, "", _COSINE_BAR)


def check_waits(device: torch.device) -> list[Figure]:
    """Count how often the host waits for CUDA in a step that ends no row."""
    return [_count_waits(device, record=record) for record in (False, True)]


def check_memory(device: torch.device) -> list[Figure]:
    """Report the GPU memory that a translator at its limits takes beside what was computed up front."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    engine = build(ROOT / "models" / DEMOS[0], Precision.FLOAT16, device, record=True)
    translate(engine, [(5,) * 60] * LIMITS.segments)
    return [
        Figure("demo-zh2en at its limits: GPU memory computed up front", engine.memory().total / 1e9, "GB"),
        Figure("demo-zh2en at its limits: peak", (torch.cuda.max_memory_allocated() - before) / 1e9, "GB"),
    ]


def demo_sources(name: str) -> Ids:
    """Return the lines of a demo model as token ids."""
    stored = json.loads((GOLDEN / "csanmt" / name / "official.ids.json").read_text(encoding="utf-8"))
    return [tuple(row) for row in stored]


def until_end(ids: np.ndarray) -> tuple[int, ...]:
    """Return ids up to the end mark."""
    listed = [int(i) for i in ids]
    return tuple(listed[: listed.index(0)] if 0 in listed else listed)


def words(targets: Ids) -> list[str]:
    """Return target ids as words for BLEU."""
    return [" ".join(map(str, ids)) for ids in targets]


def _how(record: bool) -> str:
    return ", recorded steps" if record else ""


def _check_fixture(kind: str, device: torch.device, *, record: bool) -> Figure:
    folder = GOLDEN / "csanmt"
    data = np.load(folder / kind / "golden.npz")
    cases = len(json.loads((folder / "cases.json").read_text(encoding="utf-8")))
    engine = build(folder / kind, Precision.FLOAT16, device, record=record, limits=EngineLimits(16, 1024, 128))
    same = total = 0
    for case in range(cases):
        sources = [tuple(int(i) for i in row if i) for row in data[f"{case}/input"]]
        wanted = [until_end(ids) for ids in data[f"{case}/seqs"][:, 0]]
        same += sum(a == b for a, b in zip(translate(engine, sources), wanted, strict=True))
        total += len(sources)
    what = f"{kind}: share of the official graph's best translations, float16{_how(record)}"
    return Figure(what, same / total, "", _FIXTURE_BAR)


def _count_waits(device: torch.device, *, record: bool) -> Figure:
    engine = build(ROOT / "models" / DEMOS[0], Precision.FLOAT16, device, record=record)
    engine.admit([Item(ids) for ids in demo_sources(DEMOS[0])[:8]])
    for _ in range(_WARM_STEPS):
        engine.step(Priority.BULK)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            ended = len(engine.step(Priority.BULK))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = sum("synchroniz" in str(warning.message) for warning in caught)
    what = f"demo-zh2en: waits for the device in a step, {ended} rows ending{_how(record)}"
    return Figure(what, waits, "", 2 if ended else 1, is_ceiling=True)
