"""Kernels of the encoder and the semantic encoder, on sentences laid end to end without padding."""

from __future__ import annotations

import numpy as np

from tandem.compiled.functions import layer_norm
from tandem.compiled.linear import Floats, Integers, Linear, kernel, linear, new_buffer
from tandem.compiled.sharing import take
from tandem.compiled.tile import ADD, PLAIN, RELU
from tandem.compiled.vectors import LANES
from tandem.csanmt.kernels.attention import Relative, attend_sentence, new_work
from tandem.csanmt.kernels.weights import Encoder, FeedForward, Model, Norm


@kernel
def run_layers(weights: Encoder, ids: Integers, starts: Integers, heads: int, eps: float) -> Floats:
    """Embed and run all layers, without the last normalisation.

    Args:
        weights: The encoder's.
        ids: Sentences end to end, each with its end mark, [N].
        starts: Where each begins, and N, [B + 1].
        heads: H.
        eps: Of the normalisations.

    Returns:
        [at least N, D].
    """
    count, size = ids.shape[0], weights.embedding.shape[1]
    x, normed, mixed = new_buffer(count, size), new_buffer(count, size), new_buffer(count, size)
    inner = new_buffer(count, weights.feed_forward.inner.bias.shape[1])
    qkv = new_buffer(count + 1, 3 * size)  # attention reads whole vectors, the last of them over the end
    for sentence in range(starts.shape[0] - 1):
        for i in range(starts[sentence], starts[sentence + 1]):
            for d in range(size):
                x[i, d] = weights.embedding[ids[i], d] + weights.positions[i - starts[sentence], d]
    attention, feed_forward = weights.attention, weights.feed_forward
    longest, depth = np.max(starts[1:] - starts[:-1]), size // heads
    work = new_work(depth, longest, attention.relative_values.shape[1])
    keys = np.zeros((depth, (longest + LANES - 1) // LANES * LANES), np.float32)
    for layer in range(attention.norm.weight.shape[0]):
        relative = Relative(attention.relative_keys[layer], attention.relative_values[layer])
        layer_norm(x, count, attention.norm.weight[layer], attention.norm.bias[layer], eps, normed)
        linear(normed, count, attention.qkv, layer, qkv, PLAIN)
        for sentence in range(starts.shape[0] - 1):
            first, last = starts[sentence], starts[sentence + 1]
            attend_sentence(qkv[first:last], relative, heads, keys, work, mixed[first:last])
        linear(mixed, count, attention.output, layer, x, ADD)
        layer_norm(x, count, feed_forward.norm.weight[layer], feed_forward.norm.bias[layer], eps, normed)
        linear(normed, count, feed_forward.inner, layer, inner, RELU)
        linear(inner, count, feed_forward.outer, layer, x, ADD)
    return x


@kernel
def project_source(
    states: Floats, starts: Integers, norm: Norm, eps: float, projection: Linear, row: int, source_key: Floats,
    source_value: Floats,
) -> None:  # fmt: skip
    """Normalise what the encoder gave and write the keys and values that every decoder layer attends to.

    Args:
        states: As `run_layers` returns them; normalised in place.
        starts: Where each sentence begins, and N, [B + 1].
        norm: The encoder's last normalisation.
        eps: Of the normalisation.
        projection: The decoder layers' `cross_key_value`.
        row: Of the first sentence; the others follow.
        source_key: [L, R, D, S], of which each sentence's positions are written.
        source_value: [L, R, S, D], likewise.
    """
    count, size = starts[-1], states.shape[1]
    layer_norm(states, count, norm.weight[0], norm.bias[0], eps, states)
    both = new_buffer(count, 2 * size)
    for layer in range(source_key.shape[0]):
        linear(states, count, projection, layer, both, PLAIN)
        for sentence in range(starts.shape[0] - 1):
            first, length = starts[sentence], starts[sentence + 1] - starts[sentence]
            for d in range(size):
                for i in range(length):
                    source_key[layer, row + sentence, d, i] = both[first + i, d]
            for i in range(length):
                for d in range(size):
                    source_value[layer, row + sentence, i, d] = both[first + i, size + d]


@kernel
def pool(states: Floats, starts: Integers, pooling: Linear, norm: Norm, eps: float) -> Floats:
    """Return the semantic vectors of sentences, [at least B, D].

    Args:
        states: As `run_layers` returns them.
        starts: Where each sentence begins, and N, [B + 1].
        pooling: Applied to the mean over a sentence.
        norm: Applied to that.
        eps: Of the normalisation.
    """
    sentences, size = starts.shape[0] - 1, states.shape[1]
    mean, semantic = new_buffer(sentences, size), new_buffer(sentences, size)
    for sentence in range(sentences):
        first, last = starts[sentence], starts[sentence + 1]
        for i in range(first, last):
            for d in range(size):
                mean[sentence, d] += states[i, d]
        for d in range(size):
            mean[sentence, d] /= np.float32(last - first)
    linear(mean, sentences, pooling, 0, semantic, PLAIN)
    layer_norm(semantic, sentences, norm.weight[0], norm.bias[0], eps, semantic)
    return semantic


@kernel
def augment(semantic: Floats, sentences: int, weights: FeedForward, eps: float, row: int, augmentation: Floats) -> None:
    """Write what is added to every decoder layer's input, [at least B, D] -> rows of [L, R, D]."""
    layers, _, size = augmentation.shape
    normed, inner, out = new_buffer(sentences, size), new_buffer(sentences, size), new_buffer(sentences, size)
    for layer in range(layers):
        layer_norm(semantic, sentences, weights.norm.weight[layer], weights.norm.bias[layer], eps, normed)
        linear(normed, sentences, weights.inner, layer, inner, RELU)
        linear(inner, sentences, weights.outer, layer, out, PLAIN)
        for sentence in range(sentences):
            for d in range(size):
                augmentation[layer, row + sentence, d] = out[sentence, d]


@kernel
def encode(
    model: Model, ids: Integers, starts: Integers, row: int, run: int, taken: Integers, source_key: Floats,
    source_value: Floats, augmentation: Floats,
) -> None:  # fmt: skip
    """Encode sentences and write what every decoder layer needs of them; as many as the other threads leave.

    Args:
        model: Weights.
        ids: Sentences end to end, each with its end mark, [N].
        starts: Where each begins, and N, [B + 1].
        row: Of the first sentence; the others follow.
        run: How many a thread takes at a time.
        taken: Sentences that threads have taken, [1]; 0 at first.
        source_key: [L, R, D, S], of which each sentence's positions are written.
        source_value: [L, R, S, D], likewise.
        augmentation: [L, R, D], likewise.
    """
    encoder, semantic, decoder = model.encoder, model.semantic, model.decoder
    first = take(taken, run)
    while first < starts.shape[0] - 1:
        last = min(first + run, starts.shape[0] - 1)
        own, places, place = ids[starts[first] : starts[last]], starts[first : last + 1] - starts[first], row + first
        states = run_layers(encoder, own, places, model.heads, model.eps)
        projection = decoder.cross_key_value
        project_source(states, places, encoder.norm, model.eps, projection, place, source_key, source_value)
        meaning = run_layers(semantic, own, places, model.heads, model.eps)
        pooled = pool(meaning, places, model.pooling, semantic.norm, model.eps)
        augment(pooled, last - first, decoder.augmentation, model.eps, place, augmentation)
        first = take(taken, run)
