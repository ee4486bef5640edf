"""What a text is taken apart into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tandem.text.protection import Node
from tandem.text.scripts import CJK_MARKS, HAN, KANA

_CJK_END = re.compile(f"[{HAN}{KANA}{CJK_MARKS}]\\Z")
_CLOSING = tuple(",.;:!?)]}»")


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that is the same on both sides, or was rewritten without a model."""

    text: str


@dataclass(frozen=True, slots=True)
class SegmentSource:
    """A sentence for the model.

    Attributes:
        start: Offset in the text.
        end: Offset behind it.
        nodes: Its words and kept spans.
        continues: It goes on where the part before it was cut.
        escapes: Characters that the translation must write otherwise, and how.
    """

    start: int
    end: int
    nodes: tuple[Node, ...]
    continues: bool = False
    escapes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """What stands between two sentences of a line: nothing, or white space."""

    text: str

    def between(self, before: str, following: Part | None, *, spaceless: bool) -> str:
        """Return what stands between their translations.

        Args:
            before: The translation before it.
            following: The part after it.
            spaceless: Whether the target writes no space between sentences.
        """
        if spaceless:
            return (
                ""
                if self.text == " " and _CJK_END.search(before) and isinstance(following, SegmentSource)
                else self.text
            )
        if self.text or not before or before[-1:].isspace():
            return self.text
        starts = following.text if isinstance(following, Literal) else "x"
        return "" if not starts or starts[0].isspace() or starts.startswith(_CLOSING) else " "


Part = Literal | SegmentSource | Gap
