from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
import torch

from tandem.core.errors import ModelError
from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision
from tests.conftest import ROOT
from tests.gte.support import CPU, DEMO, change_weights, demo, make_bert, write_json


def test_a_loaded_model_says_what_it_is() -> None:
    embedder = demo()
    assert (embedder.dimension, embedder.max_tokens, embedder.vocab_size) == (256, 512, 11000)
    assert (embedder.precision, embedder.device, embedder.precise) == (Precision.FLOAT32, CPU, None)
    assert demo(Precision.INT8).precise is not None


def test_warming_up_leaves_the_vectors_as_they_are() -> None:
    embedder = demo()
    before = embedder.encoder.vectors([(2, 50, 3)])
    embedder.warm_up()
    assert (embedder.encoder.vectors([(2, 50, 3)]) == before).all()


def test_the_fingerprint_is_the_same_every_time_and_in_every_place(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(DEMO, tmp_path / "elsewhere"))
    assert load_embedder(copy, Precision.FLOAT32, CPU).fingerprint == demo().fingerprint


def test_the_fingerprint_tells_precisions_apart() -> None:
    assert len({demo(precision).fingerprint for precision in Precision}) == len(Precision)


def test_the_fingerprint_changes_with_weights_vocabulary_pooling_and_limit(tmp_path: Path) -> None:
    folder = make_bert(tmp_path)
    seen = [load_embedder(folder, Precision.FLOAT32, CPU).fingerprint]

    def note() -> None:
        seen.append(load_embedder(folder, Precision.FLOAT32, CPU).fingerprint)

    change_weights(folder, lambda state: {name: value + 1e-3 for name, value in state.items()})
    note()
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "mean"})
    note()
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 50})
    note()
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8").replace("长", "長"), encoding="utf-8")
    note()
    assert len(set(seen)) == 5


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        load_embedder(tmp_path / "nowhere", Precision.FLOAT32, torch.device("cpu"))


def test_the_package_imports_nothing_beside_or_above_it() -> None:
    allowed = ("tandem.core", "tandem.nn", "tandem.gte")
    for path in (ROOT / "tandem" / "gte").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith("tandem") or name.startswith(allowed), f"{path}: {name}"
                assert name.split(".")[0] not in {"flask", "redis", "os"}, f"{path}: {name}"
