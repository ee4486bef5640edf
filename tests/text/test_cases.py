"""Every case of the case files through the text layer and the real demo models, one line of a file at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tandem.core.types import Item, Priority
from tandem.csanmt.checkpoint import load_config, load_model
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.tokenizer import Tokenizer
from tandem.text.languages import Direction
from tandem.text.plan import plan_text
from tandem.text.profile import build_profile
from tandem.text.solving import Output, Request

ROOT = Path(__file__).resolve().parents[2]
CASES = [
    json.loads(line)
    for file in sorted((ROOT / "tests" / "golden" / "cases").glob("*.jsonl"))
    for line in file.read_text("utf-8").splitlines()
    if line.strip()
]


class Demo:
    """A demo model that translates what it is asked, a batch at a time."""

    def __init__(self, directory: Path) -> None:
        self.config = load_config(directory)
        model = load_model(directory).eval()
        self.tokenizer = Tokenizer(directory, self.config)
        self.engine = TranslationEngine(
            model,
            prefix_index=lambda: self.tokenizer.prefix_index,
            options=DecodingOptions(),
            limits=EngineLimits(),
        )
        vocabulary = frozenset((directory / self.config.src_vocab_file).read_text("utf-8").split("\n"))
        self.profile = build_profile(self.config.src_lang, self.tokenizer.tokenize, vocabulary, 60)

    def translate(self, requests: list[Request]) -> list[Output]:
        items = [Item(self.tokenizer.encode(request.text), strict=request.strict) for request in requests]
        done = {}
        for start in range(0, len(items), 32):
            finished = self.engine.admit([item for item in items[start : start + 32] if item.ids])
            while self.engine.live():
                finished += self.engine.step(Priority.BULK)
            done.update({id(each.item): each.result[0] for each in finished})
        return [
            Output(self.tokenizer.decode(done[id(item)].ids), done[id(item)].truncated) if item.ids else Output("")
            for item in items
        ]

    def translate_text(self, text: str, format: str) -> str:
        direction = Direction(self.config.src_lang, self.config.tgt_lang)
        plan = plan_text(text, direction, self.profile, format)
        tasks = [segment.start_task() for segment in plan.segments]
        while waiting := [task for task in tasks if task.wanted]:
            outputs = iter(self.translate([request for task in waiting for request in task.wanted]))
            for task in waiting:
                task.feed([next(outputs) for _ in task.wanted])
        return plan.join([task.result.text for task in tasks]).text


@cache
def demo(source: str, target: str) -> Demo:
    directory = ROOT / "models" / f"demo-{source}2{target}"
    if not directory.is_dir():
        pytest.skip(f"{directory.name} is not there")
    return Demo(directory)


def source_of(case: dict) -> str:
    return case.get("text") or case["repeat"][0] * case["repeat"][1]


def has_loop(text: str) -> bool:
    words = text.split()
    return any(
        words[at : at + size] * 4 == words[at : at + 4 * size]
        for size in (1, 2, 3, 4)
        for at in range(len(words) - 4 * size + 1)
    )


def is_balanced(text: str) -> bool:
    stack = []
    for closing, name in re.findall(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*>", text):
        if not closing:
            stack.append(name)
        elif not stack or stack.pop() != name:
            return False
    return not stack


def blank_lines(text: str) -> list[bool]:
    return [bool(line.strip()) for line in text.split("\n")]


# A key of a case -> what its value and the translation must satisfy; the source comes third.
CHECKS: dict[str, Callable[..., bool]] = {
    "must_contain": lambda want, out, _: all(text in out for text in want),
    "must_not_contain": lambda want, out, _: not any(text in out for text in want),
    "count": lambda want, out, _: all(out.count(text) == number for text, number in want.items()),
    "echo": lambda _, out, source: out == source,
    "not_empty": lambda _, out, __: bool(out.strip()),
    "max_chars": lambda want, out, _: len(out) <= want,
    "regex": lambda want, out, _: re.search(want, out, re.S) is not None,
    "same_lines": lambda _, out, source: blank_lines(out) == blank_lines(source),
    "no_loop": lambda _, out, __: not has_loop(out),
    "tags_balanced": lambda want, out, _: not want or is_balanced(out),
    "min_sentences": lambda want, out, _: len(re.findall(r"[.!?:](?=\s|$|[A-Z])", out)) >= want,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case):
    source, target = case.get("source", "zh"), case.get("target", "en" if case.get("source", "zh") == "zh" else "zh")
    model, format = demo(source, target), case.get("format", "text")
    if "texts" in case:
        translations = [model.translate_text(text, format) for text in case["texts"]]
        assert all(translations[int(at)] == want for at, want in case["echo_at"].items())
        return
    text = json.loads(case["raw_json"])["text"] if "raw_json" in case else source_of(case)
    translation = model.translate_text(text, format)
    failed = [key for key, check in CHECKS.items() if key in case and not check(case[key], translation, text)]
    assert not failed, translation
