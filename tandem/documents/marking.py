"""A sentence with formatting as XML: numbered tags stand for what is not text, and come back around the right words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from lxml import etree


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag of a translated sentence.

    Attributes:
        thing: What it stands for.
        children: The text and the tags inside it.
    """

    thing: Any
    children: list[str | Mark] = field(default_factory=list)


class MarkedText:
    """Writes a sentence with tags, and reads its translation."""

    def __init__(self) -> None:
        """Begin an empty one."""
        self._parts: list[str] = []
        self._things: list[Any] = []

    @property
    def text(self) -> str:
        """The sentence as XML content."""
        return "".join(self._parts)

    def add_text(self, text: str) -> None:
        """Append words."""
        self._parts.append(escape(text))

    def add_mark(self, thing: Any) -> None:
        """Append something that stands by itself."""
        self._parts.append(f"<x{self._number(thing)}/>")

    def open_mark(self, thing: Any) -> int:
        """Begin something that is around words; gives the number to close it with."""
        number = self._number(thing)
        self._parts.append(f"<g{number}>")
        return number

    def close_mark(self, number: int) -> None:
        """End something that is around words."""
        self._parts.append(f"</g{number}>")

    def read(self, translation: str) -> list[str | Mark]:
        """Return a translation as text and marks; what it has lost of those that stand alone is at the end."""
        try:
            root = etree.fromstring(f"<r>{translation}</r>", etree.XMLParser(resolve_entities=False, no_network=True))
        except etree.XMLSyntaxError:
            return [translation, *(Mark(thing) for thing in self._things)]
        seen: set[int] = set()
        nodes = list(self._nodes(root, seen))
        lost = [Mark(thing) for number, thing in enumerate(self._things, 1) if number not in seen]
        return nodes + lost

    def _number(self, thing: Any) -> int:
        self._things.append(thing)
        return len(self._things)

    def _nodes(self, element: etree._Element, seen: set[int]) -> Iterator[str | Mark]:
        if element.text:
            yield element.text
        for child in element:
            number = int(child.tag[1:]) if isinstance(child.tag, str) and child.tag[1:].isdigit() else 0
            if 0 < number <= len(self._things) and number not in seen:
                seen.add(number)
                yield Mark(self._things[number - 1], list(self._nodes(child, seen)))
            else:
                yield from self._nodes(child, seen)
            if child.tail:
                yield child.tail
