"""Our embedder, texts in and vectors out; and plain matrix products in the same process, as a yardstick."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.ours import CPU, embed
from benchmarks.protocol import serve
from model_loader import load_embedding_model
from tandem.core.settings import Settings


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("precision", help="auto chooses as the service does")
    parser.add_argument("threads", type=int)
    parser.add_argument("cache_dir", type=Path, help="where the choice of auto is kept")
    parser.add_argument("--device", type=torch.device, default=CPU)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = Settings(precision=arguments.precision, cache_dir=arguments.cache_dir)
    embedder = load_embedding_model(str(arguments.model), settings, arguments.device)
    engine = embedder.engine()

    def vectors(texts: list[str]) -> list[Any]:
        return embed(engine, [text.ids for text in embedder.tokenizer.encode_many(texts)], engine.limits.tokens)

    def run(requests: list[list[str]]) -> int:
        return sum(len(vectors(request)) for request in requests)

    def encode(texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in vectors(texts)]

    def precision() -> str:
        return embedder.precision.value

    return {"run": run, "encode": encode, "precision": precision, "multiply": multiply}


def multiply(dtype: str, size: int, times: int) -> float:
    """Multiply square matrices; returns a value of the last product, so that none can be left out."""
    left, right, out = _matrices(dtype, size)
    for _ in range(times):
        torch.matmul(left, right, out=out)
    return float(out[0, 0])


@cache
def _matrices(dtype: str, size: int) -> tuple[Tensor, Tensor, Tensor]:
    made = torch.randn(3, size, size, generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    return made[0], made[1], made[2]


if __name__ == "__main__":
    serve(_build)
