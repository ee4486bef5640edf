"""HTML and XML as parts: block elements are texts of their own, inline ones are marks within a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import unescape

from tandem.text.html_balance import Edit, apply_edits, find_edits, original_offset
from tandem.text.html_tokens import Token, TokenKind, tokenize
from tandem.text.inline import find_inline, find_unknown
from tandem.text.parts import Literal, Part, SegmentSource
from tandem.text.scripts import has_letter
from tandem.text.spans import Kind, Span
from tandem.text.texts import Scope, split_field

_KEPT_BLOCKS = frozenset("script style pre textarea template noscript iframe object".split())
_KEPT_INLINE = frozenset("code kbd samp var svg math tt".split())
_BLOCKS = frozenset(
    "address article aside audio blockquote body br button canvas caption center col colgroup dd details dialog dir"
    " div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html"
    " legend li link main menu meta nav ol optgroup option p param section select source summary table tbody td tfoot"
    " th thead title tr track ul video".split()
)
_SILENT = frozenset("\xa0\xad\u200b\u200c\u200d\u200e\u200f")
_WRITTEN_OUT = frozenset("\"'“”‘’«»…—–、。，！？；：（）")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPAN_KINDS = {
    TokenKind.OPEN: Kind.OPEN,
    TokenKind.CLOSE: Kind.CLOSE,
    TokenKind.ALONE: Kind.TAG,
    TokenKind.SILENT: Kind.INVISIBLE,
}


@dataclass(slots=True)
class _Block:
    """A run of a document without a block's tag in it."""

    start: int
    end: int = 0
    spans: list[Span] = field(default_factory=list)


def split_markup(text: str, scope: Scope, *, is_xml: bool = False) -> Iterator[Part]:
    """Yield the parts of a document in order; one that is not balanced is balanced first.

    Args:
        text: HTML or XML, whole or a fragment.
        scope: What holds for the whole text.
        is_xml: Every element is inline, and lines divide its texts.
    """
    tokens = tokenize(text, is_xml=is_xml)
    edits = find_edits(tokens, len(text), is_xml=is_xml)
    if edits:
        text = apply_edits(text, edits)
        tokens = tokenize(text, is_xml=is_xml)
    at = 0
    for block in _find_blocks(text, tokens, is_xml=is_xml):
        start, end = _trim(text, block)
        if not _has_words(text, start, end, block.spans):
            continue
        yield Literal(text[at:start])
        spans = _find_spans(text, (start, end), block.spans, scope)
        escapes = _find_escapes(text, spans)
        for part in split_field(text, (start, end), spans, scope, keeps_literals=True):
            yield _locate(part, edits, escapes) if isinstance(part, SegmentSource) else part
        at = end
    yield Literal(text[at:])


def _locate(part: SegmentSource, edits: Sequence[Edit], escapes: dict[str, str]) -> SegmentSource:
    """Return a segment with its place in the source, not in the balanced document."""
    start, end = (original_offset(offset, edits) for offset in (part.start, part.end))
    return replace(part, start=start, end=end, escapes=escapes)


def _find_blocks(text: str, tokens: Sequence[Token], *, is_xml: bool) -> Iterator[_Block]:
    block = _Block(0)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        last = _end_of_kept(tokens, index, is_xml=is_xml)
        if last is not None and _is_inline(token, is_xml=is_xml):
            block.spans.append(Span(token.start, tokens[last].end, Kind.CODE))
        elif last is not None or _divides(text, token, is_xml=is_xml):
            block.end = token.start
            yield block
            block = _Block(tokens[index if last is None else last].end)
        else:
            block.spans += _span_of(text, token)
        index = (index if last is None else last) + 1
    block.end = len(text)
    yield block


def _end_of_kept(tokens: Sequence[Token], index: int, *, is_xml: bool) -> int | None:
    """Return the index of the end tag of an element that is kept whole; None where none begins."""
    first = tokens[index]
    names = frozenset() if is_xml else _KEPT_BLOCKS | _KEPT_INLINE
    if first.kind is not TokenKind.OPEN or not (first.is_kept or first.name in names):
        return None
    depth = 0
    for at in range(index, len(tokens)):
        if tokens[at].name == first.name:
            depth += {TokenKind.OPEN: 1, TokenKind.CLOSE: -1}.get(tokens[at].kind, 0)
            if depth == 0:
                return at
    return len(tokens) - 1


def _is_inline(token: Token, *, is_xml: bool) -> bool:
    return is_xml or (token.name not in _BLOCKS and token.name not in _KEPT_BLOCKS)


def _divides(text: str, token: Token, *, is_xml: bool) -> bool:
    """Say whether a token parts two texts: a block's tag, or in XML a line's end between two tags."""
    if token.kind is TokenKind.DATA:
        data = text[token.start : token.end]
        return is_xml and "\n" in data and not data.strip()
    return token.kind in (TokenKind.OPEN, TokenKind.CLOSE, TokenKind.ALONE) and not _is_inline(token, is_xml=is_xml)


def _span_of(text: str, token: Token) -> Iterator[Span]:
    if token.kind is TokenKind.REFERENCE:
        character = unescape(text[token.start : token.end])
        if character in _SILENT:
            yield Span(token.start, token.end, Kind.INVISIBLE, text[token.start : token.end])
        elif character.isalpha() or character in _WRITTEN_OUT:
            yield Span(token.start, token.end, Kind.TEXT, character)
        else:
            yield Span(token.start, token.end, Kind.MARKER)
    elif token.kind is not TokenKind.DATA:
        yield Span(token.start, token.end, _SPAN_KINDS[token.kind])


def _trim(text: str, block: _Block) -> tuple[int, int]:
    start, end = block.start, block.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _has_words(text: str, start: int, end: int, spans: Sequence[Span]) -> bool:
    at = start
    for span in spans:
        if has_letter(text[at : span.start]) or span.kind is Kind.TEXT:
            return True
        at = span.end
    return has_letter(text[at:end])


def _find_spans(text: str, where: tuple[int, int], fixed: Sequence[Span], scope: Scope) -> list[Span]:
    start, end = where
    block = text[start:end]
    shifted = [Span(s.start - start, s.end - start, s.kind, s.replacement) for s in fixed]
    spans = find_unknown(block, find_inline(block, scope.direction, scope.glossary, shifted), scope.profile.knows)
    return [Span(s.start + start, s.end + start, s.kind, s.replacement) for s in spans]


def _find_escapes(text: str, spans: Sequence[Span]) -> dict[str, str]:
    """Return how a block's translation writes characters: as the block itself does."""
    own = {
        span.replacement: text[span.start : span.end] for span in spans if span.kind is Kind.TEXT and span.replacement
    }
    return {**_ESCAPES, **own}
