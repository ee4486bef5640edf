"""Beam searches of a fixed length, so that both sides of a comparison do the same number of steps.

Random weights hardly ever change the order of beams. Ours would profit from that only where the ancestry of the beams
decides what is read, so the measured search follows ancestors drawn at random at every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from tandem.compiled.linear import kernel
from tandem.compiled.sharing import take
from tandem.csanmt.candidates import Candidates
from tandem.csanmt.decoding import Search
from tandem.csanmt.kernel_search import KernelSearch
from tandem.csanmt.kernels.encoder import project_source, run_layers
from tandem.csanmt.modeling import EOS_ID


class Forced(Enum):
    """What is forced on a search."""

    LENGTH = "length"
    ANCESTORS = "length and ancestors"


class EndlessSearch(Search):
    """Never ends a hypothesis before the output limit."""

    def _select(self, values: Tensor, tokens: Tensor) -> Candidates:
        return super()._select(values.masked_fill(tokens == EOS_ID, -math.inf), tokens)


class ForcedSearch(EndlessSearch):
    """Lets every candidate descend from a random slot as well."""

    def _select(self, values: Tensor, tokens: Tensor) -> Candidates:
        found = super()._select(values, tokens)
        return replace(found, parents=torch.randint_like(found.parents, self.options.beam_size))


class EndlessKernelSearch(KernelSearch):
    """The same by compiled kernels."""

    def _run(self, part: int) -> None:
        self._weights.decoder.projection.bias[0, EOS_ID] = -math.inf
        super()._run(part)


class ForcedKernelSearch(EndlessKernelSearch):
    """The same by compiled kernels."""

    def _ahead(self) -> int:
        return 1

    def _run(self, part: int) -> None:
        super()._run(part)
        ancestry, beam = self._view.state.ancestry, self.options.beam_size
        for row in range(len(self._live)):
            ancestry[row] = ancestry[row, np.random.randint(beam, size=beam)]


_SEARCHES: dict[Forced, tuple[type[Search], type[KernelSearch]]] = {
    Forced.LENGTH: (EndlessSearch, EndlessKernelSearch),
    Forced.ANCESTORS: (ForcedSearch, ForcedKernelSearch),
}


@contextmanager
def forcing(kind: Forced) -> Iterator[None]:
    """Let the engines that are built inside search by force."""
    plain, compiled = _SEARCHES[kind]
    with (
        mock.patch("tandem.csanmt.engine.Search", plain),
        mock.patch("tandem.csanmt.kernel_search.KernelSearch", compiled),
    ):
        yield


@contextmanager
def without_semantic_encoder() -> Iterator[None]:
    """Let the kernels leave out the semantic encoder, of a model whose augmentation is zero anyway."""
    with mock.patch("tandem.csanmt.kernel_search.encode", _encode_plainly):
        yield


@kernel
def _encode_plainly(
    model: Any, ids: Any, starts: Any, row: int, run: int, taken: Any, keys: Any, values: Any, augmentation: Any
) -> None:
    augmentation[:, row : row + starts.shape[0] - 1] = 0
    first = take(taken, run)
    while first < starts.shape[0] - 1:
        last = min(first + run, starts.shape[0] - 1)
        own, places = ids[starts[first] : starts[last]], starts[first : last + 1] - starts[first]
        states = run_layers(model.encoder, own, places, model.heads, model.eps)
        norm, projection = model.encoder.norm, model.decoder.cross_key_value
        project_source(states, places, norm, model.eps, projection, row + first, keys, values)
        first = take(taken, run)
