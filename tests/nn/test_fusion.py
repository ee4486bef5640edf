from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tandem.nn.fusion import linear_add, linear_gelu
from tandem.nn.linear import pack_linears
from tandem.nn.precision import Precision, autocast

CPU = torch.device("cpu")
TOLERANCES = {Precision.FLOAT32: 1e-5, Precision.FLOAT16: 1e-2, Precision.BFLOAT16: 5e-2, Precision.INT8: 1e-1}


def packed(precision: Precision) -> tuple[nn.Linear, nn.Module]:
    torch.manual_seed(3)
    plain = nn.Linear(24, 40)
    model = nn.Sequential(nn.Linear(24, 40))
    model[0].load_state_dict(plain.state_dict())
    pack_linears(model, precision, CPU)
    return plain, model[0]


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@torch.inference_mode()
def test_gelu_of_a_packed_layer_is_that_of_the_plain_one(precision: Precision, approximate: str) -> None:
    plain, layer = packed(precision)
    x = torch.randn(3, 5, 24) * 3
    with autocast(precision, CPU):
        out = linear_gelu(layer, x, approximate)
    expected = F.gelu(plain(x), approximate=approximate)
    torch.testing.assert_close(out.float(), expected, atol=TOLERANCES[precision], rtol=TOLERANCES[precision])


@torch.inference_mode()
def test_the_two_kinds_of_gelu_differ() -> None:
    layer = packed(Precision.FLOAT32)[1]
    x = torch.randn(50, 24) * 3
    assert (linear_gelu(layer, x) - linear_gelu(layer, x, "tanh")).abs().max() > 1e-4


@pytest.mark.parametrize("precision", list(Precision))
@torch.inference_mode()
def test_adding_to_a_residual_is_done_in_float32_and_leaves_it_alone(precision: Precision) -> None:
    plain, layer = packed(precision)
    x, residual = torch.randn(6, 24), torch.randn(6, 2, 40)[:, 0]  # a view with gaps
    before = residual.clone()
    with autocast(precision, CPU):
        out = linear_add(layer, x, residual)
    assert out.dtype == torch.float32
    assert torch.equal(residual, before)
    torch.testing.assert_close(out, residual + plain(x), atol=TOLERANCES[precision], rtol=TOLERANCES[precision])
