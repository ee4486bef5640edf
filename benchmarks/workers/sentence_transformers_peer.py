"""sentence-transformers, texts in and vectors out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from benchmarks.protocol import serve


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    dtypes = ("float32", "float16", "bfloat16", "default")
    parser.add_argument("dtype", choices=dtypes, help="default: as the package loads it")
    parser.add_argument("threads", type=int)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    options = {} if arguments.dtype == "default" else {"dtype": getattr(torch, arguments.dtype)}
    model = SentenceTransformer(arguments.model, device=arguments.device, model_kwargs=options, local_files_only=True)

    def run(requests: list[list[str]]) -> int:
        return sum(len(model.encode(request, show_progress_bar=False)) for request in requests)

    def encode(texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = model.encode(texts, show_progress_bar=False).tolist()
        return vectors

    def precision() -> str:
        return str(next(model.parameters()).dtype).removeprefix("torch.")

    return {"run": run, "encode": encode, "precision": precision}


if __name__ == "__main__":
    serve(_build)
