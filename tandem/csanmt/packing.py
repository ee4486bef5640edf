"""How the translator's weights are kept for inference in each precision."""

from __future__ import annotations

import torch
from torch import nn

from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.nn.linear import OneDnnLinear, pack_linears
from tandem.nn.precision import Precision


def pack_model(model: CsanmtForConditionalGeneration, precision: Precision, device: torch.device) -> None:
    """Pack a model's linear layers in place; for inference only.

    float16 on a CPU is there to run the GPU's numbers without one. Its vocabulary projection stays float32: rounding
    logits decides between hypotheses that differ by less, and it is the slowest product of all in emulated float16.

    Args:
        model: On `device`.
        precision: What the products compute in.
        device: Where.
    """
    projection = model.output_projection
    if precision is Precision.FLOAT16 and device.type == "cpu" and isinstance(projection, nn.Linear):
        setattr(model, "output_projection", OneDnnLinear(projection, torch.float32))  # noqa: B010 - another type of layer
    pack_linears(model, precision, device)
