from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.core.errors import ModelError
from tandem.gte.tokenizer import load_tokenizer
from tests.gte.support import DEMO, demo, make_xlm_roberta, reference_texts

CLS, SEP = 2, 3


def test_truncation_and_padding_stored_in_the_file_are_switched_off() -> None:
    stored = json.loads((DEMO / "tokenizer.json").read_text(encoding="utf-8"))
    assert stored["truncation"]["max_length"] == 64
    assert stored["padding"] is not None
    short, long = load_tokenizer(DEMO, 512).encode_many(["你好", "好" * 200])
    assert (len(short.ids), len(long.ids)) == (4, 202)
    assert not short.truncated
    assert not long.truncated


def test_a_text_of_1502_subwords_is_cut_at_512_and_says_so() -> None:
    text = demo().tokenizer.encode(reference_texts()[-1])
    assert text.truncated
    assert len(text.ids) == 512
    assert (text.ids[0], text.ids[-1]) == (CLS, SEP)
    assert len(load_tokenizer(DEMO, 10_000).encode(reference_texts()[-1]).ids) == 1502


@pytest.mark.parametrize(("characters", "is_cut"), [(7, False), (8, False), (9, True)])
def test_a_text_is_truncated_only_past_the_limit(characters: int, is_cut: bool) -> None:
    text = load_tokenizer(DEMO, 10).encode("好" * characters)
    assert text.truncated is is_cut
    assert len(text.ids) == min(characters + 2, 10)


def test_an_empty_text_is_its_marks_alone() -> None:
    assert demo().tokenizer.encode("").ids == (CLS, SEP)


def test_many_texts_encode_as_each_alone() -> None:
    tokenizer = demo().tokenizer
    texts = reference_texts()
    assert tokenizer.encode_many(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_many([]) == []


@given(st.text(st.characters(), max_size=60))
def test_any_string_is_encoded_within_the_limit(text: str) -> None:
    encoded = load_demo_with_limit_16().encode(text)
    assert 2 <= len(encoded.ids) <= 16
    assert (encoded.ids[0], encoded.ids[-1]) == (CLS, SEP)


def load_demo_with_limit_16(cache: list = []):  # noqa: B006 - loaded once for all examples
    if not cache:
        cache.append(load_tokenizer(DEMO, 16))
    return cache[0]


def test_a_lone_surrogate_counts_as_a_replacement_character() -> None:
    tokenizer = demo().tokenizer
    assert tokenizer.encode("好\ud800的😀") == tokenizer.encode("好\ufffd的😀")


def test_a_directory_with_vocab_txt_alone_encodes_the_same(tmp_path: Path) -> None:
    for name in ("vocab.txt", "config.json"):
        shutil.copy(DEMO / name, tmp_path)
    texts = [*reference_texts(), "Hello World, 你好！"]
    assert load_tokenizer(tmp_path, 512).encode_many(texts) == demo().tokenizer.encode_many(texts)


def test_a_sentencepiece_vocabulary_is_read_and_cut_with_its_own_marks(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(make_xlm_roberta(tmp_path), 12)
    short, long = tokenizer.encode_many(["您确定要打开这45个设置吗", "打开服务器" * 40])
    assert (short.ids[0], short.ids[-1], short.truncated) == (0, 2, False)
    assert (long.ids[0], long.ids[-1], long.truncated, len(long.ids)) == (0, 2, True, 12)
    assert 2 not in long.ids[:-1]


def test_a_damaged_tokenizer_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"', encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        load_tokenizer(tmp_path, 512)


def test_a_directory_without_any_vocabulary_is_named(tmp_path: Path) -> None:
    shutil.copy(DEMO / "config.json", tmp_path)
    with pytest.raises(ModelError, match=rf"{tmp_path} has no vocabulary: none of tokenizer\.json, vocab\.txt"):
        load_tokenizer(tmp_path, 512)
