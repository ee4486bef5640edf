"""All that is kept within a line: spans, inline markup, the other language's words, terms of a glossary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from tandem.text.chinese import simplify, to_simplified
from tandem.text.languages import Direction, is_spaceless
from tandem.text.markup import classify_tag, find_markdown
from tandem.text.numbers import number_finder
from tandem.text.scripts import (
    ARABIC,
    CJK_MARKS,
    CYRILLIC,
    DEVANAGARI,
    GREEK,
    HAN,
    HANGUL,
    HEBREW,
    KANA,
    LATIN,
    THAI,
    has_letter,
)
from tandem.text.spans import Finder, Kind, Span, fill_gaps, find_loose, find_marked, is_plain

Knows = Callable[[str], bool]

_OTHER = KANA + HANGUL + CYRILLIC + GREEK + ARABIC + HEBREW + THAI + DEVANAGARI
_OTHER_RUN = rf"[{_OTHER}]++(?:[ -]?[{_OTHER}]++)*+"
_LATIN_RUN = rf"[{LATIN}]++(?:[.,]?[ '’&-]?[{LATIN}]++)*+"
_HAN_RUN = rf"[{HAN}]++(?:[{CJK_MARKS}0-9 ]*+[{HAN}]++)*+[。！？…”’」』）》]*+"
_QUOTED = rf'"[^"\n{HAN}]{{1,80}}"'
_IN_CHINESE = re.compile(f"(?P<FOREIGN>{_OTHER_RUN})|(?P<NAME>{_LATIN_RUN}|{_QUOTED})")
_IN_LATIN = re.compile(f"(?P<FOREIGN>{_OTHER_RUN}|{_HAN_RUN})")
_UNUSUAL = re.compile(rf"[^\x00-\x7f{CJK_MARKS}\u4e00-\u9fff]")
_NAME_PARTS = (Kind.NAME, Kind.IDENTIFIER, Kind.NUMBER)
_JOINABLE = frozenset({Kind.URL, Kind.PATH, Kind.PLACEHOLDER, Kind.IDENTIFIER, Kind.NUMBER, Kind.CODE})
_MOST_TERMS = 1_000


def find_inline(
    text: str, direction: Direction, glossary: Mapping[str, str] | None = None, fixed: Sequence[Span] | None = None
) -> list[Span]:
    """Return all that is kept in one line or block, in order, without overlap.

    Args:
        text: The line.
        direction: Decides which words are another language's and stay.
        glossary: Terms and what they are in the target language.
        fixed: Spans of a markup that was parsed elsewhere; None looks for tags and Markdown.
    """
    if is_plain(text) and not glossary and not _UNUSUAL.search(text) and fixed is None:
        spans: list[Span] = []
    else:
        spans = _find_kept(text, direction, glossary, fixed)
    foreign = _IN_CHINESE if direction.source == "zh" else _IN_LATIN
    spans = fill_gaps(text, spans, lambda *where: _find_runs(foreign, *where))
    spans = _merge_touching(spans)
    return _merge_names(text, spans) if direction.source == "zh" else spans


def find_unknown(text: str, spans: list[Span], knows: Knows) -> list[Span]:
    """Add the characters that the model's source vocabulary cannot spell; they copy themselves.

    Args:
        text: The line.
        spans: What is kept already.
        knows: Says whether every subword of a text is in the source vocabulary.
    """
    return fill_gaps(text, spans, lambda *where: _find_unknown(knows, *where))


def _find_kept(
    text: str, direction: Direction, glossary: Mapping[str, str] | None, fixed: Sequence[Span] | None
) -> list[Span]:
    if fixed is None:
        spans = [classify_tag(text, span) if span.kind is Kind.TAG else span for span in find_marked(text)]
        spans = find_markdown(text, spans)
    else:
        spans = fill_gaps(text, list(fixed), _find_marked_between)
    if glossary:
        terms = _term_finder(tuple(glossary.items())[:_MOST_TERMS], is_spaceless(direction.source))
        spans = fill_gaps(text, spans, terms)
    numbers = number_finder(direction.source, direction.target)
    if numbers:
        spans = fill_gaps(text, spans, numbers)
    return fill_gaps(text, spans, find_loose)


def _find_marked_between(text: str, start: int, end: int) -> Iterator[Span]:
    for span in find_marked(text[start:end]):
        yield Span(span.start + start, span.end + start, span.kind)


@lru_cache(maxsize=64)
def _term_finder(terms: tuple[tuple[str, str], ...], spaceless: bool) -> Finder:
    """Return what finds a glossary's terms, the longest first."""
    targets = {(term if spaceless else term.lower()): target for term, target in terms if term}
    words = sorted(targets, key=len, reverse=True)
    either = "|".join(map(re.escape, words)) or r"(?!)"
    pattern = re.compile(either) if spaceless else re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def find(text: str, start: int, end: int) -> Iterator[Span]:
        for match in pattern.finditer(text, start, end):
            target = targets.get(match[0] if spaceless else match[0].lower())
            if target is not None:
                yield Span(match.start(), match.end(), Kind.TERM, target)

    return find


def _find_runs(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    for match in pattern.finditer(text, start, end):
        yield Span(match.start(), match.end(), Kind[str(match.lastgroup)])


def _find_unknown(knows: Knows, text: str, start: int, end: int) -> Iterator[Span]:
    part = text[start:end]
    if not has_letter(part) or knows(simplify(part)):
        return
    at = start
    while at < end:
        stop = at
        while stop < end and not text[stop].isspace() and not knows(to_simplified(text[stop])):
            stop += 1
        if stop > at:
            yield Span(at, stop, Kind.UNKNOWN)
        at = max(stop, at + 1)


def _merge_touching(spans: list[Span]) -> list[Span]:
    """Make one span of those that touch and are one thing: https://host/{id}/edit, ${HOME}/bin, {0}{1}."""
    merged: list[Span] = []
    for span in spans:
        last = merged[-1] if merged else None
        if last is None or last.end != span.start or not (_is_joinable(last) and _is_joinable(span)):
            merged.append(span)
        else:
            merged[-1] = Span(last.start, span.end, Kind.PLACEHOLDER)
    return merged


def _is_joinable(span: Span) -> bool:
    return span.kind in _JOINABLE and span.replacement is None


def _merge_names(text: str, spans: list[Span]) -> list[Span]:
    """Make one span of names, identifiers and numbers that one space divides: Windows 11, Docker Compose v2."""
    merged: list[Span] = []
    for span in spans:
        last = merged[-1] if merged else None
        joins = (
            last is not None
            and last.kind in (Kind.NAME, Kind.IDENTIFIER)
            and span.kind in _NAME_PARTS
            and text[last.end : span.start] in ("", " ")
        )
        if last is not None and joins:
            merged[-1] = Span(last.start, span.end, Kind.NAME)
        else:
            merged.append(span)
    return merged
