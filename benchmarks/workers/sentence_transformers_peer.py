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
    parser.add_argument("dtype", choices=("float32", "bfloat16"))
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dtype = getattr(torch, arguments.dtype)
    model = SentenceTransformer(arguments.model, device="cpu", model_kwargs={"dtype": dtype}, local_files_only=True)

    def run(requests: list[list[str]]) -> int:
        return sum(len(model.encode(request, show_progress_bar=False)) for request in requests)

    def encode(texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = model.encode(texts, show_progress_bar=False).tolist()
        return vectors

    return {"run": run, "encode": encode}


if __name__ == "__main__":
    serve(_build)
