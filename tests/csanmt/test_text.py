"""Text in and out against the official pipeline's, and the byte-pair encoder against subword-nmt."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from subword_nmt.apply_bpe import BPE

from tandem.core.errors import ModelError
from tandem.csanmt.bpe import BytePairEncoder
from tandem.csanmt.configuration import load_official_config
from tandem.csanmt.tokenizer import Tokenizer
from tests.csanmt.support import FIXTURES, demo

EN2ZH = FIXTURES / "text_en2zh"
LINES = 10_000


@pytest.fixture(scope="module")
def en2zh() -> Tokenizer:
    return Tokenizer(EN2ZH, load_official_config(EN2ZH))


def test_english_source_ids_are_the_official_pipelines(en2zh: Tokenizer) -> None:
    lines = (EN2ZH / "official.in").read_text(encoding="utf-8").splitlines()
    expected = json.loads((EN2ZH / "official.ids.json").read_text(encoding="utf-8"))
    assert [list(en2zh.encode(line)) for line in lines] == expected


def test_chinese_target_text_is_the_official_pipelines(en2zh: Tokenizer) -> None:
    pairs = json.loads((EN2ZH / "detokenize.zh.json").read_text(encoding="utf-8"))
    assert [en2zh.join_tokens(joined.split(" ")) for joined, _ in pairs] == [text for _, text in pairs]


def words_of(vocabulary: Path, seed: int) -> list[str]:
    """Words made of a vocabulary's characters and pieces: known, unknown, long and strange ones."""
    chance = random.Random(seed)
    pieces = [line.strip().removesuffix("@@") for line in vocabulary.read_text(encoding="utf-8").split("\n")[1:]]
    characters = sorted(set("".join(pieces))) + list("œ𠮷é😀\t\u3000-&;@")
    return [
        "".join(chance.choices(pieces, k=chance.randint(1, 4)))
        if chance.random() < 0.6
        else "".join(chance.choices(characters, k=chance.randint(1, 12)))
        for _ in range(4000)
    ]


@pytest.mark.parametrize(
    ("name", "codes"), [("demo-zh2en", "bpe.zh"), ("demo-zh2en", "bpe.en"), ("demo-en2zh", "bpe.en")]
)
def test_subwords_are_subword_nmts_on_ten_thousand_lines(name: str, codes: str) -> None:
    model, chance = demo(name), random.Random(5)
    words = words_of(model.directory / "src_vocab.txt", 1) + words_of(model.directory / "trg_vocab.txt", 2)
    lines = [" ".join(chance.choices(words, k=chance.randint(0, 15))) for _ in range(LINES - 2 * len(model.source))]
    lines += [*model.source, *model.official]
    assert len(lines) == LINES
    ours = BytePairEncoder(model.directory / codes)
    with (model.directory / codes).open(encoding="utf-8") as opened:
        theirs = BPE(opened)
    for line in lines:
        assert ours.split_line(line) == theirs.process_line(line).split(), line


def test_codes_of_another_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bpe.zh").write_text("a b\nc d\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"bpe\.zh does not begin with"):
        BytePairEncoder(tmp_path / "bpe.zh")


def test_a_missing_vocabulary_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"src_vocab\.txt cannot be read"):
        Tokenizer(tmp_path, load_official_config(EN2ZH))


def test_ids_outside_the_vocabulary_file_are_unknown_and_the_end_mark_ends(en2zh: Tokenizer) -> None:
    assert en2zh.decode([9868, 0, 5]) == "<unk>"
    assert en2zh.encode("") == ()
    assert en2zh.encode(" \u3000\t ") == ()


def test_file_names_and_files_are_utf8_whatever_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    model = demo("demo-zh2en")
    assert model.tokenizer.decode(model.tokenizer.encode("你好")[:0]) == ""
    assert Tokenizer(model.directory, model.model.config).encode("你好，世界") == model.tokenizer.encode("你好，世界")
