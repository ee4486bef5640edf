"""The structure of a text's lines: fences, rules, timecodes, bullets, headings, tables. None of it is language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tandem.text.segmentation import split_lines

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*\Z")
_KEPT_LINE = re.compile(
    r"\s*+(?:(?:[-*_=~#+]\s?){3,}|\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)++\|?|\S*\d:\d\d(?::\d\d)?[.,]\d{1,3}\s*-->.*|WEBVTT.*"
    r"|\[[^\]\n]{1,80}\]:\s*\S.*|\$\$|---)\s*\Z"
)
_PREFIX = re.compile(
    r"\s*+(?:>\s*+)*+(?:#{1,6}\s+|(?:[-*+•·▪‣◦○●■□◆◇▶►–—]|\(\d{1,3}\)|\d{1,3}[.)]|[a-zA-Z]\))\s+(?:\[[ xX]\]\s+)?"
    r"|(?P<chinese>\d{1,3}[、．]|（\d{1,3}）|[①-⑳]\s*))?"
)
_PIPE = re.compile(r"(?<!\\)\|")
_IS_TABLE = re.compile(r"\s*+\||[^|]*+\s\|\s")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:[^\n]*\n){0,200}?---[ \t]*(?=\r?\n|\Z)")
_MATH = "$$"


@dataclass(frozen=True, slots=True)
class Field:
    """A stretch of a line that is translated by itself: the line without its prefix, or a cell of a table.

    Attributes:
        start: Offset in the text.
        end: Offset behind it.
        prefix: What the target has for a Chinese list number before it; "" where the prefix stays as it is.
    """

    start: int
    end: int
    prefix: str = ""


def find_fields(text: str) -> Iterator[Field]:
    """Yield the stretches of a text that may hold language, in order; all between them is kept as it is."""
    front = _FRONT_MATTER.match(text)
    fence = ""
    for start, end in split_lines(text):
        if front and start < front.end():
            continue
        line = text[start:end]
        opening = _FENCE.match(line)
        if fence:
            fence = "" if _closes(fence, line) else fence
        elif opening and _is_closed(text, end, opening[1]):
            fence = opening[1]
        elif opening is None and not _KEPT_LINE.match(line):
            yield from _split_line(text, start, end)


def _split_line(text: str, start: int, end: int) -> Iterator[Field]:
    prefix = _PREFIX.match(text, start, end)
    at, shown = start, ""
    if prefix:
        at = prefix.end()
        if prefix["chinese"]:
            at, shown = prefix.start("chinese"), _english_number(prefix["chinese"])
    if _IS_TABLE.match(text, at, end):
        for pipe in _PIPE.finditer(text, at, end):
            if pipe.start() > at:
                yield Field(at, pipe.start())
            at = pipe.end()
    if at < end:
        yield Field(at, end, shown)


def _english_number(prefix: str) -> str:
    digits = prefix.strip("、．（） ")
    return (
        f"({digits}) "
        if prefix.startswith("（")
        else f"{digits}. "
        if digits.isdigit() and digits.isascii()
        else prefix
    )


def _closes(fence: str, line: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])


def _is_closed(text: str, at: int, fence: str) -> bool:
    return any(_closes(fence, line) for line in text[at:].splitlines()[1:])
