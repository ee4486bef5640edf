"""What the text layer must know of a model."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

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


def build_profile(
    source_lang: str, tokenize: Callable[[str], Sequence[str]], vocabulary: Container[str], max_tokens: int
) -> TextProfile:
    """Return a model's profile from its tokenizer.

    Args:
        source_lang: Code of its source language.
        tokenize: Returns the source subwords of a text; those that end no word end with "@@".
        vocabulary: The source subwords it knows.
        max_tokens: Of one segment; see `TextProfile`.
    """

    @lru_cache(maxsize=65_536)
    def is_safe(character: str) -> bool:
        """Say whether a character is spelled wherever it stands, so that no text of such need be tokenised."""
        return not character.isalnum() or (character in vocabulary and character + "@@" in vocabulary)

    def knows(text: str) -> bool:
        return all(map(is_safe, set(text))) or all(token in vocabulary for token in tokenize(text))

    return TextProfile(source_lang, lambda text: len(tokenize(text)), max_tokens, knows)
