"""Linear layers on packed weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from tandem.compiled.tile import TILE_COLUMNS, TILE_ROWS, multiply_tile

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be re-ordered and fused, which rounds differently; NaN and infinity keep their meaning.
EXACT_MATH = {"contract", "reassoc", "nsz", "arcp"}


def kernel(function: Function) -> Function:
    """Have a function compiled when it is first called, to run without the interpreter's lock."""
    compiled: Function = numba.njit(nogil=True, cache=True, fastmath=EXACT_MATH)(function)
    return compiled


# What follows a product before it is written.
PLAIN, RELU, ADD = 0, 1, 2


def pack_weight(weight: Floats) -> Floats:
    """Lay a weight out in panels of TILE_COLUMNS output features, [N, K] -> [P, K, TILE_COLUMNS], filled up with 0."""
    outputs, inputs = weight.shape
    panels = -(-outputs // TILE_COLUMNS)
    padded = np.zeros((panels * TILE_COLUMNS, inputs), np.float32)
    padded[:outputs] = weight
    return np.ascontiguousarray(padded.reshape(panels, TILE_COLUMNS, inputs).transpose(0, 2, 1))


@kernel
def new_buffer(rows: int, columns: int) -> Floats:
    """Make an input or output of `linear` with room for whole tiles, float32 [at least rows, columns]."""
    return np.zeros(((rows + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS, columns), np.float32)


@kernel
def new_panels(outputs: int, inputs: int) -> Floats:
    """Make a packed weight of zeros, [P, K, TILE_COLUMNS], for a kernel to fill: feature n lies in panel n // W."""
    return np.zeros(((outputs + TILE_COLUMNS - 1) // TILE_COLUMNS, inputs, TILE_COLUMNS), np.float32)


@kernel
def linear(x: Floats, count: int, weight: Floats, bias: Floats, out: Floats, then: int) -> None:
    """Write x @ weight.T + bias, or what `then` makes of it.

    The panel of weights stays in the cache while all rows meet it.

    Args:
        x: float32 [M, at least K], M at least `count` rounded up to whole tiles.
        count: Rows that matter.
        weight: As `pack_weight` gives it.
        bias: [N].
        out: [M, N]; with ADD it is what is added to.
        then: PLAIN, RELU or ADD.
    """
    tile = np.empty((TILE_ROWS, TILE_COLUMNS), np.float32)
    for panel in range(weight.shape[0]):
        first = panel * TILE_COLUMNS
        is_whole = first + TILE_COLUMNS <= out.shape[1]
        for row in range(0, count, TILE_ROWS):
            multiply_tile(x, row, weight, panel, tile)
            for m in range(min(TILE_ROWS, count - row)):
                if is_whole:  # a loop of known length, which needs no remainder
                    _write(tile[m], bias, out[row + m], first, TILE_COLUMNS, then)
                else:
                    _write(tile[m], bias, out[row + m], first, out.shape[1] - first, then)


@kernel
def _write(sums: Floats, bias: Floats, out: Floats, first: int, width: int, then: int) -> None:
    if then == ADD:
        for n in range(width):
            out[first + n] += sums[n] + bias[first + n]
    elif then == RELU:
        for n in range(width):
            out[first + n] = max(sums[n] + bias[first + n], np.float32(0))
    else:
        for n in range(width):
            out[first + n] = sums[n] + bias[first + n]
