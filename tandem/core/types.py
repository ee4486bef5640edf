"""What the scheduler and the engines exchange: items, results, and the contract between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

ResultT = TypeVar("ResultT")


class Priority(IntEnum):
    """Who goes first; the larger value does."""

    BULK = 0
    INTERACTIVE = 1


@dataclass(eq=False, slots=True)
class Item:
    """A segment on its way through a scheduler and an engine.

    Everything that decides the result is here: two items with equal `key()` have equal results. Priority, deadline and
    cancellation decide only when, or whether, it is computed.

    Attributes:
        ids: Token ids without the end mark; at least one.
        target_prefix: Target text the translation must begin with, as the tokenizer wrote it; "" for none.
        n_best: Hypotheses wanted, best first; at most the beam size.
        strict: Decode under the repetition guard (no n-gram of target tokens twice).
        align: Say of the best hypothesis which source tokens its tokens came from.
        priority: May be raised while the item waits or runs.
        deadline_s: On the scheduler's clock (`time.monotonic`); infinity for none.
        truncated: The source was cut to the model's limit when it was tokenised; callers are told.
        cancelled: Set when nobody waits for the result any more.
    """

    ids: tuple[int, ...]
    target_prefix: str = ""
    n_best: int = 1
    strict: bool = False
    align: bool = False
    priority: Priority = Priority.INTERACTIVE
    deadline_s: float = math.inf
    truncated: bool = False
    cancelled: bool = False

    @property
    def length(self) -> int:
        """Positions the item takes on the device: its tokens and one end mark."""
        return len(self.ids) + 1

    def key(self) -> tuple[object, ...]:
        """Return what decides the result, for single flight and cache keys."""
        return (self.ids, self.target_prefix, self.n_best, self.strict, self.align)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation of a segment.

    Attributes:
        ids: Target token ids without the end mark.
        score: Length-normalised log-prob; larger is better.
        truncated: True when the output limit ended it instead of the end mark.
        alignment: For each target token the share of attention that it paid to each source position, [T, S], the end
            mark's last; only for the best hypothesis of an item that asks for it.
    """

    ids: tuple[int, ...]
    score: float
    truncated: bool = False
    alignment: tuple[tuple[float, ...], ...] = ()


class Link(NamedTuple):
    """How much a word of a translation has to do with a piece of its source, in characters.

    Attributes:
        source_start: Offset of the piece in the source.
        source_end: Behind it.
        target_start: Offset of the word in the translation.
        target_end: Behind it.
        weight: Share of the word's attention that the piece got, from 0 to 1.
    """

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    weight: float


@dataclass(frozen=True, slots=True)
class Finished(Generic[ResultT]):
    """An item that has left the engine: with a result, or with the error that only its own callers get."""

    item: Item
    result: ResultT | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What may still be admitted.

    Attributes:
        segments: Items.
        tokens: Padded tokens: longest item x number of items.
    """

    segments: int
    tokens: int


class Engine(Protocol[ResultT]):
    """Runs items on a device. Every method is called from one thread, the scheduler's."""

    def admit(self, items: Sequence[Item]) -> list[Finished[ResultT]]:
        """Encode items and let them join what is running; bounded work.

        All of them are admitted, or it raises and none is.
        """
        ...

    def step(self, at_least: Priority) -> list[Finished[ResultT]]:
        """Advance the live items of that priority or higher by one step; give back those that are done."""
        ...

    def room(self, priority: Priority) -> Budget:
        """Return what may be admitted now; some places are kept free for interactive items."""
        ...

    def live(self) -> Sequence[Item]:
        """Return the items admitted and not finished."""
        ...

    def cancel(self, items: Sequence[Item]) -> None:
        """Drop live items; takes effect before the next step."""
        ...

    def reset(self) -> list[Item]:
        """Drop everything live, free its memory and give the items back."""
        ...

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Say whether an error means that the device's memory is full."""
        ...
