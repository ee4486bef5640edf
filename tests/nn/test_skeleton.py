"""Networks without weights."""

from __future__ import annotations

import torch
from torch import nn

from tandem.nn.skeleton import skeleton


def test_a_skeleton_has_shapes_and_no_memory() -> None:
    with skeleton():
        model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3), nn.LayerNorm(3))
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == {
        "0.weight": (5, 4), "1.weight": (3, 4), "1.bias": (3,), "2.weight": (3,), "2.bias": (3,),
    }  # fmt: skip
    assert all(value.is_meta for value in model.parameters())


def test_outside_of_it_parameters_are_filled_as_ever() -> None:
    with skeleton():
        nn.Embedding(5, 4)
    torch.manual_seed(1)
    assert float(nn.Embedding(50, 40).weight.detach().std()) > 0.5
