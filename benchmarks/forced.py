"""Beam searches of a fixed length, so that both sides of a comparison do the same number of steps.

Random weights hardly ever change the order of beams. Ours would profit from that only where the ancestry of the beams
decides what is read, so the measured search follows ancestors drawn at random at every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import torch
from torch import Tensor

from tandem.csanmt.candidates import Candidates
from tandem.csanmt.decoding import Search
from tandem.csanmt.modeling import EOS_ID


class EndlessSearch(Search):
    """Never ends a hypothesis before the output limit."""

    def _select(self, values: Tensor, tokens: Tensor) -> Candidates:
        return super()._select(values.masked_fill(tokens == EOS_ID, -math.inf), tokens)


class ForcedSearch(EndlessSearch):
    """Lets every candidate descend from a random slot as well."""

    def _select(self, values: Tensor, tokens: Tensor) -> Candidates:
        found = super()._select(values, tokens)
        return replace(found, parents=torch.randint_like(found.parents, self.options.beam_size))


@contextmanager
def searching_with(kind: type[Search]) -> Iterator[None]:
    """Let the engines that are built inside use another kind of search."""
    with mock.patch("tandem.csanmt.engine.Search", kind):
        yield
