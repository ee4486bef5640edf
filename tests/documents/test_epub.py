"""EPUB books, made and read with ebooklib."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path

import pytest
from lxml import etree

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ebooklib import epub

from tandem.documents.errors import BrokenDocumentError, EncryptedDocumentError
from tests.documents.support import altered, pack, read, translate, unpack


@pytest.fixture
def book(tmp_path: Path) -> bytes:
    """A book of one chapter, with an image."""
    made = epub.EpubBook()
    made.set_identifier("id-1")
    made.set_title("the book")
    made.set_language("en")
    made.add_author("Ann Author")
    chapter = epub.EpubHtml(title="Intro", file_name="text/c 1.xhtml", lang="en")
    chapter.content = '<h1>Intro text</h1><p>Hello <i>you</i> &#8212; there.<br/><img src="../i.png" alt="x"/></p>'
    made.add_item(chapter)
    made.add_item(epub.EpubItem(file_name="i.png", media_type="image/png", content=b"\x89PNG\x00"))
    made.toc = (chapter,)
    made.add_item(epub.EpubNcx())
    made.add_item(epub.EpubNav())
    made.spine = ["nav", chapter]
    path = tmp_path / "made.epub"
    epub.write_epub(path, made)
    return path.read_bytes()


def test_chapters_contents_and_title_are_translated(book: bytes, tmp_path: Path) -> None:
    path = tmp_path / "result.epub"
    path.write_bytes(translate(book, "a.epub"))
    result = epub.read_epub(path)
    assert result.get_metadata("DC", "title")[0][0] == "THE BOOK"
    assert result.get_metadata("DC", "language")[0][0] == "zh"
    assert result.get_metadata("DC", "creator")[0][0] == "Ann Author"
    entries = unpack(path.read_bytes())
    chapter = entries["EPUB/text/c 1.xhtml"].decode()
    assert "<h1>INTRO TEXT</h1>" in chapter
    assert "HELLO <i>YOU</i>" in chapter
    assert '<img src="../i.png" alt="x"/>' in chapter
    assert 'xml:lang="zh"' in chapter
    assert b"INTRO" in entries["EPUB/toc.ncx"]
    assert b"INTRO" in entries["EPUB/nav.xhtml"]


def test_chapters_are_still_well_formed(book: bytes) -> None:
    for name, data in unpack(translate(book, "a.epub")).items():
        if name.endswith((".xhtml", ".opf", ".ncx")):
            etree.fromstring(data)


def test_the_archive_begins_with_its_type_unpacked_and_keeps_its_images(book: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(translate(book, "a.epub"))) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.read("EPUB/i.png") == b"\x89PNG\x00"


def test_a_protected_book_is_refused(book: bytes) -> None:
    encryption = b"""<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
        <EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData>
            <CipherReference URI="EPUB/text/c%201.xhtml"/>
        </CipherData></EncryptedData></encryption>"""
    with pytest.raises(EncryptedDocumentError, match="DRM"):
        read(pack(unpack(book) | {"META-INF/encryption.xml": encryption}), "a.epub")


def test_an_archive_that_is_no_book_is_refused(book: bytes) -> None:
    with pytest.raises(BrokenDocumentError, match="not an EPUB"):
        read(pack({"a.txt": b"words"}), "a.epub")
    with pytest.raises(BrokenDocumentError, match="table of files"):
        read(altered(book, "META-INF/container.xml", b"EPUB/content.opf", b"EPUB/missing.opf"), "a.epub")


def test_a_chapter_that_declares_entities_is_refused(book: bytes) -> None:
    laughs = b'<!DOCTYPE html [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    with pytest.raises(BrokenDocumentError, match="entities"):
        read(altered(book, "EPUB/text/c 1.xhtml", b"<!DOCTYPE html>", laughs), "a.epub")
