"""EPUB: chapters, navigation and the book's title. Images, fonts, styles and their order in the archive stay."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from tandem.documents.archives import Archive, ArchiveDocument
from tandem.documents.document import Document, ReadOptions
from tandem.documents.errors import BrokenDocumentError, EncryptedDocumentError
from tandem.documents.html import read_html
from tandem.documents.trees import XML_LANG, Element, TextHolder, Tree, TreeDocument, local_name, parse_xml
from tandem.text.scripts import has_letter

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_CHAPTER, _CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"
_WORDS = {"title", "description", "subject"}  # of the metadata


def read_epub(data: bytes, options: ReadOptions) -> ArchiveDocument:
    """Read a book.

    Raises:
        BrokenDocumentError: It is damaged or no book.
        EncryptedDocumentError: Its chapters are encrypted.
        TandemError: As `Archive`.
    """
    archive = Archive(data)
    if _CONTAINER not in archive.names:
        raise BrokenDocumentError("The file is not an EPUB book. Is its extension right?")
    package = _find_package(archive)
    tree = parse_xml(archive.read(package))
    chapters = list(_find_items(tree, package, _CHAPTER, archive))
    if set(chapters) & set(_find_encrypted(archive)):
        raise EncryptedDocumentError("The book is protected (DRM), and its chapters cannot be read.")
    parts: dict[str, Document] = {package: TreeDocument(tree, list(_find_metadata(tree)), _name_language)}
    for name in _find_items(tree, package, _CONTENTS, archive):
        contents = parse_xml(archive.read(name))
        parts[name] = TreeDocument(contents, list(_find_entries(contents)), _name_root_language)
    for name in chapters:
        parts[name] = read_html(archive.read(name), options)
    return ArchiveDocument(archive, parts)


def _find_package(archive: Archive) -> str:
    root = parse_xml(archive.read(_CONTAINER)).getroot()
    files = [element.get("full-path", "") for element in root.iter() if local_name(element) == "rootfile"]
    if not files or files[0] not in archive.names:
        raise BrokenDocumentError("The book is damaged: its table of files is missing.")
    return files[0]


def _find_items(tree: Tree, package: str, media_type: str, archive: Archive) -> Iterator[str]:
    """Yield the names of a book's files of a type."""
    folder = posixpath.dirname(package)
    known = set(archive.names)
    for element in tree.getroot().iter():
        if local_name(element) == "item" and element.get("media-type") == media_type:
            name = posixpath.normpath(posixpath.join(folder, unquote(element.get("href", ""))))
            if name in known:
                yield name


def _find_encrypted(archive: Archive) -> Iterator[str]:
    if _ENCRYPTION in archive.names:
        root = parse_xml(archive.read(_ENCRYPTION)).getroot()
        yield from (unquote(e.get("URI", "")) for e in root.iter() if local_name(e) == "CipherReference")


def _find_metadata(tree: Tree) -> Iterator[TextHolder]:
    for element in tree.getroot().iter():
        if "purl.org/dc/" in str(element.tag) and local_name(element) in _WORDS and has_letter(element.text or ""):
            yield TextHolder(element)


def _find_entries(tree: Tree) -> Iterator[TextHolder]:
    for element in tree.getroot().iter():
        if local_name(element) == "text" and has_letter(element.text or ""):
            yield TextHolder(element)


def _name_language(tree: Tree, target: str) -> None:
    for element in tree.getroot().iter():
        if "purl.org/dc/" in str(element.tag) and local_name(element) == "language":
            element.text = target
    _name_root_language(tree, target)


def _name_root_language(tree: Tree, target: str) -> None:
    root: Element = tree.getroot()
    if XML_LANG in root.attrib:
        root.set(XML_LANG, target)
