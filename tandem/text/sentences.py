"""Where sentences end: stops, quotes, brackets, abbreviations, decimals and ellipses considered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tandem.text.scripts import HAN
from tandem.text.spans import Kind, Span

_CLOSERS = "”’\"'」』）)\\]】》〉"
_STOPS = re.compile(rf"(?:[。！？｡!?]++|…++|\.{{2,}}+|\.)[。！？!?…]*+(?P<close>[{_CLOSERS}]*+)")
_CJK_STOP = re.compile("[。！？｡…]")
_HAN = re.compile(f"[{HAN}]")
_BRACKETS = re.compile(r"[()（）【】\[\]《》]")
_PAIRS = {")": "(", "）": "（", "】": "【", "]": "[", "》": "《"}
_LONGEST_ASIDE = 200  # characters in brackets that are never split
_LAST_WORD = re.compile(r"[A-Za-z][A-Za-z.]*\Z|\d+\Z")
_STARTS_SENTENCE = re.compile(rf"[A-Z0-9À-ÖØ-Þ{HAN}\"'“‘«¿¡(\[（【「『*_`{{<#-]|[^\x00-\u024f]")
_BEFORE_NUMBER = frozenset({"no", "nos", "fig", "figs", "vol", "ch", "sec", "pp", "p", "art", "eq", "ver", "v", "núm"})
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st ave rd mt ft gen col capt lt sgt rev hon gov sen rep pres vs approx dept est"
    " e.g i.e cf al viz resp incl excl jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri"
    " m mme mlle sra srta dra ud uds ph.d b.a m.a".split()
)
_OFTEN_LAST = frozenset({"etc", "inc", "ltd", "co", "corp", "a.m", "p.m"})
_COUNTRIES = frozenset({"u.s", "u.k", "u.n", "d.c", "e.u"})
_STARTER = re.compile(r"\s*(?:The|It|He|She|They|We|I|In|This|That|But|And|A|You|There|However|If|When|Please)\b")


def split_sentences(text: str, spans: Sequence[Span] = ()) -> list[tuple[int, int]]:
    """Return start and end of every sentence of a line, without the white space between them.

    Args:
        text: One line, or one block of a document, without white space at its ends.
        spans: Spans of the text in order; none is split.
    """
    sentences = []
    start = 0
    for end in _boundaries(text, spans):
        if end > start:
            sentences.append((start, end))
        start = end
        while start < len(text) and text[start].isspace():
            start += 1
    if start < len(text):
        sentences.append((start, len(text)))
    return sentences


def _boundaries(text: str, spans: Sequence[Span]) -> Iterator[int]:
    """Yield the offset behind every stop that ends a sentence; the last one of the text need not be among them."""
    kept = sorted([(span.start, span.end) for span in spans] + _asides(text))
    closing = {span.start: span.end for span in spans if span.kind is Kind.CLOSE}
    at = 0
    reach = -1  # end of the kept stretches that begin before the stop
    start = 0
    for match in _STOPS.finditer(text):
        while at < len(kept) and kept[at][0] <= match.start():
            reach = max(reach, kept[at][1])
            at += 1
        end = match.end()
        while end in closing:
            end = closing[end]
        if match.start() >= reach and end < len(text) and _ends_sentence(text, match, start, end):
            yield end
            start = end


def _asides(text: str) -> list[tuple[int, int]]:
    """Return where the text stands in brackets, long asides excepted; unbalanced brackets count for nothing."""
    asides: list[tuple[int, int]] = []
    open_at: list[tuple[str, int]] = []
    for match in _BRACKETS.finditer(text):
        opening = _PAIRS.get(match[0])
        if opening is None:
            open_at.append((match[0], match.start()))
        elif open_at and open_at[-1][0] == opening:
            start = open_at.pop()[1]
            if match.end() - start <= _LONGEST_ASIDE:
                asides.append((start, match.start()))
    return asides


def _ends_sentence(text: str, match: re.Match[str], start: int, end: int) -> bool:
    """Judge a stop of the sentence that began at `start`; `end` is behind the stop and what closes with it."""
    stop, following = match[0], text[end]
    if _CJK_STOP.search(stop):
        return _ends_chinese(text, match, start, end)
    before = text[match.start() - 1] if match.start() else " "
    if _HAN.match(following) and _HAN.match(before):
        return True
    if not following.isspace():
        return stop[0] in "!?" and following not in "!?,.;:)" and not following.isascii()
    following_text = text[end : end + 80].lstrip()[:1]
    if not following_text or not _STARTS_SENTENCE.match(following_text):
        return False
    return stop[0] != "." or len(stop) > 1 or not _is_abbreviation(text, start, match.start(), following_text)


def _ends_chinese(text: str, match: re.Match[str], start: int, end: int) -> bool:
    """Judge a full-width stop: marks that go on, and who is quoted (“…。”他说), keep a sentence open."""
    following = text[end]
    if following in "，、；：,;:）)」』”’】》":
        return False
    if "…" in match[0] and _is_latin(text, match.start()):
        return following.isspace() and _STARTS_SENTENCE.match(text[end : end + 80].lstrip()[:1]) is not None
    opened_here = text[start : match.start()].lstrip()[:1] in ("“", "「", "『", '"')
    return not (match["close"] and opened_here and _HAN.match(following))


def _is_latin(text: str, at: int) -> bool:
    return at > 0 and text[at - 1].isascii()


def _is_abbreviation(text: str, start: int, at: int, following: str) -> bool:
    """Say whether the full stop at an offset belongs to the word before it."""
    found = _LAST_WORD.search(text, max(start, at - 24), at)
    if found is None:
        return False
    word = found[0]
    if word.isdigit():
        return not text[start : found.start()].strip()  # the number of a list's entry
    lower = word.lower()
    if lower in _BEFORE_NUMBER:
        return following.isdigit()
    if lower in _COUNTRIES:
        return _STARTER.match(text, at + 1) is None
    if lower in _OFTEN_LAST or (len(word) == 1 and word == "I"):
        return False
    return lower in _ABBREVIATIONS or (len(word) == 1 and word.isupper())
