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
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from tandem.core.types import Item
from tandem.csanmt.candidates import Candidates, VocabularyScorer, select_candidates
from tandem.csanmt.constraints import Constraint
from tandem.csanmt.graphs import Recorder, StepGraphs
from tandem.csanmt.grouping import group_by_length
from tandem.csanmt.live import DONE, NON_FINITE, RUNNING, DecodingOptions, LiveRows, Row, length_penalty
from tandem.csanmt.modeling import EOS_ID, CsanmtForConditionalGeneration, Encoded, open_mask
from tandem.csanmt.rows import RowLimits, RowTensor, ceil_power
from tandem.nn.attention import attend, relative_index

_SHORTEST_TARGET = 16  # positions that a recorded step reads at least


class Search(LiveRows):
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
        self._scorer = VocabularyScorer(
            model.output_projection, model.target_embedding.weight, options.beam_size, is_exact=exact_logits
        )
        layers, heads, beam = config.num_decoder_layers, config.num_heads, options.beam_size
        depth = config.hidden_size // heads
        layout = {
            "self_key": RowTensor((layers, "R", heads, "T", beam, depth), cache_dtype),
            "self_value": RowTensor((layers, "R", heads, "T", beam, depth), cache_dtype),
            "source_key": RowTensor((layers, "R", heads, "S", depth), cache_dtype),
            "source_value": RowTensor((layers, "R", heads, "S", depth), cache_dtype),
            "source_mask": RowTensor(("R", "S"), torch.float32, -math.inf),
            "augmentation": RowTensor((layers, "R", config.hidden_size), torch.float32),
        }
        super().__init__(layout, options, device, limits)
        self._graphs: StepGraphs | None = None
        self._slots = torch.arange(beam, device=device)
        limit = torch.tensor(float(options.max_target_tokens))
        self._longest_penalty = float(length_penalty(limit, options.lp_rate))

    def admit(self, items: Sequence[Item], constraints: Sequence[list[Constraint]]) -> None:
        """Encode items and let them take part from the next step on."""
        kept = {id(item): own for item, own in zip(items, constraints, strict=True)}
        for group in group_by_length(items):
            longest = max(len(item.ids) for item in group)
            ids = torch.tensor([[*item.ids, *[EOS_ID] * (longest - len(item.ids))] for item in group])
            encoded = self.model.encode(ids.to(self._device))
            self.join(group, encoded, [kept[id(item)] for item in group])

    def join(self, items: Sequence[Item], encoded: Encoded, constraints: Sequence[list[Constraint]]) -> None:
        """Let encoded items take part from the next step on.

        Args:
            items: One a row of `encoded`.
            encoded: Their sources, [B, S, D].
            constraints: What restricts each item's target; often empty.
        """
        length = encoded.mask.shape[1]
        new, rows = self._make_room(len(items), length), self._rows
        for index, layer in enumerate(self.model.decoder.stack):
            key, value = layer.cross_attention.keys_and_values(encoded.states)
            rows["source_key"][index, new, :, :length] = key
            rows["source_value"][index, new, :, :length] = value
            rows["augmentation"][index, new] = layer.augment(encoded.semantic)[:, 0].float()
        rows["source_mask"][new] = -math.inf
        rows["source_mask"][new, :length] = open_mask(encoded.mask)
        self._enroll(new, items, constraints)

    def clear(self) -> None:
        """Drop all rows and give their memory back."""
        if self._graphs is not None:
            self._graphs.clear()
        super().clear()

    # -- memory and recorded steps -----------------------------------------------------------------------------------

    def record_steps(self, recorder: Recorder) -> None:
        """Claim the memory of all rows that the limits allow, and from now on record steps and replay them.

        A recorded step covers a bucket: rows, source and target positions rounded up, so that few records serve all
        steps. Whatever changes between two steps of a bucket lies in tensors, in memory that never moves.
        """
        self._rows.claim()
        self._graphs = StepGraphs(recorder)
        self._count = torch.zeros((), dtype=torch.int64, device=self._device)
        self._outcome = torch.zeros(len(self._rows["position"]), dtype=torch.int64, device=self._device)

    def _advance_rows(self) -> list[tuple[int, int]]:
        is_constrained = any(row.constraints for row in self._live)
        if self._graphs is None or self._graphs.is_off or is_constrained:
            constrain = self._forbid if is_constrained else None
            outcome = self._advance(self._select(*self._scorer.score(self._decode(self._open_step()), constrain)))
        else:
            outcome = self._advance_bucket(self._graphs)
        statuses: list[int] = outcome.tolist()  # the step's only wait for the device
        return [(status, row.position + 1) for status, row in zip(statuses, self._live, strict=True)]

    def _hide_leftovers(self, index: int, row: Row) -> None:
        self._rows["source_mask"][index, row.source_length :] = -math.inf
        self._rows["ancestry"][index, :, row.position :] = -1

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
        status = torch.where(done | nothing_left, DONE, RUNNING)
        return status.masked_fill_(broken, NON_FINITE)


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
