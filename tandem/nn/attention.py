"""Scaled dot-product attention with optional relative positions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tandem.nn.precision import full_precision


@dataclass(frozen=True, slots=True)
class RelativePositions:
    """Learnt vectors for the distance between a key and a query, shared by all heads.

    Attributes:
        keys: Added to the keys, [2m+1, D/H].
        values: Added to the values, [2m+1, D/H].
        index: clip(query position - key position, -m, m) + m, int64, broadcastable to [B, 1, Q, S]. The paper counts
            the other way round; this is the official graph's order.

    Source: Shaw et al. 2018, eq. 3 and 4.
    """

    keys: Tensor
    values: Tensor
    index: Tensor


def relative_index(query_positions: Tensor, key_positions: Tensor, limit: int) -> Tensor:
    """Return the rows of the relative tables for every query and key, [..., Q] and [..., S] -> [..., Q, S]."""
    distance = query_positions[..., :, None] - key_positions[..., None, :]
    return distance.clamp(-limit, limit) + limit


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, D] -> [B, H, T, D/H]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[B, H, T, D/H] -> [B, T, D]."""
    return x.transpose(1, 2).flatten(2)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    """Return how queries share their attention among the keys.

    Args:
        query: [B, H, Q, D/H], not scaled yet.
        key: [B, H, S, D/H].
        mask: Added to the logits, 0 or -inf, float32, broadcastable to [B, H, Q, S].

    Returns:
        Float32 [B, H, Q, S]; each query's shares add up to 1.
    """
    with full_precision(query.device):
        logits = query.float() * query.shape[-1] ** -0.5 @ key.float().transpose(-1, -2)
        return torch.softmax(logits + mask, -1)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, relative: RelativePositions | None = None
) -> Tensor:
    """Weigh values by the match of queries and keys.

    Args:
        query: [B, H, Q, D/H], not scaled yet.
        key: [B, H, S, D/H].
        value: [B, H, S, D/H].
        mask: Added to the logits, 0 or -inf, float32, broadcastable to [B, H, Q, S]; every query has an open key.
        relative: Relative positions, or None.

    Returns:
        [B, H, Q, D/H] in the values' type. Logits and softmax are float32 on a CPU and wherever positions are relative.
    """
    if relative is None and query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask.to(query.dtype))
    with full_precision(query.device):
        query, key, value32 = query.float() * query.shape[-1] ** -0.5, key.float(), value.float()
        logits = query @ key.transpose(-1, -2)
        if relative is not None:
            index = relative.index.expand(logits.shape)
            logits += (query @ relative.keys.float().T).gather(-1, index)
        weights = torch.softmax(logits + mask, -1)
        out = weights @ value32
        if relative is not None:
            by_distance = weights.new_zeros(*weights.shape[:-1], len(relative.values)).scatter_add(-1, index, weights)
            out = out + by_distance @ relative.values.float()
    return out.to(value.dtype)
