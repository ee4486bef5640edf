"""Decoding loops: how to notice one, and what is left when it is taken out."""

from __future__ import annotations

import re
from functools import cache

from tandem.text.scripts import HAN

_RUN = 4  # times in a row that make a loop
_LONGEST_WORDS = 8
_LONGEST_CHARACTERS = 12
_HAN = re.compile(f"[{HAN}]")
_THRICE = re.compile(r"((?:[^\n]+\n){1,12}?)\1{2,}")
_STUTTER = re.compile(r"([A-Za-z]{1,6}?)\1{5,}")  # within a word: hahahahahaha
_TOKEN = re.compile(rf"[{HAN}]|[^\s{HAN}]+")


@cache
def _loop_pattern(longest: int) -> re.Pattern[str]:
    """Return what matches a run of the same one to `longest` tokens, each ended by a newline."""
    return re.compile(rf"(?<![^\n])((?:[^\n]+\n){{1,{longest}}}?)\1{{{_RUN - 1},}}")


def has_repetition_loop(source: str, target: str) -> bool:
    """Say whether a translation looks like a decoding loop: one n-gram over and over, or far longer than its source."""
    if _weight(target) > 4 * _weight(source) + 24:
        return True
    if (_has_run(target) and not _has_run(source)) or (_says_thrice(target) and not _says_thrice(source)):
        return True
    return _STUTTER.search(target) is not None and _STUTTER.search(source) is None


def collapse_loops(source: str, target: str) -> str:
    """Return a translation in which no n-gram stands more than once in a row (thrice where the source repeats too)."""
    if _STUTTER.search(source) is None:
        target = _STUTTER.sub(r"\1", target)
    keep = _RUN - 1 if _has_run(source) else 1
    pieces = [match.span() for match in _TOKEN.finditer(target)]
    tokens = "".join(target[start:end] + "\n" for start, end in pieces)
    kept: list[tuple[int, int]] = []
    at = done = 0
    pattern = _THRICE if _says_thrice(target) else _loop_pattern(_LONGEST_CHARACTERS)
    for match in pattern.finditer(tokens):
        first = at + tokens.count("\n", done, match.start())
        size, total = match[1].count("\n"), match[0].count("\n")
        kept += pieces[at : first + size * keep]
        at, done = first + total, match.end()
    kept += pieces[at:]
    return _rejoin(target, kept)


def _says_thrice(text: str) -> bool:
    """Say whether a text is one thing three times or more and nothing else."""
    return _THRICE.fullmatch("".join(token + "\n" for token in _TOKEN.findall(text.rstrip(".。!！?？")))) is not None


def _rejoin(text: str, pieces: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = None
    for start, end in pieces:
        if last is not None:
            parts.append(text[last:start] if text[last:start].isspace() or last == start else "")
            if last != start and not parts[-1]:
                parts[-1] = " " if text[last].isspace() else ""
        parts.append(text[start:end])
        last = end
    return "".join(parts)


def _has_run(text: str) -> bool:
    tokens = _TOKEN.findall(text)
    if len(tokens) < _RUN:
        return False
    longest = _LONGEST_CHARACTERS if _HAN.search(text) else _LONGEST_WORDS
    return _loop_pattern(longest).search("\n".join(tokens) + "\n") is not None


def _weight(text: str) -> float:
    """Return a length in which Chinese and English say the same: words, and two thirds for a Chinese character."""
    han = len(_HAN.findall(text))
    others = sum(max(1.0, len(token) / 12) for token in _TOKEN.findall(text)) - han
    return others + han / 1.5
