"""The nouns of this package: a document, its texts, and what may be chosen when it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

TEXT, HTML, XML = "text", "html", "xml"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text of a document: a paragraph, a cell, a cue.

    Attributes:
        text: As a translator takes it.
        format: "text", "html" or "xml"; the translation is in the same one.
    """

    text: str
    format: str = TEXT


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What may be chosen about a document; only tables look at it.

    Attributes:
        columns: Names or numbers from 1 of the columns to translate; empty for all.
        has_header: The first row holds the columns' names, which stay as they are.
    """

    columns: tuple[str, ...] = ()
    has_header: bool = True


class Document(Protocol):
    """A file taken apart."""

    @property
    def texts(self) -> Sequence[SourceText]:
        """What is to be translated, in the order of the document."""
        ...

    def render(self, translations: Sequence[str], target: str) -> bytes:
        """Return the file with its texts translated; to be called once.

        Args:
            translations: One for each text, in order.
            target: Code of the language they are in.
        """
        ...


Reader = Callable[[bytes, ReadOptions], Document]
Translate = Callable[[Sequence[str], str], Sequence[str]]


def translate_document(document: Document, translate: Translate, target: str) -> bytes:
    """Translate a whole document at once.

    Args:
        document: The document.
        translate: Takes texts and their format, gives the translations in order.
        target: Code of the language it translates into.
    """
    translations = [""] * len(document.texts)
    for format in dict.fromkeys(text.format for text in document.texts):
        places = [place for place, text in enumerate(document.texts) if text.format == format]
        for place, translation in zip(
            places, translate([document.texts[place].text for place in places], format), strict=True
        ):
            translations[place] = translation
    return document.render(translations, target)
