"""Question: how much of what the engine gains from 32 sentences at once does the service reach with 32 clients?"""

from __future__ import annotations

import urllib.request
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.harness import Settings, Worker
from benchmarks.made_up import LARGE_SIZES, once, write_official_twin
from benchmarks.service_answers import Answer, answer
from benchmarks.service_clients import CLIENTS, ROOT, Conditions, load, made_up_sentences, serve

_DEMO = ROOT / "models" / "demo-zh2en"
_CUT_SIZES = {**LARGE_SIZES, "num_encoder_layers": 4, "num_decoder_layers": 2}
_SENTENCES = 128
_SEED = 32


def measure_share(conditions: Conditions) -> list[Answer]:
    """Measure the demo model, and random weights in the released zh2en's proportions with fewer layers."""
    cut = once(conditions.work_dir / "csanmt-large-4-2", lambda folder: write_official_twin(folder, _DEMO, _CUT_SIZES))
    return [
        _measure_model(conditions, "demo-zh2en", "demo-zh2en,demo-en2zh", _DEMO),
        _measure_model(conditions, "1024/4096/16, 4-2 layers, random", str(cut), cut),
    ]


def _measure_model(conditions: Conditions, name: str, setting: str, model_dir: Path) -> Answer:
    """Alternate the service and the engine, each with 32 sentences at once and one at a time."""
    settings = Settings(
        rounds=conditions.rounds, threads=conditions.threads, peers_dir=conditions.work_dir,
        work_dir=conditions.work_dir, sizes=(CLIENTS, 1),
    )  # fmt: skip
    texts = list(islice(made_up_sentences(_SEED), _SENTENCES))
    shares, figures = [], {}
    with ExitStack() as stack:
        engine = stack.enter_context(Worker("ours_engine", [model_dir, "float32", conditions.threads], settings))
        server = partial(serve, TRANSLATION_MODEL=setting, THREADS=str(conditions.threads))
        ports = [stack.enter_context(server(MAX_BATCH_SIZE=str(size))) for size in settings.sizes]
        for number in range(conditions.rounds + 1):
            seconds = conditions.seconds if number else 2.0
            served = [_load(port, seconds, texts) for port in ports]
            computed = [_SENTENCES / engine.time_ms("run", texts=texts, size=size) * 1000 for size in settings.sizes]
            if number:
                shares.append((served[0] / served[1]) / (computed[0] / computed[1]))
                names = ("service_32_per_s", "service_1_per_s", "engine_32_per_s", "engine_1_per_s")
                figures = dict(zip(names, (round(rate, 1) for rate in (*served, *computed)), strict=True))
    return answer("share", f"{name}: the service's gain over the engine's", shares, ">= 0.85", figures)


def _load(port: int, seconds: float, texts: list[str]) -> float:
    """Load a server; return the items a second that its engine was given.

    They are not its requests: what random weights say is tried again in pieces, many times for each sentence.
    """
    before = _admitted(port)
    run = load(port, "/translate", seconds, texts=texts, is_watched=False)
    return (_admitted(port) - before) / run.seconds


def _admitted(port: int) -> float:
    """Return how many items the server's engines were given since its start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("tandem_batch_items_sum"))
