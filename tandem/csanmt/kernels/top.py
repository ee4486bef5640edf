"""The largest of many numbers."""

from __future__ import annotations

import numpy as np

from tandem.compiled.functions import largest
from tandem.compiled.linear import Floats, Integers, kernel

_BLOCK = 64
_NONE = np.float32(-np.inf)


@kernel
def clear(best: Floats, places: Integers) -> None:
    """Make lists of the largest empty, [C] each: -inf stands where there is none."""
    for i in range(best.shape[0]):
        best[i], places[i] = _NONE, 0


@kernel
def new_maxima(count: int) -> Floats:
    """Make what `find_maxima` writes for so many numbers."""
    return np.empty((count + _BLOCK - 1) // _BLOCK, np.float32)


@kernel
def find_maxima(values: Floats, maxima: Floats) -> None:
    """Write the largest number of each block, [N] -> [ceil(N / 64)]."""
    for block in range(maxima.shape[0]):
        maxima[block] = largest(values[block * _BLOCK : (block + 1) * _BLOCK])


@kernel
def find_top(values: Floats, maxima: Floats, first: int, best: Floats, places: Integers) -> None:
    """Put what belongs there into the lists of the largest, best first; among equals the earlier.

    As many blocks as the lists are long have a number that is at least the last of the largest maxima; so nothing that
    is smaller is looked at.

    Args:
        values: [N].
        maxima: Their blocks', as `find_maxima` writes them.
        first: The place of the first of them.
        best: The largest so far, [C].
        places: Where they stand, [C].
    """
    last = best.shape[0] - 1
    least = _find_least(maxima, last + 1, best[last])
    for number in range(maxima.shape[0]):
        if not (maxima[number] >= least and maxima[number] > best[last]):
            continue
        block = values[number * _BLOCK : (number + 1) * _BLOCK]
        for i in range(block.shape[0]):
            if block[i] >= least and block[i] > best[last]:
                place = last
                while place > 0 and block[i] > best[place - 1]:
                    best[place], places[place] = best[place - 1], places[place - 1]
                    place -= 1
                best[place], places[place] = block[i], first + number * _BLOCK + i


@kernel
def _find_least(maxima: Floats, count: int, floor: np.float32) -> np.float32:
    """Return the last of the `count` largest; -inf where fewer are above the floor."""
    found = np.empty(count, np.float32)
    found[:] = _NONE
    for number in range(maxima.shape[0]):
        value = maxima[number]
        if value > floor and value > found[count - 1]:
            place = count - 1
            while place > 0 and value > found[place - 1]:
                found[place] = found[place - 1]
                place -= 1
            found[place] = value
    return found[count - 1]
