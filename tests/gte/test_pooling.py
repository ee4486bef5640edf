from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tandem.core.errors import ModelError
from tandem.gte.pooling import Pooling, PoolingMode, load_pooling
from tests.gte.support import DEMO, write_json

TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}


def test_a_directory_that_says_nothing_takes_cls_and_unit_length(tmp_path: Path) -> None:
    assert load_pooling(tmp_path) == Pooling(PoolingMode.CLS, normalise=True)


def test_the_demo_model_takes_cls_and_unit_length() -> None:
    assert load_pooling(DEMO) == Pooling(PoolingMode.CLS, normalise=True)


@pytest.mark.parametrize("stored", [MEAN, {"pooling_mode": "mean"}, {"pooling_mode": ["mean"]}])
def test_mean_pooling_is_read_in_the_old_and_in_the_new_spelling(tmp_path: Path, stored: dict[str, object]) -> None:
    write_json(tmp_path / "modules.json", [TRANSFORMER, POOLING])
    write_json(tmp_path / "1_Pooling" / "config.json", stored)
    assert load_pooling(tmp_path) == Pooling(PoolingMode.MEAN, normalise=False)


def test_a_pooling_folder_without_modules_is_followed(tmp_path: Path) -> None:
    write_json(tmp_path / "1_Pooling" / "config.json", MEAN)
    assert load_pooling(tmp_path) == Pooling(PoolingMode.MEAN, normalise=True)


def test_modules_are_known_by_their_class_wherever_the_package_has_it(tmp_path: Path) -> None:
    moved = {"path": "pool", "type": "sentence_transformers.sentence_transformer.modules.pooling.Pooling"}
    write_json(tmp_path / "modules.json", [TRANSFORMER, moved, NORMALIZE])
    write_json(tmp_path / "pool" / "config.json", {"pooling_mode": "mean"})
    assert load_pooling(tmp_path) == Pooling(PoolingMode.MEAN, normalise=True)


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        ({"pooling_mode": "max"}, "max"),
        ({"pooling_mode_max_tokens": True}, "max_tokens"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "cls, mean"),
        ({"pooling_mode_cls_token": False}, "none"),
    ],
)
def test_an_unsupported_pooling_is_named(tmp_path: Path, stored: dict[str, object], named: str) -> None:
    write_json(tmp_path / "1_Pooling" / "config.json", stored)
    with pytest.raises(ModelError, match=f"the pooling is {named}; only cls or mean"):
        load_pooling(tmp_path)


def test_an_unsupported_module_is_named(tmp_path: Path) -> None:
    dense = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    write_json(tmp_path / "modules.json", [TRANSFORMER, POOLING, dense])
    with pytest.raises(ModelError, match="Dense"):
        load_pooling(tmp_path)


def test_a_pooling_module_without_its_file_is_an_error(tmp_path: Path) -> None:
    write_json(tmp_path / "modules.json", [TRANSFORMER, POOLING])
    with pytest.raises(ModelError, match=r"1_Pooling/config\.json is missing"):
        load_pooling(tmp_path)


@pytest.mark.parametrize("damaged", [{"path": ""}, ["Transformer"]])
def test_damaged_modules_are_named(tmp_path: Path, damaged: object) -> None:
    write_json(tmp_path / "modules.json", damaged)
    with pytest.raises(ModelError, match=r"modules\.json is damaged"):
        load_pooling(tmp_path)


def test_the_mean_leaves_padding_out_even_where_it_is_infinite() -> None:
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [torch.inf, torch.nan]]])
    mask = torch.tensor([[True, True, False]])
    assert Pooling(PoolingMode.MEAN, normalise=False).pool(hidden, mask).tolist() == [[2.0, 3.0]]


def test_the_mean_without_a_mask_is_that_of_all_positions() -> None:
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert Pooling(PoolingMode.MEAN, normalise=False).pool(hidden, None).tolist() == [[2.0, 3.0]]


def test_half_precision_states_become_a_float32_vector_of_unit_length() -> None:
    vector = Pooling().pool(torch.full((1, 3, 7), 300.0, dtype=torch.float16), None)
    assert vector.dtype == torch.float32
    assert vector.norm().item() == pytest.approx(1, abs=1e-6)
