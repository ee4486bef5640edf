"""What a thread does in one call: some target positions of the rows that are its own."""

from __future__ import annotations

import numpy as np

from tandem.compiled.linear import Integers, kernel
from tandem.compiled.sharing import take
from tandem.csanmt.kernels.beam import RUNNING, Limits, advance, look_again
from tandem.csanmt.kernels.decoder import Scored, State, decode
from tandem.csanmt.kernels.weights import Decoder

# Whole positions; or one position in two calls, between which the logits may be changed.
WHOLE, SCORE, CHOOSE = 0, 1, 2


@kernel
def search(
    weights: Decoder, heads: int, eps: float, state: State, limits: Limits, count: int, positions: int,
    scored: Scored, status: Integers, part: int, run: int, taken: Integers,
) -> None:  # fmt: skip
    """Advance rows by some target positions, each until it is done; as many rows as the other threads leave.

    A thread that is held up, by other work on its core, takes fewer.

    Args:
        weights: The decoder's.
        heads: H.
        eps: Of the normalisations.
        state: The live rows.
        limits: When they are done.
        count: Rows that are advanced, the first ones.
        positions: By how many; one where it is done in two calls.
        scored: Working memory for these rows; what SCORE leaves in it, CHOOSE finds there.
        status: What became of each row, [R], of which the rows' are written.
        part: WHOLE, SCORE or CHOOSE.
        run: How many rows a thread takes at a time.
        taken: Rows that threads have taken, [1]; 0 at first.
    """
    first = take(taken, run)
    while first < count:
        rows = np.arange(first, min(first + run, count))
        own = _after(scored, first * state.token.shape[1])
        _advance(weights, heads, eps, state, limits, rows, positions, own, status, part)
        first = take(taken, run)


@kernel
def _advance(
    weights: Decoder, heads: int, eps: float, state: State, limits: Limits, rows: Integers, positions: int,
    scored: Scored, status: Integers, part: int,
) -> None:  # fmt: skip
    if part == SCORE:
        decode(weights, heads, eps, state, rows, scored, True)
    elif part == CHOOSE:
        look_again(scored, rows.shape[0] * state.token.shape[1])
        advance(state, limits, weights.embedding, scored, rows, status)
    else:
        while positions > 0 and rows.shape[0] > 0:
            decode(weights, heads, eps, state, rows, scored, False)
            advance(state, limits, weights.embedding, scored, rows, status)
            rows, positions = _running(rows, status), positions - 1


@kernel
def _after(scored: Scored, first: int) -> Scored:
    """Return what belongs to the hypotheses from one on."""
    return Scored(
        scored.hidden[first:], scored.logits[first:], scored.log_total[first:], scored.best[first:],
        scored.place[first:],
    )  # fmt: skip


@kernel
def _running(rows: Integers, status: Integers) -> Integers:
    """Return the rows that are not done."""
    kept = np.empty_like(rows)
    count = 0
    for row in rows:
        if status[row] == RUNNING:
            kept[count] = row
            count += 1
    return kept[:count]
