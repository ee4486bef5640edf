"""Token ids that a caller brings along, and tokens that one wants to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.gte.tokenizer import TextTokenizer, load_tokenizer

TEXTS = ["", "你好", "打开文件。", "Open the file, please!", "版本 v2.10.3-beta", "𠮷野家 unbelievable", "[UNK] 龘"]


@pytest.fixture(scope="module")
def tokenizer(models: Path) -> TextTokenizer:
    return load_tokenizer(models / "demo-gte", 16)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_of_our_own_are_recognised_with_and_without_marks(tokenizer: TextTokenizer, text: str) -> None:
    ids = tokenizer.encode(text).ids
    assert tokenizer.recognises(ids)
    assert tokenizer.recognises(ids[1:-1])


def test_ids_outside_the_vocabulary_are_not(tokenizer: TextTokenizer) -> None:
    assert not tokenizer.recognises([tokenizer.vocabulary_size])
    assert not tokenizer.recognises([-1])


def test_ids_that_no_text_gives_are_not(tokenizer: TextTokenizer) -> None:
    pieces = [token.id for token in tokenizer.spell("unbelievablyoverengineered", marks=False)][1:]
    assert len(pieces) > 1
    assert not tokenizer.recognises([*pieces, *pieces])


@pytest.mark.parametrize("text", TEXTS)
def test_framed_ids_are_those_of_the_text(tokenizer: TextTokenizer, text: str) -> None:
    whole = tokenizer.encode(text)
    assert tokenizer.frame(whole.ids) == whole
    assert tokenizer.frame(whole.ids[1:-1]) == whole


def test_framed_ids_are_cut_at_the_limit(tokenizer: TextTokenizer) -> None:
    ids = [token.id for token in tokenizer.spell("好" * 50)]
    assert tokenizer.frame(ids) == tokenizer.encode("好" * 50)
    assert tokenizer.frame(ids[1:-1]).truncated


def test_tokens_cover_their_places(tokenizer: TextTokenizer) -> None:
    text = "打开 file.txt 文件"
    tokens = [token for token in tokenizer.spell(text) if not token.is_mark]
    assert all(token.text == text[token.start : token.stop] for token in tokens)
    assert "".join(token.text for token in tokens) == text.replace(" ", "")


def test_a_lone_surrogate_can_be_spelt(tokenizer: TextTokenizer) -> None:
    assert tokenizer.spell("a\ud800b")
