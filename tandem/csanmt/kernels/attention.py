"""Attention, by tiles: TILE_ROWS queries meet the keys and values that they share.

Where positions are relative, a table's part is one more product: a query meets each distance's vector once, whatever
the number of keys at that distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tandem.compiled.functions import softmax
from tandem.compiled.linear import Floats, Integers, kernel
from tandem.compiled.tile import TILE_COLUMNS, TILE_ROWS, multiply_1, multiply_2, multiply_3, multiply_4
from tandem.compiled.vectors import LANES, add_scaled_vectors, dot_vectors

_ZERO = np.float32(0)


class Relative(NamedTuple):
    """One layer's tables of relative positions, of which whole vectors can be read from any column on.

    Attributes:
        keys: A column for each distance, [D/H, at least 2m+1 + LANES].
        values: A row for each distance, [2m+1, at least D/H]; no rows where positions are absolute.
    """

    keys: Floats
    values: Floats


class Work(NamedTuple):
    """Working memory of one head's attention.

    Attributes:
        query: Scaled queries, [TILE_ROWS, D/H].
        shares: Of the keys, [TILE_ROWS, at least as many as there are, in whole vectors].
        distances: Of the distances, [TILE_ROWS, at least 2m+1, in whole vectors].
        found: Mixed values, [TILE_ROWS, at least D/H, in whole vectors].
        found_by_distance: Likewise.
    """

    query: Floats
    shares: Floats
    distances: Floats
    found: Floats
    found_by_distance: Floats


@kernel
def new_work(depth: int, keys: int, distances: int) -> Work:
    """Make working memory for queries of D/H numbers and up to so many keys and distances."""
    return Work(
        np.zeros((TILE_ROWS, depth), np.float32), _new_vectors(keys), _new_vectors(distances), _new_vectors(depth),
        _new_vectors(depth),
    )  # fmt: skip


@kernel
def _new_vectors(columns: int) -> Floats:
    return np.zeros((TILE_ROWS, (columns + LANES - 1) // LANES * LANES), np.float32)


@kernel
def multiply_few(x: Floats, weight: Floats, columns: int, out: Floats) -> None:
    """Write TILE_ROWS rows of x @ weight.

    Args:
        x: [TILE_ROWS, at least K].
        weight: [K, at least `columns`], K > 0; whole vectors are read of its rows.
        columns: How many matter.
        out: [TILE_ROWS, at least `columns`], whole vectors of which are written.
    """
    for first in range(0, columns, TILE_COLUMNS):
        these, there = weight[:, first:], out[:, first:]
        vectors = (min(columns - first, TILE_COLUMNS) + LANES - 1) // LANES
        if vectors == 1:
            multiply_1(x, these, there)
        elif vectors == 2:
            multiply_2(x, these, there)
        elif vectors == 3:
            multiply_3(x, these, there)
        else:
            multiply_4(x, these, there)


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
def load_queries(rows: Floats, first: int, last: int, at: int, work: Work) -> None:
    """Take some rows' queries of the head that begins at column `at`, scaled; at most TILE_ROWS rows."""
    depth = work.query.shape[1]
    scale = np.float32(1.0 / np.sqrt(depth))
    for i in range(last - first):
        for d in range(depth):
            work.query[i, d] = rows[first + i, at + d] * scale


@kernel
def store_found(work: Work, out: Floats, first: int, last: int, at: int) -> None:
    """Give some rows what their queries found."""
    for i in range(last - first):
        for d in range(work.query.shape[1]):
            out[first + i, at + d] = work.found[i, d]


@kernel
def add_by_distance(work: Work, queries: int, keys: int, position: int, step: int, relative: Relative) -> None:
    """Add to the queries' matches what the distance of each key adds.

    Args:
        work: With queries and matches.
        queries: How many matter.
        keys: How many there are, at positions 0, 1, ...
        position: Of the first query.
        step: From a query's position to that of the next.
        relative: The tables.
    """
    distances = relative.values.shape[0]
    if distances == 0:
        return
    multiply_few(work.query, relative.keys, distances, work.distances)
    for i in range(queries):
        shares, matches, here = work.shares[i], work.distances[i], position + i * step
        begin, end = _near(here, keys, distances)
        for t in range(begin):
            shares[t] += matches[distances - 1]
        for t in range(begin, end):
            shares[t] += matches[here - t + distances // 2]
        for t in range(end, keys):
            shares[t] += matches[0]


@kernel
def mix_by_distance(work: Work, queries: int, keys: int, position: int, step: int, relative: Relative) -> None:
    """Add to what the queries found what each distance's vector adds; arguments as in `add_by_distance`."""
    distances = relative.values.shape[0]
    if distances == 0:
        return
    for i in range(queries):
        shares, by_distance, here = work.shares[i], work.distances[i], position + i * step
        begin, end = _near(here, keys, distances)
        by_distance[:distances] = _ZERO
        for t in range(begin, end):
            by_distance[here - t + distances // 2] += shares[t]
        by_distance[distances - 1] += _add_up(shares[:begin])
        by_distance[0] += _add_up(shares[end:keys])
    multiply_few(work.distances, relative.values, work.query.shape[1], work.found_by_distance)
    for i in range(queries):
        for d in range(work.query.shape[1]):
            work.found[i, d] += work.found_by_distance[i, d]


@kernel
def _near(here: int, keys: int, distances: int) -> tuple[int, int]:
    """Return the first key that is nearer than the largest distance of a table, and the first that is not any more."""
    limit = distances // 2
    begin = min(max(here - limit + 1, 0), keys)
    return begin, max(min(here + limit, keys), begin)


@kernel
def _add_up(values: Floats) -> np.float32:
    total = _ZERO
    for i in range(values.shape[0]):
        total += values[i]
    return total


@kernel
def attend_descendants(
    query: Floats, trunk_keys: Floats, trunk_values: Floats, settled: int, keys: Floats, values: Floats,
    ancestry: Integers, position: int, relative: Relative, heads: int, work: Work, out: Floats,
) -> None:  # fmt: skip
    """Attend from a row's hypotheses to the positions that they descend from.

    All of them descend from the same slots of the first `settled` positions, the trunk, and share its keys and values.

    Args:
        query: [K, D].
        trunk_keys: [D, T].
        trunk_values: [T, D].
        settled: Positions of the trunk that are filled.
        keys: Of every slot, [T, K, D].
        values: Likewise.
        ancestry: The slot of each hypothesis at each position, [K, T].
        position: The last position that is attended to, the queries' own.
        relative: The layer's tables.
        heads: H.
        work: Working memory for position + 1 keys.
        out: [K, D], overwritten.
    """
    depth = work.query.shape[1]
    for first in range(0, query.shape[0], TILE_ROWS):
        last = min(first + TILE_ROWS, query.shape[0])
        for at in range(0, heads * depth, depth):
            load_queries(query, first, last, at, work)
            if settled > 0:
                multiply_few(work.query, trunk_keys[at : at + depth], settled, work.shares)
            for i in range(last - first):
                for t in range(settled, position + 1):
                    key = keys[t, ancestry[first + i, t]]
                    work.shares[i, t] = dot(work.query[i], key[at : at + depth])
            add_by_distance(work, last - first, position + 1, position, 0, relative)
            for i in range(last - first):
                softmax(work.shares[i], position + 1)
            if settled > 0:
                multiply_few(work.shares, trunk_values[:settled, at:], depth, work.found)
            else:
                work.found[:] = _ZERO
            for i in range(last - first):
                for t in range(settled, position + 1):
                    value = values[t, ancestry[first + i, t]]
                    add_scaled(work.found[i, :depth], work.shares[i, t], value[at : at + depth])
            mix_by_distance(work, last - first, position + 1, position, 0, relative)
            store_found(work, out, first, last, at)


@kernel
def attend_source(
    query: Floats, keys: Floats, values: Floats, length: int, heads: int, work: Work, out: Floats
) -> None:
    """Attend from a row's hypotheses to all positions of its source.

    Args:
        query: [K, D].
        keys: [D, S].
        values: [S, D].
        length: The source's, up to S.
        heads: H.
        work: Working memory for `length` keys.
        out: [K, D], overwritten.
    """
    depth = work.query.shape[1]
    for first in range(0, query.shape[0], TILE_ROWS):
        last = min(first + TILE_ROWS, query.shape[0])
        for at in range(0, heads * depth, depth):
            load_queries(query, first, last, at, work)
            multiply_few(work.query, keys[at : at + depth], length, work.shares)
            for i in range(last - first):
                softmax(work.shares[i], length)
            multiply_few(work.shares, values[:length, at:], depth, work.found)
            store_found(work, out, first, last, at)


@kernel
def attend_sentence(qkv: Floats, relative: Relative, heads: int, keys: Floats, work: Work, out: Floats) -> None:
    """Let all positions of a sentence attend to each other.

    Args:
        qkv: Queries, keys and values side by side, [S, 3D]; a vector can be read from any of their numbers on.
        relative: The layer's tables.
        heads: H.
        keys: Working memory for the keys of a head as columns, [D/H, at least S, in whole vectors].
        work: Working memory for S keys.
        out: [S, D], overwritten.
    """
    length, depth = qkv.shape[0], work.query.shape[1]
    size = heads * depth
    for at in range(0, size, depth):
        for i in range(length):
            for d in range(depth):
                keys[d, i] = qkv[i, size + at + d]
        values = qkv[:, 2 * size + at :]
        for first in range(0, length, TILE_ROWS):
            last = min(first + TILE_ROWS, length)
            load_queries(qkv, first, last, at, work)
            multiply_few(work.query, keys, length, work.shares)
            add_by_distance(work, last - first, length, first, 1, relative)
            for i in range(last - first):
                softmax(work.shares[i], length)
            multiply_few(work.shares, values, depth, work.found)
            mix_by_distance(work, last - first, length, first, 1, relative)
            store_found(work, out, first, last, at)
