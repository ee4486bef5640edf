"""The live rows of a beam search: who they are, how they come, move and leave, and what their hypotheses were.

A row is a segment with its K hypotheses. Every row has its own position, so its result does not depend on when it
joined or on what runs beside it. How a row is advanced is the business of the searches built on this.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tandem.core.errors import NonFiniteError
from tandem.core.types import Finished, Hypothesis, Item
from tandem.csanmt.constraints import Constraint
from tandem.csanmt.modeling import EOS_ID
from tandem.csanmt.rows import RowLimits, Rows, RowTensor

RUNNING, DONE, NON_FINITE = 0, 1, 2

Arrays = Rows | Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """How translations are searched for.

    Attributes:
        beam_size: K, hypotheses kept.
        lp_rate: Exponent of the length penalty.
        max_target_tokens: Output limit, the end mark included.
    """

    beam_size: int = 4
    lp_rate: float = 0.6
    max_target_tokens: int = 100


@dataclass(slots=True)
class Row:
    """What the host knows of a live row."""

    item: Item
    source_length: int
    position: int = 0
    constraints: list[Constraint] = field(default_factory=list)


def length_penalty(length: Tensor, lp_rate: float) -> Tensor:
    """Return what log-probs of a target length are divided by, [...] -> [...]."""
    return ((5.0 + length) / 6.0) ** lp_rate


def beam_layout(beam: int) -> dict[str, RowTensor]:
    """Return the tensors of a row's K hypotheses, whatever computes them.

    `slot_token` and `slot_parent` say what each slot of each position chose and after which slot; `ancestry` which slot
    each live hypothesis descends from at each position.
    """
    moved = torch.int64
    return {
        "position": RowTensor(("R",), moved),
        "token": RowTensor(("R", beam), moved, EOS_ID),
        "log_prob": RowTensor(("R", beam), torch.float32, -math.inf),
        "ancestry": RowTensor(("R", beam, "T"), moved, -1),
        "slot_token": RowTensor(("R", "T", beam), moved),
        "slot_parent": RowTensor(("R", "T", beam), moved),
        "wanted": RowTensor(("R",), moved, 1),
        "finished_score": RowTensor(("R", beam), torch.float32, -math.inf),
        "finished_step": RowTensor(("R", beam), moved),
        "finished_parent": RowTensor(("R", beam), moved),
    }


class LiveRows(ABC):
    """Rows and their tensors, without the arithmetic.

    Args:
        layout: The tensors beside those of `beam_layout`.
        options: Beam size, length penalty, output limit.
        device: Where the tensors lie.
        limits: How many rows there may be, and how long; None for as many as join.
    """

    def __init__(
        self,
        layout: Mapping[str, RowTensor],
        options: DecodingOptions,
        device: torch.device,
        limits: RowLimits | None = None,
    ) -> None:
        """Start without rows."""
        self.options = options
        self._device = device
        self._live: list[Row] = []
        self._rows = Rows({**layout, **beam_layout(options.beam_size)}, device, limits)

    def __len__(self) -> int:
        """Return the number of live rows."""
        return len(self._live)

    @property
    def items(self) -> list[Item]:
        """The live rows' items."""
        return [row.item for row in self._live]

    @abstractmethod
    def admit(self, items: Sequence[Item], constraints: Sequence[list[Constraint]]) -> None:
        """Encode items and let them take part from the next step on.

        Args:
            items: New ones.
            constraints: What restricts each item's target; often empty.
        """

    def step(self) -> list[Finished[list[Hypothesis]]]:
        """Advance every live row by a target position, or by some; return those that are done."""
        if not self._live:
            return []
        length = min(self._longest_target() + self._ahead() - 1, self.options.max_target_tokens)
        self._rows.reserve({"R": len(self._live), "S": self._longest_source(), "T": length})
        ended = []
        for index, (status, position) in enumerate(self._advance_rows()):
            self._live[index].position = position
            if status != RUNNING:
                ended.append((index, status))
        return self._leave(ended)

    def drop(self, items: Sequence[Item]) -> None:
        """Let rows leave without a result."""
        gone = set(map(id, items))
        self._close_gaps([index for index, row in enumerate(self._live) if id(row.item) in gone])

    def move(self, item: Item, target: Self) -> None:
        """Hand a live row over to another search of the same model; it goes on where it is."""
        index = next(index for index, row in enumerate(self._live) if row.item is item)
        row = self._live[index]
        used = {"S": row.source_length, "T": max(row.position, 1)}
        place = len(target._live)
        source, length = max(used["S"], target._longest_source()), max(used["T"], target._longest_target())
        target._rows.reserve({"R": place + 1, "S": source, "T": length})
        target._rows.clear_row(place)
        target._rows.copy_row(self._rows, index, place, used)
        target._live.append(row)
        self._close_gaps([index])

    def clear(self) -> None:
        """Drop all rows and give their memory back."""
        self._live.clear()
        self._rows.release()

    def fits(self, count: int, longest: int) -> bool:
        """Say whether the limits let so many more rows join, the longest source having so many positions."""
        return self._rows.fits(len(self._live) + count, max(longest, self._longest_source()))

    def most_cache_bytes(self) -> int:
        """Return the most memory that rows within the limits take, in bytes."""
        return self._rows.most_bytes()

    # -- for the searches built on this ------------------------------------------------------------------------------

    def _ahead(self) -> int:
        """Return by how many positions the coming step advances a row that goes on so long."""
        return 1

    @abstractmethod
    def _advance_rows(self) -> list[tuple[int, int]]:
        """Advance every live row, for which there is room; return what became of each and the position it is at."""

    def _hide_leftovers(self, index: int, row: Row) -> None:  # noqa: B027 - not every search must
        """Make what an earlier row left behind a row's used positions invisible; called when a row has been moved."""

    def _arrays(self) -> Arrays:
        """Return the rows' tensors, or other views of the same memory that can be written to, by name."""
        return self._rows

    def _make_room(self, count: int, longest: int) -> slice:
        """Make room for new rows with sources of up to so many positions; return where they will stand."""
        first = len(self._live)
        self._rows.reserve({"R": first + count, "S": max(longest, self._longest_source()), "T": self._longest_target()})
        return slice(first, first + count)

    def _enroll(self, new: slice, items: Sequence[Item], constraints: Sequence[list[Constraint]]) -> None:
        """Let rows begin whose sources have been written."""
        arrays = self._arrays()
        for name, fill in (("position", 0), ("token", EOS_ID), ("ancestry", -1)):
            arrays[name][new] = fill
        for name in ("log_prob", "finished_score"):
            arrays[name][new] = -math.inf
        arrays["log_prob"][new, 0] = 0.0
        arrays["wanted"][new] = torch.tensor([item.n_best for item in items], device=self._device)
        self._live += [
            Row(item, item.length, constraints=list(kept)) for item, kept in zip(items, constraints, strict=True)
        ]

    def _forbid(self, logits: Tensor) -> None:
        """Close what the rows' constraints forbid, in place, [B*K, V]."""
        beam = self.options.beam_size
        for index, row in enumerate(self._live):
            for constraint in row.constraints:
                for slot in range(beam):
                    constraint.apply(slot, logits[index * beam + slot])

    def _follow_constraints(self, parents: Tensor, tokens: Tensor) -> None:
        """Tell the rows' constraints what was chosen, int64 [B, K] each."""
        for index, row in enumerate(self._live):
            for constraint in row.constraints:
                constraint.follow(parents[index].tolist(), tokens[index].tolist())
            row.constraints = [constraint for constraint in row.constraints if not constraint.is_satisfied()]

    def _longest_source(self) -> int:
        return max((row.source_length for row in self._live), default=0)

    def _longest_target(self) -> int:
        """Return the target positions that the coming step needs."""
        return max((row.position for row in self._live), default=0) + 1

    # -- rows that leave ---------------------------------------------------------------------------------------------

    def _leave(self, ended: list[tuple[int, int]]) -> list[Finished[list[Hypothesis]]]:
        """Take the results of ended rows and close the gaps; `ended` holds row and status."""
        if not ended:
            return []
        finished: list[Finished[list[Hypothesis]]] = []
        tables = self._fetch([index for index, status in ended if status == DONE])
        for index, status in ended:
            item = self._live[index].item
            if status == NON_FINITE:
                self._rows.clear_row(index)
                finished.append(Finished(item, error=NonFiniteError("the model gave NaN or infinity for this text")))
            else:
                finished.append(Finished(item, self._hypotheses(self._live[index], tables[index])))
        self._close_gaps([index for index, _ in ended])
        return finished

    def _fetch(self, done: Sequence[int]) -> dict[int, Table]:
        """Bring what the hypotheses of done rows are made of to the host, in one transfer for all of them."""
        rows, beam, sizes = self._rows, self.options.beam_size, [self._live[index].position for index in done]
        whole: list[Tensor] = []
        for index, size in zip(done, sizes, strict=True):
            whole += [rows["slot_token"][index, :size], rows["slot_parent"][index, :size]]
            whole += [rows["finished_step"][index, None], rows["finished_parent"][index, None]]
        if not whole:
            return {}
        scores = torch.stack([rows[name][index] for index in done for name in ("finished_score", "log_prob")])
        packed = torch.cat((torch.cat(whole).int(), scores.view(torch.int32))).cpu()
        numbers, values = packed[: -len(scores)].numpy(), packed[-len(scores) :].view(torch.float32).view(-1, 2, beam)
        parts = np.split(numbers, np.cumsum([2 * size + 2 for size in sizes])[:-1])
        return {
            index: Table(part[:size], part[size:-2], part[-2:].T.tolist(), *pair)
            for index, size, part, pair in zip(done, sizes, parts, values.tolist(), strict=True)
        }

    def _hypotheses(self, row: Row, table: Table) -> list[Hypothesis]:
        """Return a row's finished hypotheses, best first, or its live ones when none has finished."""
        tokens, parents, ends, scores = table.tokens, table.parents, table.ends, table.scores
        last = -1
        if scores[0] == -math.inf:
            last = row.position
            penalty = float(length_penalty(torch.tensor(float(last)), self.options.lp_rate))
            scores = [log_prob / penalty for log_prob in table.log_probs]
            ends = [(last, slot) for slot in range(self.options.beam_size)]
        return [
            Hypothesis(_trace(tokens, parents, step, slot), score, truncated=step == last)
            for (step, slot), score in list(zip(ends, scores, strict=True))[: row.item.n_best]
            if score > -math.inf
        ]

    def _close_gaps(self, gone: Sequence[int]) -> None:
        """Let the last rows take the places of those that leave."""
        moves = []
        for hole in sorted(gone, reverse=True):
            row = self._live.pop()
            if hole != len(self._live):
                moves.append(Move(row, len(self._live), hole))
                self._live[hole] = row
        if moves:
            self._move_rows(moves)

    def _move_rows(self, moves: Sequence[Move]) -> None:
        """Copy rows to other places, in order: one may be moved twice."""
        for row, source, place in moves:
            self._rows.copy_row(self._rows, source, place, {"S": row.source_length, "T": max(row.position, 1)})
            self._hide_leftovers(place, row)


class Move(NamedTuple):
    """A row that takes another one's place, and where it comes from."""

    row: Row
    source: int
    place: int


@dataclass(frozen=True, slots=True)
class Table:
    """What a done row's hypotheses are made of, on the host.

    Attributes:
        tokens: What each slot took at each position, [T, K].
        parents: The slots they continue, [T, K].
        ends: Position and slot at which each finished hypothesis ended, best first.
        scores: Of the finished ones, best first; -inf for none.
        log_probs: Of the live ones.
    """

    tokens: npt.NDArray[np.integer]
    parents: npt.NDArray[np.integer]
    ends: list[tuple[int, int]]
    scores: list[float]
    log_probs: list[float]


def _trace(tokens: npt.NDArray[np.integer], parents: npt.NDArray[np.integer], step: int, slot: int) -> tuple[int, ...]:
    """Walk back from a slot after `step` positions to the beginning; return its token ids in order."""
    ids = []
    for at in range(step - 1, -1, -1):
        ids.append(int(tokens[at, slot]))
        slot = int(parents[at, slot])
    return tuple(reversed(ids))
