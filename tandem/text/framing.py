"""What stands around the words of a sentence: quotes that open it, stops that end it, emoji, lone tags.

They never reach the model (its stops do, and come back in the target's form), so they cannot be lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.text.languages import is_spaceless
from tandem.text.protection import Element, Kept, Marks, Node, Text
from tandem.text.punctuation import map_marks, split_marks, strip_end
from tandem.text.spans import Kind

_OUTSIDE = frozenset(
    {Kind.TAG, Kind.OPEN, Kind.CLOSE, Kind.EMOJI, Kind.KAOMOJI, Kind.INVISIBLE, Kind.MARKER, Kind.SYMBOL}
)
_OPENERS = re.compile(r"[“‘「『《【（(\"\[¿¡]+")
_CLOSER_OF = dict(zip('“‘「『《【（("[¿¡', '”’」』》】）)"]?!', strict=True))
_OPENING_FORM = {'"': "“", "'": "‘", "(": "（", "[": "【", "¿": "", "¡": ""}


@dataclass(frozen=True, slots=True)
class Frame:
    """A sentence and what stands around its words.

    Attributes:
        lead: Before the words.
        core: The words.
        marks: The stops that end it, as in the source; the model sees them.
        tail: Behind the words, the stops included.
    """

    lead: tuple[Node, ...]
    core: tuple[Node, ...]
    marks: str
    tail: tuple[Node, ...]

    def render(self, masked: str, marks: Marks, target: str) -> str:
        """Return the translation of the core with what stands around it.

        Args:
            masked: The core's translation.
            marks: Where kept spans are given their characters.
            target: Code of the target language.
        """
        lead = "".join(_render(node, marks, target, opens=True) for node in self.lead)
        body = strip_end(masked, self.marks)
        if not is_spaceless(target) and self._needs_space(body):
            body += " "
        tail = "".join(_render(node, marks, target, opens=False) for node in self.tail)
        if body.endswith(".") and tail.startswith(".") and not tail.startswith(".."):
            tail = tail[1:]
        if not is_spaceless(target) and lead[-1:] in tuple(",;:.!?") and body[:1].isalnum():
            lead += " "
        return lead + body + tail

    def _needs_space(self, body: str) -> bool:
        """Say whether an emoji behind the words would touch them."""
        first = self.tail[0] if self.tail else None
        return isinstance(first, Kept) and first.kind in (Kind.EMOJI, Kind.KAOMOJI) and body[-1:].isalnum()


def build_frame(nodes: Sequence[Node]) -> Frame:
    """Part the words of a sentence from what stands around them; markup around all of it is taken off too."""
    lead: list[Node] = []
    tail: list[Node] = []
    marks = ""
    core = list(nodes)
    while True:
        _peel_lead(core, lead)
        marks = _peel_tail(core, tail) + marks
        if len(core) != 1 or not isinstance(core[0], Element):
            break
        element = core[0]
        lead.append(Kept(element.open, Kind.OPEN))
        tail.insert(0, Kept(element.close, Kind.CLOSE))
        core = list(element.inner)
    return Frame(tuple(lead), tuple(core), marks, tuple(tail))


def _peel_lead(core: list[Node], lead: list[Node]) -> None:
    while core:
        node = core[0]
        if isinstance(node, Kept) and node.kind in _OUTSIDE and node.replacement is None:
            lead.append(core.pop(0))
            continue
        if not isinstance(node, Text):
            return
        mark = _leading(node.text, core)
        if mark:
            lead.append(Text(mark))
        if len(mark) < len(node.text):
            core[0] = Text(node.text[len(mark) :])
            return
        core.pop(0)


def _leading(text: str, core: Sequence[Node]) -> str:
    """Return the marks at the beginning; one that opens a quote only when nothing closes it within the words."""
    marks, words, _ = split_marks(text)
    rest = text[len(marks) :]
    openers = _OPENERS.match(rest)
    if openers is None:
        return marks
    inside = words[len(openers[0]) :] + "".join("x" if not isinstance(node, Text) else node.text for node in core[1:])
    closers = [_CLOSER_OF[opener] for opener in openers[0]]
    stripped = split_marks(inside)[1] if inside else ""
    return marks + openers[0] if not any(closer in stripped for closer in closers) else marks


def _peel_tail(core: list[Node], tail: list[Node]) -> str:
    """Take off what stands behind the words; return the stops among it."""
    marks = ""
    while core:
        node = core[-1]
        if isinstance(node, Kept) and node.kind in _OUTSIDE and node.replacement is None:
            tail.insert(0, core.pop())
            continue
        if not isinstance(node, Text):
            return marks
        lead, words, end = split_marks(node.text)
        if end or not words:
            tail.insert(0, Text(end if words else node.text))
            marks = (end if words else node.text) + marks
        if words:
            core[-1] = Text(lead + words)
            return marks
        core.pop()
    return marks


def _render(node: Node, marks: Marks, target: str, *, opens: bool) -> str:
    if isinstance(node, Kept):
        return marks.add(node.shown)
    if not isinstance(node, Text):
        return ""
    if opens and is_spaceless(target):
        return "".join(_OPENING_FORM.get(character) or map_marks(character, target) for character in node.text)
    return map_marks(node.text, target)
