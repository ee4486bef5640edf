"""Exponentials, softmax, normalisation: functions of one row of numbers."""

from __future__ import annotations

import math

import numpy as np

from tandem.compiled.linear import Floats, kernel
from tandem.compiled.vectors import LANES, largest_of_vectors, scale_vectors, sum_exponentials, take_exponentials

_ZERO, _ONE, _NONE = np.float32(0), np.float32(1), np.float32(-np.inf)


@kernel
def largest(values: Floats) -> np.float32:
    """Return the largest of some numbers; where one is NaN, any of them or -inf."""
    vectors = values.shape[0] // LANES
    best = largest_of_vectors(values, vectors)
    for i in range(vectors * LANES, values.shape[0]):
        best = max(best, values[i])
    return best


@kernel
def softmax(values: Floats, count: int) -> None:
    """Turn the first numbers of an array into shares that add up to 1, in place.

    Args:
        values: Whole vectors of LANES numbers; those behind the first `count` become 0.
        count: At least 1.
    """
    vectors = (count + LANES - 1) // LANES
    for i in range(count, vectors * LANES):
        values[i] = _NONE
    total = take_exponentials(values, largest_of_vectors(values, vectors), vectors)
    scale_vectors(values, _ONE / total, vectors)


@kernel
def add_exponentials(
    values: Floats, top: np.float32, highest: np.float32, total: np.float32
) -> tuple[np.float32, np.float32]:
    """Add to a sum of exponentials that is kept relative to the highest exponent so far.

    Args:
        values: The next exponents; some are above -inf.
        top: The largest of them.
        highest: So far; -inf at first.
        total: Sum of e^(value - highest) so far.

    Returns:
        The new `highest` and `total`; log(total) + highest is not finite where a value is NaN or +inf.
    """
    top = max(top, highest)
    if highest > _NONE:
        total *= np.float32(math.exp(highest - top))
    vectors = values.shape[0] // LANES
    total += sum_exponentials(values, top, vectors)
    for i in range(vectors * LANES, values.shape[0]):
        total += np.float32(math.exp(values[i] - top))
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
