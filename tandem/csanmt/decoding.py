"""Beam search over sentences that join and leave at any step.

One `Search` holds live rows (a row is a segment with its K hypotheses) and advances all of them by one target position
a step. Every row has its own position, so its result does not depend on when it joined or on what runs beside it.

Keys and values of the target lie where they were first written: position t of hypothesis slot k. When hypotheses are
re-ordered, nothing is moved; the ancestry table says which slot each live hypothesis used at each position, and
attention over all slots of a row is masked accordingly. The K queries of a row meet the same keys, so this reads no
more memory than moved caches would.

Source: Wu et al. 2016, eq. 14 (length penalty); the official graph's `beam_search`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tandem.core.errors import NonFiniteError
from tandem.core.types import Finished, Hypothesis, Item
from tandem.csanmt.candidates import Candidates, VocabularyScorer, select_candidates
from tandem.csanmt.constraints import Constraint
from tandem.csanmt.graphs import Recorder, StepGraphs
from tandem.csanmt.modeling import EOS_ID, CsanmtForConditionalGeneration, Encoded, open_mask
from tandem.csanmt.rows import RowLimits, Rows, RowTensor, ceil_power
from tandem.nn.attention import attend, relative_index

_RUNNING, _DONE, _NON_FINITE = 0, 1, 2
_SHORTEST_TARGET = 16  # positions that a recorded step reads at least


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
class _Row:
    """What the host knows of a live row."""

    item: Item
    source_length: int
    position: int = 0
    constraints: list[Constraint] = field(default_factory=list)


def length_penalty(length: Tensor, lp_rate: float) -> Tensor:
    """Return what log-probs of a target length are divided by, [...] -> [...]."""
    return ((5.0 + length) / 6.0) ** lp_rate


class Search:
    """The live rows of one model on one device.

    Args:
        model: In evaluation mode, its linear layers packed or not.
        options: Beam size, length penalty, output limit.
        device: Where the model lies.
        cache_dtype: Type of the cached keys and values.
        exact_logits: True when the vocabulary projection computes in float32.
        limits: How many rows there may be, and how long; None for as many as join.
    """

    def __init__(
        self,
        model: CsanmtForConditionalGeneration,
        options: DecodingOptions,
        device: torch.device,
        cache_dtype: torch.dtype = torch.float32,
        exact_logits: bool = True,
        limits: RowLimits | None = None,
    ) -> None:
        """Start without rows."""
        config = model.config
        self.model = model
        self.options = options
        self._device = device
        self._scorer = VocabularyScorer(
            model.output_projection, model.target_embedding.weight, options.beam_size, is_exact=exact_logits
        )
        self._live: list[_Row] = []
        layers, heads, beam = config.num_decoder_layers, config.num_heads, options.beam_size
        depth = config.hidden_size // heads
        moved = torch.int64
        self._rows = Rows(
            {
                "self_key": RowTensor((layers, "R", heads, "T", beam, depth), cache_dtype),
                "self_value": RowTensor((layers, "R", heads, "T", beam, depth), cache_dtype),
                "source_key": RowTensor((layers, "R", heads, "S", depth), cache_dtype),
                "source_value": RowTensor((layers, "R", heads, "S", depth), cache_dtype),
                "source_mask": RowTensor(("R", "S"), torch.float32, -math.inf),
                "augmentation": RowTensor((layers, "R", config.hidden_size), torch.float32),
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
            },
            device,
            limits,
        )
        self._graphs: StepGraphs | None = None
        self._slots = torch.arange(beam, device=device)
        limit = torch.tensor(float(options.max_target_tokens))
        self._longest_penalty = float(length_penalty(limit, options.lp_rate))

    def __len__(self) -> int:
        """Return the number of live rows."""
        return len(self._live)

    @property
    def items(self) -> list[Item]:
        """The live rows' items."""
        return [row.item for row in self._live]

    def join(self, items: Sequence[Item], encoded: Encoded, constraints: Sequence[list[Constraint]]) -> None:
        """Let encoded items take part from the next step on.

        Args:
            items: One a row of `encoded`.
            encoded: Their sources, [B, S, D].
            constraints: What restricts each item's target; often empty.
        """
        first, count, length = len(self._live), len(items), encoded.mask.shape[1]
        rows = self._rows
        rows.reserve({"R": first + count, "S": max(length, self._longest_source()), "T": self._longest_target()})
        new = slice(first, first + count)
        for index, layer in enumerate(self.model.decoder.stack):
            key, value = layer.cross_attention.keys_and_values(encoded.states)
            rows["source_key"][index, new, :, :length] = key
            rows["source_value"][index, new, :, :length] = value
            rows["augmentation"][index, new] = layer.augment(encoded.semantic)[:, 0].float()
        rows["source_mask"][new] = -math.inf
        rows["source_mask"][new, :length] = open_mask(encoded.mask)
        for name, fill in (("position", 0), ("token", EOS_ID), ("ancestry", -1)):
            rows[name][new] = fill
        for name in ("log_prob", "finished_score"):
            rows[name][new] = -math.inf
        rows["log_prob"][new, 0] = 0.0
        rows["wanted"][new] = torch.tensor([item.n_best for item in items], device=self._device)
        self._live += [
            _Row(item, item.length, constraints=list(kept)) for item, kept in zip(items, constraints, strict=True)
        ]

    def step(self) -> list[Finished[list[Hypothesis]]]:
        """Advance every live row by one target position; return those that are done."""
        if not self._live:
            return []
        self._rows.reserve({"R": len(self._live), "S": self._longest_source(), "T": self._longest_target()})
        is_constrained = any(row.constraints for row in self._live)
        if self._graphs is None or self._graphs.is_off or is_constrained:
            constrain = self._constrain if is_constrained else None
            outcome = self._advance(self._select(*self._scorer.score(self._decode(self._open_step()), constrain)))
        else:
            outcome = self._advance_bucket(self._graphs)
        status = outcome.tolist()  # the step's only wait for the device
        for row in self._live:
            row.position += 1
        return self._leave([(index, state) for index, state in enumerate(status) if state != _RUNNING])

    def drop(self, items: Sequence[Item]) -> None:
        """Let rows leave without a result."""
        gone = set(map(id, items))
        self._close_gaps([index for index, row in enumerate(self._live) if id(row.item) in gone])

    def move(self, item: Item, target: Search) -> None:
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
        if self._graphs is not None:
            self._graphs.clear()
        self._rows.release()

    # -- memory and recorded steps -----------------------------------------------------------------------------------

    def fits(self, count: int, longest: int) -> bool:
        """Say whether the limits let so many more rows join, the longest source having so many positions."""
        return self._rows.fits(len(self._live) + count, max(longest, self._longest_source()))

    def most_cache_bytes(self) -> int:
        """Return the most memory that rows within the limits take, in bytes."""
        return self._rows.most_bytes()

    def record_steps(self, recorder: Recorder) -> None:
        """Claim the memory of all rows that the limits allow, and from now on record steps and replay them.

        A recorded step covers a bucket: rows, source and target positions rounded up, so that few records serve all
        steps. Whatever changes between two steps of a bucket lies in tensors, in memory that never moves.
        """
        self._rows.claim()
        self._graphs = StepGraphs(recorder)
        self._count = torch.zeros((), dtype=torch.int64, device=self._device)
        self._outcome = torch.zeros(len(self._rows["position"]), dtype=torch.int64, device=self._device)

    def _longest_source(self) -> int:
        return max((row.source_length for row in self._live), default=0)

    def _longest_target(self) -> int:
        """Return the target positions that the coming step needs."""
        return max((row.position for row in self._live), default=0) + 1

    def _advance_bucket(self, graphs: StepGraphs) -> Tensor:
        """Advance the live rows by a recorded step; return what became of them, int64 [B]."""
        capacity, count = self._rows.capacity, len(self._live)
        length = max(ceil_power(self._longest_target()), _SHORTEST_TARGET)
        bucket = min(ceil_power(count), capacity["R"]), min(length, capacity["T"]), capacity["S"]
        self._count.fill_(count)
        graphs.run(bucket, partial(self._run_bucket, *bucket))
        return self._outcome[:count]

    def _run_bucket(self, count: int, length: int, source: int) -> None:
        """Advance the first rows, dead ones among them; everything read and written lies in static tensors.

        A dead row computes like a live one that has just joined, from whatever is there; nobody looks at what comes of
        it, and its caches stay finite for the row that takes its place.
        """
        alive = torch.arange(count, device=self._device) < self._count
        self._rows["position"][:count].mul_(alive)
        view = self._build_step(count, length, source, is_level=False)
        view = replace(view, source_mask=view.source_mask.masked_fill(~alive[:, None, None, None], 0.0))
        scored = self._scorer.score(self._decode(view), None)
        self._outcome[:count] = self._advance(self._select(*scored))

    # -- one step ----------------------------------------------------------------------------------------------------

    def _decode(self, view: _Step) -> Tensor:
        """Run the decoder at every row's position, -> normalised states [B*K, D]."""
        tokens = self._rows["token"][: view.count]
        x = self.model.embed_target(tokens, view.position[:, None].expand_as(tokens))
        for number, layer in enumerate(self.model.decoder.stack):
            augmentation = self._rows["augmentation"][number, : view.count, None]
            x = layer(
                x, augmentation, partial(self._attend_self, view, number), partial(self._attend_source, view, number)
            )
        return self.model.decoder.norm(x).flatten(0, 1)

    def _open_step(self) -> _Step:
        length = self._longest_target()
        is_level = all(row.position == length - 1 for row in self._live)
        return self._build_step(len(self._live), length, self._longest_source(), is_level=is_level)

    def _build_step(self, count: int, length: int, source: int, *, is_level: bool) -> _Step:
        rows = self._rows
        position = rows["position"][:count]
        batch = torch.arange(count, device=self._device)
        rows["ancestry"][batch, :, position] = self._slots
        # [B, K, T, K] -> [B, 1, K, T*K]: open where a hypothesis descends from that slot of that position
        mask = open_mask((rows["ancestry"][:count, :, :length, None] == self._slots).flatten(2))[:, None]
        return _Step(
            count, length, source, position, batch, mask, is_level,
            rows["source_mask"][:count, None, None, :source], self._relative_index(position, length),
        )  # fmt: skip

    def _relative_index(self, position: Tensor, length: int) -> Tensor | None:
        """[B] -> [B, 1, 1, T*K], or None where positions are absolute."""
        config = self.model.config
        if not config.is_relative:
            return None
        keys = torch.arange(length, device=self._device).repeat_interleave(self.options.beam_size)
        return relative_index(position[:, None], keys, config.max_relative_dis)[:, None]

    def _attend_self(self, view: _Step, number: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Write this position's keys and values, attend to those of all positions so far, [B, H, K, D/H]."""
        keys = self._rows["self_key"][number, : view.count]
        values = self._rows["self_value"][number, : view.count]
        if view.is_level:  # a slice is written faster than scattered places
            keys[:, :, view.length - 1] = key
            values[:, :, view.length - 1] = value
        else:
            keys[view.batch, :, view.position] = key.to(keys.dtype)
            values[view.batch, :, view.position] = value.to(values.dtype)
        relative = self.model.decoder.stack[number].self_attention.relative_positions(view.relative_index)
        seen = slice(view.length)
        return attend(query, keys[:, :, seen].flatten(2, 3), values[:, :, seen].flatten(2, 3), view.mask, relative)

    def _attend_source(self, view: _Step, number: int, query: Tensor) -> Tensor:
        keys = self._rows["source_key"][number, : view.count, :, : view.source]
        values = self._rows["source_value"][number, : view.count, :, : view.source]
        return attend(query, keys, values, view.source_mask)

    def _constrain(self, logits: Tensor) -> None:
        """Close what the rows' constraints forbid, in place, [B*K, V]."""
        beam = self.options.beam_size
        for index, row in enumerate(self._live):
            for constraint in row.constraints:
                for slot in range(beam):
                    constraint.apply(slot, logits[index * beam + slot])

    def _select(self, values: Tensor, tokens: Tensor) -> Candidates:
        """Choose among each hypothesis' best continuations, log-probs and ids [B*K, C]."""
        beam = self.options.beam_size
        count = len(values) // beam
        shape = (count, beam, -1)
        return select_candidates(
            self._rows["log_prob"][:count], values.view(shape), tokens.view(shape), self._penalty(count)
        )

    def _penalty(self, count: int) -> Tensor:
        """Return the penalty of the length that this step reaches, [B, 1]."""
        return length_penalty(self._rows["position"][:count, None] + 1.0, self.options.lp_rate)

    def _advance(self, found: Candidates) -> Tensor:
        """Book a step's candidates; return what became of each row, int64 [B]."""
        rows, count, beam = self._rows, len(found.scores), self.options.beam_size
        position = rows["position"][:count]
        ended = found.tokens == EOS_ID
        self._merge_finished(found, ended, position)
        # The best K that go on; among equals the earlier, as candidates are sorted.
        keep = found.scores.masked_fill(ended, -math.inf).topk(beam).indices
        ended_kept = ended.gather(1, keep)
        log_prob = found.log_probs.gather(1, keep).masked_fill_(ended_kept, -math.inf)
        parents, tokens = found.parents.gather(1, keep), found.tokens.gather(1, keep)
        ancestry = rows["ancestry"][:count]
        ancestry.copy_(ancestry.gather(1, parents[..., None].expand_as(ancestry)))
        batch = torch.arange(count, device=self._device)
        rows["slot_token"][batch, position] = tokens
        rows["slot_parent"][batch, position] = parents
        rows["token"][:count] = tokens
        rows["log_prob"][:count] = log_prob
        self._follow_constraints(parents, tokens)
        rows["position"][:count] += 1
        return self._status(found, log_prob)

    def _merge_finished(self, found: Candidates, ended: Tensor, position: Tensor) -> None:
        """Keep the best K of the finished hypotheses and the candidates that end now."""
        rows, count, beam = self._rows, len(found.scores), self.options.beam_size
        step = position[:, None].expand_as(found.parents)
        pools = {
            "finished_score": found.scores.masked_fill(~ended, -math.inf),
            "finished_step": step,
            "finished_parent": found.parents,
        }
        merged = {name: torch.cat((rows[name][:count], pool), 1) for name, pool in pools.items()}
        best = merged["finished_score"].topk(beam).indices
        for name, pool in merged.items():
            rows[name][:count] = pool.gather(1, best)

    def _status(self, found: Candidates, log_prob: Tensor) -> Tensor:
        """Say of each row whether it is running, done, or not finite, int64 [B].

        A row is done when as many hypotheses as are wanted have finished and the worst finished one beats whatever the
        best live one can still reach, or at the output limit.
        """
        count = len(log_prob)
        finished = self._rows["finished_score"][:count]
        exists = finished > -math.inf
        worst = finished.masked_fill(~exists, math.inf).amin(1)
        enough = exists.sum(1) >= self._rows["wanted"][:count]
        done = enough & (worst > log_prob.amax(1) / self._longest_penalty)
        done |= self._rows["position"][:count] >= self.options.max_target_tokens
        best = found.scores[:, 0]
        nothing_left = best == -math.inf
        broken = ~best.isfinite() & ~(nothing_left & exists.any(1))
        status = torch.where(done | nothing_left, _DONE, _RUNNING)
        return status.masked_fill_(broken, _NON_FINITE)

    def _follow_constraints(self, parents: Tensor, tokens: Tensor) -> None:
        for index, row in enumerate(self._live):
            for constraint in row.constraints:
                constraint.follow(parents[index].tolist(), tokens[index].tolist())
            row.constraints = [constraint for constraint in row.constraints if not constraint.is_satisfied()]

    # -- rows that leave ---------------------------------------------------------------------------------------------

    def _leave(self, ended: list[tuple[int, int]]) -> list[Finished[list[Hypothesis]]]:
        """Take the results of ended rows and close the gaps; `ended` holds row and status."""
        finished: list[Finished[list[Hypothesis]]] = []
        tables = self._fetch([index for index, status in ended if status == _DONE])
        for index, status in ended:
            item = self._live[index].item
            if status == _NON_FINITE:
                self._rows.clear_row(index)
                finished.append(Finished(item, error=NonFiniteError("the model gave NaN or infinity for this text")))
            else:
                finished.append(Finished(item, self._hypotheses(self._live[index], tables[index])))
        self._close_gaps([index for index, _ in ended])
        return finished

    def _fetch(self, done: Sequence[int]) -> dict[int, _Table]:
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
            index: _Table(part[:size], part[size:-2], part[-2:].T.tolist(), *pair)
            for index, size, part, pair in zip(done, sizes, parts, values.tolist(), strict=True)
        }

    def _hypotheses(self, row: _Row, table: _Table) -> list[Hypothesis]:
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
        for hole in sorted(gone, reverse=True):
            last = len(self._live) - 1
            if hole != last:
                row = self._live[last]
                self._rows.copy_row(self._rows, last, hole, {"S": row.source_length, "T": max(row.position, 1)})
                self._rows["source_mask"][hole, row.source_length :] = -math.inf
                self._rows["ancestry"][hole, :, row.position :] = -1
                self._live[hole] = row
            self._live.pop()


@dataclass(frozen=True, slots=True)
class _Step:
    """What all layers of one step share: counts, positions, masks; `is_level` when all rows have the same position."""

    count: int
    length: int
    source: int
    position: Tensor
    batch: Tensor
    mask: Tensor
    is_level: bool
    source_mask: Tensor
    relative_index: Tensor | None


@dataclass(frozen=True, slots=True)
class _Table:
    """What a done row's hypotheses are made of, on the host.

    Attributes:
        tokens: What each slot took at each position, [T, K].
        parents: The slots they continue, [T, K].
        ends: Position and slot at which each finished hypothesis ended, best first.
        scores: Of the finished ones, best first; -inf for none.
        log_probs: Of the live ones.
    """

    tokens: npt.NDArray[np.int32]
    parents: npt.NDArray[np.int32]
    ends: list[tuple[int, int]]
    scores: list[float]
    log_probs: list[float]


def _trace(tokens: npt.NDArray[np.int32], parents: npt.NDArray[np.int32], step: int, slot: int) -> tuple[int, ...]:
    """Walk back from a slot after `step` positions to the beginning; return its token ids in order."""
    ids = []
    for at in range(step - 1, -1, -1):
        ids.append(int(tokens[at, slot]))
        slot = int(parents[at, slot])
    return tuple(reversed(ids))
