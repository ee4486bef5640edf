"""Linear layers packed once for fast inference.

A model is written with `torch.nn.Linear`. `pack_linears` replaces them for a precision and a device; the forward code
does not change. Results are in `precision.dtype`, whatever the input's type.

On a CPU the weights are reordered once into oneDNN's blocked layout, which on small batches and on AMD processors is
several times faster than the default kernel. On CUDA the layers stay what they are, in the precision's type, under
autocast.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tandem.nn.precision import Precision

_MIDDLE = 128  # activations are stored as 128 + [-127, 127]
# Without VNNI two products are summed in 16 bits, which hold no more than twice 255 * 64. Weights bear coarser steps
# better than activations do, whose largest in a row is far from the others.
_WEIGHT_LEVELS = 127 if torch.cpu._is_vnni_supported() else 64


def pack_linears(model: nn.Module, precision: Precision, device: torch.device) -> None:
    """Replace every linear layer of a model in place; for inference only.

    Weights that two layers share are packed once for each. The originals are released one at a time, so the peak is one
    layer above the sum.
    """
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, _pack(child, precision, device))
        else:
            pack_linears(child, precision, device)


def _pack(linear: nn.Linear, precision: Precision, device: torch.device) -> nn.Module:
    if device.type != "cpu" or precision not in _onednn_precisions():
        return linear.to(precision.dtype)
    if precision is Precision.INT8:
        return Int8Linear(linear)
    return OneDnnLinear(linear, precision.dtype)


def _onednn_precisions() -> frozenset[Precision]:
    """Return what oneDNN packs weights for here; bfloat16 needs AVX-512, without which torch computes it slowly."""
    if not torch.backends.mkldnn.is_available():
        return frozenset()
    half = {Precision.BFLOAT16} if torch.ops.mkldnn._is_mkldnn_bf16_supported() else set()
    return frozenset({Precision.FLOAT32, Precision.INT8, *half})


class OneDnnLinear(nn.Module):
    """A linear layer whose weight lies in oneDNN's blocked layout.

    Args:
        linear: The layer to pack.
        dtype: float32 or bfloat16, of the weight and of the product.
    """

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        """Reorder the weight."""
        super().__init__()
        self.dtype = dtype
        self.out_features = linear.out_features
        self._product = torch.ops.mkldnn._linear_pointwise.default  # looked up once: it is called for microseconds
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype))
        self.bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Return x @ weight.T + bias, [..., in] -> [..., out]."""
        out: Tensor = self._product(x.to(self.dtype), self.weight, self.bias, "none", [], "")
        return out


class Int8Linear(nn.Module):
    """A linear layer with 8-bit weights and activations, a float32 scale for each row of both, and a float32 result.

    Args:
        linear: The layer to quantise.
    """

    def __init__(self, linear: nn.Linear) -> None:
        """Quantise the weight symmetrically, one scale an output feature."""
        super().__init__()
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp_min(1e-12) / _WEIGHT_LEVELS
        quantised = (weight / scale[:, None]).round_().to(torch.int8)
        self.out_features = linear.out_features
        self.weight_scale = scale
        self.weight_zeros = torch.zeros(linear.out_features, dtype=torch.int64)
        self.weight = torch.ops.onednn.qlinear_prepack(quantised, None)
        self.bias = None if linear.bias is None else linear.bias.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        """Return x @ weight.T + bias, [..., in] -> [..., out] in float32."""
        rows = x.reshape(-1, x.shape[-1]).float()
        scale = rows.abs().amax(1, keepdim=True).clamp_min_(1e-12) / (_MIDDLE - 1)
        quantised = (rows / scale).round_().add_(_MIDDLE).to(torch.uint8)
        out: Tensor = torch.ops.onednn.qlinear_pointwise(
            quantised, 1.0, _MIDDLE, self.weight, self.weight_scale, self.weight_zeros,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        out *= scale
        if self.bias is not None:
            out += self.bias
        return out.view(*x.shape[:-1], self.out_features)
