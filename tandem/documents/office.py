"""What Word, PowerPoint and Excel files have in common: the package, and the drawings in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tandem.documents.archives import Archive, ArchiveDocument
from tandem.documents.document import Document
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.runs import Dialect, Kind, find_paragraphs
from tandem.documents.trees import Element, Holder, Tree, TreeDocument, has_doctype, local_name, parse_xml

_CONTENT_TYPES = "[Content_Types].xml"
_KINDS = {
    "wordprocessingml": "a Word document (.docx)",
    "presentationml": "a PowerPoint presentation (.pptx)",
    "spreadsheetml": "an Excel workbook (.xlsx)",
}
# Drawings: text boxes, shapes, tables of slides, titles of charts. Fields (slide numbers, dates) stand by themselves.
DRAWING = Dialect(
    run="r",
    properties="rPr",
    text="t",
    kinds={"br": Kind.DIVIDER, "fld": Kind.THING},
    ignored=frozenset({"lang", "altLang", "dirty", "err", "noProof", "smtClean", "smtId"}),
    last="endParaRPr",
)
_DRAWING_PARAGRAPH = re.compile(r"\{[^}]*/drawingml/[^}]*main\}p")  # in strict and in transitional files


def open_package(data: bytes, kind: str) -> Archive:
    """Open an Office file of a kind.

    Args:
        data: The file.
        kind: "wordprocessingml", "presentationml" or "spreadsheetml".

    Raises:
        BrokenDocumentError: It is damaged, or of another kind; the message says of which.
        TandemError: As `Archive`.
    """
    archive = Archive(data)
    if _CONTENT_TYPES not in archive.names:
        raise BrokenDocumentError(f"The file is not {_KINDS[kind]}. Is its extension right?")
    types = _read_types(archive)
    main = next((name for name, value in types.items() if value.endswith("main+xml")), "")
    if f".{kind}." not in types.get(main, ""):
        found = next((words for name, words in _KINDS.items() if f".{name}." in types.get(main, "")), "something else")
        raise BrokenDocumentError(f"The file is not {_KINDS[kind]} but {found}. Is its extension right?")
    return archive


def _read_types(archive: Archive) -> dict[str, str]:
    root = _parse_part(archive, _CONTENT_TYPES).getroot()
    return {element.get("PartName", ""): element.get("ContentType", "") for element in root}


def read_package(archive: Archive, readers: Mapping[str, Callable[[Tree], Document]]) -> ArchiveDocument:
    """Return a package whose parts are read by their names.

    Args:
        archive: The package.
        readers: By a regular expression of the names; the first that fits is taken.

    Raises:
        BrokenDocumentError: A part's XML is damaged, or has a document type declaration.
    """
    parts: dict[str, Document] = {}
    for name in archive.names:
        read = next((read for pattern, read in readers.items() if re.fullmatch(pattern, name)), None)
        if read is not None:
            parts[name] = read(_parse_part(archive, name))
    return ArchiveDocument(archive, parts)


def _parse_part(archive: Archive, name: str) -> Tree:
    tree = parse_xml(archive.read(name))
    if has_doctype(tree):
        raise BrokenDocumentError("The file holds a document type declaration, which no office program writes.")
    return tree


def read_drawing(tree: Tree) -> Document:
    """Return the paragraphs of a drawing, a slide or a chart."""
    return TreeDocument(tree, list(find_drawing_texts(tree.getroot())))


def find_drawing_texts(root: Element) -> Iterator[Holder]:
    """Yield all paragraphs of drawings below an element."""
    for element in root.iter():
        if isinstance(element.tag, str) and _DRAWING_PARAGRAPH.fullmatch(element.tag):
            yield from find_paragraphs(element, DRAWING.within(element))


def is_in(element: Element, name: str) -> bool:
    """Say whether an element has an ancestor of a local name."""
    return any(local_name(ancestor) == name for ancestor in element.iterancestors())
