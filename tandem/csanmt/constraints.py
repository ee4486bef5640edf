"""What may restrict the target of one segment: a given beginning, or a guard against repetition.

A constraint follows the K hypothesis slots of its row on the host. Rows without one never wait for it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Constraint(Protocol):
    """Closes vocabulary entries before a step's candidates are chosen, and follows what was chosen."""

    def apply(self, slot: int, logits: Tensor) -> None:
        """Set the logits [V] of forbidden continuations of a slot to -inf, in place."""
        ...

    def follow(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Take in that slot k now holds the hypothesis of slot parents[k], continued by tokens[k]."""
        ...

    def is_satisfied(self) -> bool:
        """Say whether nothing is forbidden any more."""
        ...


class PrefixIndex:
    """The target vocabulary, searchable by what its subwords look like in text.

    Args:
        surfaces: What each id adds to the text: "weath" for "weath@@", "er " for "er" (no space where the language has
            none); "" for ids that stand for no text.
        unknown_id: The id that takes the place of characters no subword can spell.
    """

    def __init__(self, surfaces: Sequence[str], unknown_id: int) -> None:
        """Sort the surfaces."""
        self._ids: dict[str, list[int]] = {}
        for token_id, surface in enumerate(surfaces):
            if surface:
                self._ids.setdefault(surface, []).append(token_id)
        self._sorted = sorted(self._ids)
        self._longest = max(map(len, self._sorted), default=0)
        self.unknown_id = unknown_id

    def exact(self, text: str, start: int) -> list[tuple[int, list[int]]]:
        """Return the subwords that spell what follows in a text: the position after each, and its ids."""
        ends = range(start + 1, min(start + self._longest, len(text)) + 1)
        return [(end, ids) for end in ends if (ids := self._ids.get(text[start:end]))]

    def covering(self, rest: str) -> list[int]:
        """Return the ids of the subwords that begin with the rest of a text and go on."""
        first = bisect.bisect_right(self._sorted, rest)
        last = bisect.bisect_left(self._sorted, rest + "\U0010ffff")
        return [token_id for surface in self._sorted[first:last] for token_id in self._ids[surface]]


class PrefixConstraint:
    """Lets only such targets grow that spell a given beginning, whatever subwords they take.

    The last word of the beginning may be unfinished: any subword that continues it is allowed there.

    Args:
        index: The target vocabulary.
        text: The beginning, in the form the surfaces have.
        beam_size: K.
    """

    def __init__(self, index: PrefixIndex, text: str, beam_size: int) -> None:
        """Find out which positions of the text can be spelled to its end."""
        self._index = index
        self._text = text
        self._offsets = [0] * beam_size  # characters of the text that each slot has spelled
        self._allowed: dict[int, dict[int, int]] = {}
        for start in range(len(text) - 1, -1, -1):
            self._allowed[start] = self._continuations(start)

    def _continuations(self, start: int) -> dict[int, int]:
        """Return the ids allowed at a position of the text, and the position that each leads to."""
        end = len(self._text)
        found = dict.fromkeys(self._index.covering(self._text[start:]), end)
        for after, ids in self._index.exact(self._text, start):
            if after == end or self._allowed.get(after):
                found.update(dict.fromkeys(ids, after))
        if not found and not self._text[start].isspace():
            # No subword spells this: one unknown subword stands for everything up to where spelling is possible again.
            found[self._index.unknown_id] = next((at for at in range(start + 1, end) if self._allowed[at]), end)
        return found

    def apply(self, slot: int, logits: Tensor) -> None:
        """Close everything that does not spell the text; see `Constraint`."""
        offset = self._offsets[slot]
        if offset >= len(self._text):
            return
        allowed = torch.tensor(list(self._allowed[offset]), device=logits.device, dtype=torch.int64)
        kept = logits[allowed]
        logits.fill_(-math.inf)
        logits[allowed] = kept

    def follow(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Move every slot on by what it spelled; see `Constraint`."""
        end = len(self._text)
        before = [self._offsets[parent] for parent in parents]
        # A dead slot (log-prob -inf) may hold any token; it can never win, so where it stands does not matter.
        self._offsets = [
            offset if offset >= end else self._allowed[offset].get(token, offset)
            for offset, token in zip(before, tokens, strict=True)
        ]

    def spell_unknown(self, ids: Sequence[int]) -> dict[int, str]:
        """Return what the unknown subwords of a finished target stand for in the text, by their place in the target."""
        found: dict[int, str] = {}
        offset = 0
        for place, token_id in enumerate(ids):
            if offset >= len(self._text):
                break
            after = self._allowed[offset].get(token_id, len(self._text))
            if token_id == self._index.unknown_id:
                found[place] = self._text[offset:after]
            offset = after
        return found

    def is_satisfied(self) -> bool:
        """Say whether every slot has spelled the whole text."""
        return min(self._offsets) >= len(self._text)


class RepetitionGuard:
    """Forbids that any n-gram of target tokens stands twice.

    Args:
        size: n, in tokens.
        beam_size: K.
    """

    def __init__(self, size: int, beam_size: int) -> None:
        """Start with empty hypotheses."""
        self._size = size
        self._histories: list[tuple[int, ...]] = [()] * beam_size

    def apply(self, slot: int, logits: Tensor) -> None:
        """Close the tokens that would complete an n-gram a second time; see `Constraint`."""
        history, size = self._histories[slot], self._size
        context = history[len(history) - size + 1 :]
        repeats = [
            history[start + size - 1]
            for start in range(len(history) - size + 1)
            if history[start : start + size - 1] == context
        ]
        if repeats:
            logits[torch.tensor(repeats, device=logits.device)] = -math.inf

    def follow(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Extend every slot's history; see `Constraint`."""
        self._histories = [(*self._histories[parent], token) for parent, token in zip(parents, tokens, strict=True)]

    def is_satisfied(self) -> bool:
        """Never: it holds to the end."""
        return False
