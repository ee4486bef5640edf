"""A model's weights as the kernels read them: packed, one array for all layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from tandem.compiled.linear import Floats, Linear, pack_linears
from tandem.compiled.vectors import LANES
from tandem.csanmt.modeling import CsanmtForConditionalGeneration, DecoderLayer, EncoderLayer, timing_signal
from tandem.nn.precision import Precision

CHUNK = 2048  # tokens whose logits are computed together: for 64 hypotheses they stay in a core's own cache


class Norm(NamedTuple):
    """Layer normalisations: [L, D] each."""

    weight: Floats
    bias: Floats


class Attention(NamedTuple):
    """Self attentions; tables as in `tandem.csanmt.kernels.attention.Relative`, one a layer."""

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
    """The decoder: scaled embeddings [V, D], what each position adds [T, D], its layers, the projection in parts."""

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


def read_weights(
    model: CsanmtForConditionalGeneration, precision: Precision, source_positions: int, target_positions: int
) -> Model:
    """Copy and pack a model's weights.

    Args:
        model: In float32 on the CPU, its linear layers not packed.
        precision: float32, bfloat16 or int8: what products with weights are computed in.
        source_positions: The longest source, its end mark included.
        target_positions: The longest target.
    """
    with torch.inference_mode():
        return _Reader(model, precision).read(source_positions, target_positions)


class _Reader:
    def __init__(self, model: CsanmtForConditionalGeneration, precision: Precision) -> None:
        self._model = model
        self._precision = precision

    def read(self, source_positions: int, target_positions: int) -> Model:
        model, still = self._model, torch.zeros(source_positions, self._model.config.hidden_size)
        positions = self._positions(source_positions) + model.encoder.input_bias
        return Model(
            self._encoder(model.encoder.layers, model.source_embedding, positions, model.encoder.norm),
            self._encoder(model.semantic_encoder.layers, model.semantic_embedding, still, model.semantic_encoder.norm),
            self._linear([model.semantic_encoder.pooling]),
            self._decoder(self._positions(target_positions)),
            model.config.num_heads,
            model.decoder.norm.eps,
        )

    def _positions(self, count: int) -> Tensor:
        """Return what absolute positions add to embeddings, [count, D]."""
        config = self._model.config
        if config.is_relative:
            return torch.zeros(count, config.hidden_size)
        return timing_signal(torch.arange(count), config.hidden_size)

    def _embedding(self, embedding: nn.Embedding) -> Floats:
        return _array(embedding.weight * self._model.config.hidden_size**0.5)

    def _encoder(
        self, layers: Iterable[nn.Module], embedding: nn.Embedding, positions: Tensor, norm: nn.LayerNorm
    ) -> Encoder:
        stack = cast(list[EncoderLayer], list(layers))
        return Encoder(
            self._embedding(embedding), _array(positions), self._attention(stack),
            self._feed_forward(stack, "feed_forward"), _norm([norm]),
        )  # fmt: skip

    def _decoder(self, positions: Tensor) -> Decoder:
        model, layers = self._model, self._model.decoder.stack
        cross = [layer.cross_attention for layer in layers]
        return Decoder(
            embedding=self._embedding(model.target_embedding),
            positions=_array(positions),
            augmentation=self._feed_forward(layers, "augmentation"),
            attention=self._attention(layers),
            cross_norm=_norm([layer.cross_attention_norm for layer in layers]),
            cross_query=self._linear([attention.query for attention in cross]),
            cross_key_value=self._linear([attention.key_value for attention in cross]),
            cross_output=self._linear([attention.output for attention in cross]),
            feed_forward=self._feed_forward(layers, "feed_forward"),
            norm=_norm([model.decoder.norm]),
            projection=self._projection(),
        )

    def _projection(self) -> Linear:
        """Return the vocabulary projection in parts of CHUNK tokens; what fills the last part up is never chosen."""
        weight = _array(self._model.output_projection.weight)
        chunk = min(CHUNK, len(weight))
        missing = -len(weight) % chunk
        bias = np.pad(np.zeros(len(weight), np.float32), (0, missing), constant_values=-np.inf)
        weight = np.pad(weight, ((0, missing), (0, 0)))
        parts = len(weight) // chunk
        return pack_linears(np.split(weight, parts), np.split(bias, parts), self._precision)

    def _attention(self, layers: Sequence[EncoderLayer] | Sequence[DecoderLayer]) -> Attention:
        attentions = [layer.self_attention for layer in layers]
        none = torch.zeros(0, attentions[0].qkv.in_features // attentions[0].heads)
        keys, values = (
            _stack([getattr(attention, name, none) for attention in attentions])
            for name in ("relative_keys", "relative_values")
        )
        # Kernels read whole vectors of each row, from any distance on.
        keys, values = np.pad(keys.transpose(0, 2, 1), _behind(2 * LANES)), np.pad(values, _behind(LANES))
        return Attention(
            _norm([layer.self_attention_norm for layer in layers]),
            self._linear([attention.qkv for attention in attentions]),
            self._linear([attention.output for attention in attentions]),
            np.ascontiguousarray(keys),
            values,
        )

    def _feed_forward(self, layers: Sequence[EncoderLayer] | Sequence[DecoderLayer], name: str) -> FeedForward:
        pairs = [getattr(layer, name) for layer in layers]
        return FeedForward(
            _norm([getattr(layer, f"{name}_norm") for layer in layers]),
            self._linear([pair.input for pair in pairs]),
            self._linear([pair.output for pair in pairs]),
        )

    def _linear(self, layers: Sequence[Any]) -> Linear:
        weights = [_array(layer.weight) for layer in layers]
        biases = [
            np.zeros(len(weight), np.float32) if layer.bias is None else _array(layer.bias)
            for layer, weight in zip(layers, weights, strict=True)
        ]
        return pack_linears(weights, biases, self._precision)


def _behind(columns: int) -> tuple[tuple[int, int], ...]:
    """Return the padding that adds columns behind those of [L, M, N]."""
    return (0, 0), (0, 0), (0, columns)


def _norm(layers: Sequence[Any]) -> Norm:
    return Norm(_stack([layer.weight for layer in layers]), _stack([layer.bias for layer in layers]))


def _stack(tensors: Sequence[Tensor]) -> Floats:
    return np.stack([_array(tensor) for tensor in tensors])


def _array(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().float().numpy())
