"""Our translator on a model with random weights, on a GPU: token ids in and out, searches of a fixed length."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.forced import Forced, forcing
from benchmarks.gpu_recording import record_steps
from benchmarks.ours import NoSemanticEncoder, build_translator, load_packed, translate
from benchmarks.protocol import serve
from tandem.csanmt.engine import EngineLimits
from tandem.nn.precision import Precision

_SOURCE_TOKENS = 32  # what a row may take


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("precision", type=Precision)
    parser.add_argument("device", type=torch.device)
    parser.add_argument("rows", type=int, help="sentences translated together at most")
    parser.add_argument("--record", action="store_true", help="replay recorded steps")
    arguments = parser.parse_args()
    model = load_packed(arguments.model, arguments.precision, arguments.device)
    model.semantic_encoder = NoSemanticEncoder()  # type: ignore[assignment]
    limits = EngineLimits(arguments.rows, arguments.rows * _SOURCE_TOKENS, _SOURCE_TOKENS)
    with forcing(Forced.ANCESTORS):
        engine = build_translator(model, arguments.precision, limits=limits)
    if arguments.record:
        record_steps(engine, arguments.device)

    def run(sources: list[list[int]]) -> int:
        return sum(len(best.ids) for best in translate(engine, sources))

    @torch.inference_mode()
    def score(sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """Return the log-probs of given targets of one length, end mark included."""
        source, labels = (torch.tensor(rows, device=arguments.device) for rows in (sources, targets))
        labels = F.pad(labels, (0, 1))
        log_probs = model(source, labels=labels).logits.log_softmax(-1)
        scores: list[list[float]] = log_probs.gather(-1, labels[..., None])[..., 0].tolist()
        return scores

    return {"run": run, "score": score}


if __name__ == "__main__":
    serve(_build)
