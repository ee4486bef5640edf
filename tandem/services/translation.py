"""What a translation request means: texts into segments, segments through the model, texts put together again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from tandem.core.errors import UnprocessableError
from tandem.core.threads import run_native
from tandem.services.computing import Times
from tandem.services.patience import Patience
from tandem.services.recent import RecentResults
from tandem.services.requests import TranslatedSegment, TranslateRequest, TranslateResult
from tandem.services.routing import Route, Router
from tandem.services.translation_model import (
    HEAVY_CHARS,
    ModelCall,
    ModelOutput,
    OutputErrand,
    OutputPending,
    TranslationModel,
)
from tandem.text.joining import Joiner, utf16_offsets
from tandem.text.plan import Segment, SegmentTask, TextPlan, plan_text
from tandem.text.solving import Output

_FED_TOGETHER = 16  # segments whose text work goes to the native thread at once

P = ParamSpec("P")
T = TypeVar("T")


class TranslationService:
    """Translates texts in all loaded directions.

    Args:
        models: One a direction.
        bulk_segments: A request with more uncached segments than this is bulk work.
        recent: Results of the last while; None keeps none.
    """

    def __init__(
        self, models: Sequence[TranslationModel], bulk_segments: int, recent: RecentResults | None = None
    ) -> None:
        """Index the directions."""
        self._router = Router(models)
        self._bulk_segments = bulk_segments
        self._recent = recent or RecentResults(0)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Source and target of every loaded model."""
        return self._router.directions

    def translate(self, request: TranslateRequest, patience: Patience) -> TranslateResult:
        """Translate a request.

        Raises:
            TandemError: See `stream`.
        """
        found = self._recent.find(request)
        if found is not None:
            return found
        steps = self.stream(request, patience)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: TranslateResult = done.value
                self._recent.keep(request, result)
                return result

    def stream(
        self, request: TranslateRequest, patience: Patience
    ) -> Generator[TranslatedSegment, None, TranslateResult]:
        """Yield each segment as soon as it and all before it are done; return the whole.

        Nothing is computed before the first `next`, which raises what is impossible about the request.

        Raises:
            UnprocessableError: An unknown language, a direction without a model, more alternatives than the beam holds,
                a prefix for several sentences.
            OverloadedError: There is no room.
            DeadlineError: It took too long.
            TandemError: The engine's error of a segment.
        """
        job = _Job(request, [self._router.route(request, text) for text in request.texts])
        times, finished = Times(), []
        with ExitStack() as stack:
            errands = {model: stack.enter_context(model.outputs.open(patience, times)) for model in job.models}
            if job.look_up(errands) > self._bulk_segments:
                patience.become_bulk()
            for segment in job.run(errands):
                finished.append(segment)
                yield segment
        return TranslateResult(job.texts(), job.detections, job.routes[0].target, tuple(finished), times)


@dataclass(slots=True)
class _Running:
    """A segment on its way: its task and what it waits for now.

    Attributes:
        item: Which text of the request it is of.
        segment: Where it stands there.
        source_span: The same in UTF-16 units.
        task: Says what the model is to translate next.
        model: The model.
        calls: What the task wants now.
        pending: Their outputs, on their way.
        first: The first output, whose scores count.
    """

    item: int
    segment: Segment
    source_span: tuple[int, int]
    task: SegmentTask
    model: TranslationModel
    calls: list[ModelCall] = field(default_factory=list)
    pending: list[OutputPending] = field(default_factory=list)
    first: ModelOutput | None = None


class _Job:
    """One request while it is worked on.

    Args:
        request: The request.
        routes: One a text.

    Raises:
        UnprocessableError: The request asks for what the models or the text do not allow.
    """

    def __init__(self, request: TranslateRequest, routes: Sequence[Route]) -> None:
        """Take the texts apart."""
        self.routes = routes
        self.detections = tuple(route.detection for route in routes)
        self._request = request
        self._is_heavy = sum(map(len, request.texts)) > HEAVY_CHARS
        self._check_options()
        self._plans = self._in_text_time(self._plan)
        self._joiners: list[Joiner | None] = [plan.joiner() if plan else None for plan in self._plans]
        self._running = self._in_text_time(self._start_tasks)

    @property
    def models(self) -> list[TranslationModel]:
        """The models that are needed, each once."""
        return list(dict.fromkeys(run.model for run in self._running))

    def texts(self) -> tuple[str, ...]:
        """Return the translations, after `run` has come to its end."""
        pairs = zip(self.routes, self._joiners, strict=True)
        return tuple(joiner.finish() if joiner else route.text for route, joiner in pairs)

    # -- before anything is computed ---------------------------------------------------------------------------------

    def _check_options(self) -> None:
        most = min((route.model.facts.beam_size for route in self.routes if route.model), default=1) - 1
        if self._request.alternatives > max(most, 0):
            raise UnprocessableError(f"alternatives must be at most {max(most, 0)}, one less than the beam size.")
        if self._request.target_prefix and len(self._request.texts) > 1:
            raise UnprocessableError("target_prefix works with one text only.")

    def _plan(self) -> list[TextPlan | None]:
        request = self._request
        return [
            plan_text(route.text, route.direction, route.model.profile, request.format, request.glossary)
            if route.model is not None
            else None
            for route in self.routes
        ]

    def _start_tasks(self) -> list[_Running]:
        running = []
        prefix = self._request.target_prefix
        for item, (plan, route) in enumerate(zip(self._plans, self.routes, strict=True)):
            if plan is None or route.model is None:
                continue
            if prefix and len(plan.segments) != 1:
                count = len(plan.segments)
                raise UnprocessableError(f"target_prefix works with one sentence only; this text has {count}.")
            ends = [end for segment in plan.segments for end in (segment.start, segment.end)]
            units = utf16_offsets(route.text, ends)
            spans = zip(units[::2], units[1::2], strict=True)
            for segment, span in zip(plan.segments, spans, strict=True):
                running.append(_Running(item, segment, span, segment.start_task(prefix), route.model))
        return running

    def _in_text_time(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do text work here when it is little, off the event loop when it is much."""
        return run_native(work, *args, **kwargs) if self._is_heavy else work(*args, **kwargs)

    # -- while it is computed ----------------------------------------------------------------------------------------

    def look_up(self, errands: Mapping[TranslationModel, OutputErrand]) -> int:
        """Look up what all segments want first; return how much of it has to be computed."""
        for run in self._running:
            run.calls = self._calls(run)
        return sum(
            errand.look_up([call for run in self._of(model) for call in run.calls]) for model, errand in errands.items()
        )

    def run(self, errands: Mapping[TranslationModel, OutputErrand]) -> Iterator[TranslatedSegment]:
        """Bring all segments to their end; yield them in order."""
        for model, errand in errands.items():
            started = iter(errand.start([call for run in self._of(model) for call in run.calls]))
            for run in self._of(model):
                run.pending = [next(started) for _ in run.calls]
        waiting, ready = self._running, 0
        while ready < len(self._running):
            again = []
            for group in _ready_groups(waiting):
                self._advance(group, errands)
                again += [run for run in group if run.pending]
                while ready < len(self._running) and self._running[ready].task.result is not None:
                    yield self._place(ready, self._running[ready])
                    ready += 1
            waiting = again

    def _of(self, model: TranslationModel) -> list[_Running]:
        return [run for run in self._running if run.model is model]

    def _calls(self, run: _Running) -> list[ModelCall]:
        return [run.model.call(wanted, self._request.alternatives + 1) for wanted in run.task.wanted]

    def _advance(self, group: Sequence[_Running], errands: Mapping[TranslationModel, OutputErrand]) -> None:
        """Feed tasks what they wait for, and get what they want next on its way."""
        fed = [(run, [errands[run.model].finish(pending) for pending in run.pending]) for run in group]
        self._in_text_time(_feed, fed)
        for run in group:
            run.calls, run.pending = self._calls(run), []
            if run.calls:
                errands[run.model].look_up(run.calls)
                run.pending = errands[run.model].start(run.calls)

    def _place(self, index: int, run: _Running) -> TranslatedSegment:
        """Give a finished segment its place in the translation."""
        result, joiner = run.task.result, self._joiners[run.item]
        assert result is not None, "only finished segments come here"
        assert joiner is not None, "a text with segments has a plan"
        placed = joiner.add(result.text)
        scores = run.first.scores if run.first else ()
        alternatives = tuple((text, scores[rank + 1]) for rank, text in result.alternatives if rank + 1 < len(scores))
        return TranslatedSegment(
            index=index,
            item=run.item,
            source=run.segment.source,
            target=placed.text,
            source_span=run.source_span,
            target_span=(placed.utf16_start, placed.utf16_end),
            score=scores[0] if scores else 0.0,
            alternatives=alternatives,
            warnings=result.warnings,
        )


def _ready_groups(waiting: Sequence[_Running]) -> Iterator[list[_Running]]:
    """Yield segments in order: each with those behind it that need not be waited for, so that they are fed together."""
    start = 0
    while start < len(waiting):
        end = start + 1
        # Looked at when the group is wanted: by then those before it have been waited for.
        while end < min(len(waiting), start + _FED_TOGETHER) and all(one.is_there for one in waiting[end].pending):
            end += 1
        yield list(waiting[start:end])
        start = end


def _feed(fed: Sequence[tuple[_Running, list[ModelOutput]]]) -> None:
    for run, outputs in fed:
        if outputs:
            run.first = run.first or outputs[0]
            run.task.feed([_output(output) for output in outputs])


def _output(output: ModelOutput) -> Output:
    best = output.texts[0] if output.texts else ""
    return Output(best, output.truncated, output.texts[1:], output.links)
