"""Exponentials, softmax, normalisation: functions of one row of numbers."""

from __future__ import annotations

import math

import numba
import numpy as np

from tandem.compiled.linear import EXACT_MATH, Floats, kernel
from tandem.compiled.tile import LANES, float_of_bits

_LOG2_E = np.float32(1.44269504)
# ln 2 in two parts, so that n * ln 2 is exact to twice the precision.
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SMALLEST = np.float32(-87.0)  # below this the result is 0 to float32
_ZERO, _ONE, _HALF = np.float32(0), np.float32(1), np.float32(0.5)
# The remainder's exponential, (e^r - 1 - r) / r^2: minimax polynomial of Cephes' expf.
_P0, _P1, _P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)


@kernel
def exp_nonpositive(x: np.float32) -> np.float32:
    """Return e^x of x <= 0 in float32, to two units of the last place; loops over it become vector instructions.

    NaN stays NaN; what is below -87 gives 0.
    """
    clipped = max(x, _SMALLEST) if x == x else x  # noqa: PLR0124 - NaN
    n = np.floor(clipped * _LOG2_E + _HALF)
    r = clipped - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    scale = float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))
    return (p * r * r + r + _ONE) * scale if x >= _SMALLEST or x != x else _ZERO  # noqa: PLR0124 - NaN


@numba.njit(nogil=True, cache=True, fastmath=EXACT_MATH | {"nnan"})  # type: ignore[untyped-decorator]
def largest(values: Floats) -> np.float32:
    """Return the largest of some numbers; any of them where one is NaN."""
    best = values[0]
    for i in range(values.shape[0]):
        best = max(best, values[i])
    return best


@kernel
def softmax(values: Floats, count: int) -> None:
    """Turn the first numbers of an array into shares that add up to 1, in place."""
    top = values[0]
    for i in range(count):
        top = max(top, values[i])
    total, whole = _ZERO, count // LANES * LANES
    for start in range(0, whole, LANES):
        for i in range(start, start + LANES):  # of known length: one vector
            values[i] = exp_nonpositive(values[i] - top)
    for i in range(whole, count):
        values[i] = exp_nonpositive(values[i] - top)
    for i in range(count):
        total += values[i]
    inverse = _ONE / total
    for i in range(count):
        values[i] *= inverse


@kernel
def add_exponentials(values: Floats, highest: np.float32, total: np.float32) -> tuple[np.float32, np.float32]:
    """Add to a sum of exponentials that is kept relative to the highest exponent so far.

    Args:
        values: The next exponents; some are above -inf.
        highest: So far; -inf at first.
        total: Sum of e^(value - highest) so far.

    Returns:
        The new `highest` and `total`; log(total) + highest is not finite where a value is NaN or +inf.
    """
    top = max(largest(values), highest)
    total *= exp_nonpositive(highest - top)
    for i in range(values.shape[0]):
        total += exp_nonpositive(values[i] - top)
    return top, total


@kernel
def layer_norm(x: Floats, count: int, weight: Floats, bias: Floats, eps: float, out: Floats) -> None:
    """Normalise the first `count` rows, [M, D] -> [M, D]."""
    size = x.shape[1]
    for m in range(count):
        row, target = x[m], out[m]
        total = _ZERO
        for i in range(size):
            total += row[i]
        mean = total / np.float32(size)
        spread = _ZERO
        for i in range(size):
            spread += (row[i] - mean) * (row[i] - mean)
        scale = np.float32(1.0 / math.sqrt(spread / size + eps))
        for i in range(size):
            target[i] = (row[i] - mean) * scale * weight[i] + bias[i]
