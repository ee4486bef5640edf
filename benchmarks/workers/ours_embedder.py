"""Our embedder, texts in and vectors out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.ours import CPU, embed
from benchmarks.protocol import serve
from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("precision", type=Precision)
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    embedder = load_embedder(arguments.model, arguments.precision, CPU)
    engine = embedder.engine()

    def vectors(texts: list[str]) -> list[Any]:
        return embed(engine, [text.ids for text in embedder.tokenizer.encode_many(texts)], engine.limits.tokens)

    def run(requests: list[list[str]]) -> int:
        return sum(len(vectors(request)) for request in requests)

    def encode(texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in vectors(texts)]

    return {"run": run, "encode": encode}


if __name__ == "__main__":
    serve(_build)
