"""Texts of any lengths in, vectors out: what an engine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tandem.gte.grouping import plan_groups
from tandem.gte.modeling import TokenGroup
from tandem.nn.precision import Precision, autocast

Vector = npt.NDArray[np.float32]
Network = Callable[[Sequence[TokenGroup]], Tensor]

_CHUNK_TOKENS_CPU = 2048  # larger activations come fresh from the operating system each time, page fault by page fault
_CHUNK_TOKENS_CUDA = 32768


class EmbeddingModel(Protocol):
    """What the engine asks of a model."""

    @property
    def padding_share(self) -> float:
        """Largest share of a batch's tokens that is padding."""
        ...

    def vectors(self, texts: Sequence[Sequence[int]]) -> Vector:
        """Return the vectors of texts given as token ids with their marks, float32 [N, D], in order."""
        ...


@dataclass(frozen=True, slots=True)
class Encoder:
    """A network placed on a device, with all it takes to feed it.

    Attributes:
        network: Groups of token ids -> vectors in the order of the groups.
        precision: The network's.
        device: Where it lies.
        pad_id: Token that fills the end of short rows.
        padding_share: Largest share of padding in a group; 0 where the network is fastest without any.
    """

    network: Network
    precision: Precision
    device: torch.device
    pad_id: int
    padding_share: float

    @torch.inference_mode()
    def vectors(self, texts: Sequence[Sequence[int]]) -> Vector:
        """Return the vectors of texts given as token ids with their marks, float32 [N, D], in order."""
        budget = _CHUNK_TOKENS_CUDA if self.device.type == "cuda" else _CHUNK_TOKENS_CPU
        groups = plan_groups([len(text) for text in texts], budget, self.padding_share)
        with autocast(self.precision, self.device):
            parts = [self.network(self._batch(texts, chunk)) for chunk in _chunks(groups, texts, budget)]
        order = torch.tensor([index for group in groups for index in group])
        computed = torch.cat(parts).float().cpu()
        out = torch.empty_like(computed)
        out[order] = computed
        return out.numpy()

    def _batch(self, texts: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]) -> list[TokenGroup]:
        return [self._group([texts[index] for index in group]) for group in groups]

    def _group(self, texts: Sequence[Sequence[int]]) -> TokenGroup:
        """Pad texts, longest first, to a rectangle on the device."""
        width = len(texts[0])
        rows = [[*text, *[self.pad_id] * (width - len(text))] for text in texts]
        ids = torch.tensor(rows, dtype=torch.int64).to(self.device, non_blocking=True)
        if len(texts[-1]) == width:
            return TokenGroup(ids)
        lengths = torch.tensor([len(text) for text in texts])
        mask = torch.arange(width) < lengths[:, None]
        return TokenGroup(ids, mask.to(self.device, non_blocking=True))


def _chunks(groups: Sequence[list[int]], texts: Sequence[Sequence[int]], budget: int) -> list[list[list[int]]]:
    """Split groups, longest text first, into runs of at most `budget` padded tokens; a larger group runs alone."""
    chunks: list[list[list[int]]] = []
    room = 0
    for group in groups:
        padded = len(texts[group[0]]) * len(group)
        if not chunks or padded > room:
            chunks.append([])
            room = budget
        chunks[-1].append(group)
        room -= padded
    return chunks
