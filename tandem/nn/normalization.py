"""Layer normalisation that always computes in float32."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` in float32, whatever the type of its input, its parameters or the autocast region."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise the last dimension, [..., D] -> [..., D] in float32."""
        if input.dtype == self.weight.dtype == torch.float32:
            return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
        return F.layer_norm(input.float(), self.normalized_shape, self.weight.float(), self.bias.float(), self.eps)
