"""JSON: the values that are strings. Keys, numbers, order and white space stay byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from tandem.documents.document import ReadOptions, SourceText
from tandem.documents.encodings import Content, decode
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.splicing import Slot, SplicedDocument
from tandem.text.scripts import has_letter

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?P<key>\s*:)?')


def read_json(data: bytes, _: ReadOptions) -> SplicedDocument:
    """Read a JSON file.

    Raises:
        BrokenDocumentError: It is not valid JSON.
    """
    content = decode(data)
    try:
        json.loads(content.text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise BrokenDocumentError(f"The file is not valid JSON{where}.") from None
    is_escaped = content.text.isascii() and "\\u" in content.text

    def write(text: str) -> str:
        return json.dumps(text, ensure_ascii=is_escaped)

    return SplicedDocument(content, [slot for slot in _find_values(content, write) if has_letter(slot.source.text)])


def _find_values(content: Content, write: Callable[[str], str]) -> Iterator[Slot]:
    # In valid JSON a quote outside a string begins one, and a string before a colon is a key.
    for match in _STRING.finditer(content.text):
        if match["key"] is None:
            yield Slot(match.start(), match.end(), SourceText(json.loads(match[0])), write)
