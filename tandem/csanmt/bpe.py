"""Byte-pair encoding as subword-nmt does it, with a bounded cache.

Source: Sennrich et al. 2016; codes files of version 0.2.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from tandem.core.errors import ModelError

CONTINUATION = "@@"
_END = "</w>"
_CACHED_WORDS = 1 << 16


class BytePairEncoder:
    """Splits words into subwords.

    Args:
        codes_path: A subword-nmt codes file: a version line, then a pair of symbols a line, the earliest learnt first.

    Raises:
        ModelError: The file is missing or not of version 0.2.
    """

    def __init__(self, codes_path: Path) -> None:
        """Read the codes."""
        try:
            lines = codes_path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{codes_path} cannot be read: {error}") from error
        if not lines[0].startswith("#version: 0.2"):
            raise ModelError(f"{codes_path} does not begin with '#version: 0.2': not subword-nmt codes")
        self._ranks: dict[tuple[str, ...], int] = {}
        for rank, line in enumerate(lines[1:]):
            pair = tuple(line.strip("\r\n ").split(" "))
            if len(pair) == 2:
                self._ranks.setdefault(pair, rank)
        self._split_cached = lru_cache(_CACHED_WORDS)(self._split)

    def split_line(self, line: str) -> list[str]:
        """Split the words of a line, separated by spaces, into subwords; all but a word's last end with "@@"."""
        pieces = (piece for word in line.split(" ") if word for piece in self._split_cached(word))
        return " ".join(pieces).split()

    def _split(self, word: str) -> tuple[str, ...]:
        symbols = [*word[:-1], word[-1] + _END]
        while len(symbols) > 1:
            best = min(pairwise(symbols), key=lambda pair: self._ranks.get(pair, len(self._ranks) + 1))
            if best not in self._ranks:
                break
            symbols = _merge(symbols, best)
        symbols[-1] = symbols[-1].removesuffix(_END)
        return (*(symbol + CONTINUATION for symbol in symbols[:-1] if symbol), symbols[-1])


def _merge(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    """Join every occurrence of a pair, from left to right."""
    merged: list[str] = []
    at = 0
    while at < len(symbols):
        if at + 1 < len(symbols) and symbols[at] == pair[0] and symbols[at + 1] == pair[1]:
            merged.append(symbols[at] + symbols[at + 1])
            at += 2
        else:
            merged.append(symbols[at])
            at += 1
    return merged
