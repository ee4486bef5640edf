"""Where in a translation markup and invisible characters go when the model was not shown them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tandem.text.languages import is_spaceless
from tandem.text.protection import Element, Kept, Marks, Node, source_of
from tandem.text.punctuation import KEPT

_MARK = re.compile(f"[{KEPT}]")


def wrap_elements(masked: str, elements: Sequence[Element], insides: Sequence[str], marks: Marks) -> str | None:
    """Return a translation with the words of each element wrapped in its marks; None when they cannot be found.

    Args:
        masked: The sentence's translation.
        elements: In the order of the source.
        insides: What the words inside each are when translated by themselves.
        marks: Where kept spans are given their characters.
    """
    places: list[tuple[int, int, Element]] = []
    for element, inside in zip(elements, insides, strict=True):
        found = _find_words(masked, inside)
        if found is None or any(found[0] < end and start < found[1] for start, end, _ in places):
            return None
        places.append((*found, element))
    for start, end, element in sorted(places, key=lambda place: place[0], reverse=True):
        masked = masked[:start] + marks.add_element(element, masked[start:end]) + masked[end:]
    return masked


def _find_words(masked: str, inside: str) -> tuple[int, int] | None:
    words = inside.strip().rstrip(".。!！?？")
    if not words or _MARK.search(words):
        return None
    start, end = (
        (r"(?<![A-Za-z0-9])" if words[0].isascii() else ""),
        (r"(?![A-Za-z0-9])" if words[-1].isascii() else ""),
    )
    pattern = start + r"\s?".join(re.escape(word) for word in words.split()) + end
    found = [match.span() for match in re.finditer(pattern, masked, re.IGNORECASE)]
    return found[0] if len(found) == 1 else None


def place_silent(nodes: Sequence[Node], masked: str, marks: Marks, target: str) -> str:
    """Return a translation with the characters that show nothing put back, at the same share of its length."""
    places: list[tuple[int, Kept]] = []
    length = 0
    for node in nodes:
        if isinstance(node, Kept) and node.is_silent:
            places.append((length, node))
        else:
            length += len(source_of([node]))
    parts: list[str] = []
    done = 0
    for place, node in places:
        at = round(place / max(length, 1) * len(masked))
        at = max(at if is_spaceless(target) else _next_blank(masked, at), done)
        parts += (masked[done:at], marks.add(node.shown))
        done = at
    return "".join(parts) + masked[done:]


def _next_blank(text: str, at: int) -> int:
    blank = text.find(" ", at)
    return blank if blank >= 0 else len(text)
