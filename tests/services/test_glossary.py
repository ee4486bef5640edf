"""How often the demo models' translations hold a glossary's terms, and what that does to the rest of the sentence."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

import jieba
import pytest
import sacrebleu

from tandem.core.types import Item
from tandem.text.languages import Direction
from tandem.text.plan import SegmentTask, plan_text
from tandem.text.profile import build_profile
from tandem.text.solving import Output, Request
from tests.csanmt.support import Demo, demo, run

SENTENCES = 100
MOST_WORDS = 3  # of the plain translation that one term may stand for
Pair = tuple[str, Mapping[str, str]]


def ask(model: Demo, requests: Sequence[Request]) -> dict[Request, Output]:
    """Translate all that is wanted in one batch."""
    wanted, tokenizer, outputs = list(dict.fromkeys(requests)), model.tokenizer, {}
    items = [Item(tokenizer.encode(one.text) or (0,), strict=one.strict, align=one.align) for one in wanted]
    for request, finished in zip(wanted, run(model.engine, items), strict=True):
        assert finished.result is not None
        best = finished.result[0]
        text = tokenizer.decode(best.ids)
        links = tokenizer.link(request.text, text, best) if request.align else ()
        outputs[request] = Output(text, best.truncated, links=links)
    return outputs


def translate(model: Demo, pairs: Sequence[Pair]) -> list[str]:
    """Translate texts with a glossary each as the service does, all of them side by side."""
    tokenizer = model.tokenizer
    direction = Direction(tokenizer.source_lang, tokenizer.target_lang)
    profile = build_profile(direction.source, tokenizer.tokenize, tokenizer.source_ids, 60)
    plans = [plan_text(text, direction, profile, glossary=glossary) for text, glossary in pairs]
    tasks: list[list[SegmentTask]] = [[segment.start_task() for segment in plan.segments] for plan in plans]
    while waiting := [task for of_text in tasks for task in of_text if task.wanted]:
        outputs = ask(model, [request for task in waiting for request in task.wanted])
        for task in waiting:
            task.feed([outputs[request] for request in task.wanted])
    results = [[task.result.text for task in of_text if task.result] for of_text in tasks]
    return [plan.join(texts).text for plan, texts in zip(plans, results, strict=True)]


def chinese_words(line: str) -> list[str]:
    return [word for word in jieba.cut(line) if re.fullmatch("[\u4e00-\u9fff]{2,}", word)]


def english_words(line: str) -> list[str]:
    return re.findall(r"(?<![\w@.-])[A-Za-z]{4,}(?![\w@-])", line)


def choose(lines: Sequence[str], words: Callable[[str], list[str]], targets: Sequence[str]) -> list[Pair]:
    """A hundred lines with a glossary of one of their words each, the same ones every time."""
    chance = random.Random(7)
    pairs: list[Pair] = []
    for line in lines:
        if found := words(line):
            pairs.append((line, {chance.choice(found): targets[len(pairs) % len(targets)]}))
    return pairs[:: len(pairs) // SENTENCES][:SENTENCES]


def remaining(plain: str, rest: str, count: int, spaceless: bool) -> str:
    """What is left of a plain translation without the few words that best explain what a term took away."""
    words, blank = (list(plain), "") if spaceless else (plain.split(), " ")
    most = count * MOST_WORDS * (2 if spaceless else 1)
    left = [
        blank.join(words[:start] + words[start + length :])
        for length in range(most + 1)
        for start in range(len(words) - length + 1)
    ]
    return max(left, key=lambda one: sacrebleu.sentence_chrf(rest, [one]).score)


def measure(model: Demo, pairs: Sequence[Pair]) -> tuple[int, float]:
    """Return how many translations hold their term as often as their source, and chrF of the rest of all."""
    spaceless = model.tokenizer.target_lang == "zh"
    plain = translate(model, [(line, {}) for line, _ in pairs])
    honoured, rests, references = 0, [], []
    for (line, glossary), before, after in zip(pairs, plain, translate(model, pairs), strict=True):
        [(term, target)] = glossary.items()
        count = len(re.findall(rf"(?<!\w){term}(?!\w)" if spaceless else term, line, re.IGNORECASE))
        honoured += after.count(target) == count
        rests.append(after.replace(target, "") if spaceless else " ".join(after.replace(target, " ").split()))
        references.append(remaining(before, rests[-1], count, spaceless))
    return honoured, sacrebleu.corpus_chrf(rests, [references]).score


@pytest.mark.parametrize(
    ("name", "words", "targets"),
    [
        ("demo-zh2en", chinese_words, ("Zorblatt", "control panel", "Omnivault")),
        ("demo-en2zh", english_words, ("星门", "控制面板", "Zorblatt")),
    ],
)
def test_terms_are_honoured_and_the_rest_of_the_sentence_stays(
    name: str, words: Callable[[str], list[str]], targets: tuple[str, ...]
) -> None:
    model = demo(name)
    honoured, chrf = measure(model, choose(model.source, words, targets))
    print(f"{name}: {honoured} of {SENTENCES} honoured, chrF of the rest {chrf:.1f}")
    assert honoured >= 0.95 * SENTENCES
    assert chrf >= 95


def test_a_text_with_the_plain_translations_own_word_as_its_term_is_the_plain_translation() -> None:
    model = demo("demo-zh2en")
    [plain, with_term] = translate(model, [("请检查网络。", {}), ("请检查网络。", {"网络": "network"})])
    assert "network" in plain
    assert with_term == plain
