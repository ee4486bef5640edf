"""What a translation request means: texts into segments, segments through the model, texts put together again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import ParamSpec, TypeVar

from tandem.core.concurrency import run_native
from tandem.core.errors import UnprocessableError
from tandem.services.computing import Times
from tandem.services.patience import Patience
from tandem.services.requests import TranslatedSegment, TranslateRequest, TranslateResult
from tandem.services.translation_model import (
    HEAVY_CHARS,
    ModelCall,
    ModelOutput,
    OutputErrand,
    OutputPending,
    TranslationModel,
)
from tandem.text.detection import Detection, detect_language
from tandem.text.languages import AUTO, Direction, parse_locale
from tandem.text.plan import Segment, SegmentTask, TextPlan, Translated, plan_text
from tandem.text.solving import Output, Request

P = ParamSpec("P")
T = TypeVar("T")


class _PrefixTask(SegmentTask):
    """A segment whose translation begins with a given text: one request, and nothing done to its output."""

    def __init__(self, source: str) -> None:
        self.wanted = [Request(source)]
        self.result = None

    def feed(self, outputs: Sequence[Output]) -> None:
        self.wanted = []
        warnings = ("truncated",) if outputs[0].truncated else ()
        self.result = Translated(outputs[0].text, warnings, tuple(enumerate(outputs[0].alternatives)))


@dataclass(frozen=True, slots=True)
class Route:
    """How one text is translated.

    Attributes:
        text: The text.
        detection: What it was taken for.
        target: Code of the target language.
        model: What translates it; None when it is in the target language already and comes back as it is.
        direction: For the text layer.
    """

    text: str
    detection: Detection
    target: str
    model: TranslationModel | None
    direction: Direction


@dataclass(slots=True)
class _Running:
    """A segment on its way: its task and what it waits for now."""

    item: int
    segment: Segment
    task: SegmentTask
    model: TranslationModel
    pending: list[OutputPending] = field(default_factory=list)
    first: ModelOutput | None = None


class TranslationService:
    """Translates texts in all loaded directions.

    Args:
        models: One a direction.
        bulk_segments: A request with more uncached segments than this is bulk work.
    """

    def __init__(self, models: Sequence[TranslationModel], bulk_segments: int) -> None:
        """Index the directions."""
        self._models = {(model.source, model.target): model for model in models}
        self._bulk_segments = bulk_segments

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Source and target of every loaded model."""
        return list(self._models)

    def translate(self, request: TranslateRequest, patience: Patience) -> TranslateResult:
        """Translate a request.

        Raises:
            TandemError: See `stream`.
        """
        steps = self.stream(request, patience)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: TranslateResult = done.value
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
        routes = [self._route(request, text) for text in request.texts]
        self._check_options(request, routes)
        plans = self._in_text_time(request, self._plan, request, routes)
        running = self._start_tasks(request, plans, routes)
        times = Times()
        finished: list[TranslatedSegment] = []
        with ExitStack() as stack:
            errands = {
                model: stack.enter_context(model.outputs.open(patience, times))
                for model in {run.model for run in running}
            }
            for segment in self._run(running, request, patience, errands):
                finished.append(segment)
                yield segment
        return _join(plans, routes, finished, times)

    # -- before anything is computed ---------------------------------------------------------------------------------

    def _route(self, request: TranslateRequest, text: str) -> Route:
        """Decide which model translates a text; none when it is in the target language already."""
        target = parse_locale(request.target) if request.target else None
        detection = _detect(request.source, text)
        wanted = target.language if target else self._default_target(detection.language)
        if detection.language == wanted and request.source.lower() == AUTO:
            return Route(text, detection, wanted, None, Direction(wanted, wanted))
        model = self._models.get((detection.language, wanted))
        if model is None and request.source.lower() == AUTO:
            # What a text without words, or in a language no model knows, is taken for.
            model = next((model for (_, to), model in self._models.items() if to == wanted), None)
        if model is None:
            raise UnprocessableError(f"No loaded model translates {detection.language} to {wanted}. {self._offer()}")
        return Route(text, detection, wanted, model, Direction(model.source, wanted, target.script if target else ""))

    def _default_target(self, source: str) -> str:
        targets = [target for start, target in self._models if start == source]
        return targets[0] if targets else next(iter(self._models))[1]

    def _offer(self) -> str:
        pairs = ", ".join(f"{source} to {target}" for source, target in self._models)
        return f"There are: {pairs}. Load another with TRANSLATION_MODEL."

    def _check_options(self, request: TranslateRequest, routes: Sequence[Route]) -> None:
        most = min((route.model.facts.beam_size for route in routes if route.model), default=1) - 1
        if request.alternatives > max(most, 0):
            raise UnprocessableError(f"alternatives must be at most {max(most, 0)}, one less than the beam size.")
        if request.target_prefix and len(request.texts) > 1:
            raise UnprocessableError("target_prefix works with one text only.")

    def _plan(self, request: TranslateRequest, routes: Sequence[Route]) -> list[TextPlan | None]:
        return [
            plan_text(text, route.direction, route.model.profile, request.format, request.glossary)
            if route.model is not None
            else None
            for text, route in zip(request.texts, routes, strict=True)
        ]

    def _start_tasks(
        self, request: TranslateRequest, plans: Sequence[TextPlan | None], routes: Sequence[Route]
    ) -> list[_Running]:
        pieces = [
            (item, segment, route.model)
            for item, (plan, route) in enumerate(zip(plans, routes, strict=True))
            if plan is not None and route.model is not None
            for segment in plan.segments
        ]
        if request.target_prefix:
            if len(pieces) != 1:
                raise UnprocessableError(f"target_prefix works with one sentence only; this text has {len(pieces)}.")
            [(item, segment, model)] = pieces
            return [_Running(item, segment, _PrefixTask(segment.source), model)]

        def start() -> list[_Running]:
            return [_Running(item, segment, segment.start_task(), model) for item, segment, model in pieces]

        return self._in_text_time(request, start)

    def _in_text_time(self, request: TranslateRequest, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do text work here when it is little, off the event loop when it is much."""
        if sum(map(len, request.texts)) > HEAVY_CHARS:
            return run_native(work, *args, **kwargs)
        return work(*args, **kwargs)

    # -- while it is computed ----------------------------------------------------------------------------------------

    def _run(
        self,
        running: Sequence[_Running],
        request: TranslateRequest,
        patience: Patience,
        errands: Mapping[TranslationModel, OutputErrand],
    ) -> Iterator[TranslatedSegment]:
        """Bring all segments to their end; yield them in order."""
        calls = {id(run): _calls(run, request) for run in running}
        missing = sum(
            errand.look_up([call for run in running if run.model is model for call in calls[id(run)]])
            for model, errand in errands.items()
        )
        if missing > self._bulk_segments:
            patience.become_bulk()
        for model, errand in errands.items():
            mine = [run for run in running if run.model is model]
            started = iter(errand.start([call for run in mine for call in calls[id(run)]]))
            for run in mine:
                run.pending = [next(started) for _ in calls[id(run)]]
        waiting, ready = list(running), 0
        while ready < len(running):
            again = []
            for run in waiting:
                self._advance(run, request, errands[run.model])
                if run.pending:
                    again.append(run)
                while ready < len(running) and running[ready].task.result is not None:
                    yield _finished(ready, running[ready])
                    ready += 1
            waiting = again

    def _advance(self, run: _Running, request: TranslateRequest, errand: OutputErrand) -> None:
        """Feed a task what it waits for, and get what it wants next on its way."""
        outputs = [errand.finish(pending) for pending in run.pending]
        if outputs:
            run.first = run.first or outputs[0]
            self._in_text_time(request, run.task.feed, [_output(output) for output in outputs])
        calls = _calls(run, request)
        if calls:
            errand.look_up(calls)
        run.pending = errand.start(calls) if calls else []


def _calls(run: _Running, request: TranslateRequest) -> list[ModelCall]:
    return [run.model.call(wanted, request.alternatives + 1, request.target_prefix) for wanted in run.task.wanted]


def _output(output: ModelOutput) -> Output:
    best = output.texts[0] if output.texts else ""
    return Output(best, output.truncated, output.texts[1:])


def _detect(source: str, text: str) -> Detection:
    if source.lower() == AUTO:
        return detect_language(text)
    locale = parse_locale(source)
    return Detection(locale.language, 1.0, f"{locale.language}-{locale.script}" if locale.script else locale.language)


def _finished(index: int, run: _Running) -> TranslatedSegment:
    result, segment = run.task.result, run.segment
    assert result is not None, "only finished segments come here"
    scores = run.first.scores if run.first else ()
    alternatives = tuple((text, scores[rank + 1]) for rank, text in result.alternatives if rank + 1 < len(scores))
    return TranslatedSegment(
        index,
        run.item,
        segment.source,
        result.text,
        segment.start,
        segment.end,
        score=scores[0] if scores else 0.0,
        alternatives=alternatives,
        warnings=result.warnings,
    )


def _join(
    plans: Sequence[TextPlan | None], routes: Sequence[Route], finished: Sequence[TranslatedSegment], times: Times
) -> TranslateResult:
    translations: list[str] = []
    segments: list[TranslatedSegment] = []
    by_item = {item: list(mine) for item, mine in groupby(finished, key=lambda segment: segment.item)}
    for item, (plan, route) in enumerate(zip(plans, routes, strict=True)):
        mine = by_item.get(item, [])
        if plan is None:
            translations.append(route.text)
            continue
        joined = plan.join([segment.target for segment in mine])
        translations.append(joined.text)
        segments += [
            replace(segment, target=joined.text[start:end], target_start=start, target_end=end)
            for segment, (start, end) in zip(mine, joined.offsets, strict=True)
        ]
    return TranslateResult(
        tuple(translations), tuple(route.detection for route in routes), routes[0].target, tuple(segments), times
    )
