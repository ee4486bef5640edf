"""The BERT encoder, over rows of tokens instead of padded batches.

All tokens of a batch are the rows of one matrix [R, D], group after group. The linear layers and normalisations run
over all rows at once; only attention looks at the groups, which are rectangles [B, S] of texts of similar length. Where
all texts of a group have the same length there is neither padding nor a mask.

Tensor letters: R rows, B texts of a group, S positions, H heads, D hidden.

Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tandem.gte.configuration import BertConfig
from tandem.gte.pooling import Pooling, PoolingMode
from tandem.nn.fusion import linear_add, linear_gelu
from tandem.nn.normalization import LayerNorm


@dataclass(frozen=True, slots=True)
class TokenGroup:
    """A rectangle of texts.

    Attributes:
        ids: Token ids with their marks, int64 [B, S].
        mask: True on real positions, bool [B, S]; None when all are.
    """

    ids: Tensor
    mask: Tensor | None = None


class Embeddings(nn.Module):
    """Token and position embeddings; the vector of token type 0 is part of the position table."""

    def __init__(self, config: BertConfig) -> None:
        """Build the tables."""
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_positions, config.hidden_size)
        self.norm = LayerNorm(config.hidden_size, eps=config.norm_eps)

    def forward(self, groups: Sequence[TokenGroup]) -> Tensor:
        """Return the rows of all groups, float32 [R, D]."""
        table = self.position.weight.float()
        summed = [self.word(group.ids).float().add_(table[: group.ids.shape[1]]).flatten(0, 1) for group in groups]
        out: Tensor = self.norm(_join(summed))
        return out


class EncoderLayer(nn.Module):
    """Self attention and feed-forward, both post-norm."""

    def __init__(self, config: BertConfig) -> None:
        """Build the layer; queries, keys and values share one projection."""
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_heads
        self.gelu = config.gelu
        self.qkv = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)
        self.attention_norm = LayerNorm(size, eps=config.norm_eps)
        self.feed_forward_input = nn.Linear(size, config.filter_size)
        self.feed_forward_output = nn.Linear(config.filter_size, size)
        self.norm = LayerNorm(size, eps=config.norm_eps)

    def forward(self, x: Tensor, groups: Sequence[TokenGroup], *, first_only: bool = False) -> Tensor:
        """Encode all rows, or only the first of every text.

        Args:
            x: float32 [R, D].
            groups: The rectangles that the rows are made of.
            first_only: Compute the result for position 0 alone; keys and values are those of all positions.

        Returns:
            float32, [R, D], or one row a text.
        """
        attended = attend_groups(self.qkv(x), groups, self.heads, first_only=first_only)
        x = self.attention_norm(linear_add(self.output, attended, first_rows(x, groups) if first_only else x))
        inner = linear_gelu(self.feed_forward_input, x, self.gelu)
        out: Tensor = self.norm(linear_add(self.feed_forward_output, inner, x))
        return out


class BertEmbedder(nn.Module):
    """A BERT encoder with its pooling.

    Args:
        config: Sizes.
        pooling: How a vector is made of the last hidden states.
    """

    def __init__(self, config: BertConfig, pooling: Pooling) -> None:
        """Build the network with untrained weights."""
        super().__init__()
        self.pooling = pooling
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))

    def forward(self, groups: Sequence[TokenGroup]) -> Tensor:
        """Return the vectors of all texts in the order of the groups, float32 [sum of B, D]."""
        x = self.embeddings(groups)
        is_cls = self.pooling.mode is PoolingMode.CLS
        for number, layer in enumerate(self.layers, 1):
            # The last layer's other positions would be computed for nothing: 6 % of a 12-layer model's products.
            x = layer(x, groups, first_only=is_cls and number == len(self.layers))
        if is_cls:
            return self.pooling.finish(x)
        parts = zip(_split(x, groups), groups, strict=True)
        return _join([self.pooling.pool(part, group.mask) for part, group in parts])


def attend_groups(qkv: Tensor, groups: Sequence[TokenGroup], heads: int, *, first_only: bool) -> Tensor:
    """Attend inside every text.

    Args:
        qkv: Queries, keys and values beside each other, [R, 3D].
        groups: The rectangles that the rows are made of.
        heads: H.
        first_only: Only the queries of position 0.

    Returns:
        [R, D], or one row a text; in float32 on a CPU and in the type of `qkv` elsewhere. Softmax is in float32.
    """
    if not qkv.is_cuda:
        qkv = qkv.float()
    parts = zip(_split(qkv, groups), groups, strict=True)
    with torch.autocast(qkv.device.type, enabled=False):
        return _join([_attend(part, group.mask, heads, first_only) for part, group in parts])


def first_rows(x: Tensor, groups: Sequence[TokenGroup]) -> Tensor:
    """Return the rows of position 0, [R, D] -> one row a text."""
    return _join([part[:, 0] for part in _split(x, groups)])


def _attend(qkv: Tensor, mask: Tensor | None, heads: int, first_only: bool) -> Tensor:
    query, key, value = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)  # [B, S, 3D] -> 3 x [B, H, S, D/H]
    if first_only:
        query = query[:, :, :1]
    open_keys = None if mask is None else mask[:, None, None]
    attended = F.scaled_dot_product_attention(query, key, value, attn_mask=open_keys)
    return attended.transpose(1, 2).flatten(2).flatten(0, 1)


def _split(x: Tensor, groups: Sequence[TokenGroup]) -> list[Tensor]:
    """[R, D] -> one view [B, S, D] a group."""
    parts = x.split([group.ids.numel() for group in groups])
    return [part.unflatten(0, tuple(group.ids.shape)) for part, group in zip(parts, groups, strict=True)]


def _join(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
