"""The beam search by compiled kernels: a step is one call a thread, on rows that share nothing but the weights.

Threads meet after every step, and each meeting costs as much as a position of a few rows: one waits for the other, and
for the interpreter. So a step is several positions where rows are few; a row that is done leaves at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from tandem.compiled.linear import Integers
from tandem.compiled.team import Team, get_team, split_evenly
from tandem.compiled.tile import HAS_BFLOAT16, HAS_INT8, TILE_ROWS
from tandem.core.types import Item
from tandem.csanmt.configuration import CsanmtConfig
from tandem.csanmt.constraints import Constraint
from tandem.csanmt.kernels.beam import Limits
from tandem.csanmt.kernels.decoder import Scored, State
from tandem.csanmt.kernels.encoder import encode
from tandem.csanmt.kernels.search import CHOOSE, SCORE, WHOLE, search
from tandem.csanmt.kernels.weights import Model, read_weights
from tandem.csanmt.live import DecodingOptions, LiveRows, length_penalty
from tandem.csanmt.modeling import EOS_ID, CsanmtForConditionalGeneration
from tandem.csanmt.rows import RowLimits, RowTensor
from tandem.nn.precision import Precision

_RESCORED = 4  # continuations of a hypothesis, in beams, that are scored again after a rounded projection
_ROWS_WORTH_A_THREAD = 2  # fewer cost less than waking the thread
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
        rows.admit([Item((EOS_ID + 1,))], [[]])
        rows.step()

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
        new = self._make_room(len(items), max(item.length for item in items))
        self._refresh()
        lengths = [item.length for item in items]
        self._rows["source_length"][new] = torch.tensor(lengths)
        self._rows["settled"][new] = 0
        runs = split_evenly(lengths, self._team.size)
        self._team.run([partial(self._encode, items[run], new.start + run.start) for run in runs])
        self._enroll(new, items, constraints)

    def _encode(self, items: Sequence[Item], row: int) -> None:
        state = self._view.state
        ids = np.array([token for item in items for token in (*item.ids, EOS_ID)], np.int64)
        if ids.min() < 0 or ids.max() >= len(self._weights.encoder.embedding):
            raise IndexError("a source token lies outside the vocabulary")
        if max(item.length for item in items) > len(self._weights.encoder.positions):
            raise IndexError("a source is longer than the positions that the weights were read for")
        starts = np.cumsum([0, *(item.length for item in items)], dtype=np.int64)
        encode(self._weights, ids, starts, row, state.source_key, state.source_value, state.augmentation)

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
        """Let the threads advance the rows, each its own."""
        count, positions = len(self._live), self._ahead()
        threads = min(self._team.size, max(count // _ROWS_WORTH_A_THREAD, 1))
        runs = split_evenly([1] * count, threads)
        self._team.run([partial(self._search, run.start, run.stop, positions, part) for run in runs])

    def _search(self, first: int, last: int, positions: int, part: int) -> None:
        weights, view = self._weights, self._view
        search(
            weights.decoder, weights.heads, weights.eps, view.state, self._limits, first, last, positions,
            view.scored, view.status, part,
        )  # fmt: skip

    def _tell_constraints(self) -> None:
        count = len(self._live)
        at = torch.tensor([row.position for row in self._live])
        rows = torch.arange(count)
        self._follow_constraints(self._rows["slot_parent"][rows, at], self._rows["slot_token"][rows, at])

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
