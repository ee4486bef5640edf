"""Linear layers packed for a CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tandem.nn.linear import Int8Linear, OneDnnLinear, pack_linears
from tandem.nn.precision import Precision

CPU = torch.device("cpu")


@pytest.mark.parametrize("sign", [1.0, -1.0])
@torch.inference_mode()
def test_eight_bit_sums_do_not_saturate_on_any_processor(sign: float) -> None:
    plain = nn.Linear(256, 32)
    plain.weight.fill_(sign)
    x = torch.ones(5, 256)
    torch.testing.assert_close(Int8Linear(plain)(x), plain(x), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("is_there", [True, False])
@torch.inference_mode()
def test_bfloat16_is_computed_on_every_processor(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    supports = torch.ops.mkldnn._is_mkldnn_bf16_supported
    if is_there and not supports():
        pytest.skip("oneDNN has no bfloat16 on this processor; the other case is what runs here")
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: is_there)
    model = nn.Sequential(nn.Linear(64, 32))
    expected = model(x := torch.randn(3, 64))
    pack_linears(model, Precision.BFLOAT16, CPU)
    assert isinstance(model[0], OneDnnLinear) == is_there
    torch.testing.assert_close(model(x.bfloat16()).float(), expected, atol=0.05, rtol=0.05)
