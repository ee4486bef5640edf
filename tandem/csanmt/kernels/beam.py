"""From logits to the next hypotheses of a row: the beam search's bookkeeping."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tandem.compiled.functions import largest
from tandem.compiled.linear import Floats, Integers, kernel
from tandem.csanmt.kernels.attention import dot
from tandem.csanmt.kernels.decoder import Scored, State
from tandem.csanmt.kernels.top import clear, find_maxima, find_top, new_maxima
from tandem.csanmt.modeling import EOS_ID

RUNNING, DONE, NON_FINITE = 0, 1, 2
_LEAST_CHANGE = np.float32(-0.5)
_NONE = np.float32(-np.inf)


class Limits(NamedTuple):
    """How rows are judged.

    Attributes:
        penalty: The length penalty of every length, float32 [max_target_tokens + 1].
        max_target_tokens: Output limit, the end mark included.
        is_exact: True when logits are computed in float32.
    """

    penalty: Floats
    max_target_tokens: int
    is_exact: bool


class Chosen(NamedTuple):
    """A row's best continuations, best first, [2K] each; a score of -inf where there is none."""

    score: Floats
    log_prob: Floats
    parent: Integers
    token: Integers


@kernel
def advance(state: State, limits: Limits, embedding: Floats, scored: Scored, rows: Integers, status: Integers) -> None:
    """Choose the continuations of rows and book them.

    Args:
        state: The live rows.
        limits: When they are done.
        embedding: The target's, scaled by the root of D; [V, D].
        scored: What `decode` gave, less what is forbidden.
        rows: Those that are advanced, [N].
        status: What became of each row, [R], of which the rows' are written.
    """
    beam = state.token.shape[1]
    width = 2 * beam
    chosen = Chosen(
        np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.int64), np.empty(width, np.int64)
    )
    for place in range(rows.shape[0]):
        row = rows[place]
        is_finite = _choose(state, limits, embedding, scored, place, row, chosen)
        _merge_finished(state, row, chosen)
        _follow(state, row, chosen)
        state.position[row] += 1
        status[row] = _judge(state, limits, row, chosen) if is_finite else NON_FINITE


@kernel
def look_again(scored: Scored, count: int) -> None:
    """Find the largest logits of hypotheses again, after some have been closed.

    Args:
        scored: With the logits.
        count: Hypotheses, N * K.
    """
    maxima = new_maxima(scored.logits.shape[1])
    for m in range(count):
        clear(scored.best[m], scored.place[m])
        find_maxima(scored.logits[m], maxima)
        find_top(scored.logits[m], maxima, 0, scored.best[m], scored.place[m])


@kernel
def _choose(
    state: State, limits: Limits, embedding: Floats, scored: Scored, place: int, row: int, chosen: Chosen
) -> bool:
    """Write the best 2K continuations of a row; False where the model gave no finite numbers."""
    beam = state.token.shape[1]
    width = scored.best.shape[1]
    penalty = limits.penalty[state.position[row] + 1]
    scores, log_probs = np.empty(beam * width, np.float32), np.empty(beam * width, np.float32)
    tokens = np.zeros(beam * width, np.int64)
    for i in range(beam * width):
        scores[i] = log_probs[i] = _NONE
    is_finite = True
    for k in range(beam):
        so_far, m = state.log_prob[row, k], place * beam + k
        if so_far == _NONE:
            continue
        is_finite = is_finite and math.isfinite(scored.log_total[m])
        found, places = log_probs[k * width : (k + 1) * width], tokens[k * width : (k + 1) * width]
        for i in range(width):
            found[i], places[i] = scored.best[m, i] - scored.log_total[m], scored.place[m, i]
        if not limits.is_exact:
            rescore(scored.hidden[m], embedding, scored.log_total[m], places, found)
        for i in range(k * width, (k + 1) * width):
            log_probs[i] += so_far
            scores[i] = log_probs[i] / penalty
    order = np.empty(2 * beam, np.int64)
    clear(chosen.score, order)
    maxima = new_maxima(scores.shape[0])
    find_maxima(scores, maxima)
    find_top(scores, maxima, 0, chosen.score, order)
    for i in range(2 * beam):
        chosen.log_prob[i] = log_probs[order[i]]
        chosen.parent[i], chosen.token[i] = order[i] // width, tokens[order[i]]
        if chosen.score[i] == _NONE:
            chosen.log_prob[i] = _NONE
    return is_finite


@kernel
def rescore(hidden: Floats, embedding: Floats, log_total: np.float32, tokens: Integers, log_probs: Floats) -> None:
    """Replace the log-probs of candidates whose logits came out of a rounded projection by those without the rounding.

    `tandem.csanmt.candidates.rescore` says why and how.

    Args:
        hidden: The decoder's normalised output, [D].
        embedding: The target's, scaled by the root of D; [V, D].
        log_total: The log of the sum of all rounded logits' exponentials.
        tokens: The candidates, [C].
        log_probs: Theirs, [C]; -inf where one is forbidden. Overwritten.
    """
    unscale = np.float32(1.0 / math.sqrt(hidden.shape[0]))
    change = np.float32(0)
    for i in range(tokens.shape[0]):
        if log_probs[i] > _NONE:
            exact = dot(hidden, embedding[tokens[i]]) * unscale - log_total
            change += np.float32(math.exp(exact)) - np.float32(math.exp(log_probs[i]))
            log_probs[i] = exact
    correction = np.float32(math.log1p(max(change, _LEAST_CHANGE)))
    for i in range(tokens.shape[0]):
        log_probs[i] -= correction


@kernel
def _merge_finished(state: State, row: int, chosen: Chosen) -> None:
    """Keep the best K of the finished hypotheses and the continuations that end now."""
    beam = state.token.shape[1]
    score, step, parent = state.finished_score[row], state.finished_step[row], state.finished_parent[row]
    for i in range(chosen.score.shape[0]):
        if chosen.token[i] != EOS_ID or not chosen.score[i] > score[beam - 1]:
            continue
        place = beam - 1
        while place > 0 and chosen.score[i] > score[place - 1]:
            score[place], step[place], parent[place] = score[place - 1], step[place - 1], parent[place - 1]
            place -= 1
        score[place], step[place], parent[place] = chosen.score[i], state.position[row], chosen.parent[i]


@kernel
def _follow(state: State, row: int, chosen: Chosen) -> None:
    """Let the best K that go on be the row's hypotheses."""
    beam, position = state.token.shape[1], state.position[row]
    ancestry = np.empty((beam, position + 1), np.int64)
    for k in range(beam):
        for t in range(position + 1):
            ancestry[k, t] = state.ancestry[row, k, t]
    kept = 0
    for i in range(chosen.score.shape[0]):
        if kept == beam or chosen.token[i] == EOS_ID:
            continue
        state.token[row, kept] = state.slot_token[row, position, kept] = chosen.token[i]
        state.slot_parent[row, position, kept] = chosen.parent[i]
        state.log_prob[row, kept] = chosen.log_prob[i]
        for t in range(position + 1):
            state.ancestry[row, kept, t] = ancestry[chosen.parent[i], t]
        kept += 1
    _settle(state, row, kept)
    for k in range(kept, beam):
        state.token[row, k] = state.slot_token[row, position, k] = EOS_ID
        state.slot_parent[row, position, k] = 0
        state.log_prob[row, k] = _NONE


@kernel
def _settle(state: State, row: int, kept: int) -> None:
    """Extend a row's trunk by the positions at which its first `kept` hypotheses now descend from the same slots."""
    while kept > 0 and state.settled[row] <= state.position[row]:
        t = state.settled[row]
        slot = state.ancestry[row, 0, t]
        for k in range(1, kept):
            if state.ancestry[row, k, t] != slot:
                return
        for layer in range(state.self_key.shape[0]):
            key, value = state.self_key[layer, row, t, slot], state.self_value[layer, row, t, slot]
            for d in range(key.shape[0]):
                state.trunk_key[layer, row, d, t] = key[d]
                state.trunk_value[layer, row, t, d] = value[d]
        state.settled[row] += 1


@kernel
def _judge(state: State, limits: Limits, row: int, chosen: Chosen) -> int:
    """Say what became of a row.

    It is done when as many hypotheses as are wanted have finished and the worst finished one beats whatever the best
    live one can still reach, at the output limit, or when nothing may follow.
    """
    finished, worst = 0, np.float32(np.inf)
    for k in range(state.finished_score.shape[1]):
        score = state.finished_score[row, k]
        if score > _NONE:
            finished += 1
            worst = min(worst, score)
    if chosen.score[0] == _NONE:
        return DONE if finished > 0 else NON_FINITE
    reachable = largest(state.log_prob[row]) / limits.penalty[limits.max_target_tokens]
    if finished >= state.wanted[row] and worst > reachable:
        return DONE
    return DONE if state.position[row] >= limits.max_target_tokens else RUNNING
