"""Attention with relative positions where a table of them is given: of single hypotheses, and of whole sentences."""

from __future__ import annotations

import numpy as np

from tandem.compiled.functions import softmax
from tandem.compiled.linear import ADD, PLAIN, Floats, Integers, kernel, multiply, new_buffer, new_panels
from tandem.compiled.tile import LANES, TILE_COLUMNS, add_scaled_vectors, dot_vectors

_ZERO = np.float32(0)


@kernel
def dot(a: Floats, b: Floats) -> np.float32:
    """Return the inner product of two rows."""
    vectors = a.shape[0] // LANES
    total = dot_vectors(a, b, vectors)
    for i in range(vectors * LANES, a.shape[0]):
        total += a[i] * b[i]
    return total


@kernel
def add_scaled(target: Floats, scale: np.float32, row: Floats) -> None:
    """Target += scale * row."""
    vectors = target.shape[0] // LANES
    add_scaled_vectors(target, scale, row, vectors)
    for i in range(vectors * LANES, target.shape[0]):
        target[i] += scale * row[i]


@kernel
def distance_index(query: int, key: int, rows: int) -> int:
    """Return the row of a relative table of `rows` rows for two positions."""
    limit = rows // 2
    return min(max(query - key, -limit), limit) + limit


@kernel
def attend_descendants(
    query: Floats, keys: Floats, values: Floats, ancestry: Integers, position: int, relative_keys: Floats,
    relative_values: Floats, shares: Floats, out: Floats,
) -> None:  # fmt: skip
    """Attend from one hypothesis to the positions of the slots that it descends from.

    Positions are the outer loop, so that every key and value is read whole, once.

    Args:
        query: [D].
        keys: [T, K, D].
        values: [T, K, D].
        ancestry: The slot at each position, [T].
        position: The last position that is attended to, the query's own.
        relative_keys: [2m+1, D/H], or [0, D/H] where positions are absolute.
        relative_values: Likewise.
        shares: Working memory, [H, at least position + 1].
        out: [D], overwritten.
    """
    heads, rows = shares.shape[0], relative_keys.shape[0]
    depth = query.shape[0] // heads
    scale = np.float32(1.0 / np.sqrt(depth))
    for t in range(position + 1):
        key = keys[t, ancestry[t]]
        for head in range(heads):
            first, last = head * depth, (head + 1) * depth
            match = dot(query[first:last], key[first:last])
            if rows > 0:
                match += dot(query[first:last], relative_keys[distance_index(position, t, rows)])
            shares[head, t] = match * scale
    for head in range(heads):
        softmax(shares[head], position + 1)
    for d in range(out.shape[0]):
        out[d] = _ZERO
    for t in range(position + 1):
        value = values[t, ancestry[t]]
        for head in range(heads):
            first, last = head * depth, (head + 1) * depth
            add_scaled(out[first:last], shares[head, t], value[first:last])
            if rows > 0:
                add_scaled(out[first:last], shares[head, t], relative_values[distance_index(position, t, rows)])


@kernel
def attend_source(query: Floats, keys: Floats, values: Floats, length: int, shares: Floats, out: Floats) -> None:
    """Attend from one hypothesis to all positions of its source.

    Args:
        query: [D].
        keys: [S, D].
        values: [S, D].
        length: The source's, up to S.
        shares: Working memory, [H, at least `length`].
        out: [D], overwritten.
    """
    heads = shares.shape[0]
    depth = query.shape[0] // heads
    scale = np.float32(1.0 / np.sqrt(depth))
    for t in range(length):
        for head in range(heads):
            first, last = head * depth, (head + 1) * depth
            shares[head, t] = dot(query[first:last], keys[t, first:last]) * scale
    for head in range(heads):
        softmax(shares[head], length)
    for d in range(out.shape[0]):
        out[d] = _ZERO
    for t in range(length):
        for head in range(heads):
            first, last = head * depth, (head + 1) * depth
            add_scaled(out[first:last], shares[head, t], values[t, first:last])


@kernel
def attend_sentence(
    qkv: Floats, first: int, length: int, relative_keys: Floats, relative_values: Floats, heads: int, out: Floats
) -> None:
    """Let all positions of a sentence attend to each other; every product is one of tiles.

    Args:
        qkv: Queries, keys and values side by side, [N, 3D].
        first: Where the sentence begins.
        length: S.
        relative_keys: [2m+1, D/H], or [0, D/H] where positions are absolute.
        relative_values: Likewise.
        heads: H.
        out: [N, D], of which the sentence's rows are overwritten.
    """
    size = out.shape[1]
    depth, rows = size // heads, relative_keys.shape[0]
    scale = np.float32(1.0 / np.sqrt(depth))
    query, found = new_buffer(length, depth), new_buffer(length, depth)
    keys, values = new_panels(length, depth), new_panels(depth, length)
    shares = new_buffer(length, length)
    far_keys, far_values = _pack_tables(relative_keys, relative_values)
    by_distance = new_buffer(length, rows)
    nothing = np.zeros(max(length, depth, rows), np.float32)
    for head in range(heads):
        at = head * depth
        for i in range(length):
            for d in range(depth):
                query[i, d] = qkv[first + i, at + d] * scale
                keys[i // TILE_COLUMNS, d, i % TILE_COLUMNS] = qkv[first + i, size + at + d]
                values[d // TILE_COLUMNS, i, d % TILE_COLUMNS] = qkv[first + i, 2 * size + at + d]
        multiply(query, length, keys, nothing, shares, PLAIN)
        if rows > 0:
            multiply(query, length, far_keys, nothing, by_distance, PLAIN)
            for i in range(length):
                for j in range(length):
                    shares[i, j] += by_distance[i, distance_index(i, j, rows)]
        for i in range(length):
            softmax(shares[i], length)
        multiply(shares, length, values, nothing, found, PLAIN)
        if rows > 0:
            for i in range(length):
                for row in range(rows):
                    by_distance[i, row] = _ZERO
                for j in range(length):
                    by_distance[i, distance_index(i, j, rows)] += shares[i, j]
            multiply(by_distance, length, far_values, nothing, found, ADD)
        for i in range(length):
            for d in range(depth):
                out[first + i, at + d] = found[i, d]


@kernel
def _pack_tables(relative_keys: Floats, relative_values: Floats) -> tuple[Floats, Floats]:
    """Return the weights that give queries' products with all distances, and distances' shares of the values."""
    rows, depth = relative_keys.shape
    keys, values = new_panels(rows, depth), new_panels(depth, rows)
    for row in range(rows):
        for d in range(depth):
            keys[row // TILE_COLUMNS, d, row % TILE_COLUMNS] = relative_keys[row, d]
            values[d // TILE_COLUMNS, row, d % TILE_COLUMNS] = relative_values[row, d]
    return keys, values
