"""CSV and TSV: the cells of chosen columns. Quotes, delimiters and line ends of all others stay byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tandem.core.errors import UnprocessableError
from tandem.documents.document import ReadOptions, SourceText
from tandem.documents.encodings import decode
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.splicing import Slot, SplicedDocument
from tandem.text.scripts import has_letter

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 20


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell with its place.

    Attributes:
        row: From 0.
        column: From 0.
        start: Offset in the file; the quotes are inside.
        end: Offset behind it.
        text: Without quotes.
        is_quoted: Whether it had them.
    """

    row: int
    column: int
    start: int
    end: int
    text: str
    is_quoted: bool


def read_csv(data: bytes, options: ReadOptions) -> SplicedDocument:
    """Read a table.

    Raises:
        BrokenDocumentError: A quote is never closed.
        UnprocessableError: A chosen column does not exist.
    """
    content = decode(data)
    delimiter = _find_delimiter(content.text)
    cells = list(_find_cells(content.text, delimiter))
    chosen = _choose_columns(cells, options)
    first = 1 if options.has_header else 0
    slots = [
        _slot(cell, delimiter)
        for cell in cells
        if cell.row >= first and cell.column in chosen and has_letter(cell.text)
    ]
    return SplicedDocument(content, slots)


def _find_delimiter(text: str) -> str:
    """Return the delimiter of which the first lines have most, outside quotes."""
    bare = re.sub(r'"[^"]*+(?:""[^"]*+)*+"', "", text[:100_000])
    lines = bare.splitlines()[:_SAMPLE_LINES]
    return max(_DELIMITERS, key=lambda delimiter: sum(line.count(delimiter) for line in lines))


def _find_cells(text: str, delimiter: str) -> Iterator[_Cell]:
    mark = re.escape(delimiter)
    pattern = re.compile(
        rf'(?:"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"|(?P<bare>[^{mark}\r\n"][^{mark}\r\n]*+|))(?P<end>{mark}|\r?\n|\r|\Z)'
    )
    at, row, column = 0, 0, 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            raise BrokenDocumentError(f"The table is damaged: a quote in row {row + 1} is not closed properly.")
        quoted = match["quoted"]
        raw = match["bare"] if quoted is None else quoted.replace('""', '"')
        yield _Cell(row, column, at, match.start("end"), raw, quoted is not None)
        at = match.end()
        row, column = (row, column + 1) if match["end"] == delimiter else (row + 1, 0)


def _choose_columns(cells: Sequence[_Cell], options: ReadOptions) -> frozenset[int]:
    """Return the columns to translate, from 0."""
    width = max((cell.column for cell in cells), default=-1) + 1
    if not options.columns:
        return frozenset(range(width))
    names = {cell.text.strip(): cell.column for cell in reversed(cells) if cell.row == 0} if options.has_header else {}
    return frozenset(_find_column(wanted.strip(), names, width) for wanted in options.columns)


def _find_column(wanted: str, names: dict[str, int], width: int) -> int:
    if wanted in names:
        return names[wanted]
    if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= width:
        return int(wanted) - 1
    raise UnprocessableError(f"A chosen column does not exist. Give column names, or numbers from 1 to {width}.")


def _slot(cell: _Cell, delimiter: str) -> Slot:
    def write(text: str) -> str:
        if cell.is_quoted or any(character in text for character in (delimiter, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text

    return Slot(cell.start, cell.end, SourceText(cell.text), write)
