"""The table of formats: which extensions there are, and what reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from tandem.documents.csv_columns import read_csv
from tandem.documents.document import Document, Reader, ReadOptions
from tandem.documents.docx import read_docx
from tandem.documents.epub import read_epub
from tandem.documents.errors import BrokenDocumentError, EncryptedDocumentError, UnsupportedDocumentError
from tandem.documents.html import read_html
from tandem.documents.json_values import read_json
from tandem.documents.plain import read_text
from tandem.documents.po import read_po
from tandem.documents.pptx import read_pptx
from tandem.documents.subtitles import read_subtitles
from tandem.documents.xliff import read_xliff
from tandem.documents.xlsx import read_xlsx

_ZIP, _OLD_OFFICE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BINARY = {_ZIP: "a ZIP archive", _OLD_OFFICE: "an old Office file", b"%PDF": "a PDF", b"\x1f\x8b": "a gzip archive"}
_OFFICE = "application/vnd.openxmlformats-officedocument"


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    Attributes:
        extensions: With their dots, lower case; the first is the usual one.
        media_type: Of the file in an HTTP response.
        read: Takes such a file apart.
        is_archive: It is a ZIP archive.
    """

    extensions: tuple[str, ...]
    media_type: str
    read: Reader
    is_archive: bool = False


FORMATS = (
    Format((".txt", ".text"), "text/plain", read_text),
    Format((".md", ".markdown"), "text/markdown", read_text),
    Format((".srt",), "application/x-subrip", read_subtitles),
    Format((".vtt",), "text/vtt", read_subtitles),
    Format((".html", ".htm", ".xhtml"), "text/html", read_html),
    Format((".docx",), f"{_OFFICE}.wordprocessingml.document", read_docx, is_archive=True),
    Format((".pptx",), f"{_OFFICE}.presentationml.presentation", read_pptx, is_archive=True),
    Format((".xlsx",), f"{_OFFICE}.spreadsheetml.sheet", read_xlsx, is_archive=True),
    Format((".epub",), "application/epub+zip", read_epub, is_archive=True),
    Format((".po", ".pot"), "text/x-gettext-translation", read_po),
    Format((".xliff", ".xlf"), "application/xliff+xml", read_xliff),
    Format((".json",), "application/json", read_json),
    Format((".csv", ".tsv"), "text/csv", read_csv),
)
_BY_EXTENSION = {extension: format for format in FORMATS for extension in format.extensions}


def supported_extensions() -> list[str]:
    """Return the extensions of all files that can be translated."""
    return list(_BY_EXTENSION)


def find_format(name: str) -> Format:
    """Return the format that a file's name tells.

    Raises:
        UnsupportedDocumentError: There is none; the message names those there are.
    """
    extension = PurePath(name).suffix.lower()
    format = _BY_EXTENSION.get(extension)
    if format is None:
        known = ", ".join(supported_extensions())
        what = f"ending in {extension[:20]}" if extension else "without an extension"
        raise UnsupportedDocumentError(f"Files {what} cannot be translated. These can: {known}.")
    return format


def read_document(data: bytes, name: str, options: ReadOptions | None = None) -> Document:
    """Take a file apart.

    Args:
        data: The file.
        name: Its name; the extension decides.
        options: What may be chosen about tables.

    Raises:
        UnsupportedDocumentError: The extension is none of ours.
        BrokenDocumentError: The file is damaged, or is not what its extension says.
        EncryptedDocumentError: It can be read with a password only.
        TooLargeError: It unpacks to too much.
        UnprocessableError: A chosen column does not exist.
    """
    format = find_format(name)
    if not data.strip(b"\0 \t\r\n"):
        raise BrokenDocumentError("The file is empty.")
    _check_beginning(data, format)
    return format.read(data, options or ReadOptions())


def _check_beginning(data: bytes, format: Format) -> None:
    extension = format.extensions[0]
    if format.is_archive and data.startswith(_OLD_OFFICE):
        raise EncryptedDocumentError(
            f"The file is protected by a password, or is an old Office file. Save it as {extension} without password."
        )
    if format.is_archive and not data.startswith(_ZIP):
        raise BrokenDocumentError(f"The file is not a {extension} file, or is damaged: it is no ZIP archive.")
    found = None if format.is_archive else next((what for mark, what in _BINARY.items() if data.startswith(mark)), None)
    if found:
        raise BrokenDocumentError(f"The file is {found}, not a {extension} file. Is its extension right?")
