"""Rows that take the places of those that have left."""

from __future__ import annotations

from tandem.compiled.linear import Integers, kernel
from tandem.csanmt.kernels.decoder import State


@kernel
def move_rows(state: State, moves: Integers) -> None:
    """Copy what is in use of rows to other places, one after the other.

    Args:
        state: The live rows.
        moves: From where, and to where, [M, 2].
    """
    for i in range(moves.shape[0]):
        _move_caches(state, moves[i, 0], moves[i, 1])
        _move_beam(state, moves[i, 0], moves[i, 1])


@kernel
def _move_caches(state: State, row: int, place: int) -> None:
    length, used, settled = state.source_length[row], state.position[row], state.settled[row]
    for layer in range(state.self_key.shape[0]):
        for own in (state.self_key[layer], state.self_value[layer]):
            own[place, :used] = own[row, :used]
        state.trunk_key[layer, place, :, :settled] = state.trunk_key[layer, row, :, :settled]
        state.trunk_value[layer, place, :settled] = state.trunk_value[layer, row, :settled]
        state.source_key[layer, place, :, :length] = state.source_key[layer, row, :, :length]
        state.source_value[layer, place, :length] = state.source_value[layer, row, :length]
        state.augmentation[layer, place] = state.augmentation[layer, row]


@kernel
def _move_beam(state: State, row: int, place: int) -> None:
    used = state.position[row]
    for numbers in (state.settled, state.source_length, state.position, state.wanted):
        numbers[place] = numbers[row]
    for hypotheses in (state.token, state.finished_step, state.finished_parent):
        hypotheses[place] = hypotheses[row]
    for scores in (state.log_prob, state.finished_score):
        scores[place] = scores[row]
    state.ancestry[place, :, :used] = state.ancestry[row, :, :used]
    for slots in (state.slot_token, state.slot_parent):
        slots[place, :used] = slots[row, :used]
