"""Reading official checkpoints, converting them, and saying what is wrong with a broken one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tandem.core.errors import ModelError
from tandem.csanmt.bundle import Bundle, write_bundle
from tandem.csanmt.checkpoint import load_config, load_model, official_name, parameter_shapes
from tandem.csanmt.convert import convert, main
from tests.conftest import ROOT
from tests.csanmt.support import FIXTURES, KINDS, fixture_model

MB = 1 << 20


def copy_of(kind: str, folder: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / kind, folder / kind))


def rewrite(model_dir: Path, **changes: object) -> None:
    """Write a directory's checkpoint again with other variables; None leaves one out."""
    bundle = Bundle(model_dir / "tf_ckpts" / "ckpt-0")
    tensors = {name: np.array(bundle.read(name)) for name in bundle.entries}
    for name, value in changes.items():
        if value is None:
            del tensors[name]
        else:
            tensors[name] = np.asarray(value)
    write_bundle(model_dir / "tf_ckpts" / "ckpt-0", tensors)


@pytest.mark.parametrize("kind", KINDS)
def test_every_variable_of_the_graph_is_read_and_nothing_else(kind: str) -> None:
    config = load_config(FIXTURES / kind)
    wanted = {official_name(name, config) for name in parameter_shapes(config)}
    stored = set(Bundle(FIXTURES / kind / "tf_ckpts" / "ckpt-0").entries)
    assert wanted <= stored
    assert {name for name in stored - wanted if not name.endswith("/Adam")} <= {
        "global_step",
        "NmtModel/Target_Semantic_Embedding/Weights",
    }


def test_a_written_bundle_reads_back_whole(tmp_path: Path) -> None:
    tensors = {
        "b/half": np.arange(6, dtype=np.float16).reshape(2, 3),
        "a/long": np.array(7, dtype=np.int64),
        "c/empty": np.zeros((0, 4), dtype=np.float32),
    }
    write_bundle(tmp_path / "ckpt-0", tensors)
    bundle = Bundle(tmp_path / "ckpt-0")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(bundle.read(name), tensor)


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    name = "NmtModel/decoder/layer_1/encdec_attention/q_transform/bias"
    rewrite(model_dir, **{name: None})
    with pytest.raises(ModelError, match=name):
        load_model(model_dir)


def test_a_misshapen_variable_is_named_with_both_shapes(tmp_path: Path) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    rewrite(model_dir, **{"NmtModel/encoder_input_bias": np.zeros(65, np.float32)})
    with pytest.raises(ModelError, match=r"encoder_input_bias is float32 \[65\].*asks for \[64\]"):
        load_model(model_dir)


def test_a_truncated_download_is_named(tmp_path: Path) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    data = model_dir / "tf_ckpts" / "ckpt-0.data-00000-of-00001"
    os.truncate(data, data.stat().st_size // 2)
    with pytest.raises(ModelError, match=r"data-00000-of-00001 ends at byte .* incomplete"):
        load_model(model_dir)


def test_a_flipped_bit_in_the_weights_is_found(tmp_path: Path) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    bundle = Bundle(model_dir / "tf_ckpts" / "ckpt-0")
    name = "NmtModel/encoder_input_bias"
    data = bytearray(bundle.data_path(0).read_bytes())
    data[bundle.entries[name].offset] ^= 1
    bundle.data_path(0).write_bytes(data)
    with pytest.raises(ModelError, match=f"checksum of {name}"):
        load_model(model_dir)


def test_a_damaged_optimiser_slot_does_not_matter(tmp_path: Path) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    bundle = Bundle(model_dir / "tf_ckpts" / "ckpt-0")
    slot = next(name for name in bundle.entries if name.endswith("/Adam"))
    data = bytearray(bundle.data_path(0).read_bytes())
    data[bundle.entries[slot].offset] ^= 1
    bundle.data_path(0).write_bytes(data)
    assert load_model(model_dir).config.hidden_size == 64


@pytest.mark.parametrize("keep", [0, 20, 200])
def test_a_damaged_index_is_named(tmp_path: Path, keep: int) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    index = model_dir / "tf_ckpts" / "ckpt-0.index"
    index.write_bytes(index.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"ckpt-0\.index is not a readable"):
        load_model(model_dir)


@pytest.mark.parametrize("missing", ["tf_ckpts/ckpt-0.index", "tf_ckpts/ckpt-0.data-00000-of-00001"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    (model_dir / missing).unlink()
    with pytest.raises(ModelError, match=Path(missing).name + " is missing"):
        load_model(model_dir)


@pytest.mark.parametrize(
    ("section", "name", "value", "message"),
    [
        ("model", "hidden_size", None, "lacks the entry 'hidden_size'"),
        ("model", "layer_postproc", "layer_norm", "layer_postproc is 'layer_norm'"),
        ("model", "shared_embedding_and_softmax_weights", False, "shared_embedding_and_softmax_weights"),
        ("model", "position_info_type", "rotary", "position_info_type is 'rotary'"),
        ("model", "num_heads", 7, "not a multiple"),
        ("model", "num_heads", "many", "is damaged"),
    ],
)
def test_an_impossible_configuration_says_what_is_wrong(
    tmp_path: Path, section: str, name: str, value: object, message: str
) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    path = model_dir / "configuration.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    if value is None:
        del stored[section][name]
    else:
        stored[section][name] = value
    path.write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        load_model(model_dir)


def test_a_folder_that_is_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a CSANMT model"):
        load_model(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_model_has_the_same_weights(tmp_path: Path, kind: str) -> None:
    source = FIXTURES / kind
    for name in ("src_vocab.txt", "trg_vocab.txt", "bpe.zh"):  # the tiny fixtures have no vocabularies
        copy_of(kind, tmp_path) if not (tmp_path / kind).exists() else None
        (tmp_path / kind / name).write_text("#version: 0.2\n", encoding="utf-8")
    convert(tmp_path / kind, tmp_path / "out", progress=False)
    converted, official = load_model(tmp_path / "out"), fixture_model(kind)
    ours, theirs = converted.config.to_dict(), official.config.to_dict()
    assert {name for name in ours if ours[name] != theirs.get(name)} <= {"dtype", "architectures"}
    for name, value in official.state_dict().items():
        assert torch.equal(converted.state_dict()[name], value), (source, name)
    stored = load_file(tmp_path / "out" / "model.safetensors")
    assert ("source_embedding.weight" in stored) == (kind == "abs_unshared")
    assert "output_projection.weight" not in stored


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_stored_type_is_the_one_asked_for(tmp_path: Path, dtype: str) -> None:
    assert main([str(ROOT / "models" / "demo-zh2en"), str(tmp_path), "--dtype", dtype]) == 0
    stored = load_file(tmp_path / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {getattr(torch, dtype)}
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == dtype


def test_a_weight_that_does_not_fit_the_type_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model_dir = copy_of("abs_shared", tmp_path)
    rewrite(model_dir, **{"NmtModel/encoder_input_bias": np.full(64, 1e6, np.float32)})
    assert main([str(model_dir), str(tmp_path / "out"), "--dtype", "float16"]) == 1
    assert "encoder.input_bias does not fit into torch.float16" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["missing", "unexpected", "misshapen", "cut"])
def test_broken_converted_weights_are_named(tmp_path: Path, change: str) -> None:
    convert(ROOT / "models" / "demo-zh2en", tmp_path, progress=False)
    path = tmp_path / "model.safetensors"
    state = load_file(path)
    if change == "missing":
        del state["decoder.norm.weight"]
    if change == "unexpected":
        state["decoder.extra"] = torch.zeros(1)
    if change == "misshapen":
        state["decoder.norm.weight"] = torch.zeros(3)
    save_file(state, path)
    if change == "cut":
        os.truncate(path, 1000)
    words = {
        "missing": r"lack decoder\.norm\.weight",
        "unexpected": r"unexpected decoder\.extra",
        "misshapen": r"decoder\.norm\.weight has the shape \[3\]",
        "cut": r"model\.safetensors is damaged",
    }
    with pytest.raises(ModelError, match=words[change]):
        load_model(tmp_path)


def test_conversion_needs_no_more_than_the_result_and_500_mb(tmp_path: Path) -> None:
    """A checkpoint of 12 times the result's size, as the optimiser's slots make it."""
    model_dir = copy_of("abs_unshared", tmp_path)
    for name in ("src_vocab.txt", "trg_vocab.txt", "bpe.zh"):
        (model_dir / name).write_text("#version: 0.2\n", encoding="utf-8")
    path = model_dir / "configuration.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    vocabulary, size = 600_000, 64
    stored["model"]["src_vocab_size"] = vocabulary
    path.write_text(json.dumps(stored), encoding="utf-8")
    weights = np.ones((vocabulary, size), np.float32)
    large = {"NmtModel/Source_Embedding/Weights": weights, "NmtModel/Source_Semantic_Embedding/Weights": weights}
    rewrite(model_dir, **large, **{f"{name}/Adam_{i}": weights for name in large for i in range(5)})
    out = tmp_path / "out"
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.workers.measured_convert", str(model_dir), str(out)],
        capture_output=True, check=True, cwd=ROOT,
    )  # fmt: skip
    result = (out / "model.safetensors").stat().st_size
    assert result > 290 * MB
    assert int(ran.stdout) <= result + 500 * MB
