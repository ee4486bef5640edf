"""Packed products in every precision against the plain ones; odd sizes, what follows a product, what overflows."""

from __future__ import annotations

import numpy as np
import pytest

from tandem.compiled.linear import (
    Floats,
    Linear,
    kernel,
    linear,
    multiply,
    new_buffer,
    new_panels,
    pack_linears,
)
from tandem.compiled.tile import ADD, HAS_BFLOAT16, HAS_INT8, PLAIN, RELU, TILE_COLUMNS, TILE_ROWS
from tandem.nn.precision import Precision

PRECISIONS = [
    pytest.param(Precision.FLOAT32, 1e-5),
    pytest.param(Precision.BFLOAT16, 1e-2, marks=pytest.mark.skipif(not HAS_BFLOAT16, reason="no bfloat16 here")),
    pytest.param(Precision.INT8, 4e-2, marks=pytest.mark.skipif(not HAS_INT8, reason="no 8-bit products here")),
]
SIZES = [(1, 1, 1), (3, 7, 5), (4, 64, TILE_COLUMNS), (9, 33, TILE_COLUMNS + 1), (17, 192, 3 * TILE_COLUMNS - 2)]


@kernel
def apply(x: Floats, count: int, layers: Linear, layer: int, out: Floats, then: int) -> None:
    linear(x, count, layers, layer, out, then)


def some(*shape: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("precision", "tolerance"), PRECISIONS)
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
def test_a_packed_layer_is_the_plain_one(
    precision: Precision, tolerance: float, rows: int, inputs: int, outputs: int
) -> None:
    weights, biases = [some(outputs, inputs, seed=i) for i in (1, 2)], [some(outputs, seed=i) for i in (3, 4)]
    layers = pack_linears(weights, biases, precision)
    x, out = new_buffer(rows, inputs), new_buffer(rows, outputs)
    x[:rows] = some(rows, inputs, seed=5)
    for layer in range(2):
        plain = x[:rows] @ weights[layer].T + biases[layer]
        scale = np.abs(plain).max()
        apply(x, rows, layers, layer, out, PLAIN)
        assert np.abs(out[:rows] - plain).max() <= tolerance * scale
        apply(x, rows, layers, layer, out, RELU)
        assert np.abs(out[:rows] - np.maximum(plain, 0)).max() <= tolerance * scale
        out[:rows] = 3
        apply(x, rows, layers, layer, out, ADD)
        assert np.abs(out[:rows] - plain - 3).max() <= tolerance * scale


def test_tiles_behind_the_count_are_not_written() -> None:
    layers = pack_linears([some(10, 8)], [some(10)], Precision.FLOAT32)
    x, out = new_buffer(12, 8), new_buffer(12, 10)
    out[:] = 7
    apply(x, 5, layers, 0, out, PLAIN)
    assert (out[-(-5 // TILE_ROWS) * TILE_ROWS :] == 7).all()
    assert (out[:5] != 7).all()


def test_an_input_may_be_wider_than_the_weight() -> None:
    panels = new_panels(3, 4)
    panels[0, :, :3] = some(3, 4).T
    x, out = new_buffer(2, 9), new_buffer(2, 3)
    x[:2] = some(2, 9, seed=2)
    multiply(x, 2, panels, np.zeros(3, np.float32), out, PLAIN)
    np.testing.assert_allclose(out[:2], x[:2, :4] @ some(3, 4).T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("precision", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_so_through_a_relu(precision: Precision, tolerance: float, value: float) -> None:
    layers = pack_linears([np.ones((5, 4), np.float32)], [np.zeros(5, np.float32)], precision)
    x, out = new_buffer(2, 4), new_buffer(2, 5)
    x[1, 2] = value
    apply(x, 2, layers, 0, out, RELU)
    assert np.abs(out[0]).max() <= tolerance
    assert not np.isfinite(out[1]).any()


def test_only_kernels_call_it() -> None:
    layers = pack_linears([some(2, 2)], [some(2)], Precision.FLOAT32)
    with pytest.raises(NotImplementedError):
        linear(new_buffer(1, 2), 1, layers, 0, new_buffer(1, 2), PLAIN)
