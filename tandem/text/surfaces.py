"""Finding in a translation what the model was shown for a span: a number, a name, a stand-in."""

from __future__ import annotations

import re
from functools import lru_cache

from tandem.text.scripts import HAN

_ENGLISH_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_CHINESE_NUMBERS = ("零", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_MEASURES = "个条次份种位名天年月台张件项页行步秒分小本只篇组段部层级批章节"


def find_surface(output: str, surface: str, count: int) -> list[tuple[int, int]]:
    """Return where a surface stands in a translation as a token of its own, in order.

    Blanks that a tokenizer put between its characters, and other capitals, are overlooked; so is a small number
    written as a word, when just as many are wanted.

    Args:
        output: A cleaned translation.
        surface: What the model was shown.
        count: How many are wanted.
    """
    found = _find_exact(output, surface)
    if len(found) == count:
        return found
    loose = [match.span() for match in _loose_pattern(surface).finditer(output)]
    if len(loose) == count or not surface.isdigit() or int(surface) > 12 or loose:
        return loose
    return [match.span() for match in _word_pattern(int(surface)).finditer(output)]


def _find_exact(output: str, surface: str) -> list[tuple[int, int]]:
    found = []
    at = output.find(surface)
    while at >= 0:
        end = at + len(surface)
        if _is_token(output, at, end):
            found.append((at, end))
        at = output.find(surface, end)
    return found


def _is_token(output: str, start: int, end: int) -> bool:
    """Say whether neither end of a stretch runs on into a longer word or number."""
    before, after = output[start - 1 : start], output[end : end + 1]
    if (_is_word(before) and _is_word(output[start])) or (_is_word(after) and _is_word(output[end - 1])):
        return False
    is_longer = before in (".", ",") and output[start].isdigit() and output[start - 2 : start - 1].isdigit()
    goes_on = after in (".", ",") and output[end - 1].isdigit() and output[end + 1 : end + 2].isdigit()
    return not (is_longer or goes_on)


def _is_word(character: str) -> bool:
    return character.isascii() and character.isalnum()


@lru_cache(maxsize=4096)
def _loose_pattern(surface: str) -> re.Pattern[str]:
    parts = []
    for character in surface:
        if character.isspace():
            parts.append(r"\s*")
        elif character.isalnum():
            parts.append(character)
        else:
            parts.append(rf"\s?{re.escape(character)}\s?")
    return re.compile(
        rf"(?<![A-Za-z0-9])(?<!\d[.,])(?:{''.join(parts).strip()})(?![A-Za-z0-9])(?![.,]\d)", re.IGNORECASE
    )


@lru_cache(maxsize=64)
def _word_pattern(number: int) -> re.Pattern[str]:
    chinese = _CHINESE_NUMBERS[number]
    either = f"[{chinese}两]" if number == 2 else chinese
    chinese_word = rf"(?<![一二三四五六七八九十百千万]){either}(?=[{_MEASURES}])|(?<=[{HAN}] ){either}(?= [{HAN}])"
    return re.compile(rf"\b{_ENGLISH_NUMBERS[number]}\b|{chinese_word}", re.IGNORECASE)
