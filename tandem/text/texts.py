"""A plain or Markdown text as parts: fields, then sentences, and all between them as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tandem.text.inline import find_inline, find_unknown
from tandem.text.languages import Direction, is_spaceless
from tandem.text.layout import find_fields
from tandem.text.parts import Gap, Literal, Part, SegmentSource
from tandem.text.profile import TextProfile
from tandem.text.protection import Kept, Node, build_nodes, has_words, render_literal, show
from tandem.text.segmentation import split_fields, split_segments
from tandem.text.spans import Kind, Span, SpanIndex

_WORDS_OF_OTHERS = frozenset({Kind.NAME, Kind.FOREIGN})


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds for a whole text.

    Attributes:
        direction: From which language into which.
        profile: What the model takes and can spell.
        glossary: Terms of the source and what they are in the target.
    """

    direction: Direction
    profile: TextProfile
    glossary: Mapping[str, str] | None = None


def split_text(text: str, scope: Scope) -> Iterator[Part]:
    """Yield the parts of a text in order.

    Args:
        text: Plain text or Markdown.
        scope: What holds for the whole text.
    """
    at = 0
    for field in find_fields(text):
        line = text[field.start : field.end]
        if not line.strip():
            continue
        spans = find_unknown(line, find_inline(line, scope.direction, scope.glossary), scope.profile.knows)
        shifted = [Span(s.start + field.start, s.end + field.start, s.kind, s.replacement) for s in spans]
        start = field.start
        if field.prefix and not is_spaceless(scope.direction.target):
            yield Literal(text[at:start] + field.prefix)
            at = start = start + _prefix_length(line)
        index = SpanIndex(shifted)
        for part_start, part_end in split_fields(text, start, field.end, index):
            if part_start > at:
                yield Literal(text[at:part_start])
            inside = index.within(part_start, part_end)
            yield from split_field(text, (part_start, part_end), inside, scope)
            at = part_end
    if at < len(text):
        yield Literal(text[at:])


def split_field(
    text: str, where: tuple[int, int], spans: Sequence[Span], scope: Scope, *, keeps_literals: bool = False
) -> Iterator[Part]:
    """Yield the sentences of a field, with gaps between them.

    Args:
        text: The text.
        where: Start and end of the field.
        spans: Its kept spans in order.
        scope: What holds for the whole text.
        keeps_literals: A sentence without words stays as it is, its marks too.
    """
    at = where[0]
    index = 0
    previous: int | None = None
    for start, end, sentence in split_segments(text, where, spans, scope.profile.limit):
        if start > where[0]:
            yield Gap(text[at:start])
        first = index
        while index < len(spans) and spans[index].end <= end:
            index += 1
        nodes = build_nodes(text, start, end, spans[first:index])
        if has_words(nodes):
            yield SegmentSource(start, end, nodes, continues=sentence == previous)
        else:
            yield Literal(text[start:end] if keeps_literals else _render_kept(nodes, scope.direction))
        at, previous = end, sentence


def _render_kept(nodes: Sequence[Node], direction: Direction) -> str:
    """Return a sentence without words: marks in an English translation are English ones, all else is as it was."""
    is_foreign = any(isinstance(node, Kept) and node.kind in _WORDS_OF_OTHERS for node in nodes)
    if is_foreign or is_spaceless(direction.target):
        return "".join(map(show, nodes))
    return render_literal(nodes, direction.target)


def _prefix_length(line: str) -> int:
    return next((i + 1 for i, c in enumerate(line) if c in "、．）" or "①" <= c <= "⑳"), 0)
