"""The official TensorFlow pipeline, text in and text out; it takes several sentences joined by a mark."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.protocol import serve

_MARK = "<SENT_SPLIT>"


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    arguments = parser.parse_args()
    from modelscope.pipelines import pipeline

    translator: Any = pipeline(task="translation", model=arguments.model, device="cpu")

    def run(requests: list[list[str]]) -> list[list[str]]:
        return [translator(input=_MARK.join(request))["translation"].split(_MARK) for request in requests]

    return {"run": run}


if __name__ == "__main__":
    serve(_build)
