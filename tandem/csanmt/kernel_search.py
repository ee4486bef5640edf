"""The beam search by compiled kernels: a step is one call a thread, on rows that share nothing but the weights.

Threads meet after every step, and each meeting costs as much as a position of a few rows: one waits for the other, and
for the interpreter. So a step is several positions where rows are few; a row that is done leaves at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from tandem.compiled.linear import Integers
from tandem.compiled.team import Team, get_team
from tandem.compiled.tile import HAS_BFLOAT16, HAS_INT8, TILE_ROWS
from tandem.core.types import Item
from tandem.csanmt.configuration import CsanmtConfig
from tandem.csanmt.constraints import Constraint
from tandem.csanmt.kernels.beam import Limits
from tandem.csanmt.kernels.decoder import Scored, State
from tandem.csanmt.kernels.encoder import encode
from tandem.csanmt.kernels.moving import move_rows
from tandem.csanmt.kernels.search import CHOOSE, SCORE, WHOLE, search
from tandem.csanmt.kernels.weights import Model, read_weights
from tandem.csanmt.live import Arrays, DecodingOptions, LiveRows, Move, Table, length_penalty
from tandem.csanmt.modeling import EOS_ID, CsanmtForConditionalGeneration
from tandem.csanmt.rows import RowLimits, RowTensor
from tandem.nn.precision import Precision

_RESCORED = 4  # continuations of a hypothesis, in beams, that are scored again after a rounded projection
_WEIGHTS_A_ROW = 1e6  # more are read again for too few rows: threads take so many rows of a larger model at a time
_STEP_WEIGHTS = 3e8  # weights that rows meet in a step of several positions: some 20 ms, which nobody feels
_LEAST_ROWS = 2  # fewer take as long, because reading the weights does


def kernel_precisions() -> frozenset[Precision]:
    """Return the precisions that this processor has instructions for."""
    lower = {Precision.BFLOAT16: HAS_BFLOAT16, Precision.INT8: HAS_INT8}
    return frozenset({Precision.FLOAT32, *(precision for precision, is_there in lower.items() if is_there)})


class Kernels:
    """One model for the kernels.

    Args:
        model: In float32 on the CPU, its linear layers not packed.
        precision: One of `kernel_precisions`.
        source_positions: The longest source, its end mark included.
        threads: How many compute.
    """

    def __init__(
        self, model: CsanmtForConditionalGeneration, precision: Precision, source_positions: int, threads: int
    ) -> None:
        """Pack the weights."""
        self._config = model.config
        self._is_exact = precision is Precision.FLOAT32
        target_positions = max(model.config.max_decoded_trg_len, DecodingOptions().max_target_tokens)
        self._weights = read_weights(model, precision, source_positions, target_positions)
        self._team = get_team(threads)
        self._compile()

    def _compile(self) -> None:
        """Call every kernel once, on this thread alone.

        numba compiles under a lock that is gevent's in a server; threads that met at it would wait for ever.
        """
        rows = KernelSearch(self._weights, self._config, DecodingOptions(), get_team(1), is_exact=self._is_exact)
        items = [Item((EOS_ID + 1,)), Item((EOS_ID + 1,))]
        rows.admit(items, [[], []])
        rows.step()
        rows.drop(items[:1])

    @property
    def weight_bytes(self) -> int:
        """The size of the packed weights."""
        return _count_bytes(self._weights)

    def build_search(
        self, options: DecodingOptions, limits: RowLimits | None = None, most_positions: int = 1
    ) -> KernelSearch:
        """Make a search without rows; its steps are of up to so many positions.

        Raises:
            ValueError: The output limit is beyond the positions that the weights were read for.
        """
        known = len(self._weights.decoder.positions)
        if options.max_target_tokens > known:
            raise ValueError(f"an output limit of {options.max_target_tokens} is beyond the {known} known positions")
        return KernelSearch(
            self._weights, self._config, options, self._team, limits, is_exact=self._is_exact,
            most_positions=most_positions,
        )  # fmt: skip


def _count_bytes(weights: object) -> int:
    if isinstance(weights, tuple):
        return sum(map(_count_bytes, weights))
    return weights.nbytes if isinstance(weights, np.ndarray) else 0


def _count_decoder_weights(config: CsanmtConfig) -> int:
    """Return how many weights a hypothesis meets at each position."""
    size = config.hidden_size
    layer = size * (6 * size + 2 * config.filter_size)  # of self attention 4 matrices, of the source's 2
    return config.num_decoder_layers * layer + size * config.trg_vocab_size


class KernelSearch(LiveRows):
    """Live rows on a CPU.

    Args:
        weights: The model's.
        config: The model's.
        options: Beam size, length penalty, output limit.
        team: Who computes.
        limits: How many rows there may be, and how long; None for as many as join.
        is_exact: True when the weights are in float32.
        most_positions: Of a step.
    """

    def __init__(  # noqa: PLR0913 - what a search is made of
        self,
        weights: Model,
        config: CsanmtConfig,
        options: DecodingOptions,
        team: Team,
        limits: RowLimits | None = None,
        *,
        is_exact: bool = True,
        most_positions: int = 1,
    ) -> None:
        """Start without rows."""
        layers, size, beam = config.num_decoder_layers, config.hidden_size, options.beam_size
        exact, candidates = torch.float32, (2 if is_exact else _RESCORED) * beam
        layout = {
            "self_key": RowTensor((layers, "R", "T", beam, size), exact),
            "self_value": RowTensor((layers, "R", "T", beam, size), exact),
            "trunk_key": RowTensor((layers, "R", size, "T"), exact),
            "trunk_value": RowTensor((layers, "R", "T", size), exact),
            "settled": RowTensor(("R",), torch.int64),
            "source_key": RowTensor((layers, "R", size, "S"), exact),
            "source_value": RowTensor((layers, "R", "S", size), exact),
            "source_length": RowTensor(("R",), torch.int64),
            "augmentation": RowTensor((layers, "R", size), exact),
            "hidden": RowTensor(("R", -(-beam // TILE_ROWS) * TILE_ROWS, size), exact),
            "logits": RowTensor(("R", beam, config.trg_vocab_size), exact),
            "log_total": RowTensor(("R", beam), exact),
            "best": RowTensor(("R", beam, candidates), exact),
            "place": RowTensor(("R", beam, candidates), torch.int64),
            "status": RowTensor(("R",), torch.int64),
        }
        super().__init__(layout, options, torch.device("cpu"), limits)
        self._weights = weights
        self._team = team
        self._most_positions, self._decoder_weights = most_positions, _count_decoder_weights(config)
        lengths = torch.arange(options.max_target_tokens + 1.0)
        self._limits = Limits(length_penalty(lengths, options.lp_rate).numpy(), options.max_target_tokens, is_exact)
        self._view = self._look()

    def admit(self, items: Sequence[Item], constraints: Sequence[list[Constraint]]) -> None:
        """Encode items and let them take part from the next step on."""
        if not items:
            return
        ids = np.array([token for item in items for token in (*item.ids, EOS_ID)], np.int64)
        if ids.min() < 0 or ids.max() >= len(self._weights.encoder.embedding):
            raise IndexError("a source token lies outside the vocabulary")
        longest = max(item.length for item in items)
        if longest > len(self._weights.encoder.positions):
            raise IndexError("a source is longer than the positions that the weights were read for")
        new = self._make_room(len(items), longest)
        self._refresh()
        lengths = [item.length for item in items]
        state = self._view.state
        state.source_length[new], state.settled[new] = lengths, 0
        self._share_out(len(items), partial(self._encode, ids, np.cumsum([0, *lengths]), new.start))
        self._enroll(new, items, constraints)

    def _encode(self, ids: Integers, starts: Integers, row: int, run: int, taken: Integers) -> None:
        state = self._view.state
        encode(
            self._weights, ids, starts, row, run, taken, state.source_key, state.source_value, state.augmentation
        )  # fmt: skip

    def _ahead(self) -> int:
        if any(row.constraints for row in self._live):
            return 1
        met = max(len(self._live), _LEAST_ROWS) * self._decoder_weights
        return max(min(int(_STEP_WEIGHTS / met), self._most_positions), 1)

    def _advance_rows(self) -> list[tuple[int, int]]:
        self._refresh()
        if any(row.constraints for row in self._live):
            self._run(SCORE)
            self._forbid(self._rows["logits"].flatten(0, 1))
            self._run(CHOOSE)
            self._tell_constraints()
        else:
            self._run(WHOLE)
        state, count = self._view.state, len(self._live)
        return list(zip(self._view.status[:count].tolist(), state.position[:count].tolist(), strict=True))

    def _run(self, part: int) -> None:
        """Let the threads advance the rows."""
        count = len(self._live)
        self._share_out(count, partial(self._search, count, self._ahead(), part))

    def _search(self, count: int, positions: int, part: int, run: int, taken: Integers) -> None:
        weights, view = self._weights, self._view
        search(
            weights.decoder, weights.heads, weights.eps, view.state, self._limits, count, positions, view.scored,
            view.status, part, run, taken,
        )  # fmt: skip

    def _share_out(self, count: int, work: Callable[[int, Integers], None]) -> None:
        """Let the threads share out rows among themselves; `work` takes how many at a time, and what is taken."""
        run = min(max(round(self._decoder_weights / _WEIGHTS_A_ROW), 1), -(-count // self._team.size))
        threads = min(self._team.size, -(-count // run))
        self._team.run([partial(work, run, np.zeros(1, np.int64))] * threads)

    def _tell_constraints(self) -> None:
        count = len(self._live)
        at = torch.tensor([row.position for row in self._live])
        rows = torch.arange(count)
        self._follow_constraints(self._rows["slot_parent"][rows, at], self._rows["slot_token"][rows, at])

    def _arrays(self) -> Arrays:
        return self._view.state._asdict()

    def _fetch(self, done: Sequence[int]) -> dict[int, Table]:
        state = self._view.state
        tables = {}
        for row in done:
            size, ends = state.position[row], (state.finished_step[row], state.finished_parent[row])
            tables[row] = Table(
                state.slot_token[row, :size], state.slot_parent[row, :size], np.stack(ends, 1).tolist(),
                state.finished_score[row].tolist(), state.log_prob[row].tolist(),
            )  # fmt: skip
        return tables

    def _move_rows(self, moves: Sequence[Move]) -> None:
        self._refresh()
        move_rows(self._view.state, np.array([(source, place) for _, source, place in moves], np.int64))

    def _refresh(self) -> None:
        """Look again when the rows' tensors have been replaced; threads that compute must find the view as it stays."""
        if self._view.version != self._rows.version:
            self._view = self._look()

    def _look(self) -> _View:
        """Return the rows' tensors as the kernels see them."""
        rows = self._rows
        state = State(**{name: rows[name].numpy() for name in State._fields})
        scored = Scored(*(rows[name].flatten(0, 1).numpy() for name in Scored._fields))
        return _View(rows.version, state, scored, rows["status"].numpy())


class _View(NamedTuple):
    version: int
    state: State
    scored: Scored
    status: Integers
