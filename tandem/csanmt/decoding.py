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
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tandem.core.errors import NonFiniteError
from tandem.core.types import Finished, Hypothesis, Item
from tandem.csanmt.candidates import Candidates, VocabularyScorer, select_candidates
from tandem.csanmt.constraints import Constraint
from tandem.csanmt.modeling import EOS_ID, CsanmtForConditionalGeneration, Encoded, open_mask
from tandem.csanmt.rows import Rows, RowTensor
from tandem.nn.attention import attend, relative_index

_RUNNING, _DONE, _NON_FINITE = 0, 1, 2


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
    """

    def __init__(
        self,
        model: CsanmtForConditionalGeneration,
        options: DecodingOptions,
        device: torch.device,
        cache_dtype: torch.dtype = torch.float32,
        exact_logits: bool = True,
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
        )
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
        rows.reserve({"R": first + count, "S": length, "T": 1})
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
        self._rows.reserve({"T": max(row.position for row in self._live) + 1})
        hidden = self._decode()
        is_constrained = any(row.constraints for row in self._live)
        values, tokens = self._scorer.score(hidden, self._constrain if is_constrained else None)
        candidates = self._select(values, tokens)
        status = self._advance(candidates).tolist()  # the step's only wait for the device
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
        target._rows.reserve({"R": place + 1, **used})
        target._rows.clear_row(place)
        target._rows.copy_row(self._rows, index, place, used)
        target._live.append(row)
        self._close_gaps([index])

    def clear(self) -> None:
        """Drop all rows and give their memory back."""
        self._live.clear()
        self._rows.release()

    # -- one step ----------------------------------------------------------------------------------------------------

    def _decode(self) -> Tensor:
        """Run the decoder at every row's position, -> normalised states [B*K, D]."""
        view = self._open_step()
        tokens = self._rows["token"][: view.count]
        x = self.model.embed_target(tokens, view.position[:, None].expand_as(tokens))
        for number, layer in enumerate(self.model.decoder.stack):
            augmentation = self._rows["augmentation"][number, : view.count, None]
            x = layer(
                x, augmentation, partial(self._attend_self, view, number), partial(self._attend_source, view, number)
            )
        return self.model.decoder.norm(x).flatten(0, 1)

    def _open_step(self) -> _Step:
        rows, count = self._rows, len(self._live)
        length = max(row.position for row in self._live) + 1
        source = max(row.source_length for row in self._live)
        position = rows["position"][:count]
        batch = torch.arange(count, device=self._device)
        rows["ancestry"][batch, :, position] = self._slots
        # [B, K, T, K] -> [B, 1, K, T*K]: open where a hypothesis descends from that slot of that position
        mask = open_mask((rows["ancestry"][:count, :, :length, None] == self._slots).flatten(2))[:, None]
        return _Step(
            count, length, source, position, batch, mask, all(row.position == length - 1 for row in self._live),
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
        count, beam = len(self._live), self.options.beam_size
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
        for index, status in ended:
            item = self._live[index].item
            if status == _NON_FINITE:
                self._rows.clear_row(index)
                finished.append(Finished(item, error=NonFiniteError("the model gave NaN or infinity for this text")))
            else:
                finished.append(Finished(item, self._hypotheses(index)))
        self._close_gaps([index for index, _ in ended])
        return finished

    def _hypotheses(self, index: int) -> list[Hypothesis]:
        """Return a row's finished hypotheses, best first, or its live ones when none has finished."""
        rows, row = self._rows, self._live[index]
        tokens = rows["slot_token"][index, : row.position].cpu().numpy()
        parents = rows["slot_parent"][index, : row.position].cpu().numpy()
        scores = rows["finished_score"][index].tolist()
        if scores[0] == -math.inf:
            last, slots = row.position, range(self.options.beam_size)
            penalty = float(length_penalty(torch.tensor(float(last)), self.options.lp_rate))
            scores = [log_prob / penalty for log_prob in rows["log_prob"][index].tolist()]
            ends = [(last, slot) for slot in slots]
        else:
            ends = list(
                zip(rows["finished_step"][index].tolist(), rows["finished_parent"][index].tolist(), strict=True)
            )
            last = -1
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


def _trace(tokens: npt.NDArray[np.int64], parents: npt.NDArray[np.int64], step: int, slot: int) -> tuple[int, ...]:
    """Walk back from a slot after `step` positions to the beginning; return its token ids in order."""
    ids = []
    for at in range(step - 1, -1, -1):
        ids.append(int(tokens[at, slot]))
        slot = int(parents[at, slot])
    return tuple(reversed(ids))
