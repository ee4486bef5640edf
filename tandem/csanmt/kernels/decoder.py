"""One position of the decoder for some rows, up to the largest logits."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tandem.compiled.functions import add_exponentials, largest, layer_norm
from tandem.compiled.linear import Floats, Integers, kernel, linear, new_buffer
from tandem.compiled.tile import ADD, PLAIN, RELU
from tandem.csanmt.kernels.attention import Relative, attend_descendants, attend_source, new_work
from tandem.csanmt.kernels.top import clear, find_maxima, find_top, new_maxima
from tandem.csanmt.kernels.weights import Decoder

_NONE = np.float32(-np.inf)


class State(NamedTuple):
    """The live rows; R rows, K hypotheses, L layers. Capacities may be larger than what is in use.

    Attributes:
        self_key: [L, R, T, K, D], as the slots wrote them.
        self_value: Likewise.
        trunk_key: Of the slots that all hypotheses of a row descend from, as columns, [L, R, D, T].
        trunk_value: [L, R, T, D].
        settled: Positions of the trunk that are filled, [R].
        source_key: [L, R, D, S].
        source_value: [L, R, S, D].
        source_length: [R].
        augmentation: [L, R, D].
        position: [R].
        token: The last one of each hypothesis, [R, K].
        log_prob: [R, K]; -inf where there is no hypothesis.
        ancestry: The slot that each hypothesis descends from at each position, [R, K, T].
        slot_token: What each slot chose, [R, T, K].
        slot_parent: After which slot, [R, T, K].
        wanted: Hypotheses that are asked for, [R].
        finished_score: [R, K], best first; -inf where there is none.
        finished_step: [R, K].
        finished_parent: [R, K].
    """

    self_key: Floats
    self_value: Floats
    trunk_key: Floats
    trunk_value: Floats
    settled: Integers
    source_key: Floats
    source_value: Floats
    source_length: Integers
    augmentation: Floats
    position: Integers
    token: Integers
    log_prob: Floats
    ancestry: Integers
    slot_token: Integers
    slot_parent: Integers
    wanted: Integers
    finished_score: Floats
    finished_step: Integers
    finished_parent: Integers


class Scored(NamedTuple):
    """What a position gives every hypothesis of some rows, in their order; with room for whole tiles behind the last.

    Attributes:
        hidden: The decoder's normalised output, [at least N * K, D] for N rows.
        logits: [N * K, V]; written only where they are asked for.
        log_total: The log of the sum of the logits' exponentials, [N * K].
        best: The largest logits, best first, [N * K, C].
        place: Their tokens, [N * K, C].
    """

    hidden: Floats
    logits: Floats
    log_total: Floats
    best: Floats
    place: Integers


@kernel
def decode(
    weights: Decoder, heads: int, eps: float, state: State, rows: Integers, scored: Scored, keep_logits: bool
) -> None:
    """Score every hypothesis' next token and write this position's keys and values.

    Args:
        weights: The decoder's.
        heads: H.
        eps: Of the normalisations.
        state: The live rows.
        rows: Those that are advanced, [N].
        scored: What their hypotheses are given.
        keep_logits: Whether somebody wants to see and change the logits before the best are chosen.
    """
    beam, size = state.token.shape[1], weights.embedding.shape[1]
    count = rows.shape[0] * beam
    x, normed, mixed = new_buffer(count, size), new_buffer(count, size), new_buffer(count, size)
    qkv, query = new_buffer(count, 3 * size), new_buffer(count, size)
    inner = new_buffer(count, weights.feed_forward.inner.bias.shape[1])
    _embed(weights, state, rows, x)
    attention, feed_forward, cross_norm = weights.attention, weights.feed_forward, weights.cross_norm
    for layer in range(attention.norm.weight.shape[0]):
        for m in range(count):
            augmentation = state.augmentation[layer, rows[m // beam]]
            for d in range(size):
                x[m, d] += augmentation[d]
        layer_norm(x, count, attention.norm.weight[layer], attention.norm.bias[layer], eps, normed)
        linear(normed, count, attention.qkv, layer, qkv, PLAIN)
        _attend_self(weights, state, layer, heads, rows, qkv, mixed)
        linear(mixed, count, attention.output, layer, x, ADD)
        layer_norm(x, count, cross_norm.weight[layer], cross_norm.bias[layer], eps, normed)
        linear(normed, count, weights.cross_query, layer, query, PLAIN)
        _attend_source(state, layer, heads, rows, query, mixed)
        linear(mixed, count, weights.cross_output, layer, x, ADD)
        layer_norm(x, count, feed_forward.norm.weight[layer], feed_forward.norm.bias[layer], eps, normed)
        linear(normed, count, feed_forward.inner, layer, inner, RELU)
        linear(inner, count, feed_forward.outer, layer, x, ADD)
    layer_norm(x, count, weights.norm.weight[0], weights.norm.bias[0], eps, scored.hidden)
    _score(weights, count, scored, keep_logits)


@kernel
def _score(weights: Decoder, count: int, scored: Scored, keep_logits: bool) -> None:
    """Project hypotheses to the vocabulary, part by part; each part's logits are read while they are in the cache."""
    vocabulary = scored.logits.shape[1]
    parts, width = weights.projection.bias.shape
    logits, maxima = new_buffer(count, width), new_maxima(width)
    highest, total = np.empty(count, np.float32), np.zeros(count, np.float32)
    for m in range(count):
        highest[m] = _NONE
        clear(scored.best[m], scored.place[m])
    for part in range(parts):
        linear(scored.hidden, count, weights.projection, part, logits, PLAIN)
        for m in range(count):
            find_maxima(logits[m], maxima)
            highest[m], total[m] = add_exponentials(logits[m], largest(maxima), highest[m], total[m])
            find_top(logits[m], maxima, part * width, scored.best[m], scored.place[m])
            if keep_logits:
                for i in range(min(width, vocabulary - part * width)):
                    scored.logits[m, part * width + i] = logits[m, i]
    for m in range(count):
        scored.log_total[m] = np.float32(highest[m] + math.log(total[m]))


@kernel
def _embed(weights: Decoder, state: State, rows: Integers, x: Floats) -> None:
    """Write the embedding of each hypothesis' last token; position 0 has the zero vector."""
    beam = state.token.shape[1]
    for place in range(rows.shape[0]):
        row = rows[place]
        position = state.position[row]
        for k in range(beam):
            target = x[place * beam + k]
            embedding, timing = weights.embedding[state.token[row, k]], weights.positions[position]
            for d in range(x.shape[1]):
                target[d] = embedding[d] + timing[d] if position > 0 else timing[d]


@kernel
def _attend_self(
    weights: Decoder, state: State, layer: int, heads: int, rows: Integers, qkv: Floats, out: Floats
) -> None:
    beam, size = state.token.shape[1], out.shape[1]
    relative = Relative(weights.attention.relative_keys[layer], weights.attention.relative_values[layer])
    work = new_work(size // heads, state.ancestry.shape[2], relative.values.shape[0])
    for place in range(rows.shape[0]):
        row, m = rows[place], place * beam
        position = state.position[row]
        keys, values = state.self_key[layer, row], state.self_value[layer, row]
        for k in range(beam):
            for d in range(size):
                keys[position, k, d], values[position, k, d] = qkv[m + k, size + d], qkv[m + k, 2 * size + d]
            state.ancestry[row, k, position] = k
        attend_descendants(
            qkv[m : m + beam], state.trunk_key[layer, row], state.trunk_value[layer, row], state.settled[row], keys,
            values, state.ancestry[row], position, relative, heads, work, out[m : m + beam],
        )  # fmt: skip


@kernel
def _attend_source(state: State, layer: int, heads: int, rows: Integers, query: Floats, out: Floats) -> None:
    beam = state.token.shape[1]
    work = new_work(out.shape[1] // heads, state.source_key.shape[3], 0)
    for place in range(rows.shape[0]):
        row, m = rows[place], place * beam
        attend_source(
            query[m : m + beam], state.source_key[layer, row], state.source_value[layer, row],
            state.source_length[row], heads, work, out[m : m + beam],
        )  # fmt: skip
