"""Run by `test_memory.py` in a process of its own: the largest batches that the limits allow, and what they take.

Prints JSON: the plan, and by how many bytes the process grew at most over what it had with the model loaded.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch

from tandem.core.types import Item, Priority
from tandem.csanmt.configuration import CsanmtConfig
from tandem.csanmt.constraints import PrefixIndex
from tandem.csanmt.decoding import DecodingOptions
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.csanmt.packing import pack_model
from tandem.nn.precision import Precision

LIMITS = EngineLimits(segments=32, tokens=4096, source_tokens=1024)
SIZES = {
    "hidden_size": 256, "filter_size": 512, "num_heads": 4, "num_encoder_layers": 1, "num_decoder_layers": 3,
    "num_semantic_encoder_layers": 1, "src_vocab_size": 3000, "trg_vocab_size": 3000,
}  # fmt: skip
STEPS = 64
WAVES = ((32, 127), (31, 6), (1, 1000), (4, 900), (16, 250), (32, 20), (3, 1000))  # items, tokens of each


def build() -> TranslationEngine:
    torch.manual_seed(1)
    model = CsanmtForConditionalGeneration(CsanmtConfig(**SIZES)).eval()
    pack_model(model, Precision.FLOAT32, model.device)
    options = DecodingOptions(max_target_tokens=STEPS)
    return TranslationEngine(model, prefix_index=lambda: PrefixIndex([], 0), options=options, limits=LIMITS)


def admit_all(engine: TranslationEngine, items: list[Item]) -> None:
    """Let items in as the engine's room allows, stepping while there is none, as the scheduler would."""
    while items:
        room = engine.room(items[0].priority)
        if room.segments < 1 or room.tokens < items[0].length:
            engine.step(Priority.BULK)
            continue
        count = min(len(items), room.segments, max(room.tokens // items[0].length, 1))
        engine.admit(items[:count])
        items = items[count:]
        engine.step(Priority.BULK)


def run_waves(engine: TranslationEngine) -> None:
    for number, (count, length) in enumerate(WAVES * 2):
        priority = Priority(number % 2)
        admit_all(engine, [Item((5 + number,) * length, priority=priority) for _ in range(count)])
    while engine.live():
        engine.step(Priority.BULK)


def memory_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def main() -> None:
    engine = build()
    engine.admit([Item((5,) * 8)])
    for _ in range(3):
        engine.step(Priority.BULK)  # libraries set themselves up
    engine.reset()
    before = memory_bytes("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts here
    run_waves(engine)
    print(json.dumps({**asdict(engine.memory()), "grown": memory_bytes("VmHWM:") - before}))


if __name__ == "__main__":
    main()
