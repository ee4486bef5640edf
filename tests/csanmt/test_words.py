"""Our faster ways through jieba and sacremoses give what the libraries give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesDetokenizer

from tandem.csanmt.words import WordJoiner, WordSplitter

ROOT = Path(__file__).resolve().parents[2]
SPLITTER, JIEBA = WordSplitter(), jieba.Tokenizer()
JOINERS = {language: (WordJoiner(language), MosesDetokenizer(lang=language)) for language in ("en", "zh", "fr", "fi")}


def chinese_lines() -> Iterator[str]:
    """Yield the lines of the repository, and 10,000 made of pieces of them, which no dictionary expects."""
    lines = [
        line
        for name in ("benchmarks/sentences.zh", "benchmarks/natural_mix.zh")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    ]
    yield from lines
    chance, everything = random.Random(1), "".join(lines)
    for _ in range(10_000):
        starts = [chance.randrange(len(everything)) for _ in range(chance.randint(1, 6))]
        yield "".join(everything[start : start + chance.randint(1, 7)] for start in starts)


def test_words_are_those_of_jieba() -> None:
    count = 0
    for line in chinese_lines():
        assert list(SPLITTER.cut(line)) == list(JIEBA.cut(line)), line
        count += 1
    assert count > 10_000


WORDS = st.text("aZ0,.?!:;%-'&@\"$(中é", min_size=1, max_size=4) | st.sampled_from(["@-@", "&quot;", "'s", "n't", "It"])


@settings(max_examples=500)
@given(st.lists(WORDS, max_size=8), st.sampled_from(sorted(JOINERS)))
def test_words_are_joined_as_sacremoses_joins_them(words: list[str], language: str) -> None:
    ours, theirs = JOINERS[language]
    assert ours.join(words) == theirs.detokenize(words)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("It is , in 1.5 % of cases , well - known .", "It is, in 1.5% of cases, well - known."),
        (". a .b c .. !?", ". a .b c..!?"),
        ("", ""),
    ],
)
def test_plain_words(words: str, text: str) -> None:
    assert WordJoiner("en").join(words.split()) == text
