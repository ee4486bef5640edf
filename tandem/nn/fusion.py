"""A linear layer together with what follows it: one pass over memory where the packed layer can, two where not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tandem.nn.linear import OneDnnLinear


def linear_gelu(layer: nn.Module, x: Tensor, approximate: str = "none") -> Tensor:
    """Return gelu(layer(x)), [..., in] -> [..., out].

    Args:
        layer: A linear layer, packed or not.
        x: Input.
        approximate: "none" or "tanh", as in `torch.nn.functional.gelu`.
    """
    if isinstance(layer, OneDnnLinear):
        out: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.to(layer.dtype), layer.weight, layer.bias, "gelu", [], approximate
        )
        return out
    return F.gelu(layer(x), approximate=approximate)


def linear_relu(layer: nn.Module, x: Tensor) -> Tensor:
    """Return relu(layer(x)), [..., in] -> [..., out]."""
    if isinstance(layer, OneDnnLinear):
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(layer.dtype), layer.weight, layer.bias, "relu", [], "")
        return out
    return F.relu(layer(x), inplace=True)


def linear_add(layer: nn.Module, x: Tensor, residual: Tensor) -> Tensor:
    """Return residual + layer(x) in the residual's float32, [..., in] -> [..., out].

    Args:
        layer: A linear layer, packed or not.
        x: Input.
        residual: float32 [..., out], left as it is.
    """
    if isinstance(layer, OneDnnLinear) and layer.dtype == torch.float32:
        out: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            x.float(), residual.contiguous(), layer.weight, layer.bias, "add"
        )
        return out
    return residual + layer(x)
