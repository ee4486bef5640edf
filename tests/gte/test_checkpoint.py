from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tandem.core.errors import ModelError
from tandem.gte.checkpoint import stored_shapes
from tandem.gte.configuration import load_bert_config
from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision
from tests.gte.support import CPU, DEMO, change_weights, make_bert, random_texts

State = dict[str, Tensor]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def vectors(folder: Path, precision: Precision = Precision.FLOAT32) -> np.ndarray:
    return load_embedder(folder, precision, CPU).encoder.vectors(random_texts([7, 3, 7, 40], 11000))


def save_pickle(folder: Path, state: object) -> Path:
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize("prefix", ["bert.", "encoder."])
def test_a_prefix_before_all_keys_changes_nothing(original: Path, folder: Path, prefix: str) -> None:
    change_weights(folder, lambda state: {prefix + name: value for name, value in state.items()})
    assert (vectors(folder) == vectors(original)).all()


@pytest.mark.parametrize("prefix", ["", "bert.", "encoder."])
def test_a_pickled_file_gives_the_same_vectors(original: Path, folder: Path, prefix: str) -> None:
    state = load_file(folder / "model.safetensors")
    save_pickle(folder, {prefix + name: value for name, value in state.items()})
    assert (vectors(folder) == vectors(original)).all()


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_pooler_and_position_ids_are_ignored(original: Path, folder: Path, prefix: str) -> None:
    def add(state: State) -> State:
        unused = {"pooler.dense.weight": torch.ones(2, 2), "embeddings.position_ids": torch.arange(64)}
        return {prefix + name: value for name, value in {**state, **unused}.items()}

    assert (vectors(change_weights(folder, add)) == vectors(original)).all()


def without(name: str) -> Callable[[State], State]:
    return lambda state: {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.word_embeddings.weight", "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.bias",
        "encoder.layer.1.attention.self.key.bias", "encoder.layer.0.output.dense.weight",
    ],
)  # fmt: skip
def test_a_missing_key_is_named(folder: Path, name: str) -> None:
    change_weights(folder, without(name))
    with pytest.raises(ModelError, match=rf"model\.safetensors.*lack {name}"):
        vectors(folder)


@pytest.mark.parametrize("name", ["cls.predictions.bias", "encoder.layer.2.output.dense.weight", "embeddings.extra"])
def test_an_unexpected_key_is_named(folder: Path, name: str) -> None:
    change_weights(folder, lambda state: {**state, name: torch.ones(1)})
    with pytest.raises(ModelError, match=f"unexpected {name}"):
        vectors(folder)


def test_a_key_without_the_prefix_of_the_others_is_named(folder: Path) -> None:
    change_weights(
        folder, lambda state: {f"bert.{name}": value for name, value in state.items()} | {"cls.bias": torch.ones(1)}
    )
    with pytest.raises(ModelError, match=r"unexpected cls\.bias"):
        vectors(folder)


def test_a_key_of_another_shape_is_named(folder: Path) -> None:
    name = "encoder.layer.0.intermediate.dense.weight"
    change_weights(folder, lambda state: {**state, name: state[name].T})
    with pytest.raises(ModelError, match=rf"{name} has the shape \[32, 48\], not \[48, 32\]"):
        vectors(folder)


def test_a_key_of_whole_numbers_is_named(folder: Path) -> None:
    name = "encoder.layer.0.intermediate.dense.weight"
    change_weights(folder, lambda state: {**state, name: state[name].to(torch.int8)})
    with pytest.raises(ModelError, match=rf"{name} is torch\.int8"):
        vectors(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.999])
def test_a_truncated_safetensors_file_is_named(folder: Path, keep: float) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged or incomplete"):
        vectors(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.999])
def test_a_truncated_pickled_file_is_named(folder: Path, keep: float) -> None:
    path = save_pickle(folder, load_file(folder / "model.safetensors")) / "pytorch_model.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is damaged or incomplete"):
        vectors(folder)


class Payload:
    """Unpickling it would call `Path.touch`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.path,)


def test_a_pickled_file_runs_no_code(folder: Path, tmp_path: Path) -> None:
    save_pickle(folder, {"embeddings.word_embeddings.weight": Payload(tmp_path / "touched")})
    with pytest.raises(ModelError, match=r"pytorch_model\.bin"):
        vectors(folder)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("value", [[torch.ones(1)], {"a": 1}])
def test_a_pickled_file_with_something_else_is_named(folder: Path, value: object) -> None:
    with pytest.raises(ModelError, match="something other than named tensors"):
        vectors(save_pickle(folder, value))


def test_a_directory_without_weights_is_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"neither model\.safetensors nor pytorch_model\.bin"):
        vectors(folder)


def test_float16_weights_are_widened_on_a_cpu_unless_the_precision_says_otherwise() -> None:
    assert load_file(DEMO / "model.safetensors")["embeddings.word_embeddings.weight"].dtype == torch.float16
    types = {}
    for precision in (Precision.FLOAT32, Precision.INT8, Precision.FLOAT16):
        network = load_embedder(DEMO, precision, CPU).encoder.network
        types[precision] = network.embeddings.word.weight.dtype
        assert network.embeddings.norm.weight.dtype == torch.float32
    assert types == {Precision.FLOAT32: torch.float32, Precision.INT8: torch.float32, Precision.FLOAT16: torch.float16}


def test_the_expected_keys_are_those_that_transformers_writes(original: Path) -> None:
    stored = load_file(original / "model.safetensors")
    assert stored_shapes(load_bert_config(original)) == {name: tuple(value.shape) for name, value in stored.items()}
    assert json.loads((original / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"] == 2
