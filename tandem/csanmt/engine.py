"""The translator as the scheduler sees it: items in, hypotheses out, a target position a step, or some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from tandem.core.errors import NonFiniteError, TooLargeError
from tandem.core.types import Budget, Finished, Hypothesis, Item, Priority
from tandem.csanmt.alignment import add_alignments
from tandem.csanmt.constraints import Constraint, PrefixConstraint, PrefixIndex, RepetitionGuard
from tandem.csanmt.decoding import Search
from tandem.csanmt.graphs import Recorder
from tandem.csanmt.live import DecodingOptions, LiveRows
from tandem.csanmt.memory import MemoryPlan, plan_memory
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.csanmt.rows import RowLimits, ceil_power
from tandem.nn.memory import is_out_of_memory
from tandem.nn.precision import Precision, autocast

if TYPE_CHECKING:
    from tandem.csanmt.kernel_search import Kernels

Result = Finished[list[Hypothesis]]
_NO_REPEAT = 3  # tokens of an n-gram that may not stand twice under the repetition guard
_SHARE_FOR_INTERACTIVE = 8  # one place in so many is never given to bulk items
_MOST_POSITIONS = {Priority.INTERACTIVE: 8, Priority.BULK: 1}  # of a step; bulk rows can pause after each


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """How much may run at once.

    Attributes:
        segments: Live rows.
        tokens: Source positions of all live rows together, each taking as many as the longest one beside it.
        source_tokens: Positions of one source, its end mark included.
    """

    segments: int = 64
    tokens: int = 8192
    source_tokens: int = 1024


class TranslationEngine:
    """Runs one CSANMT model; implements `tandem.core.types.Engine`.

    Items of both priorities run in searches of their own on a CPU, where a step of many rows costs much more than a
    step of few and bulk rows must be able to pause. On CUDA they share one. An admitted item whose row the limits leave
    no place for waits inside, in order, and nothing else is let in until it has joined: one long sentence would need
    room for long ones in every row.

    Args:
        model: In evaluation mode on its device, its linear layers packed for `precision`.
        prefix_index: Makes the target vocabulary for items with a `target_prefix`; called when first needed.
        options: How translations are searched for.
        limits: How much may run at once.
        precision: What the model computes in.
        precise: Makes the float32 model that repeats items whose numbers overflowed; None when `model` is float32.
        kernels: What searches in place of torch, in float32 on a CPU; `model` still aligns. None for torch.
    """

    def __init__(  # noqa: PLR0913 - what an engine is made of
        self,
        model: CsanmtForConditionalGeneration,
        *,
        prefix_index: Callable[[], PrefixIndex],
        options: DecodingOptions,
        limits: EngineLimits,
        precision: Precision = Precision.FLOAT32,
        precise: Callable[[], CsanmtForConditionalGeneration] | None = None,
        kernels: Kernels | None = None,
    ) -> None:
        """Build empty searches."""
        self._model = model
        self._device = model.device
        self._prefix_index = prefix_index
        self._options = options
        self.limits = limits
        self._precision = precision
        self._build_precise = precise
        cache_dtype = precision.dtype if self._device.type == "cuda" else torch.float32
        exact = precision is Precision.FLOAT32
        positions = max(limits.tokens, ceil_power(limits.source_tokens))
        self._row_limits = RowLimits(limits.segments, positions, options.max_target_tokens)

        def build(priority: Priority) -> LiveRows:
            if kernels is not None:
                return kernels.build_search(options, self._row_limits, _MOST_POSITIONS[priority])
            return Search(model, options, self._device, cache_dtype, exact, self._row_limits)

        self._kernels = kernels
        interactive = build(Priority.INTERACTIVE)
        self._lanes = {
            Priority.INTERACTIVE: interactive,
            Priority.BULK: interactive if self._device.type == "cuda" else build(Priority.BULK),
        }
        self._precise: Search | None = None
        self._waiting: dict[LiveRows, list[Item]] = {}

    def record_steps(self, recorder: Recorder) -> None:
        """Claim the memory of all rows now, and record the steps of a GPU; call it before anything is admitted.

        The rows that are repeated in float32 are few and stay out of it, as do steps of rows with constraints.
        """
        with torch.inference_mode():
            for search in self._searches(Priority.BULK):
                if isinstance(search, Search):
                    search.record_steps(recorder)

    def memory(self) -> MemoryPlan:
        """Return the most memory that the model and its work take under the limits."""
        caches = sum(search.most_cache_bytes() for search in self._searches(Priority.BULK))
        plan = plan_memory(self._model, self._row_limits, self._options.beam_size, caches)
        return plan if self._kernels is None else replace(plan, weights=plan.weights + self._kernels.weight_bytes)

    # -- the contract ------------------------------------------------------------------------------------------------

    def admit(self, items: Sequence[Item]) -> list[Result]:
        """Encode items and let them join; those over the source limit come back with an error. See `Engine`."""
        fitting = [item for item in items if item.length <= self.limits.source_tokens]
        try:
            with self._computing(self._precision):
                for priority, lane in self._lanes.items():
                    self._join(lane, [item for item in fitting if item.priority is priority])
        except BaseException:
            self.cancel(fitting)
            raise
        return [self._refuse(item) for item in items if item.length > self.limits.source_tokens]

    def step(self, at_least: Priority) -> list[Result]:
        """Advance the live rows of that priority or higher by a target position, or by some. See `Engine`."""
        self._promote()
        finished: list[Result] = []
        with self._computing(self._precision):
            for lane in self._searches(at_least):
                self._seat(lane)
                finished += lane.step()
            finished = add_alignments(self._model, finished)
        finished = self._repeat_precisely(finished)
        if self._precise is not None:
            with self._computing(Precision.FLOAT32):
                self._seat(self._precise)
                finished += add_alignments(self._precise.model, self._precise.step())
        return finished

    def room(self, priority: Priority) -> Budget:
        """Return what may be admitted now. See `Engine`."""
        if self._waiting.get(self._lanes[priority]):
            return Budget(0, 0)
        live = self.live()
        segments, tokens = self.limits.segments, self.limits.tokens
        if priority is Priority.BULK:
            segments -= segments // _SHARE_FOR_INTERACTIVE
            tokens -= tokens // _SHARE_FOR_INTERACTIVE
        return Budget(max(segments - len(live), 0), max(tokens - sum(item.length for item in live), 0))

    def live(self) -> list[Item]:
        """Return the items admitted and not finished."""
        searches = self._searches(Priority.BULK, precise=True)
        return [item for search in searches for item in (*search.items, *self._waiting.get(search, ()))]

    def cancel(self, items: Sequence[Item]) -> None:
        """Drop live items. See `Engine`."""
        with self._computing(self._precision):
            for search in self._searches(Priority.BULK, precise=True):
                search.drop(items)
        for search, waiting in self._waiting.items():
            self._waiting[search] = [item for item in waiting if item not in items]

    def reset(self) -> list[Item]:
        """Drop everything live and give the items back. See `Engine`."""
        items = self.live()
        self._waiting.clear()
        with torch.inference_mode():
            for search in self._searches(Priority.BULK, precise=True):
                search.clear()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        return items

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Say whether an error means that memory is full. See `Engine`."""
        return is_out_of_memory(error)

    # -- inside ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _computing(self, precision: Precision) -> Iterator[None]:
        with torch.inference_mode(), autocast(precision, self._device):
            yield

    def _searches(self, at_least: Priority, *, precise: bool = False) -> list[LiveRows]:
        """Return the searches of a priority or higher, each once, the more urgent first."""
        lanes = [self._lanes[priority] for priority in sorted(Priority, reverse=True) if priority >= at_least]
        extra: list[LiveRows] = [self._precise] if precise and self._precise is not None else []
        return list(dict.fromkeys(lanes)) + extra

    def _join(self, search: LiveRows, items: Sequence[Item]) -> None:
        """Let items take part as soon as there is room, after those that came before them."""
        self._waiting.setdefault(search, []).extend(items)
        self._seat(search)

    def _seat(self, search: LiveRows) -> None:
        """Encode the items that wait for a search's rows, the first ones that fit, and let them take part."""
        waiting = self._waiting.get(search, [])
        count = longest = 0
        for item in waiting:
            longest = max(longest, item.length)
            if not search.fits(count + 1, longest):
                break
            count += 1
        seated, waiting[:count] = waiting[:count], []
        search.admit(seated, [self._constraints(item) for item in seated])

    def _constraints(self, item: Item) -> list[Constraint]:
        constraints: list[Constraint] = []
        if item.target_prefix:
            constraints.append(PrefixConstraint(self._prefix_index(), item.target_prefix, self._options.beam_size))
        if item.strict:
            constraints.append(RepetitionGuard(_NO_REPEAT, self._options.beam_size))
        return constraints

    def _promote(self) -> None:
        """Move rows whose item was raised since they joined."""
        interactive, bulk = self._lanes[Priority.INTERACTIVE], self._lanes[Priority.BULK]
        if bulk is interactive:
            return
        raised = [item for item in bulk.items if item.priority is Priority.INTERACTIVE]
        with self._computing(self._precision):
            for item in raised:
                if interactive.fits(1, item.length):
                    bulk.move(item, interactive)
        waiting = self._waiting.get(bulk)
        if waiting:
            raised = [item for item in waiting if item.priority is Priority.INTERACTIVE]
            self._waiting[bulk] = [item for item in waiting if item not in raised]
            self._waiting.setdefault(interactive, []).extend(raised)

    def _repeat_precisely(self, finished: list[Result]) -> list[Result]:
        """Let items whose numbers overflowed start again in float32; return the others."""
        again = [done.item for done in finished if isinstance(done.error, NonFiniteError)]
        if not again or self._build_precise is None:
            return finished
        if self._precise is None:
            self._precise = Search(self._build_precise(), self._options, self._device, limits=self._row_limits)
        with self._computing(Precision.FLOAT32):
            self._join(self._precise, again)
        return [done for done in finished if not isinstance(done.error, NonFiniteError)]

    def _refuse(self, item: Item) -> Result:
        limit = self.limits.source_tokens
        message = f"a sentence of {item.length} tokens is over the model's limit of {limit}; split it"
        return Finished(item, error=TooLargeError(message))
