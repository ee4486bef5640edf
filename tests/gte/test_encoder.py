from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tandem.gte.encoder import Encoder
from tandem.gte.modeling import TokenGroup
from tandem.nn.precision import Precision
from tests.gte.support import CPU, cosines, demo, random_texts

PRECISIONS = list(Precision)


class Spy:
    """A network whose vectors are (first id, sum of the real ids); it keeps what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[TokenGroup]] = []

    def __call__(self, groups: Sequence[TokenGroup]) -> Tensor:
        self.calls.append(list(groups))
        return torch.cat([self._group(group) for group in groups])

    @staticmethod
    def _group(group: TokenGroup) -> Tensor:
        mask = torch.ones_like(group.ids, dtype=torch.bool) if group.mask is None else group.mask
        return torch.stack([group.ids[:, 0], (group.ids * mask).sum(1)], 1).float()


def spied(padding_share: float, precision: Precision = Precision.FLOAT32) -> tuple[Spy, Encoder]:
    spy = Spy()
    return spy, Encoder(spy, precision, CPU, pad_id=9, padding_share=padding_share)


@pytest.mark.parametrize("share", [0.0, 0.08, 0.5])
@given(lengths=st.lists(st.integers(1, 512), min_size=1, max_size=60))
def test_vectors_come_back_in_the_order_of_their_texts(lengths: list[int], share: float) -> None:
    texts = random_texts(lengths, 1000)
    vectors = spied(share)[1].vectors(texts)
    assert vectors.tolist() == [[text[0], sum(text)] for text in texts]


@given(lengths=st.lists(st.integers(1, 512), min_size=1, max_size=60))
def test_no_run_of_the_network_is_larger_than_a_chunk(lengths: list[int]) -> None:
    spy, encoder = spied(0.08)
    encoder.vectors(random_texts(lengths, 1000))
    assert all(sum(group.ids.numel() for group in call) <= 2048 for call in spy.calls)


def test_token_ids_and_masks_stay_whole_numbers_in_half_precision() -> None:
    spy, encoder = spied(0.5, Precision.BFLOAT16)
    encoder.vectors(random_texts([4, 3], 1000))
    ((group,),) = spy.calls
    assert group.mask is not None
    assert (group.ids.dtype, group.mask.dtype) == (torch.int64, torch.bool)
    assert group.mask.tolist() == [[True] * 4, [True] * 3 + [False]]
    assert group.ids[1, 3] == 9


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_vector_does_not_depend_on_its_neighbours(precision: Precision, share: float) -> None:
    whole = demo(precision).encoder
    encoder = Encoder(whole.network, precision, CPU, pad_id=0, padding_share=share)
    texts = random_texts([3, 17, 17, 100, 64, 5, 511, 90, 88, 4, 4, 4, 30], 11000)
    alone = np.concatenate([whole.vectors([text]) for text in texts])
    together = encoder.vectors(texts)
    reversed_ = encoder.vectors(texts[::-1])[::-1]
    for vectors in (together, reversed_):
        assert cosines(vectors, alone).min() >= 0.9999
        if precision is Precision.FLOAT32:
            np.testing.assert_allclose(vectors, alone, atol=1e-5, rtol=0)


def test_padding_tokens_do_not_matter() -> None:
    network = demo().encoder.network
    texts = random_texts([20, 15], 11000)
    results = [
        Encoder(network, Precision.FLOAT32, CPU, pad_id=pad, padding_share=0.5).vectors(texts) for pad in (0, 77)
    ]
    np.testing.assert_allclose(results[0], results[1], atol=1e-6, rtol=0)
