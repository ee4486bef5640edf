"""Where a text is not language: addresses, code, placeholders, numbers, emoji, identifiers.

One expression finds the spans that begin with a mark of their own; words are found by a second, simple one and judged
one by one. Every quantifier that could be tried twice is possessive or bounded, so the time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from tandem.text.scripts import HAN, HANGUL, INVISIBLE, KANA


class Kind(StrEnum):
    """What a span is."""

    CODE = "code"
    URL = "url"
    EMAIL = "email"
    PATH = "path"
    PLACEHOLDER = "placeholder"
    TAG = "tag"
    OPEN = "open"
    CLOSE = "close"
    MARKER = "marker"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    NAME = "name"
    FOREIGN = "foreign"
    EMOJI = "emoji"
    KAOMOJI = "kaomoji"
    SYMBOL = "symbol"
    UNKNOWN = "unknown"
    TERM = "term"
    INVISIBLE = "invisible"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that is kept.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last character.
        kind: What it is.
        replacement: What stands for it in the translation; None for itself.
    """

    start: int
    end: int
    kind: Kind
    replacement: str | None = None


class SpanIndex:
    """Spans that do not overlap, in order, to be asked what lies where."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Keep the spans and where they begin."""
        self.spans = spans
        self._starts = [span.start for span in spans]

    def within(self, start: int, end: int) -> Sequence[Span]:
        """Return the spans that begin in a stretch."""
        return self.spans[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def touches(self, start: int, end: int) -> bool:
        """Say whether a span overlaps a stretch."""
        at = bisect_left(self._starts, end) - 1
        return at >= 0 and self.spans[at].end > start

    def splits(self, at: int) -> bool:
        """Say whether an offset lies inside a span."""
        return self.touches(at - 1, at) and self.touches(at, at + 1) and at not in self._starts_set

    @cached_property
    def _starts_set(self) -> frozenset[int]:
        return frozenset(self._starts)


Finder = Callable[[str, int, int], Iterable[Span]]

_URL_CHARACTERS = r"[!#-&(-;=?-Z\\\]_a-z~\[]"  # ASCII without blanks, quotes, <, >, `, ^, {, |, }
_EMOJI_BASE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_EMOJI_ONE = (
    rf"(?:[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3"
    rf"|[{_EMOJI_BASE}][\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?(?:[\U000e0020-\U000e007f]++)?)"
)
_EMOJI = rf"{_EMOJI_ONE}(?:\u200d?{_EMOJI_ONE})*+"
_FACE = rf"[^()（）A-Za-z0-9\n{HAN}]"
_EYE = r"[TtOoQquU0-9><]"
_KAOMOJI = (
    rf"[（(](?:{_FACE}{{2,16}}|{_FACE}{{0,4}}{_EYE}{_FACE}{{1,4}}{_EYE}{_FACE}{{0,4}})[)）]"
    r"(?:[~～ノﾉヽ୧۶งو✧☆◞/\\*;]|[vbdzo](?![A-Za-z]))*+(?: ?︵ ?[┻━ ]{2,6}[┻━])?"
    r"|¯\\_\(ツ\)_/¯|[ヽ＼ヾ٩\\](?=\()|ʕ[^\s]{1,6}ʔ|\^_+\^|\^o\^|>_+<|-_-[|b]{0,3}"
    r"|(?<![\w(])[:;=]['’]?-?[)(DPp\]\[|](?![\w(])"
)
_TAG_ATTRIBUTE = r"\s++[A-Za-z_@:][\w:@.-]*+(?:\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>=`]++))?"

# Spans that begin with a letter or digit ...
_LETTERED = (
    (Kind.URL, rf"(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}://|www\.|mailto:){_URL_CHARACTERS}++"),
    (Kind.EMAIL, r"[A-Za-z0-9_][A-Za-z0-9_.+%-]{0,63}+@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++"),
    (Kind.PATH, r"[A-Za-z]:\\[!#-)+-;=@-\[\]-{}~\\]*+"),
    (Kind.KAOMOJI, r"[TQ]_+[TQ](?![A-Za-z])|o_O|O_o"),
    (Kind.EMOJI, r"[0-9]\ufe0f?\u20e3"),
    (
        Kind.SYMBOL,
        r"[A-Za-z_][A-Za-z0-9_.]{0,30}+(?: [<>] |(?P<gap> ?)[<>!=]=(?P=gap))-?[A-Za-z0-9_][A-Za-z0-9_.]{0,30}+",
    ),
)
# ... and with a mark of their own.
_MARKED = (
    (Kind.CODE, r"(?<!`)(?P<ticks>`++)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)"),
    (
        Kind.PATH,
        r"\\\\[A-Za-z0-9_.$-]++(?:\\[A-Za-z0-9_.$-]++)++"
        r"|(?<![A-Za-z0-9_/.~<])(?:~|\.{1,2})?(?:/[A-Za-z0-9_.@+~*%-]++)++/?(?![A-Za-z0-9])",
    ),
    (
        Kind.PLACEHOLDER,
        r"\{\{[^{}\n]{0,120}+\}\}|\{%[^{}\n]{0,120}+%\}|[$#@%]\{[^{}\n]{0,120}+\}"
        r"|\{(?:[^{}\s]{0,60}+|[\x20-z|~]{0,80}+)\}|%\([A-Za-z_]\w{0,60}+\)[#0 +-]{0,3}\d{0,3}[a-zA-Z]"
        r"|%(?:\d{1,2}\$)?[-+0#]{0,3}(?:\d{1,3}|\*)?(?:\.\d{1,3})?(?:hh|h|ll|l|[qjzt])?[diouxXeEfFgGcsSp@](?![a-wyzA-Z])"
        r"|%[A-Za-z_][A-Za-z0-9_]{1,40}+%|%\d{1,2}(?![\d%.,])|%%|\$[A-Za-z_][A-Za-z0-9_]{0,60}+(?:\$)?"
        r"|\\(?:[nrt](?![A-Za-z])|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|\x1b\[[0-9;]{0,20}+[A-Za-z]",
    ),
    (Kind.TAG, rf"</?[A-Za-z][\w:.-]*+(?:{_TAG_ATTRIBUTE})*+\s*+/?>|<!--.{{0,500}}?-->"),
    (
        Kind.MARKER,
        r"&(?:[A-Za-z][A-Za-z0-9]{1,30}+|#\d{1,7}+|#x[0-9a-fA-F]{1,6}+);|\[\^[A-Za-z0-9_-]{1,40}+\]"
        r"|\[(?:\d{1,2}:)?\d{1,2}:\d{2}(?:[.:]\d{1,3})?\]|\[\d{1,3}\]",
    ),
    (Kind.KAOMOJI, _KAOMOJI),
    (Kind.EMOJI, _EMOJI),
)

_DIGITS = r"(?:[0-9]++|[０-９]++)"
_UNIT = (
    r"(?:[KMGTP]i?[Bb](?:ps|/s)?|bytes?|bits?|bps|k?Hz|[MG]Hz|[kmcnμµd]?m[²³]?|km/h|m/s|[kmμµ]?g|lbs?|oz|[mkMG]?Wh?|[mk]?V"
    r"|mAh?|[mnμµ]s|min|px|pt|em|rem|dpi|fps|°[CF]|℃|℉|°|m[lL]|L|k?Pa|k?cal|rpm|USD|EUR|CNY|RMB)"
)
_SUFFIX = r"[xKMBDGkbAl]"  # only right behind the digits
_NUMBER = (
    rf"(?:(?<![A-Za-z0-9_.０-９])[+\-−±~≈＋－](?=[0-9$€£¥￥]))?(?:(?:US|HK|NT|CN)?[$€£¥￥] ?)?"
    rf"(?:(?<![A-Za-z0-9])v(?=\d))?{_DIGITS}(?:(?:[.,:/_'’~–·．，：－～-]|\.\.\.?){_DIGITS})*+"
    rf"(?: (?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,]\d{{1,6}})?)?)?"
    rf"(?: ?[%‰％](?![A-Za-z(])|(?: ?{_UNIT}|{_SUFFIX})(?![A-Za-z0-9_]))?"
)
_WORD = r"[A-Za-z0-9_]++(?:(?:[.'’+&@/:#=~?*\\-]|::|->)++[A-Za-z0-9_]++)*+(?:\(\)|\+\+|#(?![A-Za-z0-9]))?"

_PLAIN = r"\sA-Za-z0-9,!?'\"，。；：！？、“”‘’（）《》…—" + HAN + KANA + HANGUL


def _alternatives(patterns: tuple[tuple[Kind, str], ...], mark: str) -> str:
    return "|".join(f"(?P<{mark}{kind.name}>{pattern})" for kind, pattern in patterns)


# The two look-aheads let most positions fail at once.
_MARKED_RE = re.compile(
    rf"(?<![A-Za-z0-9])(?=[A-Za-z0-9_])(?:{_alternatives(_LETTERED, 'W')})"
    rf"|(?=[^{_PLAIN}（])(?:{_alternatives(_MARKED, 'M')})"
    rf"|(?=（)(?P<KKAOMOJI>{_KAOMOJI})",
    re.S,
)
_NUMBER_RE = re.compile(_NUMBER)
_LOOSE = re.compile(
    rf"(?P<PLAIN>[A-Za-z]++(?=[\s,!;)]|[.:?](?:\s|\Z)|\Z))"
    rf"|(?P<FLAG>(?<![A-Za-z0-9-])--?[A-Za-z][A-Za-z0-9_-]*+(?:=[!-~]++)?)"
    rf"|(?P<MENTION>(?<![A-Za-z0-9_])[@#][A-Za-z_][A-Za-z0-9_-]*+)"
    rf"|(?P<DOTTED>(?<![A-Za-z0-9_.])\.[A-Za-z][A-Za-z0-9_.-]*+)"
    rf"|(?P<NUMBER>{_NUMBER}(?![A-Za-z0-9_@])(?![.-][A-Za-z0-9]))"
    rf"|(?P<WORD>{_WORD})"
    rf"|(?P<INVISIBLE>[{INVISIBLE}]++)"
    rf"|(?P<FOREIGN>[\ud800-\udfff\ue000-\uf8ff\ufffd\U000f0000-\U0010fffd]++)"
    rf"|(?P<SYMBOL>@@+|[\u2190-\u2193\u00a7\u00b0\u00b1\u00b5\u00d7\u00f7\u20a0-\u20bf\u2100-\u218f\u2200-\u22ff\u2500-\u25a9]++"
    rf"|(?<=\s)[&<>=+*/|~^\\@#$%_-]{{1,3}}(?=\s)|[<>&=+*^~|$@]|(?<=[\w{HAN}])/(?=[\w{HAN}]))"
)  # fmt: skip
_HAS_SPAN = re.compile(
    r"[^\sA-Za-z,.;:!?'\"，。；：！？、“”‘’（）()《》…—" + HAN + KANA + HANGUL + r"\-]"
    r"|[a-z][A-Z]|[.:][A-Za-z/]|:\\|--|\(\)|[:;]['’]?-?[()DPp]|[（(][^A-Za-z" + HAN + "]"
)
_PLAIN_WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*")
_TRAILING = ".,;:!?'\"-"
_CAMEL_CASE = re.compile("[a-z][A-Z]")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s|am|pm|AM|PM)")
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?|[A-Za-z]+/[A-Za-z]+")
_GLUED_SENTENCES = re.compile(r"[a-z]{2,}\.[A-Z][a-z]+")


def find_spans(text: str) -> list[Span]:
    """Return the spans of a text that are not language whatever the direction, in order, without overlap."""
    if is_plain(text):
        return []
    return fill_gaps(text, find_marked(text), find_loose)


def is_plain(text: str) -> bool:
    """Say, quickly, that a text can have no span; False when it may."""
    return _HAS_SPAN.search(text) is None


def find_marked(text: str) -> list[Span]:
    """Return the spans that a mark of their own makes certain: code, addresses, placeholders, tags, emoji."""
    spans: list[Span] = []
    at = 0
    for match in _MARKED_RE.finditer(text):
        if match.start() < at:
            continue
        kind = Kind[str(match.lastgroup)[1:]]
        end = _trim(text, match.start(), match.end()) if kind in (Kind.URL, Kind.PATH, Kind.EMAIL) else match.end()
        spans.append(Span(match.start(), end, kind))
        at = end
    return spans


def find_loose(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the spans of a stretch that nothing marks: numbers, identifiers, symbols, invisible characters."""
    for match in _LOOSE.finditer(text, start, end):
        group = match.lastgroup
        if group == "PLAIN":
            if _is_camel_case(match[0]):
                yield Span(match.start(), match.end(), Kind.IDENTIFIER)
        elif group == "WORD":
            yield from _judge_word(match[0], match.start())
        elif match.end() > match.start():
            kind = Kind.__members__.get(str(group), Kind.IDENTIFIER)
            yield Span(match.start(), match.end(), kind)


def fill_gaps(text: str, taken: list[Span], find: Finder) -> list[Span]:
    """Add what a finder finds in the stretches between the spans that are taken already."""
    filled: list[Span] = []
    at = 0
    for span in taken:
        if span.start > at:
            filled.extend(find(text, at, span.start))
        filled.append(span)
        at = span.end
    if at < len(text):
        filled.extend(find(text, at, len(text)))
    return filled


def _trim(text: str, start: int, end: int) -> int:
    """Return the end of an address without the marks of the sentence around it."""
    while end > start + 1:
        last = text[end - 1]
        unbalanced = last in ")]" and text.count(last, start, end) > text.count("(["[")]".index(last)], start, end)
        if last not in _TRAILING and not unbalanced:
            break
        end -= 1
    return end


def _is_camel_case(word: str) -> bool:
    return _CAMEL_CASE.search(word) is not None


def _judge_word(word: str, start: int) -> Iterator[Span]:
    """Yield the span that a word of letters, digits and inner marks is, if it is none of a language."""
    if _PLAIN_WORD.fullmatch(word):
        if _is_camel_case(word):
            yield Span(start, start + len(word), Kind.IDENTIFIER)
        return
    if _ORDINAL.fullmatch(word) or _ABBREVIATION.fullmatch(word) or _GLUED_SENTENCES.fullmatch(word):
        return
    number = _NUMBER_RE.match(word)
    if (
        number
        and number.end()
        and word[number.end() : number.end() + 1] == "-"
        and _PLAIN_WORD.fullmatch(word, number.end() + 1)
    ):
        yield Span(start, start + number.end(), Kind.NUMBER)
        return
    if word[0].isdigit() and number and number.end() == len(word):
        yield Span(start, start + len(word), Kind.NUMBER)
        return
    yield Span(start, start + len(word), Kind.IDENTIFIER)
