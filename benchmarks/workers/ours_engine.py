"""Our translation engine alone: token ids in, hypotheses out."""

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
    known: dict[str, tuple[int, ...]] = {}  # tokenised in the first round, which does not count

    def run(texts: list[str], size: int) -> int:
        known.update((text, tuple(tokenizer.encode(text))) for text in texts if text not in known)
        sources = [known[text] for text in texts]
        return sum(len(translate(engine, sources[at : at + size])) for at in range(0, len(sources), size))

    return {"run": run}


if __name__ == "__main__":
    serve(_build)
