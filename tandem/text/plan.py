"""From a user's text to segments for the model, and from their translations to the text's.

plan = plan_text(text, Direction("zh", "en"), profile)
tasks = [segment.start_task() for segment in plan.segments]
while waiting := [task for task in tasks if task.wanted]:
    for task in waiting:                     # or all of them in one batch, or each in a greenlet of its own
        task.feed([translate(request) for request in task.wanted])
joined = plan.join([task.result for task in tasks])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem.text.chinese import traditionalize
from tandem.text.gluing import begin_with
from tandem.text.html import split_markup
from tandem.text.joining import Joiner
from tandem.text.languages import TRADITIONAL, Direction, is_spaceless
from tandem.text.parts import Part, SegmentSource
from tandem.text.profile import TextProfile
from tandem.text.solving import Context, Output, Request, Steps, solve
from tandem.text.texts import Scope, split_text


@dataclass(frozen=True, slots=True)
class Translated:
    """A segment's translation.

    Attributes:
        text: With every kept span in its place.
        warnings: "repetition" (decoded again under the guard), "truncated" (cut by the output limit), "untranslated"
            (the model gave nothing: the source stands in its place); sorted.
        alternatives: Other translations as (rank from 0 among the outputs' alternatives, text).
    """

    text: str
    warnings: tuple[str, ...] = ()
    alternatives: tuple[tuple[int, str], ...] = ()


class SegmentTask:
    """The translation of one segment in progress: says what the model should translate next, until it is done.

    Attributes:
        wanted: Requests to translate now; empty when the segment is done.
        result: The translation; None until then.
    """

    def __init__(self, steps: Steps[str], context: Context, escapes: Mapping[str, str]) -> None:
        """Advance to the first requests."""
        self._escapes = str.maketrans(dict(escapes))
        self._steps = steps
        self._context = context
        self.wanted: list[Request] = []
        self.result: Translated | None = None
        self._advance(None)

    def feed(self, outputs: Sequence[Output]) -> None:
        """Take the outputs of all wanted requests, in their order.

        Raises:
            ValueError: There are more or fewer outputs than requests.
        """
        if len(outputs) != len(self.wanted):
            raise ValueError(f"{len(self.wanted)} outputs are wanted, not {len(outputs)}")
        self._advance(outputs)

    def _advance(self, outputs: Sequence[Output] | None) -> None:
        try:
            self.wanted = next(self._steps) if outputs is None else self._steps.send(outputs)
        except StopIteration as stop:
            self.wanted = []
            others = tuple((rank, self._reveal(text)) for rank, text in self._context.alternatives)
            self.result = Translated(self._reveal(stop.value), tuple(sorted(self._context.warnings)), others)

    def _reveal(self, masked: str) -> str:
        text = self._context.marks.reveal(masked, self._finish)
        return begin_with(text, self._context.target_prefix) if self._context.target_prefix else text

    def _finish(self, text: str) -> str:
        """Give the text between kept spans its last form."""
        if self._context.direction.target_script == TRADITIONAL:
            text = traditionalize(text)
        return text.translate(self._escapes) if self._escapes else text


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence-sized piece of the text.

    Attributes:
        index: From 0, in the order of the text.
        source: As it stands in the text.
        start: Offset of its first character in the text.
        end: Offset behind it.
    """

    index: int
    source: str
    start: int
    end: int
    _part: SegmentSource
    _direction: Direction
    _profile: TextProfile

    def start_task(self, target_prefix: str = "") -> SegmentTask:
        """Begin to translate it.

        Args:
            target_prefix: What the translation must begin with; "" for nothing.
        """
        context = Context(self._direction, self._profile.stand_ins, target_prefix=target_prefix)
        return SegmentTask(solve(self._part.nodes, context), context, self._part.escapes)


@dataclass(frozen=True, slots=True)
class JoinedText:
    """A whole translation.

    Attributes:
        text: The text.
        offsets: Start and end of each segment's translation in it.
    """

    text: str
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TextPlan:
    """A text taken apart.

    Attributes:
        segments: What the model is needed for; empty for a text without language.
    """

    segments: tuple[Segment, ...]
    _parts: tuple[Part, ...]
    _direction: Direction

    def join(self, translations: Sequence[str]) -> JoinedText:
        """Put the text together again.

        Args:
            translations: One for each segment, in order.

        Raises:
            ValueError: There are more or fewer translations than segments.
        """
        joiner = self.joiner()
        placements = [joiner.add(translation) for translation in translations]
        return JoinedText(joiner.finish(), tuple((placed.start, placed.end) for placed in placements))

    def joiner(self) -> Joiner:
        """Return what takes translations one by one, as they arrive in order."""
        return Joiner(self._parts, spaceless=is_spaceless(self._direction.target))


def plan_text(
    text: str,
    direction: Direction,
    profile: TextProfile,
    format: str = "text",
    glossary: Mapping[str, str] | None = None,
) -> TextPlan:
    """Take a text apart into segments for the model and what lies between them.

    Args:
        text: What the user sent.
        direction: From which language into which.
        profile: What the model takes and can spell.
        format: "text", "html" or "xml".
        glossary: Terms of the source and what they are in the target.
    """
    scope = Scope(direction, profile, glossary)
    parts = tuple(split_text(text, scope) if format == "text" else split_markup(text, scope, is_xml=format == "xml"))
    sources = [part for part in parts if isinstance(part, SegmentSource)]
    segments = tuple(
        Segment(index, text[part.start : part.end], part.start, part.end, part, direction, profile)
        for index, part in enumerate(sources)
    )
    return TextPlan(segments, parts, direction)
