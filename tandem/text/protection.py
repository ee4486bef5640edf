"""A sentence with its kept spans: what the model sees in their place, and how they come back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tandem.text.chinese import simplify
from tandem.text.markup import pair_marks
from tandem.text.punctuation import KEPT, map_marks
from tandem.text.scripts import has_letter
from tandem.text.spans import Kind, Span
from tandem.text.stand_ins import StandIns
from tandem.text.surfaces import find_surface

_MARK = re.compile(f"[{KEPT}]")
_BLANKS = re.compile(r"\s+")
_FIRST_MARK = 0xF0000  # a private-use plane; source characters of it are kept spans themselves
_OWN_STAND_IN = frozenset({Kind.NUMBER, Kind.NAME, Kind.IDENTIFIER})
_LONGEST_ABBREVIATION = 6
_SILENT_FORMS = {"&nbsp;": " ", "&#160;": " ", "&#xa0;": " ", "&#xA0;": " "}
_IN_ORDER = frozenset({Kind.TAG, Kind.OPEN, Kind.CLOSE})


@dataclass(frozen=True, slots=True)
class Text:
    """Language, to be translated."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A span that comes back as it was.

    Attributes:
        raw: As it stands in the source.
        kind: What it is.
        replacement: What stands for it in the translation; None for itself.
    """

    raw: str
    kind: Kind
    replacement: str | None = None

    @property
    def shown(self) -> str:
        """What the translation has for it."""
        return self.raw if self.replacement is None else self.replacement

    @property
    def is_silent(self) -> bool:
        """Whether the model need not know of it."""
        return self.kind is Kind.INVISIBLE


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """Words between an opening and a closing mark.

    Attributes:
        open: The opening mark.
        inner: What stands between.
        close: The closing mark.
    """

    open: str
    inner: tuple[Node, ...]
    close: str


Node = Text | Kept | Element


def build_nodes(text: str, start: int, end: int, spans: Sequence[Span]) -> tuple[Node, ...]:
    """Return a stretch of a text as nodes; markup with nothing to translate inside is kept as one.

    Args:
        text: The text.
        start: Offset of the stretch.
        end: Offset behind it.
        spans: Spans of the stretch in order.
    """
    builder = _Builder(text, spans, pair_marks(text, spans))
    return builder.build((start, end), (0, len(spans)))


@dataclass(frozen=True, slots=True)
class _Builder:
    """Builds the nodes of one sentence.

    Attributes:
        text: The text.
        spans: Spans of the sentence.
        pairs: The closing mark of every opening one that has one, by index.
    """

    text: str
    spans: Sequence[Span]
    pairs: Mapping[int, int]

    def build(self, where: tuple[int, int], which: tuple[int, int]) -> tuple[Node, ...]:
        """Return the nodes of a stretch, given its offsets and the indexes of its spans."""
        nodes: list[Node] = []
        at, index = where[0], which[0]
        while index < which[1]:
            span = self.spans[index]
            if span.start > at:
                nodes.append(Text(self.text[at : span.start]))
            last = self.pairs.get(index, index)
            at = self.spans[last].end
            nodes.append(self._build_element(index, last) if last > index else self._build_span(span))
            index = last + 1
        if at < where[1]:
            nodes.append(Text(self.text[at : where[1]]))
        return tuple(_join_texts(nodes))

    def _build_span(self, span: Span) -> Node:
        if span.kind is Kind.TEXT:
            return Text(span.replacement or "")
        return Kept(self.text[span.start : span.end], span.kind, span.replacement)

    def _build_element(self, index: int, last: int) -> Node:
        first, closer = self.spans[index], self.spans[last]
        opening, closing = self.text[first.start : first.end], self.text[closer.start : closer.end]
        inner = self.build((first.end, closer.start), (index + 1, last))
        if has_words(inner):
            return _nest(opening, inner, closing)
        is_same = all(span.kind is not Kind.TERM for span in self.spans[index + 1 : last])
        shown = None if is_same else opening + "".join(map(show, inner)) + closing
        return Kept(self.text[first.start : closer.end], Kind.TAG, shown)


def _join_texts(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes with neighbouring texts made one."""
    text = ""
    for node in nodes:
        if isinstance(node, Text):
            text += node.text
            continue
        if text:
            yield Text(text)
            text = ""
        yield node
    if text:
        yield Text(text)


def _nest(opening: str, inner: tuple[Node, ...], closing: str) -> Element:
    """Return an element; one that holds nothing but another one and blanks is one with it."""
    solid = [node for node in inner if not (isinstance(node, Text) and not node.text.strip())]
    if len(solid) != 1 or not isinstance(solid[0], Element):
        return Element(opening, inner, closing)
    only = solid[0]
    at = inner.index(only)
    before, after = ("".join(map(show, part)) for part in (inner[:at], inner[at + 1 :]))
    return Element(opening + before + only.open, only.inner, only.close + after + closing)


def has_words(nodes: Sequence[Node]) -> bool:
    """Say whether there is anything to translate."""
    return any(
        has_letter(node.text) if isinstance(node, Text) else isinstance(node, Element) and has_words(node.inner)
        for node in nodes
    )


def show(node: Node) -> str:
    """Return a node that needs no translation as it stands in the target."""
    if isinstance(node, Text):
        return node.text
    if isinstance(node, Kept):
        return node.shown
    return node.open + "".join(map(show, node.inner)) + node.close


def source_of(nodes: Sequence[Node]) -> str:
    """Return the words of nodes as they stand in the source, without markup."""
    return "".join(
        node.text if isinstance(node, Text) else node.raw if isinstance(node, Kept) else source_of(node.inner)
        for node in nodes
    )


@dataclass(slots=True)
class Marks:
    """The single characters that stand for kept spans while a translation is put together."""

    _spans: list[str] = field(default_factory=list)
    _elements: dict[int, str] = field(default_factory=dict)

    def add(self, shown: str) -> str:
        """Return the character for one more span."""
        self._spans.append(shown)
        return chr(_FIRST_MARK + len(self._spans) - 1)

    def add_element(self, element: Element, inside: str) -> str:
        """Return the character for an element with what stands inside, itself masked."""
        masked = self.add(element.open) + inside + self.add(element.close)
        self._elements[len(self._spans)] = masked
        return self.add("")

    def reveal(self, masked: str, finish: Callable[[str], str]) -> str:
        """Return a text with every such character replaced by its span.

        Args:
            masked: The text.
            finish: Gives the text between spans its last form.
        """
        revealed, at = "", 0
        for match in _MARK.finditer(masked):
            index = ord(match[0]) - _FIRST_MARK
            inside = self._elements.get(index)
            span = self._spans[index] if inside is None else self.reveal(inside, finish)
            revealed = _append(_append(revealed, finish(masked[at : match.start()])), span)
            at = match.end()
        return _append(revealed, finish(masked[at:]))


def _append(text: str, piece: str) -> str:
    """Return a text with a piece behind it, a space between where a word and a kept span would run together."""
    touches = _runs_on(text[-1:]) or text[-1:] in (",", ".", ";", "!", "?")
    return f"{text} {piece}" if touches and _runs_on(piece[:1]) else text + piece


def _runs_on(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in ("_", "%"))


@dataclass(frozen=True, slots=True)
class Protected:
    """A sentence as the model should see it.

    Attributes:
        model_text: What to translate.
        surfaces: (node, what the model sees for it), in the order of the source.
    """

    model_text: str
    surfaces: tuple[tuple[Kept | Element, str], ...]

    def mask(self, text: str) -> str:
        """Return a text of the target, such as a given beginning, with what the model is shown for each span."""
        for node, surface in self.surfaces:
            if isinstance(node, Kept):
                text = text.replace(node.shown, surface, 1)
        return text

    def restore(self, output: str, marks: Sequence[str]) -> tuple[str, list[Kept | Element]]:
        """Return a model's output with a mark in place of every stand-in, and the nodes that were lost or doubled.

        Args:
            output: A cleaned translation.
            marks: A character for each surface.
        """
        wanted: dict[str, list[int]] = {}
        for index, (_, surface) in enumerate(self.surfaces):
            wanted.setdefault(surface, []).append(index)
        lost: list[Kept | Element] = []
        for surface in sorted(wanted, key=len, reverse=True):
            indexes = wanted[surface]
            found = find_surface(output, surface, len(indexes))
            if len(found) != len(indexes):
                lost += [self.surfaces[index][0] for index in indexes]
                continue
            for (start, end), index in reversed(list(zip(found, indexes, strict=True))):
                output = output[:start] + marks[index] + output[end:]
        return output, lost or self._out_of_order(output, marks)

    def _out_of_order(self, output: str, marks: Sequence[str]) -> list[Kept | Element]:
        """Return the lone tags when they do not stand in the order of the source: they could cross others."""
        tags = [
            (node, marks[index])
            for index, (node, _) in enumerate(self.surfaces)
            if isinstance(node, Element) or node.kind in _IN_ORDER
        ]
        if all(isinstance(node, Element) for node, _ in tags):
            return []
        places = [output.index(mark) for _, mark in tags]
        return [] if places == sorted(places) else [node for node, _ in tags]


def protect(nodes: Sequence[Node], source: str, stand_ins: StandIns, attempt: int, *, whole: bool) -> Protected | None:
    """Return a sentence for one attempt; None when there are no stand-ins for it.

    Args:
        nodes: The sentence.
        source: Code of the source language.
        stand_ins: Tokens the model copies.
        attempt: 0 shows numbers and names as they are; later ones do not.
        whole: Shows the words inside elements in their place, instead of a stand-in.
    """
    flat = list(_flatten(nodes)) if whole else list(nodes)
    kept = [node for node in flat if not isinstance(node, Text) and not (isinstance(node, Kept) and node.is_silent)]
    own = [node for node in kept if attempt == 0 and _is_own_stand_in(node)]
    tokens = stand_ins.choose(attempt, len(kept) - len(own), source_of(nodes)) if len(kept) > len(own) else ()
    if tokens is None:
        return None
    rest = iter(tokens)
    surfaces = tuple((node, node.raw if isinstance(node, Kept) and node in own else next(rest)) for node in kept)
    return Protected(_compose(flat, dict(surfaces), source), surfaces)


def _compose(flat: Sequence[Node], surfaces: dict[Kept | Element, str], source: str) -> str:
    """Return the model's text: language with the surfaces between, parted from letters they would run into."""
    text = ""
    shouts = _shouts(flat)
    for node in flat:
        if isinstance(node, Text):
            piece = simplify(node.text) if source == "zh" else node.text
            piece = piece.lower() if shouts else piece
            needs_space = bool(text) and text[-1:].isalnum() and piece[:1].isascii() and piece[:1].isalnum()
        else:
            piece = surfaces.get(node, _SILENT_FORMS.get(node.shown, "")) if isinstance(node, Kept) else surfaces[node]
            needs_space = bool(piece) and text[-1:].isascii() and text[-1:].isalnum()
        text += " " * needs_space + piece
    text = _BLANKS.sub(" ", text)
    return text[:1].upper() + text[1:] if shouts else text


def _shouts(flat: Sequence[Node]) -> bool:
    """Say whether words are all in capitals, which few models have seen; a short one is an abbreviation."""
    words = " ".join(node.text for node in flat if isinstance(node, Text)).strip()
    return words.isupper() and sum(map(str.isalpha, words)) >= _LONGEST_ABBREVIATION


def _is_own_stand_in(node: Kept | Element) -> bool:
    return (
        isinstance(node, Kept)
        and node.kind in _OWN_STAND_IN
        and node.replacement is None
        and node.raw.isascii()
        and "@@" not in node.raw
    )


def _flatten(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, Element):
            yield from _flatten(node.inner)
        else:
            yield node


def render_literal(nodes: Sequence[Node], target: str) -> str:
    """Return nodes without words as they stand in the target: spans as they are, marks in the target's script."""
    return "".join(map_marks(node.text, target) if isinstance(node, Text) else show(node) for node in nodes)
