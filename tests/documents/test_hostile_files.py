"""Files that are broken, or built to harm: each gets a clear error, at once and with little memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import docx
import pytest

from tandem.core.errors import TandemError, TooLargeError
from tandem.documents import archives, html
from tandem.documents.errors import BrokenDocumentError, EncryptedDocumentError, UnsupportedDocumentError
from tandem.documents.formats import FORMATS, find_format, supported_extensions
from tests.documents.support import altered, pack, read, unpack

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
_LAUGHS = (
    b'<!DOCTYPE x [<!ENTITY a "ha ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)
_ARCHIVES = [format.extensions[0] for format in FORMATS if format.is_archive]
_TEXTS = [format.extensions[0] for format in FORMATS if not format.is_archive]


@pytest.fixture
def word() -> bytes:
    """A small Word document."""
    document = docx.Document()
    document.add_paragraph("some words")
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def test_an_extension_that_is_not_known_names_those_that_are() -> None:
    with pytest.raises(UnsupportedDocumentError, match=r"\.docx.*\.csv") as caught:
        find_format("report.pdf")
    assert caught.value.status == 415
    with pytest.raises(UnsupportedDocumentError):
        find_format("docx")


def test_extensions_may_be_in_capitals() -> None:
    assert find_format("A.DOCX") is find_format("a.docx")
    assert len(supported_extensions()) == len(set(supported_extensions()))


@pytest.mark.parametrize("extension", _ARCHIVES)
def test_an_old_or_encrypted_office_file_is_told_from_a_broken_one(extension: str) -> None:
    with pytest.raises(EncryptedDocumentError, match="password") as caught:
        read(_OLE, f"a{extension}")
    assert caught.value.status == 422


@pytest.mark.parametrize("extension", _ARCHIVES)
@pytest.mark.parametrize("data", [b"just some text", b"PK\x03\x04 cut", b"%PDF-1.7", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_refused(extension: str, data: bytes) -> None:
    with pytest.raises(BrokenDocumentError):
        read(data, f"a{extension}")


@pytest.mark.parametrize("extension", _TEXTS)
@pytest.mark.parametrize("data", [_OLE, b"%PDF-1.7\nx", pack({"a": b"b"}), b"\x1f\x8b\x08\x00", b"", b" \n"])
def test_a_binary_or_empty_file_is_no_text(extension: str, data: bytes) -> None:
    with pytest.raises(BrokenDocumentError):
        read(data, f"a{extension}")


def test_an_office_file_of_another_kind_is_named(word: bytes) -> None:
    with pytest.raises(BrokenDocumentError, match=r"but a Word document \(\.docx\)"):
        read(word, "a.xlsx")
    with pytest.raises(BrokenDocumentError, match="not a PowerPoint"):
        read(pack({"a.txt": b"words"}), "a.pptx")


@pytest.mark.parametrize("cut", [100, 1000, 10_000])
def test_a_file_that_was_cut_short_is_broken(word: bytes, cut: int) -> None:
    with pytest.raises(BrokenDocumentError):
        read(word[:cut], "a.docx")


def test_damaged_bytes_inside_are_noticed(word: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(word)) as archive:
        at = archive.getinfo("word/document.xml").header_offset + 60
    with pytest.raises(BrokenDocumentError):
        read(word[:at] + bytes(byte ^ 0xFF for byte in word[at : at + 40]) + word[at + 40 :], "a.docx")


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = pack({"word/document.xml": bytes(64 << 20)})
    assert len(bomb) < 100_000
    tracemalloc.start()
    with pytest.raises(TooLargeError, match="ZIP bomb") as caught:
        read(bomb, "a.docx")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.status == 413
    assert peak < 4 << 20


def test_too_many_parts_and_too_large_a_whole_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 3)
    with pytest.raises(TooLargeError, match="4 parts"):
        read(pack({str(number): b"" for number in range(4)}), "a.docx")
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 2 << 20)
    with pytest.raises(TooLargeError, match="unpacks to 3 MiB"):
        read(pack({str(number): bytes(1 << 20) for number in range(3)}, zipfile.ZIP_STORED), "a.docx")


def test_a_part_that_is_too_large_for_a_tree_is_refused(word: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_PART_BYTES", 100)
    with pytest.raises(TooLargeError, match="Split the file"):
        read(word, "a.docx")


def test_a_size_that_lies_is_noticed(word: bytes) -> None:
    at = word.index(b"PK\x01\x02")
    lying = word[: at + 24] + struct.pack("<L", 1) + word[at + 28 :]
    with pytest.raises(TandemError):
        read(lying, "a.docx").render([], "zh")


def test_parts_that_overlap_or_have_one_name_are_refused() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    with pytest.raises(BrokenDocumentError, match="one name"):
        read(target.getvalue(), "a.docx")
    data = bytearray(pack({"a": b"1" * 50, "b": b"2" * 50}, zipfile.ZIP_STORED))
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<L", 10)
    with pytest.raises(BrokenDocumentError):
        read(bytes(data), "a.docx")


def test_entries_with_a_password_are_refused(word: bytes) -> None:
    data = bytearray(word)
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    with pytest.raises(EncryptedDocumentError, match="password"):
        read(bytes(data), "a.docx")


def test_packing_that_no_office_program_uses_is_refused() -> None:
    with pytest.raises(BrokenDocumentError, match="no office program"):
        read(pack({"a": b"x" * 100}, zipfile.ZIP_LZMA), "a.docx")


@pytest.mark.parametrize("doctype", [_LAUGHS, b'<!DOCTYPE x SYSTEM "file:///etc/passwd">'])
def test_entities_in_an_office_file_are_refused(word: bytes, doctype: bytes) -> None:
    entries = unpack(word)
    declaration, _, body = entries["word/document.xml"].partition(b"?>")
    hostile = pack(entries | {"word/document.xml": declaration + b"?>" + doctype + body})
    with pytest.raises(BrokenDocumentError, match=r"entities|document type"):
        read(hostile, "a.docx")


@pytest.mark.parametrize("entity", ['"ha ha"', 'SYSTEM "file:///etc/passwd"', 'SYSTEM "http://127.0.0.1:9/x"'])
def test_entities_in_xliff_are_refused_and_nothing_is_read(entity: str) -> None:
    data = (
        f'<!DOCTYPE xliff [<!ENTITY x {entity}>]><xliff version="1.2"><file><body><trans-unit id="1">'
        "<source>words &x;</source></trans-unit></body></file></xliff>"
    )
    with pytest.raises(BrokenDocumentError, match="entities"):
        read(data.encode(), "a.xlf")
    with pytest.raises(BrokenDocumentError, match="entities"):
        read(data.encode("utf-16"), "a.xlf")


def test_a_page_that_declares_entities_is_refused() -> None:
    with pytest.raises(BrokenDocumentError, match="entities"):
        read(_LAUGHS + b"<p>words &c;</p>", "a.xhtml")


def test_a_page_that_is_too_large_for_the_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MAX_PAGE_BYTES", 100)
    with pytest.raises(TooLargeError, match="Split it"):
        read(b"<p>some words</p>" * 10, "a.html")


def test_broken_xml_inside_is_named(word: bytes) -> None:
    with pytest.raises(BrokenDocumentError, match="well-formed"):
        read(altered(word, "word/document.xml", b"</w:body>", b""), "a.docx")


def test_very_deep_xml_is_refused(word: bytes) -> None:
    deep = b"<w:smartTag>" * 5000 + b"</w:smartTag>" * 5000
    with pytest.raises(BrokenDocumentError):
        read(altered(word, "word/document.xml", b"</w:body>", deep + b"</w:body>"), "a.docx")


def test_no_error_message_holds_words_of_the_file(word: bytes) -> None:
    files = {
        "a.json": b'{"secret words": }',
        "a.csv": b'a,"secret words',
        "a.srt": b"secret words",
        "a.po": b"secret words",
    }
    for name, data in files.items():
        with pytest.raises(TandemError) as caught:
            read(data, name)
        assert "secret" not in str(caught.value)
