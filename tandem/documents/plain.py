"""Plain text and Markdown: pieces of whole lines, each small enough to show progress."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tandem.documents.document import ReadOptions, SourceText
from tandem.documents.encodings import decode
from tandem.documents.splicing import Slot, SplicedDocument
from tandem.text.scripts import has_letter

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PIECE_CHARS = 1500


def read_text(data: bytes, _: ReadOptions) -> SplicedDocument:
    """Read a plain text or Markdown.

    Raises:
        BrokenDocumentError: It is no text, or its encoding is not known.
    """
    content = decode(data)
    slots = [
        Slot(start, end, SourceText(content.text[start:end]))
        for start, end in _find_pieces(content.text)
        if has_letter(content.text[start:end])
    ]
    return SplicedDocument(content, slots)


def _find_pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield stretches of whole lines; none begins inside a fence or with what looks like front matter."""
    start, fence = 0, ""
    for match in _LINE.finditer(text):
        line = match[0]
        is_long = match.start() - start >= _PIECE_CHARS
        if not fence and is_long and not line.startswith("---") and _is_safe(text, start):
            yield start, match.start()
            start = match.start()
        opening = _FENCE.match(line)
        if fence:
            fence = "" if line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif opening:
            fence = opening[1]
    if start < len(text):
        yield start, len(text)


def _is_safe(text: str, start: int) -> bool:
    """Say whether the piece may end before its front matter, if it has any, has ended."""
    return start > 0 or not text.startswith("---") or "\n---" in text[3:_PIECE_CHARS]
