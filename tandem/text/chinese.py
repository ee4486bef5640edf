"""Simplified and traditional characters, by OpenCC.

The package is OpenCC's own binding: its dictionaries know words (軟體 is 软件), not characters alone, and a sentence
takes a few microseconds.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import opencc

from tandem.text.languages import SIMPLIFIED, TRADITIONAL
from tandem.text.scripts import has_han

# Taiwan's words become the mainland's only where a text is in traditional characters: there 文件 is a document.
_TO_SIMPLIFIED = "tw2sp"
_TO_TRADITIONAL = "s2twp"
_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def _converter(name: str) -> Any:
    return opencc.OpenCC(name)


def simplify(text: str) -> str:
    """Return a text with traditional characters and Taiwan's words in their simplified forms."""
    if not has_han(text) or not is_traditional(text):
        return text
    return _convert(_TO_SIMPLIFIED, text)


def to_simplified(character: str) -> str:
    """Return the simplified form of a character."""
    return _convert("t2s", character)


def traditionalize(text: str) -> str:
    """Return a simplified text in traditional characters and Taiwan's words."""
    return _convert(_TO_TRADITIONAL, text) if has_han(text) else text


def is_traditional(text: str) -> bool:
    """Say whether a text holds characters that simplified Chinese writes otherwise."""
    return _convert("t2s", text) != text


def chinese_script(text: str) -> str:
    """Return "Hans" or "Hant" by the characters that only one of them has; "" where none tells."""
    simplified = _count_changes(text, _convert("t2s", text))
    traditional = _count_changes(text, _convert("s2t", text))
    if simplified == traditional:
        return ""
    return TRADITIONAL if simplified > traditional else SIMPLIFIED


def _count_changes(before: str, after: str) -> int:
    return sum(a != b for a, b in zip(before, after, strict=False))


def _convert(name: str, text: str) -> str:
    """Convert by one of OpenCC's configurations; lone surrogates, which it cannot read, stay where they are."""
    convert = _converter(name).convert
    if text.isascii():
        return text
    if _SURROGATE.search(text) is None:
        return str(convert(text))
    parts = _SURROGATE.split(text)
    marks = [*_SURROGATE.findall(text), ""]
    return "".join(str(convert(part)) + mark for part, mark in zip(parts, marks, strict=True))
