"""A sentence with its kept spans: what the model sees in their place, and how they come back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tandem.core.types import Link
from tandem.text.attribution import Place, attribute
from tandem.text.chinese import simplify
from tandem.text.languages import Direction, is_spaceless
from tandem.text.markup import pair_marks
from tandem.text.punctuation import KEPT, map_marks
from tandem.text.scripts import HAN, has_han, has_letter
from tandem.text.spans import Kind, Span
from tandem.text.stand_ins import StandIns
from tandem.text.surfaces import find_surface

_MARK = re.compile(f"[{KEPT}]")
_ARTICLE = re.compile(r"\b([Aa])n? \Z")
_BLANK_BEHIND_HAN = re.compile(f"(?<=[{HAN}]) +\\Z")
_BLANK_BEFORE_HAN = re.compile(f"\\A +(?=[{HAN}])")
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
        target: Code of the target language.
        terms: Where in the model's text the terms are that it sees in their own words, by index of their surface.
    """

    model_text: str
    surfaces: tuple[tuple[Kept | Element, str], ...]
    target: str = ""
    terms: Mapping[int, Place] = field(default_factory=dict)

    def mask(self, text: str) -> str:
        """Return a text of the target, such as a given beginning, with what the model is shown for each span."""
        for node, surface in self.surfaces:
            if isinstance(node, Kept):
                text = text.replace(node.shown, surface, 1)
        return text

    def restore(
        self, output: str, marks: Sequence[str], links: Sequence[Link] = ()
    ) -> tuple[str, list[Kept | Element]]:
        """Return a model's output with a mark in place of every stand-in, and the nodes that were lost or doubled.

        Args:
            output: A cleaned translation.
            marks: A character for each surface.
            links: Which of its words came from where; needed for terms that the model saw in their own words.
        """
        wanted = self._wanted()
        found_terms = self._find_terms(output, links)
        places = [(*place, index) for index, place in found_terms.items() if place is not None]
        for start, end, index in sorted(places, reverse=True):
            output = self._put(output, (start, end), index, marks[index])
        lost = [self.surfaces[index][0] for index, place in found_terms.items() if place is None]
        for surface in sorted(wanted, key=len, reverse=True):
            indexes = wanted[surface]
            found = find_surface(output, surface, len(indexes))
            if len(found) != len(indexes):
                lost += [self.surfaces[index][0] for index in indexes]
                continue
            for place, index in reversed(list(zip(found, indexes, strict=True))):
                output = self._put(output, place, index, marks[index])
        return output, lost or self._out_of_order(output, marks)

    def spelled(self, output: str, links: Sequence[Link]) -> Protected:
        """Return the same with what stands in a translation for each term as its surface, to be found in others."""
        found = self._find_terms(output, links)
        surfaces = (
            (node, output[slice(*place)] if (place := found.get(index)) else surface)
            for index, (node, surface) in enumerate(self.surfaces)
        )
        return replace(self, surfaces=tuple(surfaces), terms={})

    def _wanted(self) -> dict[str, list[int]]:
        """Return the surfaces that copy themselves, and whose they are."""
        wanted: dict[str, list[int]] = {}
        for index, (_, surface) in enumerate(self.surfaces):
            if index not in self.terms:
                wanted.setdefault(surface, []).append(index)
        return wanted

    def _find_terms(self, output: str, links: Sequence[Link]) -> dict[int, Place | None]:
        """Return what stands for each term that the model saw in its own words; None for one that nothing does."""
        if not self.terms:
            return {}
        taken = [
            place
            for surface, indexes in self._wanted().items()
            for place in find_surface(output, surface, len(indexes))
        ]
        found = attribute(output, links, list(self.terms.values()), taken, self.target)
        return dict(zip(self.terms, found, strict=True))

    def _put(self, output: str, place: Place, index: int, mark: str) -> str:
        """Return a translation with a mark in a place, and what is next to it as a glossary's term wants it."""
        before, after = output[: place[0]], output[place[1] :]
        node = self.surfaces[index][0]
        if isinstance(node, Kept) and node.kind is Kind.TERM:
            if is_spaceless(self.target):
                before = _BLANK_BEHIND_HAN.sub("", before) if has_han(node.shown[:1]) else before
                after = _BLANK_BEFORE_HAN.sub("", after) if has_han(node.shown[-1:]) else after
            elif article := _ARTICLE.search(before):
                before = before[: article.start()] + article[1] + "n" * (node.shown[:1].lower() in "aeiou") + " "
        return before + mark + after

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


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a sentence is shown to the model.

    Attributes:
        family: Which stand-ins are taken. 0 shows numbers and names as they are; later ones do not.
        whole: Shows the words inside elements in their place, instead of a stand-in.
        in_words: Shows the terms of a glossary in their own words, instead of a stand-in.
    """

    family: int
    whole: bool = False
    in_words: bool = False


def protect(nodes: Sequence[Node], direction: Direction, stand_ins: StandIns, attempt: Attempt) -> Protected | None:
    """Return a sentence for one attempt; None when there are no stand-ins for it.

    Args:
        nodes: The sentence.
        direction: From which language into which.
        stand_ins: Tokens the model copies.
        attempt: How to show it.
    """
    flat = list(_flatten(nodes)) if attempt.whole else list(nodes)
    kept = [node for node in flat if not isinstance(node, Text) and not (isinstance(node, Kept) and node.is_silent)]
    terms = [node for node in kept if attempt.in_words and is_term_of_words(node)]
    own = [node for node in kept if attempt.family == 0 and _is_own_stand_in(node)] + terms
    others = len(kept) - len(own)
    tokens = stand_ins.choose(attempt.family, others, source_of(nodes)) if others else ()
    if tokens is None:
        return None
    rest = iter(tokens)
    surfaces = tuple((node, node.raw if isinstance(node, Kept) and node in own else next(rest)) for node in kept)
    text, places = _compose(flat, dict(surfaces), terms, direction.source)
    return Protected(
        text, surfaces, direction.target, {i: places[node] for i, node in enumerate(kept) if node in places}
    )


def is_term_of_words(node: Node) -> bool:
    """Say whether a node is a term of a glossary that a model can translate."""
    return isinstance(node, Kept) and node.kind is Kind.TERM and has_letter(node.raw)


def _compose(
    flat: Sequence[Node], surfaces: Mapping[Kept | Element, str], terms: Sequence[Node], source: str
) -> tuple[str, dict[Node, Place]]:
    """Return the model's text and where in it the terms are.

    It is language with the surfaces between, parted from letters they would run into.
    """
    text = ""
    places: dict[Node, Place] = {}
    shouts = _shouts(flat)
    for node in flat:
        if isinstance(node, Text) or node in terms:
            words = source_of([node])
            piece = simplify(words) if source == "zh" else words
            piece = piece.lower() if shouts else piece
            needs_space = bool(text) and text[-1:].isalnum() and piece[:1].isascii() and piece[:1].isalnum()
        else:
            piece = surfaces.get(node, _SILENT_FORMS.get(node.shown, "")) if isinstance(node, Kept) else surfaces[node]
            needs_space = bool(piece) and text[-1:].isascii() and text[-1:].isalnum()
        text = _BLANKS.sub(" ", text + " " * needs_space + piece)
        places[node] = (len(text) - len(piece), len(text))
    text = text[:1].upper() + text[1:] if shouts else text
    return text, {node: places[node] for node in terms}


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
