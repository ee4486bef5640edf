"""Documents that are plain text inside: translations are put where the texts stood, and every other byte stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tandem.documents.document import SourceText
from tandem.documents.encodings import Content


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of the document that holds a text.

    Attributes:
        start: Offset of its first character.
        end: Offset behind it.
        source: The text, as a translator takes it.
        write: Gives a translation the form it must have at this place: escapes, quotes, line breaks.
    """

    start: int
    end: int
    source: SourceText
    write: Callable[[str], str] = _as_it_is


class SplicedDocument:
    """A text with slots.

    Args:
        content: The whole file.
        slots: In order, none touching another.
        languages: Start and end of every place that names the document's language.
    """

    def __init__(self, content: Content, slots: Sequence[Slot], languages: Sequence[tuple[int, int]] = ()) -> None:
        """Keep the parts."""
        self._content = content
        self._slots = slots
        self._languages = languages

    @property
    def texts(self) -> list[SourceText]:
        """The slots' texts."""
        return [slot.source for slot in self._slots]

    def render(self, translations: Sequence[str], target: str) -> bytes:
        """Return the file with all slots filled anew."""
        edits = [(start, end, target) for start, end in self._languages]
        edits += [
            (slot.start, slot.end, slot.write(text)) for slot, text in zip(self._slots, translations, strict=True)
        ]
        pieces: list[str] = []
        at = 0
        for start, end, text in sorted(edits, key=lambda edit: edit[0]):
            pieces += (self._content.text[at:start], text)
            at = end
        return self._content.encode("".join(pieces) + self._content.text[at:])
