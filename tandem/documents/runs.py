"""Paragraphs made of runs, as Word, PowerPoint and Excel have them: translated as a whole, formatted as they were.

A paragraph's runs become atoms; dividers (tabs, line breaks) part its sentences; in each sentence the commonest
formatting goes unmarked, and all else (other formatting, links, footnote marks, images) stands there as a tag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lxml import etree

from tandem.documents.document import TEXT, XML, SourceText
from tandem.documents.marking import Mark, MarkedText
from tandem.documents.trees import Element, Holder, local_name, namespace_of, set_text
from tandem.text.scripts import has_letter


class Kind(StrEnum):
    """What an atom is."""

    WORDS = "words"
    THING = "thing"  # stands by itself and moves with the words
    DIVIDER = "divider"  # parts two sentences and never moves
    START = "start"  # the beginning of a range, which goes to the sentence's beginning
    END = "end"
    GROUP = "group"  # is around words
    FIELD = "field"  # a piece of a field, to be put together with others


@dataclass(eq=False, slots=True)
class Atom:
    """A piece of a paragraph.

    Attributes:
        kind: What it is.
        element: What it is made of; None for words, and for what is made of `before` and `after`.
        properties: Formatting of the run it stands in; None for none, or for what stands in no run.
        text: Of words.
        key: Equal for equal formatting.
        in_run: Whether its element must stand in a run.
        children: Of a group.
        before: What opens a group that is no element of its own, or all that a thing is made of.
        after: What closes such a group.
    """

    kind: Kind
    element: Element | None = None
    properties: Element | None = None
    text: str = ""
    key: bytes = b""
    in_run: bool = False
    children: list[Atom] = field(default_factory=list)
    before: list[Atom] = field(default_factory=list)
    after: list[Atom] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a format writes runs; names are local ones.

    Attributes:
        run: Element of a run.
        properties: Element of its formatting.
        text: Element of its text.
        kinds: What other elements are, within runs and beside them; those not named divide.
        dropped: Elements that mean nothing any more in a translation.
        ignored: Formatting that does not show: elements, or attributes of the formatting.
        last: Element that must stay at the end of a paragraph.
        fold: Puts the pieces of fields together.
        is_code: Says whether words of such formatting stay as they are.
        namespace: Of its elements, in braces; see `within`.
    """

    run: str
    properties: str
    text: str
    kinds: dict[str, Kind]
    dropped: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    last: str = ""
    fold: Callable[[list[Atom]], list[Atom]] = list
    is_code: Callable[[Element | None], bool] = lambda _: False
    namespace: str = ""

    def within(self, element: Element) -> Dialect:
        """Return the dialect with an element's namespace: strict and transitional files have different ones."""
        return replace(self, namespace=namespace_of(element))


def find_paragraphs(parent: Element, dialect: Dialect) -> Iterator[Holder]:
    """Yield an element with runs as something to translate, and the elements in it that stand for themselves.

    Args:
        parent: A paragraph, a cell's text, or a container of runs.
        dialect: How the format writes runs.
    """
    atoms, apart = _read_children(parent, dialect)
    for element in apart:
        yield from find_paragraphs(content_of(element), dialect)
    pieces = [_Sentence(piece, dialect) for piece in _split(dialect.fold(atoms))]
    if any(piece.source is not None for piece in pieces):
        yield _Paragraph(parent, dialect, pieces)


def content_of(element: Element) -> Element:
    """Return the element in which a container holds its runs: itself, or a content control's inner one."""
    return next((child for child in element if local_name(child) == "sdtContent"), element)


# -- reading ---------------------------------------------------------------------------------------------------------


def _read_children(parent: Element, dialect: Dialect) -> tuple[list[Atom], list[Element]]:
    """Return an element's atoms, and the containers among its children whose sentences are their own."""
    atoms: list[Atom] = []
    apart: list[Element] = []
    for child in parent:
        name = local_name(child)
        if name == dialect.run:
            atoms += _read_run(child, dialect)
        elif name in dialect.dropped or _is_frame(name, dialect):
            continue
        elif dialect.kinds.get(name) is Kind.GROUP:
            atoms.append(_read_group(child, dialect, apart))
        else:
            atoms.append(Atom(dialect.kinds.get(name, Kind.DIVIDER), child))
    return atoms, apart


def _is_frame(name: str, dialect: Dialect) -> bool:
    """Say whether a child is no content: the paragraph's own properties."""
    return name.endswith("Pr") or name == dialect.last


def _read_group(element: Element, dialect: Dialect, apart: list[Element]) -> Atom:
    children, inner = _read_children(content_of(element), dialect)
    children = dialect.fold(children)
    if inner or any(child.kind in (Kind.DIVIDER, Kind.FIELD) for child in children):
        apart.append(element)
        return Atom(Kind.DIVIDER, element)
    return Atom(Kind.GROUP, element, children=children)


def _read_run(run: Element, dialect: Dialect) -> Iterator[Atom]:
    properties = next((child for child in run if local_name(child) == dialect.properties), None)
    key = _key(properties, dialect)
    is_code = dialect.is_code(properties)
    for child in run:
        name = local_name(child)
        if child is properties or name in dialect.dropped:
            continue
        if name == dialect.text and not is_code:
            yield from _read_words(child.text or "", properties, key)
        else:
            kind = Kind.THING if name == dialect.text else dialect.kinds.get(name, Kind.THING)
            yield Atom(kind, child, properties, key=key, in_run=True)


def _read_words(text: str, properties: Element | None, key: bytes) -> Iterator[Atom]:
    for index, line in enumerate(text.split("\n")):
        if index:
            yield Atom(Kind.DIVIDER, None, properties, "\n", key)
        if line:
            yield Atom(Kind.WORDS, None, properties, line, key)


def _key(properties: Element | None, dialect: Dialect) -> bytes:
    if properties is None:
        return b""
    shown = deepcopy(properties)
    shown.tail = None
    for name in list(shown.attrib):
        if name in dialect.ignored:
            del shown.attrib[name]
    for child in list(shown):
        for attribute in list(child.attrib):
            if f"{local_name(child)}@{str(attribute).rpartition('}')[2]}" in dialect.ignored:
                del child.attrib[attribute]
        if local_name(child) in dialect.ignored or _is_shell(child):
            shown.remove(child)
    return etree.tostring(shown) if len(shown) or shown.attrib else b""


def _is_shell(child: Element) -> bool:
    """Say whether an element means nothing without attributes, and has none: a font, and not a switch such as bold."""
    return local_name(child) == "rFonts" and not child.attrib


def _split(atoms: Sequence[Atom]) -> Iterator[list[Atom]]:
    """Yield the atoms between dividers, and each divider by itself."""
    piece: list[Atom] = []
    for atom in atoms:
        if atom.kind in (Kind.DIVIDER, Kind.FIELD):
            if piece:
                yield piece
            yield [atom]
            piece = []
        else:
            piece.append(atom)
    if piece:
        yield piece


# -- sentences -------------------------------------------------------------------------------------------------------


class _Sentence:
    """The atoms between two dividers."""

    def __init__(self, atoms: Sequence[Atom], dialect: Dialect) -> None:
        self._dialect = dialect
        self._starts = [atom for atom in atoms if atom.kind is Kind.START]
        self._ends = [atom for atom in atoms if atom.kind is Kind.END]
        body = _merge([atom for atom in atoms if atom.kind not in (Kind.START, Kind.END)])
        self._head, self._body, self._tail = _trim(body)
        self._base = _commonest(self._body)
        self._marked = MarkedText()
        self.source: SourceText | None = None
        if any(has_letter(atom.text) for atom in _walk(self._body)):
            self.source = self._describe()

    def render(self, translation: str) -> Iterator[Element]:
        """Yield the elements of the sentence, translated."""
        for atom in (*self._starts, *self._head):
            yield from _build(atom, self._dialect)
        if self.source is None:
            for atom in self._body:
                yield from _build(atom, self._dialect)
        elif self.source.format == TEXT:
            yield from _build_words(translation, self._base, self._dialect)
        else:
            yield from _build_nodes(self._marked.read(translation), self._base, self._dialect)
        for atom in (*self._tail, *self._ends):
            yield from _build(atom, self._dialect)

    def _describe(self) -> SourceText:
        if len(self._body) == 1 and self._body[0].kind is Kind.WORDS:
            return SourceText(self._body[0].text, TEXT)
        _mark(self._body, self._base, self._marked)
        return SourceText(self._marked.text, XML)


def _merge(atoms: Sequence[Atom]) -> list[Atom]:
    """Make one of words that stand side by side in the same formatting."""
    merged: list[Atom] = []
    for atom in atoms:
        last = merged[-1] if merged else None
        if last is not None and last.kind is atom.kind is Kind.WORDS and last.key == atom.key:
            merged[-1] = Atom(Kind.WORDS, None, last.properties, last.text + atom.text, last.key)
        else:
            merged.append(atom)
    return merged


def _trim(atoms: Sequence[Atom]) -> tuple[list[Atom], list[Atom], list[Atom]]:
    """Return what stands before the first words, the words, and what stands behind the last ones."""
    worded = [place for place, atom in enumerate(atoms) if any(has_letter(part.text) for part in _walk([atom]))]
    if not worded:
        return [], list(atoms), []
    first, last = worded[0], worded[-1] + 1
    while first and atoms[first - 1].kind is Kind.WORDS:
        first -= 1
    while last < len(atoms) and atoms[last].kind is Kind.WORDS:
        last += 1
    return list(atoms[:first]), list(atoms[first:last]), list(atoms[last:])


def _walk(atoms: Sequence[Atom]) -> Iterator[Atom]:
    for atom in atoms:
        if atom.kind is Kind.WORDS:
            yield atom
        elif atom.kind is Kind.GROUP:
            yield from _walk(atom.children)


def _commonest(atoms: Sequence[Atom]) -> Atom:
    """Return words in the formatting that most characters have; those inside groups count where there are no others."""
    words = [atom for atom in atoms if atom.kind is Kind.WORDS] or list(_walk(atoms))
    counts: Counter[bytes] = Counter()
    for atom in words:
        counts[atom.key] += len(atom.text)
    return max(words, key=lambda atom: counts[atom.key], default=Atom(Kind.WORDS))


def _mark(atoms: Sequence[Atom], base: Atom, marked: MarkedText) -> None:
    for atom in atoms:
        if atom.kind is Kind.WORDS and atom.key == base.key:
            marked.add_text(atom.text)
        elif atom.kind is Kind.WORDS:
            number = marked.open_mark(atom)
            marked.add_text(atom.text)
            marked.close_mark(number)
        elif atom.kind is Kind.GROUP:
            number = marked.open_mark(atom)
            inner = _merge([child for child in atom.children if child.kind not in (Kind.START, Kind.END)])
            _mark(inner, _commonest(inner), marked)
            marked.close_mark(number)
        else:
            marked.add_mark(atom)


# -- writing ---------------------------------------------------------------------------------------------------------


class _Paragraph:
    """An element with runs, and its sentences."""

    def __init__(self, parent: Element, dialect: Dialect, pieces: Sequence[_Sentence]) -> None:
        self._parent = parent
        self._dialect = dialect
        self._pieces = pieces
        self.texts = [piece.source for piece in pieces if piece.source is not None]

    def write(self, translations: Sequence[str]) -> None:
        """Put the paragraph together anew."""
        given = iter(translations)
        content = [
            element
            for piece in self._pieces
            for element in piece.render(next(given) if piece.source is not None else "")
        ]
        _refill(self._parent, content, self._dialect)


def _refill(parent: Element, content: Sequence[Element], dialect: Dialect) -> None:
    """Give an element other content, between its properties and what must stay at its end."""
    frame = [child for child in parent if _is_frame(local_name(child), dialect)]
    last = [child for child in frame if local_name(child) == dialect.last]
    parent[:] = [*(child for child in frame if child not in last), *content, *last]


def _build_nodes(nodes: Sequence[str | Mark], base: Atom, dialect: Dialect) -> Iterator[Element]:
    for node in nodes:
        if isinstance(node, str):
            yield from _build_words(node, base, dialect)
            continue
        atom: Atom = node.thing
        if atom.kind is Kind.WORDS:
            yield from _build_nodes(node.children, atom, dialect)
        elif atom.kind is Kind.GROUP:
            yield from _build_group(
                atom, list(_build_nodes(node.children, _commonest(atom.children), dialect)), dialect
            )
        else:
            yield from _build(atom, dialect)
            yield from _build_nodes(node.children, base, dialect)


def _build(atom: Atom, dialect: Dialect) -> Iterator[Element]:
    """Yield the elements of an atom as it was."""
    if atom.kind is Kind.GROUP or atom.before:
        yield from _build_group(atom, [part for child in atom.children for part in _build(child, dialect)], dialect)
    elif atom.element is None:
        yield from _build_words(atom.text, atom, dialect)
    elif atom.in_run:
        yield _run(atom.properties, atom.element, dialect)
    else:
        yield atom.element


def _build_group(atom: Atom, content: Sequence[Element], dialect: Dialect) -> Iterator[Element]:
    for part in atom.before:
        yield from _build(part, dialect)
    if atom.element is None:
        yield from content
    else:
        _refill(content_of(atom.element), content, dialect)
        yield atom.element
    for part in atom.after:
        yield from _build(part, dialect)


def _build_words(text: str, style: Atom, dialect: Dialect) -> Iterator[Element]:
    if text:
        words = etree.Element(dialect.namespace + dialect.text)
        set_text(words, text)
        yield _run(style.properties, words, dialect)


def _run(properties: Element | None, content: Element, dialect: Dialect) -> Element:
    run = etree.Element(dialect.namespace + dialect.run)
    if properties is not None:
        run.append(deepcopy(properties))
    run.append(content)
    return run
