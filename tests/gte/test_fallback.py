from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tandem.core.errors import ModelError
from tandem.core.types import Item
from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision
from tests.gte.support import (
    CPU,
    change_config,
    change_weights,
    cosines,
    hidden_states,
    make_xlm_roberta,
    reference_texts,
    run,
    unit,
    vectors_of,
    write_json,
)  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_xlm_roberta(tmp_path_factory.mktemp("xlmr"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


@pytest.mark.parametrize("mode", ["cls", "mean"])
def test_a_sentencepiece_model_agrees_with_transformers_through_the_engine(folder: Path, mode: str) -> None:
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": mode})
    embedder = load_embedder(folder, Precision.FLOAT32, CPU)
    texts = embedder.tokenizer.encode_many(reference_texts())
    assert embedder.max_tokens == 40
    assert [text.truncated for text in texts][-2:] == [False, True]
    vectors = vectors_of(run(embedder.engine(), [Item(text.ids) for text in texts]))
    hidden = [hidden_states(folder, text.ids) for text in texts[::7]]
    expected = [unit(states[0] if mode == "cls" else states.mean(0)) for states in hidden]
    np.testing.assert_allclose(vectors[::7], np.stack(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("precision", [Precision.FLOAT16, Precision.BFLOAT16, Precision.INT8])
def test_every_precision_stays_close_to_float32(original: Path, precision: Precision) -> None:
    exact, embedder = (load_embedder(original, wanted, CPU) for wanted in (Precision.FLOAT32, precision))
    ids = [text.ids for text in exact.tokenizer.encode_many(reference_texts())]
    vectors = embedder.encoder.vectors(ids)
    assert cosines(vectors, exact.encoder.vectors(ids)).min() >= 0.999
    alone = np.concatenate([embedder.encoder.vectors([text]) for text in ids])
    assert cosines(vectors, alone).min() >= 0.9999


def test_a_missing_key_is_named(folder: Path) -> None:
    name = "encoder.layer.1.output.dense.bias"
    change_weights(folder, lambda state: {key: value for key, value in state.items() if key != name})
    with pytest.raises(ModelError, match=f"lack {name}"):
        load_embedder(folder, Precision.FLOAT32, CPU)


def test_an_unexpected_key_is_named(folder: Path) -> None:
    change_weights(folder, lambda state: {**state, "lm_head.bias": torch.ones(3)})
    with pytest.raises(ModelError, match=r"unexpected lm_head\.bias"):
        load_embedder(folder, Precision.FLOAT32, CPU)


def test_a_key_of_another_shape_is_named(folder: Path) -> None:
    name = "encoder.layer.0.intermediate.dense.bias"
    change_weights(folder, lambda state: {**state, name: torch.ones(3)})
    with pytest.raises(ModelError, match=str(folder)):
        load_embedder(folder, Precision.FLOAT32, CPU)


def test_an_unknown_architecture_is_named(folder: Path) -> None:
    change_config(folder, model_type="new")
    with pytest.raises(ModelError, match=r"transformers cannot load.*new"):
        load_embedder(folder, Precision.FLOAT32, CPU)
