"""Sentences of natural lengths: clauses of the repository's own test lines, put together until they are long enough.

`python -m benchmarks.natural_mix` writes benchmarks/natural_mix.zh, always the same.
"""

from __future__ import annotations

import math
import random
import re
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NATURAL_MIX = ROOT / "benchmarks" / "natural_mix.zh"
MEDIAN_CHARS, SHORTEST_CHARS, LONGEST_CHARS = 18, 4, 120
_SOURCES = (
    ROOT / "benchmarks" / "sentences.zh",
    ROOT / "tests" / "golden" / "csanmt" / "demo-zh2en" / "official.zh",
)
_LINES = 2500
_SPREAD = 0.6  # standard deviation of the logarithm of a length
_SEED = 18
_TRIES = 100  # for a length; there are not many different short sentences
_WHOLE = 0.5  # how often what is left of a length is filled by one clause, where one does


def read_natural_mix() -> list[str]:
    """Return the sentences of the file."""
    return NATURAL_MIX.read_text(encoding="utf-8").splitlines()


def make_sentences(count: int = _LINES) -> list[str]:
    """Return different sentences whose lengths in characters are log-normal."""
    chance = random.Random(_SEED)
    clauses = _read_clauses()
    sentences: dict[str, None] = {}
    while len(sentences) < count:
        length = _draw_length(chance)
        tries = (_make_sentence(length, clauses, chance) for _ in range(_TRIES))
        sentences |= dict.fromkeys(list(islice((new for new in tries if new not in sentences), 1)))
    return list(sentences)


def _draw_length(chance: random.Random) -> int:
    drawn = round(chance.lognormvariate(math.log(MEDIAN_CHARS), _SPREAD))
    return min(max(drawn, SHORTEST_CHARS), LONGEST_CHARS)


def _make_sentence(length: int, clauses: list[str], chance: random.Random) -> str:
    """Put clauses together with commas and a full stop, as near below a length as they allow."""
    parts: list[str] = []
    left = length
    while not parts or left > SHORTEST_CHARS:
        fitting = [clause for clause in clauses if len(clause) < left]  # a comma or the full stop comes behind it
        whole = [clause for clause in fitting if len(clause) == left - 1]
        parts.append(chance.choice(whole if whole and chance.random() < _WHOLE else fitting))
        left -= len(parts[-1]) + 1
    return "，".join(parts) + "。"


def _read_clauses() -> list[str]:
    """Return all clauses of three characters or more, each once, in order of length."""
    lines = [line for path in _SOURCES for line in path.read_text(encoding="utf-8").splitlines()]
    pieces = {piece.strip() for line in lines for piece in re.split("[，。；！？：]", line)}
    return sorted(
        (piece for piece in pieces if len(piece) >= SHORTEST_CHARS - 1), key=lambda piece: (len(piece), piece)
    )


if __name__ == "__main__":
    NATURAL_MIX.write_text("".join(f"{sentence}\n" for sentence in make_sentences()), encoding="utf-8")
