"""What the text layer must know of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tandem.text.segmentation import Limit
from tandem.text.stand_ins import StandIns, build_stand_ins


@dataclass(frozen=True)
class TextProfile:
    """A model as the text layer sees it; one for each loaded model.

    Attributes:
        source_lang: Code of its source language.
        count_tokens: Returns the source tokens of a text.
        max_tokens: Source tokens of one segment. Its translation must fit the model's output limit too: 0.6 of that
            limit is safe.
        knows: Says whether every subword of a text is in the source vocabulary.
    """

    source_lang: str
    count_tokens: Callable[[str], int]
    max_tokens: int
    knows: Callable[[str], bool] = lambda _: True

    @property
    def limit(self) -> Limit:
        """How much one segment may have."""
        return Limit(self.count_tokens, self.max_tokens)

    @cached_property
    def stand_ins(self) -> StandIns:
        """Tokens that stand for kept spans."""
        return build_stand_ins(self.source_lang, self.knows)
