"""Inline markup: which marks open, which close, and which belong together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tandem.text.scripts import HAN
from tandem.text.spans import Kind, Span, SpanIndex

_LINK = re.compile(
    r"(?<!\\)(?P<open>!?\[)[^\[\]\n]{1,300}+"
    r"(?P<close>\]\([^()\s]{0,500}+(?:\([^()\s]{0,100}+\)[^()\s]{0,100}+)?(?:\s+(?:\"[^\"\n]{0,200}+\"|'[^'\n]{0,200}+'))?\)"
    r"|\]\[[^\[\]\n]{0,100}+\])"
)  # fmt: skip
_EMPHASIS = re.compile(
    r"(?<![\\*A-Za-z0-9_~])(?P<open>\*{1,3}|_{1,3}|~~)(?=[^\s*_~])(?P<inner>[^*_~\n]{1,400}+)(?<!\s)(?P<close>(?P=open))(?![*A-Za-z0-9_~])"
)  # fmt: skip
_OF_WORDS = re.compile(rf"[\s{HAN}]")
_DEEPEST = 16  # elements within elements; deeper ones are marks on their own
_TAG_NAME = re.compile(r"</?([A-Za-z][\w:.-]*)")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_SHOUTED = re.compile(r"<[A-Z]+_[A-Z_]+>")  # <SENT_SPLIT> is no element


def find_markdown(text: str, marked: Sequence[Span]) -> list[Span]:
    """Return the opening and closing marks of Markdown's links and emphasis together with the spans they leave.

    Args:
        text: One line.
        marked: Its spans that are certain; code stays code, and no emphasis begins inside an address.
    """
    if "](" not in text and "][" not in text and not any(mark in text for mark in "*_~"):
        return list(marked)
    code = [span for span in marked if span.kind is Kind.CODE]
    marks = _flatten(_pairs(_LINK, text), code)
    spans = _override(marked, marks)
    emphasis = (pair for pair in _pairs(_EMPHASIS, text) if not _is_identifier(text, pair))
    return _override(spans, _flatten(emphasis, spans))


def classify_tag(text: str, span: Span) -> Span:
    """Return a tag's span with the kind that says whether it opens, closes or stands alone."""
    raw = text[span.start : span.end]
    name = _TAG_NAME.match(raw)
    if name is None or raw.endswith("/>") or name[1].lower() in _VOID:
        return span
    if _SHOUTED.fullmatch(raw):
        return Span(span.start, span.end, Kind.MARKER)
    return Span(span.start, span.end, Kind.CLOSE if raw[1] == "/" else Kind.OPEN)


def pair_marks(text: str, spans: Sequence[Span]) -> dict[int, int]:
    """Return, for every opening mark that has one, the index of its closing mark among the spans; properly nested."""
    pairs: dict[int, int] = {}
    open_marks: list[tuple[str, int]] = []
    counts: Counter[str] = Counter()
    for index, span in enumerate(spans):
        if span.kind not in (Kind.OPEN, Kind.CLOSE):
            continue
        key = _key(text, span)
        if span.kind is Kind.OPEN:
            open_marks.append((key, index))
            counts[key] += 1
        while span.kind is Kind.CLOSE and counts[key]:
            opened, start = open_marks.pop()
            counts[opened] -= 1
            if opened == key:
                if len(open_marks) < _DEEPEST:
                    pairs[start] = index
                break
    return pairs


def _key(text: str, span: Span) -> str:
    """Return what an opening and its closing mark have in common."""
    raw = text[span.start : span.end]
    tag = _TAG_NAME.match(raw)
    if tag:
        return "<" + tag[1].lower()
    return "[" if raw[0] in "[!]" else raw


def _pairs(pattern: re.Pattern[str], text: str) -> Iterator[tuple[Span, Span]]:
    for match in pattern.finditer(text):
        yield Span(*match.span("open"), Kind.OPEN), Span(*match.span("close"), Kind.CLOSE)


def _is_identifier(text: str, pair: tuple[Span, Span]) -> bool:
    """Say whether a pair of marks is part of a name, as in __init__."""
    return text[pair[0].start] == "_" and not _OF_WORDS.search(text, pair[0].end, pair[1].start)


def _flatten(pairs: Iterable[tuple[Span, Span]], hard: Sequence[Span]) -> list[Span]:
    """Return the marks of those pairs neither of which touches a span that must stay."""
    index = SpanIndex(hard)
    return [mark for pair in pairs if not any(index.touches(m.start, m.end) for m in pair) for mark in pair]


def _override(spans: Sequence[Span], marks: Sequence[Span]) -> list[Span]:
    """Return spans and marks in order, without the spans that a mark touches."""
    index = SpanIndex(sorted(marks, key=lambda mark: mark.start))
    rest = [span for span in spans if not index.touches(span.start, span.end)]
    return sorted([*rest, *marks], key=lambda span: span.start)
