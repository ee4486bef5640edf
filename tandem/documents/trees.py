"""Documents, or parts of one, that are XML inside: read without entities, network or surprises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from lxml import etree

from tandem.documents.document import SourceText
from tandem.documents.errors import BrokenDocumentError

Element = etree._Element
Tree = etree._ElementTree

XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def parse_xml(data: bytes) -> Tree:
    """Read XML.

    Raises:
        BrokenDocumentError: It is not well-formed, or declares entities.
    """
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        strip_cdata=False,
    )
    try:
        tree = etree.ElementTree(etree.fromstring(data, parser))
    except (etree.XMLSyntaxError, ValueError):
        raise BrokenDocumentError("The file is damaged: its XML is not well-formed.") from None
    dtd: Any = tree.docinfo.internalDTD
    if dtd is not None and dtd.entities():
        raise BrokenDocumentError("The file declares XML entities, which are not accepted.")
    return tree


def has_doctype(tree: Tree) -> bool:
    """Say whether a file declares a document type."""
    return tree.docinfo.internalDTD is not None


def render_xml(tree: Tree) -> bytes:
    """Return XML as a file, in the encoding it came in."""
    encoding = tree.docinfo.encoding or "UTF-8"
    standalone: Any = tree.docinfo.standalone or None
    return cast(bytes, etree.tostring(tree, encoding=encoding, xml_declaration=True, standalone=standalone))


def local_name(element: Element) -> str:
    """Return an element's name without its namespace; "" for comments and the like."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def namespace_of(element: Element) -> str:
    """Return an element's namespace in braces, as in front of its name."""
    return element.tag.rpartition("}")[0] + "}" if "}" in element.tag else ""


def set_text(element: Element, text: str) -> None:
    """Give an element its text, and say so where white space at its ends counts."""
    element.text = text
    if text != text.strip():
        element.set(XML_SPACE, "preserve")


class Holder(Protocol):
    """Something in a tree that holds texts."""

    @property
    def texts(self) -> Sequence[SourceText]:
        """Its texts."""
        ...

    def write(self, translations: Sequence[str]) -> None:
        """Put translations in their place."""
        ...


class TextHolder:
    """An element without children whose text is translated."""

    def __init__(self, element: Element) -> None:
        """Look at it."""
        self._element = element
        self.texts = [SourceText(element.text or "")]

    def write(self, translations: Sequence[str]) -> None:
        """Replace its text."""
        set_text(self._element, translations[0])


def _leave(_tree: Tree, _target: str) -> None:
    """Change nothing more."""


class TreeDocument:
    """An XML tree with holders.

    Args:
        tree: The tree, which is changed when it is rendered.
        holders: In document order.
        finish: Called with the tree and the target language before it is written.
    """

    def __init__(self, tree: Tree, holders: Sequence[Holder], finish: Callable[[Tree, str], object] = _leave) -> None:
        """Keep the parts."""
        self._tree = tree
        self._holders = holders
        self._finish = finish

    @property
    def texts(self) -> list[SourceText]:
        """The texts of all holders."""
        return [text for holder in self._holders for text in holder.texts]

    def render(self, translations: Sequence[str], target: str) -> bytes:
        """Return the XML with its texts translated."""
        given = iter(translations)
        for holder in self._holders:
            holder.write([next(given) for _ in holder.texts])
        self._finish(self._tree, target)
        return render_xml(self._tree)
