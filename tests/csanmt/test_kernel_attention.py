"""Attention by tiles against the plain formula, in double precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tandem.compiled.vectors import LANES
from tandem.csanmt.kernels.attention import (
    Relative,
    Work,
    attend_descendants,
    attend_sentence,
    attend_source,
    new_work,
)

Array = npt.NDArray[np.float32]
_SPARE = 64  # floats behind the end, as the rows have


def random_array(generator: np.random.Generator, *shape: int) -> Array:
    """Return an array that whole vectors can be read from to its end and over; what lies there is NaN."""
    size = int(np.prod(shape))
    memory = np.full(size + _SPARE, np.nan, np.float32)
    memory[:size] = generator.standard_normal(size)
    return memory[:size].reshape(shape)


def random_tables(generator: np.random.Generator, limit: int | None, depth: int) -> tuple[Relative, Array, Array]:
    """Return tables as the kernels want them, and plain ones [2m+1, D/H]; none for absolute positions."""
    rows = 0 if limit is None else 2 * limit + 1
    keys, values = (generator.standard_normal((rows, depth)).astype(np.float32) for _ in range(2))
    padded = np.ascontiguousarray(np.pad(keys.T, ((0, 0), (0, 2 * LANES))))
    return Relative(padded, np.pad(values, ((0, 0), (0, LANES)))), keys, values


def plain(  # noqa: PLR0917
    query: Array, keys: Array, values: Array, position: int, heads: int, table_keys: Array, table_values: Array
) -> npt.NDArray[np.float64]:
    """Attend from one query [D] at a position to keys and values [S, D]."""
    depth, out = len(query) // heads, np.zeros(len(query))
    for head in range(heads):
        part = slice(head * depth, (head + 1) * depth)
        k, v = keys[:, part].astype(float), values[:, part].astype(float)
        if len(table_keys):
            limit = len(table_keys) // 2
            index = np.clip(position - np.arange(len(keys)), -limit, limit) + limit
            k, v = k + table_keys[index], v + table_values[index]
        logits = k @ query[part] / np.sqrt(depth)
        shares = np.exp(logits - logits.max())
        out[part] = shares / shares.sum() @ v
    return out


def make_work(depth: int, keys: int, relative: Relative) -> Work:
    work: Work = new_work(depth, keys, relative.values.shape[0])
    return work


@pytest.mark.parametrize("depth", [4, LANES, 3 * LANES, 5 * LANES + 4])
@pytest.mark.parametrize("limit", [None, 3, 16])
@pytest.mark.parametrize("length", [1, 4, 17, 70, 130])
def test_a_sentence_attends_to_itself(length: int, limit: int | None, depth: int) -> None:
    generator, heads = np.random.default_rng(length), 2
    qkv = random_array(generator, length, 3 * heads * depth)
    relative, table_keys, table_values = random_tables(generator, limit, depth)
    out = np.zeros((length, heads * depth), np.float32)
    keys = np.zeros((depth, -(-length // LANES) * LANES), np.float32)
    attend_sentence(qkv, relative, heads, keys, make_work(depth, length, relative), out)
    query, key, value = np.split(qkv, 3, axis=1)
    for i in range(length):
        expected = plain(query[i], key, value, i, heads, table_keys, table_values)
        np.testing.assert_allclose(out[i], expected, atol=2e-5)


@pytest.mark.parametrize("beam", [1, 4, 6])
@pytest.mark.parametrize("length", [1, 16, 100])
def test_hypotheses_attend_to_their_source(length: int, beam: int) -> None:
    generator, heads, depth = np.random.default_rng(length), 2, 24
    query = random_array(generator, beam, heads * depth)
    keys, values = random_array(generator, heads * depth, length + 5), random_array(generator, length, heads * depth)
    out, none = np.zeros_like(query), random_tables(generator, None, depth)
    attend_source(query, keys, values, length, heads, make_work(depth, length, none[0]), out)
    for k in range(beam):
        np.testing.assert_allclose(out[k], plain(query[k], keys[:, :length].T, values, 0, heads, *none[1:]), atol=2e-5)


@pytest.mark.parametrize("limit", [None, 2, 16])
@pytest.mark.parametrize("beam", [2, 4, 6])
@pytest.mark.parametrize(("position", "settled"), [(0, 0), (0, 1), (5, 3), (40, 40), (40, 41), (90, 70)])
def test_hypotheses_attend_to_those_they_descend_from(
    position: int, settled: int, beam: int, limit: int | None
) -> None:
    generator, heads, depth, capacity = np.random.default_rng(position), 2, 24, 96
    size = heads * depth
    query = random_array(generator, beam, size)
    keys, values = (random_array(generator, capacity, beam, size) for _ in range(2))
    ancestry = generator.integers(0, beam, (beam, capacity))
    ancestry[:, :settled] = ancestry[0, :settled]
    trunk_keys, trunk_values = random_array(generator, size, capacity), random_array(generator, capacity, size)
    trunk_keys[:, :settled] = keys[np.arange(settled), ancestry[0, :settled]].T
    trunk_values[:settled] = values[np.arange(settled), ancestry[0, :settled]]
    relative, table_keys, table_values = random_tables(generator, limit, depth)
    out = np.zeros_like(query)
    attend_descendants(
        query, trunk_keys, trunk_values, settled, keys, values, ancestry, position, relative, heads,
        make_work(depth, capacity, relative), out,
    )  # fmt: skip
    seen = np.arange(position + 1)
    for k in range(beam):
        slots = ancestry[k, : position + 1]
        expected = plain(query[k], keys[seen, slots], values[seen, slots], position, heads, table_keys, table_values)
        np.testing.assert_allclose(out[k], expected, atol=2e-5)
