"""A text as lines, fields and sentences: offsets only, so that whatever lies between them is kept as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tandem.text.lengths import split_long
from tandem.text.scripts import has_letter
from tandem.text.sentences import split_sentences
from tandem.text.spans import Kind, Span, SpanIndex

LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# White space within a line that is layout, not the space between two words.
_GAP = re.compile(r"[^\S\n]*\t[^\S\n]*|[^\S\n]{2,}|[\u3000\u2000-\u200a\x1f]")
_MOST_SPANS = 12  # of one segment; more would leave no sentence to translate
_UNSEEN = frozenset({Kind.OPEN, Kind.CLOSE, Kind.INVISIBLE, Kind.TEXT})  # by the model, as a rule
_STAND_IN = "X1"


@dataclass(frozen=True, slots=True)
class Limit:
    """How much the model takes at once.

    Attributes:
        count_tokens: Returns the source tokens of a text.
        max_tokens: Of one segment.
    """

    count_tokens: Callable[[str], int]
    max_tokens: int


def split_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of every line, without what ends it."""
    start = 0
    for match in LINE_END.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def split_fields(text: str, start: int, end: int, spans: SpanIndex) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a line that white space wider than one space divides, trimmed; none is blank.

    Args:
        text: The text.
        start: Offset of the line.
        end: Offset behind it.
        spans: Spans of the line; white space inside them divides nothing.
    """
    at = start
    for match in _GAP.finditer(text, start, end):
        if spans.touches(match.start(), match.end()):
            continue
        yield from _trimmed(text, at, match.start())
        at = match.end()
    yield from _trimmed(text, at, end)


def split_segments(
    text: str, where: tuple[int, int], spans: Sequence[Span], limit: Limit
) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and the sentence's number for the sentences of a field, those over the limit in parts.

    Args:
        text: The text.
        where: Start and end of the field.
        spans: Spans of the field in order.
        limit: How much the model takes at once.
    """
    start = where[0]
    field = text[start : where[1]]
    shifted = [Span(span.start - start, span.end - start, span.kind) for span in spans]
    index = SpanIndex(shifted)

    def fits(part_start: int, part_end: int) -> bool:
        inside = index.within(part_start, part_end)
        if sum(span.kind not in _UNSEEN for span in inside) > _MOST_SPANS:
            return not _has_words(field, part_start, part_end, inside)
        return is_within(mask_spans(field, part_start, part_end, index), limit)

    for number, sentence in enumerate(split_sentences(field, shifted)):
        for part_start, part_end in split_long(field, *sentence, shifted, fits):
            yield start + part_start, start + part_end, number


def _has_words(text: str, start: int, end: int, spans: Sequence[Span]) -> bool:
    """Say whether there is a letter between the spans of a stretch."""
    at = start
    for span in spans:
        if has_letter(text[at : span.start]):
            return True
        at = span.end
    return has_letter(text[at:end])


def is_within(text: str, limit: Limit) -> bool:
    """Say whether a text fits; only one that might not is tokenised."""
    # A character is one subword at most; those that Moses escapes, or normalises to several, are five.
    most = len(text) + 4 * sum(map(text.count, "&<>'\"[]|…"))
    return most <= limit.max_tokens or limit.count_tokens(text) <= limit.max_tokens


def mask_spans(text: str, start: int, end: int, spans: SpanIndex) -> str:
    """Return a stretch of a text as long, roughly, as the model will see it."""
    parts: list[str] = []
    at = start
    for span in spans.within(start, end):
        if span.kind in (Kind.NUMBER, Kind.NAME):
            continue
        parts += (text[at : span.start], "" if span.kind in _UNSEEN else _STAND_IN)
        at = span.end
    return "".join(parts) + text[at:end]


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
