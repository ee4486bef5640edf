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
def find_top(values: Floats, first: int, best: Floats, places: Integers) -> None:
    """Put what belongs there into the lists of the largest, best first; among equals the earlier.

    Few blocks hold any; the others are passed over.

    Args:
        values: [N].
        first: The place of the first of them.
        best: The largest so far, [C].
        places: Where they stand, [C].
    """
    last = best.shape[0] - 1
    for start in range(0, values.shape[0], _BLOCK):
        block = values[start : start + _BLOCK]
        if not largest(block) > best[last]:
            continue
        for i in range(block.shape[0]):
            if block[i] > best[last]:
                place = last
                while place > 0 and block[i] > best[place - 1]:
                    best[place], places[place] = best[place - 1], places[place - 1]
                    place -= 1
                best[place], places[place] = block[i], first + start + i
