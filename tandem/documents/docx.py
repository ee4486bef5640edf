"""Word: body, headers, footers, notes, comments, text boxes, charts and diagrams."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tandem.documents.archives import ArchiveDocument
from tandem.documents.document import Document, ReadOptions
from tandem.documents.office import find_drawing_texts, open_package, read_drawing, read_package
from tandem.documents.runs import Atom, Dialect, Kind, find_paragraphs
from tandem.documents.trees import Element, Holder, Tree, TreeDocument, local_name

_STORIES = r"word/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml"
_DRAWINGS = r"word/(?:charts/chart|diagrams/(?:data|drawing))\d*\.xml"
_CODE_STYLE = re.compile(
    r"(?:html|source|inline)?[ -]?code(?:char|block)?|.*(?:verbatim|preformatted).*|html(?:keyboard|sample)", re.I
)

_KINDS = {
    **dict.fromkeys(("hyperlink", "ins", "moveTo", "smartTag", "sdt", "dir", "bdo", "customXml"), Kind.GROUP),
    **dict.fromkeys(("bookmarkStart", "commentRangeStart", "permStart"), Kind.START),
    **dict.fromkeys(("bookmarkEnd", "commentRangeEnd", "permEnd", "commentReference"), Kind.END),
    **dict.fromkeys(("tab", "br", "cr", "ptab"), Kind.DIVIDER),
    **dict.fromkeys(("fldChar", "instrText"), Kind.FIELD),
    **dict.fromkeys(("fldSimple", "oMath", "del", "moveFrom"), Kind.THING),
}


def read_docx(data: bytes, _: ReadOptions) -> ArchiveDocument:
    """Read a Word document.

    Raises:
        BrokenDocumentError: It is damaged or no Word document.
        TandemError: As `Archive`.
    """
    archive = open_package(data, "wordprocessingml")
    return read_package(archive, {_STORIES: _read_story, _DRAWINGS: read_drawing})


def _read_story(tree: Tree) -> Document:
    holders: list[Holder] = []
    for element in tree.getroot().iter():
        if local_name(element) == "p" and "wordprocessingml" in str(element.tag) and not _is_code_paragraph(element):
            holders += find_paragraphs(element, _WORD.within(element))
    return TreeDocument(tree, [*holders, *find_drawing_texts(tree.getroot())])


def _is_code_paragraph(paragraph: Element) -> bool:
    properties = next((child for child in paragraph if local_name(child) == "pPr"), None)
    return _is_code(properties, "pStyle")


def _is_code(properties: Element | None, name: str = "rStyle") -> bool:
    """Say whether formatting names a style for code."""
    if properties is None:
        return False
    style = next((child for child in properties if local_name(child) == name), None)
    values = [] if style is None else [str(value) for value in style.attrib.values()]
    return any(_CODE_STYLE.fullmatch(value) for value in values)


# -- fields ----------------------------------------------------------------------------------------------------------


def _fold_fields(atoms: list[Atom]) -> list[Atom]:
    """Put the pieces of each field together: a link is a group around its words, any other field a thing."""
    folded: list[Atom] = []
    at = 0
    while at < len(atoms):
        end = _find_end(atoms, at)
        field = None if end is None else _fold(atoms[at:end])
        folded.append(field or atoms[at])
        at = end if end is not None and field is not None else at + 1
    return folded


def _find_end(atoms: Sequence[Atom], at: int) -> int | None:
    """Return the place behind the field that begins at a place; None where none does, or it has no end here."""
    if _mark_of(atoms[at]) != "begin":
        return None
    depth = 0
    for place in range(at, len(atoms)):
        depth += {"begin": 1, "end": -1}.get(_mark_of(atoms[place]), 0)
        if depth == 0:
            return place + 1
    return None


def _fold(atoms: Sequence[Atom]) -> Atom | None:
    marks = [_mark_of(atom) for atom in atoms]
    code = "".join(atom.element.text or "" for atom in atoms if atom.element is not None and atom.kind is Kind.FIELD)
    if not code.strip().upper().startswith("HYPERLINK") or "separate" not in marks:
        return Atom(Kind.THING, before=list(atoms))
    middle = marks.index("separate") + 1
    inside = list(atoms[middle:-1])
    if any(atom.kind in (Kind.DIVIDER, Kind.FIELD, Kind.START, Kind.END) for atom in inside):
        return None
    return Atom(Kind.GROUP, children=inside, before=list(atoms[:middle]), after=[atoms[-1]])


def _mark_of(atom: Atom) -> str:
    """Return what a field's mark says: "begin", "separate", "end"; "" for all else."""
    if atom.kind is not Kind.FIELD or atom.element is None:
        return ""
    return next((str(value) for name, value in atom.element.attrib.items() if str(name).endswith("fldCharType")), "")


_WORD = Dialect(
    run="r",
    properties="rPr",
    text="t",
    kinds=_KINDS,
    dropped=frozenset({"proofErr", "lastRenderedPageBreak", "softHyphen"}),
    ignored=frozenset({"rFonts@hint", "lang", "noProof"}),
    fold=_fold_fields,
    is_code=_is_code,
)
