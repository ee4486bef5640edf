"""Putting translated parts of a sentence side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tandem.text.languages import is_spaceless
from tandem.text.punctuation import KEPT
from tandem.text.scripts import HAN

_WORD_END = re.compile(rf"[A-Za-z0-9\u00c0-\u024f{KEPT},;:.!?)\]\"]\Z")
_WORD_START = re.compile(rf"[A-Za-z0-9\u00c0-\u024f{KEPT}(\[]")
_CAPITALISED = re.compile(r"(?!I\b)[A-Z][a-z]*(?![A-Za-z0-9])")
_NO_BLANK = re.compile(rf"(?<=[{HAN}，。！？；：、]) +(?=[{HAN}，。！？；：、（“])")


def glue(parts: Sequence[str], target: str) -> str:
    """Return the parts of one sentence as one text, spaced as the target does; later parts begin in lower case.

    Args:
        parts: Masked translations in order.
        target: Code of the target language.
    """
    if is_spaceless(target):
        return _NO_BLANK.sub("", "".join(parts))
    text = ""
    for part in parts:
        piece = lower_first(part) if text.strip() and text.rstrip()[-1:] not in tuple(".!?") else part
        needs_space = _WORD_END.search(text) and _WORD_START.match(piece)
        text += " " * bool(needs_space) + piece
    return text


def lower_first(text: str) -> str:
    """Return a text that begins in lower case, unless its first word is a name's initials or "I"."""
    lead = len(text) - len(text.lstrip())
    if not _CAPITALISED.match(text, lead):
        return text
    return text[:lead] + text[lead].lower() + text[lead + 1 :]


def begin_with(text: str, prefix: str) -> str:
    """Return a translation that was decoded with a given beginning so that it begins with exactly that string.

    Marks and blanks of the beginning may have been changed since; its letters and digits may not.
    """
    if text.startswith(prefix):
        return text
    spelled = sum(map(str.isalnum, prefix))
    at = 0
    while spelled and at < len(text):
        spelled -= text[at].isalnum()
        at += 1
    rest = text[at:]
    if not prefix[-1:].isalnum():
        rest = rest.lstrip(" .,;:!?，。；：！？、")
    return prefix + rest
