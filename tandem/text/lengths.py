"""Cutting a sentence that is too long for the model at the best mark near its middle, until every part fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tandem.text.scripts import HAN
from tandem.text.spans import Span, SpanIndex

Fits = Callable[[int, int], bool]
_ZONE = 0.25  # the outer quarters of a stretch are no place to cut it, while there is another

_LATIN_LINKS = "and|or|but|which|that|because|if|when|while|with|for|et|ou|mais|qui|y|o|pero|que"
_HAN_LINKS = "并且|或者|以及|但是|然后|因为|所以|如果|而且|[并或但和与及而则]"

# What a sentence may be cut behind, best first; a cut is the end of the match.
_PLACES = (
    re.compile(r"[；;：。！？!?][”’」』）)]*|[:.](?=\s)|[—–]+(?=\s)"),
    re.compile(r"，[”’」』）)]*|,(?=[^\d])[\"'”’)]*"),
    re.compile(rf"、|\s(?=(?:{_LATIN_LINKS}) )|[）)】」”](?!\W)"),
    re.compile(rf"\s|(?<=[{HAN}])(?=(?:{_HAN_LINKS}))|(?<=[{HAN}][的了后时])(?=[{HAN}])"),
    re.compile(rf"(?<=[{HAN}])(?=[{HAN}])"),
    re.compile(r"(?<!^)(?=[\s\S])"),
)


def split_long(text: str, start: int, end: int, spans: Sequence[Span], fits: Fits) -> list[tuple[int, int]]:
    """Cut a stretch of a text until every part fits; a stretch that fits is returned as it is.

    Args:
        text: The text.
        start: Offset of the stretch.
        end: Offset behind it.
        spans: Spans of the text in order; none is cut, so a part may still be too long.
        fits: Says whether the model takes the stretch between two offsets.
    """
    if fits(start, end):
        return [(start, end)]
    cut = _find_cut(text, start, end, spans)
    if cut is None:
        return [(start, end)]
    left, right = _trim(text, start, cut), _trim(text, cut, end)
    parts = [part for part in (left, right) if part[1] > part[0]]
    return [piece for part in parts for piece in split_long(text, *part, spans, fits)]


def _find_cut(text: str, start: int, end: int, spans: Sequence[Span]) -> int | None:
    """Return the offset of the best cut, nearest the middle; None when the stretch is one span or one character."""
    middle = (start + end) / 2
    margin = (end - start) * _ZONE
    kept = SpanIndex(spans)
    fallback = None
    for places in _PLACES:
        cuts = [m.end() for m in places.finditer(text, start, end) if start < m.end() < end]
        cuts = [cut for cut in cuts if not kept.splits(cut)]
        if not cuts:
            continue
        best = min(cuts, key=lambda cut: abs(cut - middle))
        if abs(best - middle) <= margin:
            return best
        fallback = best if fallback is None else fallback
    return fallback


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
