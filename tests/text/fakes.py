"""Translators that misbehave on purpose, and how a text is driven through one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from tandem.text.languages import Direction
from tandem.text.plan import JoinedText, plan_text
from tandem.text.profile import TextProfile
from tandem.text.solving import Output, Request

Translator = Callable[[Request], Output]
_MOST_ROUNDS = 200
_ZH = {"打开": "Open", "文件": "file"}


def profile(source: str, *, max_tokens: int = 60, knows: Callable[[str], bool] = lambda _: True) -> TextProfile:
    """A model whose tokens are characters of Chinese, words of other languages."""
    count = len if source == "zh" else (lambda text: len(text.split()))
    return TextProfile(source, count, max_tokens, knows)


def run(
    text: str,
    translate: Translator,
    source: str = "zh",
    target: str = "en",
    *,
    format: str = "text",
    glossary: Mapping[str, str] | None = None,
    max_tokens: int = 60,
) -> JoinedText:
    """Translate a whole text as a service would, round by round."""
    plan = plan_text(text, Direction(source, target), profile(source, max_tokens=max_tokens), format, glossary)
    tasks = [segment.start_task() for segment in plan.segments]
    for _ in range(_MOST_ROUNDS):
        waiting = [task for task in tasks if task.wanted]
        if not waiting:
            return plan.join([task.result.text for task in tasks if task.result is not None])
        for task in waiting:
            task.feed([translate(request) for request in task.wanted])
    raise AssertionError("the tasks never end")


def echo(request: Request) -> Output:
    """Says what it hears."""
    return Output(request.text)


def shout(request: Request) -> Output:
    """Changes every letter."""
    return Output(request.text.upper())


def mute(request: Request) -> Output:
    """Says nothing."""
    return Output("")


def forget(request: Request) -> Output:
    """Loses everything but letters of words."""
    return Output(re.sub(r"[^a-z一-鿿 ]", "", request.text))


def repeat(request: Request) -> Output:
    """Says everything twice."""
    return Output(f"{request.text} {request.text}")


def loop(request: Request) -> Output:
    """Falls into a loop."""
    return Output("the file " * 40)


def mumble(request: Request) -> Output:
    """Lets slip what no reader should see."""
    return Output(f"<unk> a@@ b {request.text} &quot;x&apos;s <unk>\n\tc@@")


def cut(request: Request) -> Output:
    """Never gets to the end."""
    return Output(request.text[: len(request.text) // 2], truncated=True)


def swap(request: Request) -> Output:
    """Says everything in the wrong order."""
    return Output(" ".join(reversed(re.findall(r"[{}\w%$<>/]+|[^\w\s]", request.text))))


def scramble(seed: int) -> Translator:
    """Drops, doubles and moves words at random, always the same way for the same seed."""

    def translate(request: Request) -> Output:
        chance = random.Random(f"{seed}{request.text}{request.strict}")
        words = re.findall(r"[A-Za-z0-9{}]+|\S|\s+", request.text)
        words = [word for word in words for _ in range(chance.choice((0, 1, 1, 1, 2)))]
        if chance.random() < 0.3:
            chance.shuffle(words)
        return Output("".join(words), truncated=chance.random() < 0.1)

    return translate


ALL = (echo, shout, mute, forget, repeat, loop, mumble, cut, swap)
