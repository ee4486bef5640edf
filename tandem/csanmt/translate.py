"""Translate lines as the official pipeline does: `python -m tandem.csanmt.translate MODEL_DIR < lines > lines`.

Nothing is added to the official text handling here; the service does more. This is where parity is measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import torch

from tandem.core.errors import TandemError
from tandem.core.types import Item, Priority
from tandem.csanmt.backend import make_kernels
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.packing import pack_model
from tandem.csanmt.tokenizer import Tokenizer
from tandem.nn.precision import Precision, check_precision


class LineTranslator:
    """A model and its text handling, without a service around it.

    Args:
        model_dir: A ModelScope directory or a converted one.
        precision: What to compute in.
        device: Where.

    Raises:
        ModelError: The directory is not a complete model.
        SettingsError: The device cannot compute in that precision.
    """

    def __init__(
        self, model_dir: Path, precision: Precision = Precision.FLOAT32, device: torch.device | None = None
    ) -> None:
        """Load the model."""
        device = device or torch.device("cpu")
        check_precision(precision, device)
        model = load_model(model_dir).to(device)
        config = model.config
        limits = EngineLimits(segments=1 << 30, tokens=1 << 30)
        kernels = make_kernels(model, precision, limits.source_tokens)
        pack_model(model, precision, device)
        self.tokenizer = Tokenizer(model_dir, config)
        self.engine = TranslationEngine(
            model,
            prefix_index=lambda: self.tokenizer.prefix_index,
            options=DecodingOptions(config.beam_size, config.lp_rate, config.max_decoded_trg_len),
            limits=limits,
            precision=precision,
            precise=None if precision is Precision.FLOAT32 else lambda: load_model(model_dir).to(device),
            kernels=kernels,
        )

    def translate(self, lines: Iterable[str], batch: int = 32) -> Iterator[str]:
        """Yield the translation of each line in order; a blank line stays blank.

        Args:
            lines: Sentences, one a line, with or without line ends.
            batch: Lines computed together.

        Raises:
            TandemError: A line could not be translated.
        """
        remaining = iter(lines)
        while chunk := list(islice(remaining, batch)):
            yield from self._translate_together(chunk)

    def _translate_together(self, lines: list[str]) -> list[str]:
        items = [Item(self.tokenizer.encode(line)) for line in lines]
        finished = self.engine.admit([item for item in items if item.ids])
        while self.engine.live():
            finished += self.engine.step(Priority.BULK)
        texts = dict.fromkeys(map(id, items), "")
        for done in finished:
            if done.error is not None:
                raise done.error
            texts[id(done.item)] = self.tokenizer.decode(done.result[0].ids if done.result else ())
        return [texts[id(item)] for item in items]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tandem.csanmt.translate", description=__doc__)
    parser.add_argument("model_dir", type=Path, help="a ModelScope directory or a converted one")
    parser.add_argument("--precision", type=Precision, choices=list(Precision), default=Precision.FLOAT32)
    parser.add_argument("--batch", type=int, default=32, help="lines computed together")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"), help="cpu or cuda")
    options = parser.parse_args(arguments)
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    try:
        translator = LineTranslator(options.model_dir, options.precision, options.device)
        for text in translator.translate((line.rstrip("\r\n") for line in sys.stdin), max(options.batch, 1)):
            print(text, flush=True)
    except TandemError as error:
        print(f"translate: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
