"""PowerPoint: slides, notes, comments, charts and diagrams, and the layouts' own words without their placeholders."""

from __future__ import annotations

from tandem.documents.archives import ArchiveDocument
from tandem.documents.document import Document, ReadOptions
from tandem.documents.office import find_drawing_texts, open_package, read_drawing, read_package
from tandem.documents.trees import Element, Tree, TreeDocument, local_name

_SLIDES = r"ppt/(?:slides/slide|notesSlides/notesSlide|charts/chart|diagrams/(?:data|drawing))\d+\.xml"
_LAYOUTS = r"ppt/(?:slideLayouts/slideLayout|slideMasters/slideMaster)\d+\.xml"


def read_pptx(data: bytes, _: ReadOptions) -> ArchiveDocument:
    """Read a presentation.

    Raises:
        BrokenDocumentError: It is damaged or no presentation.
        TandemError: As `Archive`.
    """
    archive = open_package(data, "presentationml")
    return read_package(archive, {_SLIDES: read_drawing, _LAYOUTS: _read_layout})


def _read_layout(tree: Tree) -> Document:
    """Return the words of a layout that every slide shows; a placeholder's prompt is shown by none."""
    shapes = [element for element in tree.getroot().iter() if local_name(element) == "sp" and not _is_prompt(element)]
    return TreeDocument(tree, [holder for shape in shapes for holder in find_drawing_texts(shape)])


def _is_prompt(shape: Element) -> bool:
    return any(local_name(element) == "ph" for element in shape.iter())
