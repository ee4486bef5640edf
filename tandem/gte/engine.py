"""The embedder as the scheduler sees it: items in, vectors out, everything that fits into a batch in one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tandem.core.errors import EngineError, NonFiniteError, SettingsError, TooLargeError
from tandem.core.types import Budget, Finished, Item, Priority
from tandem.gte.encoder import EmbeddingModel, Vector
from tandem.nn.memory import is_out_of_memory

Result = Finished[Vector]
_SHARE_FOR_INTERACTIVE = 8  # one place in so many is never given to bulk items


@dataclass(frozen=True, slots=True)
class EmbedderLimits:
    """How much may run at once.

    Attributes:
        segments: Items admitted and not finished.
        tokens: Padded tokens of one step; as many may be admitted.
        text_tokens: Tokens of one text, its marks included.
    """

    segments: int = 512
    tokens: int = 2048
    text_tokens: int = 512


class EmbeddingEngine:
    """Runs one embedding model; implements `tandem.core.types.Engine`.

    An item's `ids` are those of a `TokenizedText`, marks included; its result is a float32 vector [D] of its own.

    Args:
        model: Computes vectors.
        vocab_size: Token ids are below it; one that is not would fail its neighbours, and on CUDA the process.
        limits: How much may run at once.
        precise: Makes the float32 model that repeats items whose numbers overflowed; None when `model` is float32.

    Raises:
        SettingsError: The longest text does not fit into what bulk items may take.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        *,
        vocab_size: int,
        limits: EmbedderLimits,
        precise: Callable[[], EmbeddingModel] | None = None,
    ) -> None:
        """Build an empty engine."""
        self._model = model
        self._vocab_size = vocab_size
        self.limits = limits
        self._build_precise = precise
        self._precise: EmbeddingModel | None = None
        self._live: dict[int, Item] = {}  # by identity, in order of arrival
        if self.room(Priority.BULK).tokens <= limits.text_tokens:
            raise SettingsError(
                f"a batch of {limits.tokens} tokens is too small for texts of {limits.text_tokens}: "
                f"an eighth is kept for interactive items"
            )

    def admit(self, items: Sequence[Item]) -> list[Result]:
        """Queue items for the next steps; those no model could run come back with an error. See `Engine`."""
        errors = [(item, self._refusal(item)) for item in items]
        refused: list[Result] = [Finished(item, error=error) for item, error in errors if error is not None]
        self._live.update((id(item), item) for item in items)
        self.cancel([done.item for done in refused])
        return refused

    def step(self, at_least: Priority) -> list[Result]:
        """Compute one batch of that priority or higher, more urgent and older items first. See `Engine`."""
        batch = self._plan(at_least)
        if not batch:
            return []
        vectors = self._model.vectors([item.ids for item in batch])
        finished = [self._finish(item, vector) for item, vector in zip(batch, vectors, strict=True)]
        self.cancel(batch)
        return finished

    def room(self, priority: Priority) -> Budget:
        """Return what may be admitted now. See `Engine`."""
        segments, tokens = self.limits.segments, self.limits.tokens
        if priority is Priority.BULK:
            segments -= segments // _SHARE_FOR_INTERACTIVE
            tokens -= tokens // _SHARE_FOR_INTERACTIVE
        taken = sum(item.length for item in self._live.values())
        return Budget(max(segments - len(self._live), 0), max(tokens - taken, 0))

    def live(self) -> list[Item]:
        """Return the items admitted and not finished."""
        return list(self._live.values())

    def cancel(self, items: Sequence[Item]) -> None:
        """Drop live items. See `Engine`."""
        for item in items:
            self._live.pop(id(item), None)

    def reset(self) -> list[Item]:
        """Drop everything live and give the items back. See `Engine`."""
        items = self.live()
        self._live.clear()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        return items

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Say whether an error means that memory is full. See `Engine`."""
        return is_out_of_memory(error)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _plan(self, at_least: Priority) -> list[Item]:
        """Choose the next batch: at least one item, at most the token limit once padded."""
        waiting = [item for item in self._live.values() if item.priority >= at_least]
        room = self.limits.tokens * (1 - self._model.padding_share)
        batch: list[Item] = []
        for item in sorted(waiting, key=lambda item: -item.priority):
            room -= len(item.ids)
            if batch and room < 0:
                break
            batch.append(item)
        return batch

    def _finish(self, item: Item, vector: Vector) -> Result:
        if np.isfinite(vector).all():
            return Finished(item, vector.copy())  # a view would keep the whole batch's array alive
        if self._build_precise is not None:
            if self._precise is None:
                self._precise = self._build_precise()
            again = self._precise.vectors([item.ids])[0]
            if np.isfinite(again).all():
                return Finished(item, again.copy())
        return Finished(
            item, error=NonFiniteError("the model gave numbers that are not finite for this text, in float32 too")
        )

    def _refusal(self, item: Item) -> Exception | None:
        limit = self.limits.text_tokens
        if len(item.ids) > limit:
            return TooLargeError(f"a text of {len(item.ids)} tokens is over the model's limit of {limit}; shorten it")
        if not item.ids or min(item.ids) < 0 or max(item.ids) >= self._vocab_size:
            return EngineError(f"the text's token ids are not within the model's vocabulary of {self._vocab_size}")
        return None
