"""A model's weights as the kernels read them: float32, packed, one array for all layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from tandem.compiled.linear import Floats, pack_weight
from tandem.csanmt.modeling import CsanmtForConditionalGeneration, DecoderLayer, EncoderLayer, timing_signal


class Linear(NamedTuple):
    """Linear layers: packed weights [L, P, K, W] and biases [L, N]."""

    weight: Floats
    bias: Floats


class Norm(NamedTuple):
    """Layer normalisations: [L, D] each."""

    weight: Floats
    bias: Floats


class Attention(NamedTuple):
    """Self attentions; tables [L, 2m+1, D/H], or [L, 0, D/H] where positions are absolute."""

    norm: Norm
    qkv: Linear
    output: Linear
    relative_keys: Floats
    relative_values: Floats


class FeedForward(NamedTuple):
    """Pairs of linear layers after a normalisation."""

    norm: Norm
    inner: Linear
    outer: Linear


class Encoder(NamedTuple):
    """An encoder: scaled embeddings [V, D], what is added to each position [S, D], its layers."""

    embedding: Floats
    positions: Floats
    attention: Attention
    feed_forward: FeedForward
    norm: Norm


class Decoder(NamedTuple):
    """The decoder: scaled embeddings [V, D], what is added to each position [T, D], its layers, the projection."""

    embedding: Floats
    positions: Floats
    augmentation: FeedForward
    attention: Attention
    cross_norm: Norm
    cross_query: Linear
    cross_key_value: Linear
    cross_output: Linear
    feed_forward: FeedForward
    norm: Norm
    projection: Linear


class Model(NamedTuple):
    """All of a model; `pooling` makes the semantic vector."""

    encoder: Encoder
    semantic: Encoder
    pooling: Linear
    decoder: Decoder
    heads: int
    eps: float


def read_weights(model: CsanmtForConditionalGeneration, source_positions: int, target_positions: int) -> Model:
    """Copy a model's weights.

    Args:
        model: In float32 on the CPU, its linear layers not packed.
        source_positions: The longest source, its end mark included.
        target_positions: The longest target.
    """
    config = model.config
    scale = config.hidden_size**0.5
    bias = model.encoder.input_bias.detach()
    still = torch.zeros(source_positions, config.hidden_size)
    with torch.inference_mode():
        timing = [
            torch.zeros(count, config.hidden_size)
            if config.is_relative
            else timing_signal(torch.arange(count), config.hidden_size)
            for count in (source_positions, target_positions)
        ]
        encoder = _encoder(model.encoder.layers, model.source_embedding, scale, timing[0] + bias, model.encoder.norm)
        semantic = _encoder(
            model.semantic_encoder.layers, model.semantic_embedding, scale, still, model.semantic_encoder.norm
        )
        return Model(
            encoder, semantic, _linear([model.semantic_encoder.pooling]), _decoder(model, scale, timing[1]),
            config.num_heads, model.decoder.norm.eps,
        )  # fmt: skip


def _decoder(model: CsanmtForConditionalGeneration, scale: float, positions: Tensor) -> Decoder:
    layers = model.decoder.stack

    def each(pick: Callable[[DecoderLayer], nn.Module]) -> list[nn.Module]:
        return [pick(layer) for layer in layers]

    return Decoder(
        embedding=_array(model.target_embedding.weight * scale),
        positions=_array(positions),
        augmentation=_feed_forward(layers, "augmentation"),
        attention=_attention(layers),
        cross_norm=_norm(each(lambda layer: layer.cross_attention_norm)),
        cross_query=_linear(each(lambda layer: layer.cross_attention.query)),
        cross_key_value=_linear(each(lambda layer: layer.cross_attention.key_value)),
        cross_output=_linear(each(lambda layer: layer.cross_attention.output)),
        feed_forward=_feed_forward(layers, "feed_forward"),
        norm=_norm([model.decoder.norm]),
        projection=_linear([model.output_projection]),
    )


def _encoder(
    layers: Iterable[nn.Module], embedding: nn.Embedding, scale: float, positions: Tensor, norm: nn.LayerNorm
) -> Encoder:
    stack = cast(list[EncoderLayer], list(layers))
    return Encoder(
        _array(embedding.weight * scale), _array(positions), _attention(stack), _feed_forward(stack, "feed_forward"),
        _norm([norm]),
    )  # fmt: skip


def _attention(layers: Sequence[EncoderLayer] | Sequence[DecoderLayer]) -> Attention:
    attentions = [layer.self_attention for layer in layers]
    none = torch.zeros(0, attentions[0].qkv.in_features // attentions[0].heads)
    tables = [
        [getattr(attention, name, none) for attention in attentions] for name in ("relative_keys", "relative_values")
    ]
    return Attention(
        _norm([layer.self_attention_norm for layer in layers]),
        _linear([attention.qkv for attention in attentions]),
        _linear([attention.output for attention in attentions]),
        *map(_stack, tables),
    )


def _feed_forward(layers: Sequence[EncoderLayer] | Sequence[DecoderLayer], name: str) -> FeedForward:
    inner = [getattr(layer, name) for layer in layers]
    return FeedForward(
        _norm([getattr(layer, f"{name}_norm") for layer in layers]),
        _linear([pair.input for pair in inner]),
        _linear([pair.output for pair in inner]),
    )


def _linear(layers: Sequence[Any]) -> Linear:
    weights = [_array(layer.weight) for layer in layers]
    biases = [
        np.zeros(len(weight), np.float32) if layer.bias is None else _array(layer.bias)
        for layer, weight in zip(layers, weights, strict=True)
    ]
    return Linear(np.stack([pack_weight(weight) for weight in weights]), np.stack(biases))


def _norm(layers: Sequence[Any]) -> Norm:
    return Norm(_stack([layer.weight for layer in layers]), _stack([layer.bias for layer in layers]))


def _stack(tensors: Sequence[Tensor]) -> Floats:
    return np.stack([_array(tensor) for tensor in tensors])


def _array(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().float().numpy())
