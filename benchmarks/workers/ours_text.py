"""Our translator, text in and text out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.ours import build_translator, load_for_worker, translate
from benchmarks.protocol import serve
from tandem.csanmt.tokenizer import Tokenizer


def _build() -> dict[str, Callable[..., Any]]:
    ours = load_for_worker()
    tokenizer = Tokenizer(ours.model_dir, ours.model.config)
    engine = build_translator(ours.model, ours.precision, ours.kernels)

    def run(requests: list[list[str]]) -> list[list[str]]:
        return [
            [tokenizer.decode(best.ids) for best in translate(engine, [tokenizer.encode(text) for text in request])]
            for request in requests
        ]

    return {"run": run}


if __name__ == "__main__":
    serve(_build)
