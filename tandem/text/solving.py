"""How a sentence gets its translation: attempts, each asking for a few strings, until every kept span has its place.

The steps are generators that yield requests and are sent outputs, so nothing here waits, and several can be advanced
side by side. Where every attempt loses a span, the sentence is divided there and its parts are translated by
themselves: the result always holds each span exactly once, in a sensible place.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tandem.core.types import Link
from tandem.text.attribution import move_links
from tandem.text.framing import build_frame
from tandem.text.gluing import glue
from tandem.text.languages import Direction, is_spaceless
from tandem.text.lengths import split_long
from tandem.text.placing import place_silent, wrap_elements
from tandem.text.protection import (
    Attempt,
    Element,
    Kept,
    Marks,
    Node,
    Protected,
    Text,
    has_words,
    is_term_of_words,
    protect,
    render_literal,
)
from tandem.text.punctuation import clean_output, fit_marks
from tandem.text.repetition import collapse_loops, has_repetition_loop
from tandem.text.stand_ins import StandIns

ResultT = TypeVar("ResultT")
_MOST_HALVINGS = 3


@dataclass(frozen=True, slots=True)
class Request:
    """A string the model should translate.

    Attributes:
        text: What the model sees.
        strict: Decode under the repetition guard.
        target_prefix: What the translation must begin with; "" for nothing.
        align: Say which words of the translation came from where.
    """

    text: str
    strict: bool = False
    target_prefix: str = ""
    align: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """What the model made of a request.

    Attributes:
        text: The best translation.
        truncated: The output limit ended it.
        alternatives: Further ones, best first.
        links: Which words of the best one came from where, when that was asked for.
    """

    text: str
    truncated: bool = False
    alternatives: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


Steps = Generator[list[Request], Sequence[Output], ResultT]


@dataclass(slots=True)
class Context:
    """What the steps of one segment share.

    Attributes:
        direction: From which language into which.
        stand_ins: Tokens the model copies.
        marks: Characters that stand for kept spans.
        warnings: "repetition", "truncated" or "untranslated", as they happen.
        alternatives: Other translations as (rank from 0, masked text); only where the first attempt held.
        target_prefix: What the translation must begin with.
    """

    direction: Direction
    stand_ins: StandIns
    marks: Marks = field(default_factory=Marks)
    warnings: set[str] = field(default_factory=set)
    alternatives: list[tuple[int, str]] = field(default_factory=list)
    target_prefix: str = ""

    @property
    def target(self) -> str:
        """Code of the target language."""
        return self.direction.target


def gather(steps: Sequence[Steps[ResultT]]) -> Steps[list[ResultT]]:
    """Advance several generators side by side; their requests are asked together."""
    results: dict[int, ResultT] = {}
    outputs: dict[int, Sequence[Output] | None] = dict.fromkeys(range(len(steps)))
    while True:
        wanted: dict[int, list[Request]] = {}
        for index, answer in outputs.items():
            try:
                wanted[index] = next(steps[index]) if answer is None else steps[index].send(answer)
            except StopIteration as stop:
                results[index] = stop.value
        if not wanted:
            return [results[index] for index in range(len(steps))]
        answers = iter((yield [request for requests in wanted.values() for request in requests]))
        outputs = {index: [next(answers) for _ in requests] for index, requests in wanted.items()}


def solve(nodes: Sequence[Node], context: Context, depth: int = 0) -> Steps[str]:
    """Translate a sentence, or a part of one.

    Args:
        nodes: The sentence.
        context: What the steps of the segment share.
        depth: 0 for the sentence; deeper parts get fewer attempts.

    Returns:
        The translation with a mark of the context for every kept span, each exactly once.
    """
    if not has_words(nodes):
        return "".join(_mark_literal(node, context) for node in nodes)
    frame = build_frame(nodes)
    core = (*frame.core, Text(frame.marks)) if frame.marks else frame.core
    masked = yield from _solve_core(core, context, depth)
    if depth == 0:
        context.alternatives = [
            (rank, frame.render(other, context.marks, context.target)) for rank, other in context.alternatives
        ]
    return frame.render(masked, context.marks, context.target)


def _solve_core(nodes: Sequence[Node], context: Context, depth: int) -> Steps[str]:
    insides: list[str] | None = None
    lost: Sequence[Node] = ()
    for stage in _plan_stages(nodes, depth, context.target_prefix):
        for attempt in stage:
            protected = protect(nodes, context.direction, context.stand_ins, attempt)
            if protected is None:
                continue
            elements = [node for node in nodes if isinstance(node, Element)]
            inner = [solve(element.inner, context, depth + 1) for element in elements] if insides is None else []
            prefix = protected.mask(context.target_prefix) if depth == 0 else ""
            request = Request(protected.model_text, target_prefix=prefix, align=bool(protected.terms))
            output, solved = yield from _ask(request, inner, context)
            insides = solved if insides is None else insides
            masked, lost = _restore(output, protected, elements, insides, context)
            if masked is not None:
                if depth == 0:
                    _note_alternatives(output, protected, elements, insides, context)
                return place_silent(nodes, masked, context.marks, context.target)
        if lost and not any(map(is_term_of_words, lost)):
            break  # as without a glossary: it is not for the terms' sake that the sentence is divided
    return (yield from _solve_parts(nodes, lost, context, depth))


def _plan_stages(nodes: Sequence[Node], depth: int, prefix: str) -> list[list[Attempt]]:
    """Return the attempts that are worth making: those that show terms in their own words first, if there are any.

    A given beginning that has a term in it would put an unknown word where the model has its own.
    """
    attempts = _plan_attempts(nodes, depth)
    terms = [node for node in nodes if isinstance(node, Kept) and is_term_of_words(node)]
    if not terms or any(term.shown in prefix for term in terms):
        return [attempts]
    first = [replace(attempt, in_words=True) for attempt in attempts]
    if all(isinstance(node, Text) or is_term_of_words(node) for node in nodes):
        first = first[:1]  # a second one would show the same
    return [first, attempts]


def _plan_attempts(nodes: Sequence[Node], depth: int) -> list[Attempt]:
    if all(isinstance(node, Text) or (isinstance(node, Kept) and node.is_silent) for node in nodes):
        return [Attempt(0)]
    elements = [node for node in nodes if isinstance(node, Element)]
    is_simple = all(isinstance(node, Text) for element in elements for node in element.inner)
    attempts = [Attempt(0, whole=True)] if elements and is_simple else []
    attempts += [Attempt(0), Attempt(1)]
    return attempts if depth == 0 else attempts[:1] if depth == 1 else []


def _ask(request: Request, inner: Sequence[Steps[str]], context: Context) -> Steps[tuple[Output, list[str]]]:
    """Translate a text, and solve what is inside its elements meanwhile."""
    found: list[Output] = []

    def outer() -> Steps[str]:
        found.append((yield from translate(request, context)))
        return ""

    _, *insides = yield from gather([outer(), *inner])
    return found[0], insides


def _restore(
    output: Output, protected: Protected, elements: Sequence[Element], insides: Sequence[str], context: Context
) -> tuple[str | None, Sequence[Node]]:
    """Return the masked translation, or None and the nodes that have no place in it."""
    within = dict(zip(elements, insides, strict=True))
    given = context.marks
    marks = [
        given.add(node.shown) if isinstance(node, Kept) else given.add_element(node, within[node])
        for node, _ in protected.surfaces
    ]
    masked, lost = protected.restore(output.text, marks, output.links)
    if lost:
        return None, lost
    if elements and not any(isinstance(node, Element) for node, _ in protected.surfaces):
        wrapped = wrap_elements(masked, elements, insides, context.marks)
        if wrapped is None:
            return None, elements
        masked = wrapped
    return fit_marks(masked, context.target), ()


def _note_alternatives(
    output: Output, protected: Protected, elements: Sequence[Element], insides: Sequence[str], context: Context
) -> None:
    protected = protected.spelled(output.text, output.links)
    for rank, text in enumerate(output.alternatives):
        masked, _ = _restore(Output(clean_output(text)), protected, elements, insides, context)
        if masked is not None:
            context.alternatives.append((rank, masked))


def _solve_parts(nodes: Sequence[Node], lost: Sequence[Node], context: Context, depth: int) -> Steps[str]:
    """Divide a sentence at the nodes that were lost, translate what lies between, and put it together again."""
    divides = [node for node in nodes if node in lost and not isinstance(node, Text)]
    if not divides or depth > 0:
        divides = [node for node in nodes if not isinstance(node, Text) and not _is_silent(node)]
    parts: list[list[Node]] = [[]]
    for node in nodes:
        if node in divides:
            parts += [[node], []]
        else:
            parts[-1].append(node)
    parts = [part for part in parts if part]
    solved = yield from gather([_solve_part(part, context, depth + 1) for part in parts])
    return glue(solved, context.target)


def _solve_part(part: Sequence[Node], context: Context, depth: int) -> Steps[str]:
    only = part[0]
    if len(part) == 1 and isinstance(only, Element):
        inside = yield from solve(only.inner, context, depth)
        return context.marks.add_element(only, inside)
    return (yield from solve(part, context, depth))


def _is_silent(node: Node) -> bool:
    return isinstance(node, Kept) and node.is_silent


def _mark_literal(node: Node, context: Context) -> str:
    if isinstance(node, Kept):
        return context.marks.add(node.shown)
    return render_literal([node], context.target)


def translate(request: Request, context: Context, halvings: int = 0) -> Steps[Output]:
    """Ask for a translation; again under the repetition guard when it loops, in halves when it was cut.

    Args:
        request: What the model sees.
        context: Takes the warnings.
        halvings: How often it was halved already.

    Returns:
        A cleaned output; a text that the model says nothing to comes back as it is.
    """
    text = request.text
    (output,) = yield [request]
    cleaned = clean_output(output.text)
    if has_repetition_loop(text, cleaned):
        context.warnings.add("repetition")
        (output,) = yield [replace(request, strict=True)]
        cleaned = collapse_loops(text, clean_output(output.text))
    if output.truncated:
        halves = _halve(text) if halvings < _MOST_HALVINGS and not request.target_prefix else []
        if len(halves) > 1:
            parts = yield from gather([translate(Request(half), context, halvings + 1) for half in halves])
            return Output(("" if is_spaceless(context.target) else " ").join(part.text for part in parts))
        context.warnings.add("truncated")
    if not any(map(str.isalnum, cleaned)):
        context.warnings.add("untranslated")
        return Output(text)
    return replace(output, text=cleaned, links=move_links(output.links, output.text, cleaned, clean_output))


def _halve(text: str) -> list[str]:
    whole = (0, len(text))
    return [text[start:end] for start, end in split_long(text, *whole, (), lambda *part: part != whole)]
