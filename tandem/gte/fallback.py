"""Encoders that are not BERT, computed by transformers: slower and complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel

from tandem.core.errors import ModelError
from tandem.gte.modeling import TokenGroup
from tandem.gte.pooling import Pooling
from tandem.nn.device import place
from tandem.nn.linear import pack_linears
from tandem.nn.precision import Precision

_UNUSED = ("pooler.", "position_ids")


class TransformersEmbedder(nn.Module):
    """Any encoder of transformers with our pooling.

    Args:
        model: Takes `input_ids` and `attention_mask` and gives `last_hidden_state`.
        pooling: How a vector is made of the last hidden states.
    """

    def __init__(self, model: nn.Module, pooling: Pooling) -> None:
        """Keep the two together."""
        super().__init__()
        self.model = model
        self.pooling = pooling

    def forward(self, groups: Sequence[TokenGroup]) -> Tensor:
        """Return the vectors of all texts in the order of the groups, float32 [sum of B, D]."""
        return torch.cat([self._encode(group) for group in groups])

    def _encode(self, group: TokenGroup) -> Tensor:
        mask = torch.ones_like(group.ids) if group.mask is None else group.mask.to(torch.int64)
        hidden = self.model(input_ids=group.ids, attention_mask=mask).last_hidden_state
        return self.pooling.pool(hidden, group.mask)


def load_transformers(
    model_dir: Path, pooling: Pooling, precision: Precision, device: torch.device
) -> TransformersEmbedder:
    """Load, convert and place an encoder through `transformers.AutoModel`; no remote code.

    Embeddings and normalisations stay float32; the matrix products follow the precision.

    Raises:
        ModelError: transformers cannot load it, or weights are missing, unexpected or misshapen; the message
            names them.
    """
    try:
        model, report = AutoModel.from_pretrained(
            str(model_dir), dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # unknown architecture, missing or damaged file: one exception class for each
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{model_dir}: transformers cannot load this encoder: {reason}") from error
    _check_report(model_dir, report)
    if model.config.is_encoder_decoder:
        raise ModelError(f"{model_dir}: {model.config.model_type} is an encoder-decoder; only encoders are supported")
    model.requires_grad_(False).eval()
    pack_linears(model, precision, device)
    return TransformersEmbedder(place(model, device), pooling)


def _check_report(model_dir: Path, report: dict[str, Any]) -> None:
    problems = {
        "lack": _used(report["missing_keys"]),
        "hold the unexpected": _used(report["unexpected_keys"]),
        "hold another shape of": _used(key[0] if isinstance(key, tuple) else key for key in report["mismatched_keys"]),
    }
    for what, names in problems.items():
        if names:
            raise ModelError(f"{model_dir}: the weights {what} {', '.join(names[:5])}")


def _used(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not any(part in name for part in _UNUSED))
