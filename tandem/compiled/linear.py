"""Linear layers on packed weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from tandem.compiled.tile import ADD, PLAIN, RELU, TILE_COLUMNS, TILE_ROWS, multiply_tile, multiply_tile_int8
from tandem.compiled.vectors import LANES, bits_of_float, largest_magnitude_of_vectors
from tandem.nn.precision import Precision

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be re-ordered and fused, which rounds differently; NaN and infinity keep their meaning.
EXACT_MATH = {"contract", "reassoc", "nsz", "arcp"}


def kernel(function: Function) -> Function:
    """Have a function compiled when it is first called, to run without the interpreter's lock."""
    compiled: Function = numba.njit(nogil=True, cache=True, fastmath=EXACT_MATH)(function)
    return compiled


_SMALLEST_SCALE = 1e-12
_LEVELS, _MIDDLE = 127, 128  # activations are stored as 128 + [-127, 127], as the instruction wants them unsigned
_ROUNDING = np.float32(1.5 * 2**23 + _MIDDLE)  # a small number added to it is rounded to an integer, its lowest bits


class Linear(NamedTuple):
    """Linear layers of one size, their weights packed for the precision that products with them are computed in.

    Attributes:
        words: 32-bit words [L, P, K', TILE_COLUMNS]: float32, pairs of bfloat16 in uint32, or four int8 in int32.
            A panel P holds TILE_COLUMNS output features, filled up with 0.
        scale: What an int8 weight's integers are multiplied by, [L, N]; [L, 0] otherwise.
        offset: 128 times the sum of an int8 weight's integers over its inputs, int32 [L, N]; [L, 0] otherwise.
        bias: [L, N].
    """

    words: npt.NDArray[Any]
    scale: Floats
    offset: npt.NDArray[np.int32]
    bias: Floats


def pack_linears(weights: Sequence[Floats], biases: Sequence[Floats], precision: Precision) -> Linear:
    """Pack layers of one size.

    Args:
        weights: float32 [N, K] each.
        biases: float32 [N] each.
        precision: float32, bfloat16 or int8: what is kept of the weights.
    """
    packed = [_pack(weight, precision) for weight in weights]
    words, scales, offsets = (np.stack(parts) for parts in zip(*packed, strict=True))
    return Linear(words, scales, offsets, np.stack(biases))


def _pack(weight: Floats, precision: Precision) -> tuple[npt.NDArray[Any], Floats, npt.NDArray[np.int32]]:
    none = np.zeros(0, np.float32), np.zeros(0, np.int32)
    if precision is Precision.FLOAT32:
        return _panels(weight), *none
    if precision is Precision.BFLOAT16:
        return _panels(_words(_round_to_bfloat16(weight), np.uint32)), *none
    scale = np.maximum(np.abs(weight).max(1), _SMALLEST_SCALE) / _LEVELS
    integers = np.rint(weight / scale[:, None]).astype(np.int8)
    offset = _MIDDLE * integers.sum(1, dtype=np.int32)
    return _panels(_words(integers, np.int32)), scale.astype(np.float32), offset


def _words(values: npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Join neighbours along the last axis to 32-bit words, [N, K] -> [N, K'], filled up with 0."""
    together = 4 // values.itemsize
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % together)))
    return np.ascontiguousarray(padded).view(kind)


def _panels(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    outputs, depth = words.shape
    panels = -(-outputs // TILE_COLUMNS)
    padded = np.zeros((panels * TILE_COLUMNS, depth), words.dtype)
    padded[:outputs] = words
    return np.ascontiguousarray(padded.reshape(panels, TILE_COLUMNS, depth).transpose(0, 2, 1))


def _round_to_bfloat16(values: Floats) -> npt.NDArray[np.uint16]:
    """Round to the nearest bfloat16, ties to even; its bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


@kernel
def new_buffer(rows: int, columns: int) -> Floats:
    """Make an input or output of `linear` with room for whole tiles, float32 [at least rows, columns]."""
    return np.zeros(((rows + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS, columns), np.float32)


@kernel
def new_panels(outputs: int, inputs: int) -> Floats:
    """Make a packed weight of zeros, [P, K, TILE_COLUMNS], for a kernel to fill: feature n lies in panel n // W."""
    return np.zeros(((outputs + TILE_COLUMNS - 1) // TILE_COLUMNS, inputs, TILE_COLUMNS), np.float32)


@kernel
def multiply(x: npt.NDArray[Any], count: int, words: npt.NDArray[Any], bias: Floats, out: Floats, then: int) -> None:
    """Write x @ weight.T + bias, or what `then` makes of it, for float32 and for pairs of bfloat16.

    The panel of weights stays in the cache while all rows meet it.

    Args:
        x: Words [M, at least K'], M at least `count` rounded up to whole tiles.
        count: Rows that matter.
        words: Panels, [P, K', TILE_COLUMNS].
        bias: [N].
        out: [M, N], M likewise, whole tiles of which are written; with ADD it is what is added to.
        then: PLAIN, RELU or ADD.
    """
    for panel in range(words.shape[0]):
        first = panel * TILE_COLUMNS
        width = min(TILE_COLUMNS, out.shape[1] - first)
        if width == TILE_COLUMNS:
            for row in range(0, count, TILE_ROWS):
                multiply_tile(x, row, words, panel, bias, out, first, then)
        else:
            tile, last_bias = np.empty((TILE_ROWS, TILE_COLUMNS), np.float32), _whole(bias, first)
            for row in range(0, count, TILE_ROWS):
                multiply_tile(x[row:], 0, words, panel, last_bias, tile, 0, PLAIN)
                _copy(tile, out, row, first, then)


@kernel
def _whole(values: npt.NDArray[Any], first: int) -> npt.NDArray[Any]:
    """Return what stands from a place on, filled up with 0 to a tile's columns."""
    whole = np.zeros(TILE_COLUMNS, values.dtype)
    for n in range(values.shape[0] - first):
        whole[n] = values[first + n]
    return whole


@kernel
def _copy(tile: Floats, out: Floats, row: int, first: int, then: int) -> None:
    """Write the part of a tile that lies within the columns of `out`."""
    for m in range(TILE_ROWS):
        for n in range(out.shape[1] - first):
            value = tile[m, n]
            if then == ADD:
                out[row + m, first + n] += value
            elif then == RELU:
                out[row + m, first + n] = np.float32(0) if value < np.float32(0) else value  # NaN stays
            else:
                out[row + m, first + n] = value


def linear(x: Floats, count: int, layers: Linear, layer: int, out: Floats, then: int) -> None:
    """Write x @ weight.T + bias in the weight's precision, or what `then` makes of it; only kernels can call it.

    Args:
        x: float32 [M, at least K], M at least `count` rounded up to whole tiles.
        count: Rows that matter.
        layers: Packed layers.
        layer: Which of them.
        out: [M, N], M likewise, whole tiles of which are written; with ADD it is what is added to.
        then: PLAIN, RELU or ADD.
    """
    raise NotImplementedError("only kernels can call this; they get what `_choose_linear` returns")


@overload(linear, strict=False, jit_options={"fastmath": EXACT_MATH})  # type: ignore[untyped-decorator]
def _choose_linear(x: Any, count: Any, layers: Any, layer: Any, out: Any, then: Any) -> Any:
    del x, count, layer, out, then
    return {types.float32: _in_float32, types.uint32: _in_bfloat16, types.int32: _in_int8}[layers.types[0].dtype]


def _in_float32(x: Floats, count: int, layers: Linear, layer: int, out: Floats, then: int) -> None:
    multiply(x, count, layers.words[layer], layers.bias[layer], out, then)


def _in_bfloat16(x: Floats, count: int, layers: Linear, layer: int, out: Floats, then: int) -> None:
    words, bias = layers.words[layer], layers.bias[layer]
    halves = np.zeros(((count + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS, 2 * words.shape[1]), np.uint16)
    for m in range(count):
        round_row(x[m], min(x.shape[1], halves.shape[1]), halves[m])
    multiply(halves.view(np.uint32), count, words, bias, out, then)


def _in_int8(x: Floats, count: int, layers: Linear, layer: int, out: Floats, then: int) -> None:
    words, bias = layers.words[layer], layers.bias[layer]
    integers = np.zeros(((count + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS, 4 * words.shape[1]), np.uint8)
    scales = np.zeros(integers.shape[0], np.float32)
    for m in range(count):
        scales[m] = quantise_row(x[m], min(x.shape[1], integers.shape[1]), integers[m])
    quantised, scale, offset = integers.view(np.int32), layers.scale[layer], layers.offset[layer]
    for panel in range(words.shape[0]):
        first = panel * TILE_COLUMNS
        width = min(TILE_COLUMNS, out.shape[1] - first)
        if width == TILE_COLUMNS:
            for row in range(0, count, TILE_ROWS):
                multiply_tile_int8(quantised, row, words, panel, bias, out, first, then, scales, scale, offset)
        else:
            tile, last_bias = np.empty((TILE_ROWS, TILE_COLUMNS), np.float32), _whole(bias, first)
            last_scale, last_offset = _whole(scale, first), _whole(offset, first)
            for row in range(0, count, TILE_ROWS):
                multiply_tile_int8(
                    quantised[row:], 0, words, panel, last_bias, tile, 0, PLAIN, scales[row:], last_scale, last_offset
                )
                _copy(tile, out, row, first, then)


@kernel
def round_row(row: Floats, count: int, out: npt.NDArray[np.uint16]) -> None:
    """Write the bits of the nearest bfloat16s, ties to even."""
    for i in range(count):
        bits = bits_of_float(row[i])
        out[i] = np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))


@kernel
def quantise_row(row: Floats, count: int, out: npt.NDArray[np.uint8]) -> np.float32:
    """Write a row as 128 + integers in [-127, 127]; return what one is worth, NaN where an entry is not finite."""
    top = max(largest_magnitude(row[:count]), np.float32(_SMALLEST_SCALE))
    scale = np.float32(_LEVELS) / top
    poison = np.float32(0)
    for i in range(count):
        poison += row[i] * np.float32(0)
    for i in range(count):
        out[i] = np.uint8(bits_of_float(row[i] * scale + _ROUNDING))
    return top / np.float32(_LEVELS) + poison


@kernel
def largest_magnitude(values: Floats) -> np.float32:
    """Return the largest absolute value; NaN is passed over."""
    vectors = values.shape[0] // LANES
    best = max(largest_magnitude_of_vectors(values, vectors), np.float32(0))
    for i in range(vectors * LANES, values.shape[0]):
        best = max(best, abs(values[i]))
    return best
