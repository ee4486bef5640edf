"""Our translator on a model with random weights, token ids in and out, searches of a fixed length."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.forced import Forced, forcing, without_semantic_encoder
from benchmarks.ours import NoSemanticEncoder, build_translator, load_for_worker, translate
from benchmarks.protocol import serve
from tandem.csanmt.live import length_penalty


def _build() -> dict[str, Callable[..., Any]]:
    ours = load_for_worker()
    model = ours.model
    encoders = {True: model.semantic_encoder, False: NoSemanticEncoder()}
    with forcing(Forced.ANCESTORS):
        forced = build_translator(ours.model, ours.precision, ours.kernels)
    with forcing(Forced.LENGTH):
        free = build_translator(ours.model, ours.precision, ours.kernels)

    def run(sources: list[list[int]], semantic: bool) -> int:
        model.semantic_encoder = encoders[semantic]  # type: ignore[assignment]
        with nullcontext() if semantic else without_semantic_encoder():
            return sum(len(best.ids) for best in translate(forced, sources))

    def search(sources: list[list[int]]) -> list[tuple[list[int], float]]:
        """Return the best target of each source, ancestors as they come, and its log-prob."""
        penalty = float(length_penalty(torch.tensor(float(model.config.max_decoded_trg_len)), model.config.lp_rate))
        return [(list(best.ids), best.score * penalty) for best in translate(free, sources)]

    @torch.inference_mode()
    def score(sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """Return the log-probs of given targets of one length, end mark included."""
        labels = F.pad(torch.tensor(targets), (0, 1))
        log_probs = model(torch.tensor(sources), labels=labels).logits.log_softmax(-1)
        scores: list[list[float]] = log_probs.gather(-1, labels[..., None])[..., 0].tolist()
        return scores

    return {"run": run, "search": search, "score": score}


if __name__ == "__main__":
    serve(_build)
