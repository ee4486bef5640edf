"""Excel: the words of cells, comments, drawings and charts. Formulas, numbers, sheet and column names in use stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from tandem.documents.archives import Archive, ArchiveDocument
from tandem.documents.document import Document, ReadOptions, SourceText
from tandem.documents.office import open_package, read_drawing, read_package
from tandem.documents.runs import Dialect, find_paragraphs
from tandem.documents.trees import Element, Holder, TextHolder, Tree, TreeDocument, local_name, namespace_of, parse_xml
from tandem.text.scripts import has_letter

_STRINGS, _SHEETS = r"xl/sharedStrings\.xml", r"xl/worksheets/sheet\d+\.xml"
_COMMENTS, _WORKBOOK = r"xl/comments\d*\.xml|xl/comments/comment\d+\.xml", r"xl/workbook\.xml"
_DRAWINGS = r"xl/(?:drawings/drawing|charts/chart|diagrams/(?:data|drawing))\d+\.xml"
_TABLES = "xl/tables/"
_RICH = Dialect(run="r", properties="rPr", text="t", kinds={}, dropped=frozenset({"rPh"}))
_TEXT_OWNERS = {"si", "is", "text"}


def read_xlsx(data: bytes, _: ReadOptions) -> ArchiveDocument:
    """Read a workbook.

    The names of a table's columns are those of its header cells, and Excel calls a file damaged where they differ: such
    cells stay as they are.

    Raises:
        BrokenDocumentError: It is damaged or no workbook.
        TandemError: As `Archive`.
    """
    archive = open_package(data, "spreadsheetml")
    names = frozenset(_find_column_names(archive))

    def read_strings(tree: Tree) -> Document:
        return TreeDocument(tree, list(_find_texts(tree.getroot(), names)))

    readers = {
        _STRINGS: read_strings,
        _SHEETS: read_strings,
        _COMMENTS: read_strings,
        _DRAWINGS: read_drawing,
        _WORKBOOK: _read_workbook,
    }
    return read_package(archive, readers)


def _find_column_names(archive: Archive) -> Iterator[str]:
    for name in archive.names:
        if name.startswith(_TABLES) and name.endswith(".xml"):
            root = parse_xml(archive.read(name)).getroot()
            yield from (column.get("name", "") for column in root.iter() if local_name(column) == "tableColumn")


def _find_texts(root: Element, kept: frozenset[str]) -> Iterator[Holder]:
    for element in root.iter():
        if local_name(element) not in _TEXT_OWNERS:
            continue
        runs = [child for child in element if local_name(child) == "r"]
        plain = [child for child in element if local_name(child) == "t"]
        text = "".join(str(t.text or "") for t in element.iter() if local_name(t) == "t")
        if not has_letter(text) or text in kept:
            continue
        if runs:
            yield from (_WithoutReadings(element, holder) for holder in find_paragraphs(element, _RICH.within(element)))
        elif plain:
            yield _WithoutReadings(element, TextHolder(plain[0]))


class _WithoutReadings:
    """A cell's text; how the source is read aloud (furigana) goes with the source."""

    def __init__(self, owner: Element, holder: Holder) -> None:
        self._owner = owner
        self._holder = holder

    @property
    def texts(self) -> Sequence[SourceText]:
        return self._holder.texts

    def write(self, translations: Sequence[str]) -> None:
        for child in list(self._owner):
            if local_name(child) in ("rPh", "phoneticPr"):
                self._owner.remove(child)
        self._holder.write(translations)


def _read_workbook(tree: Tree) -> Document:
    """Return the workbook's settings: no texts, but formulas are to be computed again from the translated cells."""
    return TreeDocument(tree, [], _compute_on_load)


def _compute_on_load(tree: Tree, _target: str) -> None:
    root = tree.getroot()
    settings = next((child for child in root if local_name(child) == "calcPr"), None)
    if settings is None:
        after = {"fileVersion", "workbookPr", "bookViews", "sheets", "externalReferences", "definedNames"}
        place = max((index for index, child in enumerate(root) if local_name(child) in after), default=-1) + 1
        settings = etree.Element(f"{namespace_of(root)}calcPr")
        root.insert(place, settings)
    settings.set("fullCalcOnLoad", "1")
