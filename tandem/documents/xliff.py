"""XLIFF 1.2 and 2.0: targets that are missing or empty are filled from their sources, inline codes included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from lxml import etree

from tandem.documents.document import XML, ReadOptions, SourceText
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.marking import Mark, MarkedText
from tandem.documents.trees import Element, Tree, TreeDocument, local_name, namespace_of, parse_xml
from tandem.text.scripts import has_letter

_UNITS = {"trans-unit", "segment"}  # of 1.2 and of 2.0
_AROUND_WORDS = {"g", "mrk", "pc"}  # other inline elements are codes


def read_xliff(data: bytes, _: ReadOptions) -> TreeDocument:
    """Read an XLIFF file.

    Raises:
        BrokenDocumentError: It is not well-formed, or is no XLIFF.
    """
    tree = parse_xml(data)
    root = tree.getroot()
    if local_name(root) != "xliff":
        raise BrokenDocumentError("The file is not an XLIFF file: its root element has another name.")
    units = [_Unit(element) for element in root.iter() if local_name(element) in _UNITS and _is_open(element)]
    return TreeDocument(tree, [unit for unit in units if unit.has_words], _name_language)


class _Unit:
    """A source and the target beside it."""

    def __init__(self, element: Element) -> None:
        source = _child(element, "source")
        self._element = element
        self._source = source
        self._marked = MarkedText()
        if source is not None:
            _mark_content(source, self._marked)
        self.has_words = source is not None and has_letter("".join(map(str, source.itertext())))
        self.texts = [SourceText(self._marked.text, XML)]

    def write(self, translations: Sequence[str]) -> None:
        """Fill the target."""
        source = self._source
        assert source is not None, "a unit without source has no words"
        target = _child(self._element, "target")
        if target is None:
            segmented = _child(self._element, "seg-source")
            before = source if segmented is None else segmented
            target = etree.Element(f"{namespace_of(source)}target")
            before.addnext(target)
            target.tail = source.tail
        target[:] = []
        target.text = None
        _append(target, self._marked.read(translations[0]))
        if "state" in target.attrib:
            target.set("state", "translated")


def _child(element: Element, name: str) -> Element | None:
    return next((child for child in element if local_name(child) == name), None)


def _is_open(element: Element) -> bool:
    """Say whether a unit wants a translation."""
    owners = [element, *element.iterancestors()]
    if any(owner.get("translate") == "no" for owner in owners[:3]):
        return False
    target = _child(element, "target")
    return target is None or not "".join(map(str, target.itertext())).strip()


def _mark_content(element: Element, marked: MarkedText) -> None:
    marked.add_text(element.text or "")
    for child in element:
        if local_name(child) in _AROUND_WORDS and child.get("translate") != "no":
            number = marked.open_mark(child)
            _mark_content(child, marked)
            marked.close_mark(number)
        else:
            marked.add_mark(child)
        marked.add_text(child.tail or "")


def _append(parent: Element, nodes: Sequence[str | Mark]) -> None:
    """Append text and copies of inline elements to an element."""
    last: Element | None = None
    for node in nodes:
        if isinstance(node, str):
            if last is None:
                parent.text = (parent.text or "") + node
            else:
                last.tail = (last.tail or "") + node
            continue
        last = deepcopy(node.thing)
        last.tail = None
        if local_name(last) in _AROUND_WORDS and last.get("translate") != "no":
            last[:] = []
            last.text = None
            _append(last, node.children)
        parent.append(last)


def _name_language(tree: Tree, target: str) -> None:
    root = tree.getroot()
    if root.get("version", "").startswith("2"):
        root.set("trgLang", target)
    for file in _files(root):
        file.set("target-language", target)


def _files(root: Element) -> Iterator[Element]:
    if root.get("version", "").startswith("1"):
        yield from (child for child in root if local_name(child) == "file")
