"""Our translator, text in and text out."""

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

    def run(requests: list[list[str]]) -> list[list[str]]:
        return [
            [tokenizer.decode(best.ids) for best in translate(engine, [tokenizer.encode(text) for text in request])]
            for request in requests
        ]

    return {"run": run}


if __name__ == "__main__":
    serve(_build)
