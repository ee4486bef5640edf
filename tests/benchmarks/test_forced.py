"""The searches of comparisons."""

from __future__ import annotations

import numpy as np

from benchmarks.forced import without_semantic_encoder
from tandem.core.types import Item
from tandem.csanmt.kernel_search import KernelSearch
from tandem.csanmt.live import DecodingOptions
from tests.csanmt.support import fixture_model, kernels_of

SOURCES = ((5, 6, 7), (8,), (9, 10, 11, 12, 13), (14, 15))


def _admitted() -> KernelSearch:
    search = kernels_of(fixture_model("rel_shared")).build_search(DecodingOptions(), None)
    search.admit([Item(ids) for ids in SOURCES], [[]] * len(SOURCES))
    return search


def test_without_the_semantic_encoder_the_rest_of_the_encoder_is_as_it_was() -> None:
    whole = _admitted()._view.state
    with without_semantic_encoder():
        plain = _admitted()._view.state
    for row, ids in enumerate(SOURCES):
        used = len(ids) + 1
        np.testing.assert_array_equal(plain.source_key[:, row, :, :used], whole.source_key[:, row, :, :used])
        np.testing.assert_array_equal(plain.source_value[:, row, :used], whole.source_value[:, row, :used])
        assert not plain.augmentation[:, row].any()
        assert whole.augmentation[:, row].all()
