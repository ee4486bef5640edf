"""Putting a text together again, all at once or sentence by sentence as translations arrive in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tandem.text.gluing import lower_first
from tandem.text.parts import Gap, Literal, Part, SegmentSource


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a segment's translation stands in the whole translation.

    Attributes:
        text: The translation as it stands there; a sentence that was divided goes on in lower case.
        start: Offset of its first character.
        end: Offset behind it.
        utf16_start: The same in UTF-16 units, as a browser counts.
        utf16_end: The same in UTF-16 units.
    """

    text: str
    start: int
    end: int
    utf16_start: int
    utf16_end: int


class Joiner:
    """Takes translations in the order of their segments and knows where each will stand.

    Args:
        parts: The text.
        spaceless: Whether the target writes no space between sentences.
    """

    def __init__(self, parts: Sequence[Part], *, spaceless: bool) -> None:
        """Begin with nothing translated."""
        self._parts = parts
        self._spaceless = spaceless
        self._at = 0
        self._pieces: list[str] = []
        self._last = ""
        self._length = 0
        self._utf16 = 0

    def add(self, translation: str) -> Placement:
        """Take the next segment's translation.

        Raises:
            ValueError: There is no further segment.
        """
        self._write_rest_until_segment()
        if self._at == len(self._parts):
            raise ValueError("there are more translations than segments")
        part = self._parts[self._at]
        continues = isinstance(part, SegmentSource) and part.continues and not self._spaceless
        start, utf16_start = self._length, self._utf16
        written = lower_first(translation) if continues else translation
        self._write(written)
        self._at += 1
        return Placement(written, start, self._length, utf16_start, self._utf16)

    def finish(self) -> str:
        """Return the whole translation.

        Raises:
            ValueError: A segment has no translation yet.
        """
        self._write_rest_until_segment()
        if self._at < len(self._parts):
            raise ValueError("there are fewer translations than segments")
        return "".join(self._pieces)

    def _write_rest_until_segment(self) -> None:
        while self._at < len(self._parts):
            part = self._parts[self._at]
            if isinstance(part, SegmentSource):
                return
            self._write(part.text if isinstance(part, Literal) else self._space(part))
            self._at += 1

    def _space(self, gap: Gap) -> str:
        following = self._parts[self._at + 1] if self._at + 1 < len(self._parts) else None
        return gap.between(self._last, following, spaceless=self._spaceless)

    def _write(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)
        self._utf16 += utf16_length(piece)
        self._last = piece or self._last


def utf16_length(text: str) -> int:
    """Return a text's length in UTF-16 units."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)


def utf16_offsets(text: str, offsets: Iterable[int]) -> list[int]:
    """Return rising offsets into a text in UTF-16 units."""
    converted, at, units = [], 0, 0
    for offset in offsets:
        units += utf16_length(text[at:offset])
        at = offset
        converted.append(units)
    return converted
