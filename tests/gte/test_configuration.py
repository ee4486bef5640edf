from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tandem.core.errors import ModelError
from tandem.gte.configuration import load_bert_config, load_config, load_max_tokens
from tests.gte.support import DEMO, change_config, write_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(DEMO / "config.json", tmp_path)
    return tmp_path


def max_tokens(folder: Path) -> int:
    return load_max_tokens(folder, load_config(folder))


def test_sizes_are_read_from_the_file() -> None:
    config, bert = load_config(DEMO), load_bert_config(DEMO)
    assert (config.is_bert, config.vocab_size, config.hidden_size, config.pad_id) == (True, 11000, 256, 0)
    assert (bert.num_layers, bert.num_heads, bert.filter_size, bert.norm_eps, bert.gelu) == (4, 4, 1024, 1e-12, "none")


def test_the_limit_is_512_where_nothing_asks_for_less(folder: Path) -> None:
    assert max_tokens(folder) == 512
    assert max_tokens(change_config(folder, max_position_embeddings=2048)) == 512


def test_the_limit_is_the_number_of_positions_when_that_is_less(folder: Path) -> None:
    assert max_tokens(change_config(folder, max_position_embeddings=200)) == 200


def test_the_limit_leaves_out_the_positions_that_roberta_never_uses(folder: Path) -> None:
    change_config(folder, model_type="xlm-roberta", pad_token_id=1, max_position_embeddings=130)
    assert max_tokens(folder) == 128


@pytest.mark.parametrize(("stored", "limit"), [(128, 128), (1024, 512), (None, 512)])
def test_the_stored_limit_counts_when_it_is_less(folder: Path, stored: int | None, limit: int) -> None:
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": stored})
    assert max_tokens(folder) == limit


def test_the_stored_limit_is_read_in_the_folder_of_the_transformer_module(folder: Path) -> None:
    write_json(folder / "modules.json", [{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}])
    write_json(folder / "0_Transformer" / "sentence_bert_config.json", {"max_seq_length": 77})
    assert max_tokens(folder) == 77


def test_a_limit_without_room_between_the_marks_is_an_error(folder: Path) -> None:
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 2})
    with pytest.raises(ModelError, match="leave no room"):
        max_tokens(folder)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("hidden_act", "swish"), ("position_embedding_type", "relative_key"), ("is_decoder", True),
        ("num_hidden_layers", 0), ("num_attention_heads", 3), ("vocab_size", "many"), ("intermediate_size", None),
    ],
)  # fmt: skip
def test_what_the_network_does_not_compute_is_an_error_that_names_it(folder: Path, entry: str, value: object) -> None:
    with pytest.raises(ModelError, match=entry):
        load_bert_config(change_config(folder, **{entry: value}))


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\xff"])
def test_a_damaged_configuration_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=r"config\.json is damaged"):
        load_config(tmp_path)


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        load_config(tmp_path)
