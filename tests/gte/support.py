"""Shared by the embedder's tests: tiny model directories, and the reference implementations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModel, BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

from tandem.core.types import Item, Priority
from tandem.gte.embedder import Embedder, load_embedder
from tandem.gte.encoder import Vector
from tandem.gte.engine import EmbeddingEngine, Result
from tandem.nn.precision import Precision
from tests.conftest import GOLDEN, MODELS

CPU = torch.device("cpu")
DEMO = MODELS / "demo-gte"
TINY = {
    "vocab_size": 11000, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64,
}  # fmt: skip


@lru_cache(8)
def demo(precision: Precision = Precision.FLOAT32) -> Embedder:
    return load_embedder(DEMO, precision, CPU)


@lru_cache(1)
def reference_texts() -> tuple[str, ...]:
    return tuple((GOLDEN / "gte" / "reference.txt").read_text(encoding="utf-8").splitlines())


@lru_cache(1)
def reference_vectors() -> Vector:
    vectors: Vector = np.load(GOLDEN / "gte" / "reference.npy")
    return vectors


def make_bert(folder: Path, **sizes: object) -> Path:
    """Write a BERT with random weights of unusual size, and the demo's tokenizer."""
    torch.manual_seed(7)
    model = BertModel(BertConfig(**{**TINY, **sizes}), add_pooling_layer=False)
    randomise(model)
    model.save_pretrained(folder)
    shutil.copy(DEMO / "tokenizer.json", folder)
    return folder


def make_xlm_roberta(folder: Path) -> Path:
    """Write an XLM-RoBERTa with random weights and a sentencepiece vocabulary trained here, without tokenizer.json."""
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(reference_texts()[:45] * 3), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "sentencepiece.bpe"), vocab_size=300, character_coverage=1.0,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    corpus.unlink()
    torch.manual_seed(7)
    sizes = {**TINY, "vocab_size": 400, "max_position_embeddings": 42}
    model = XLMRobertaModel(XLMRobertaConfig(**sizes), add_pooling_layer=False)
    randomise(model)
    model.save_pretrained(folder)
    return folder


def randomise(model: torch.nn.Module) -> None:
    """Give biases and normalisations values, too: fresh ones are 0 and 1, which hides mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Path:
    path = folder / "model.safetensors"
    changed = {name: value.contiguous() for name, value in change(load_file(path)).items()}
    path.unlink()  # the old file stays mapped where a model uses it
    save_file(changed, path)
    return folder


def change_config(folder: Path, **entries: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | entries), encoding="utf-8")
    return folder


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def hidden_states(folder: Path, ids: Sequence[int]) -> Tensor:
    """The slow obvious version: one text at a time through transformers in float32, [S, D]."""
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    with torch.inference_mode():
        hidden: Tensor = model(input_ids=torch.tensor([list(ids)])).last_hidden_state[0]
    return hidden


def unit(vector: Tensor) -> Vector:
    return (vector / vector.norm()).numpy()


def random_texts(lengths: Sequence[int], vocab_size: int, seed: int = 0) -> list[tuple[int, ...]]:
    generator = np.random.default_rng(seed)
    return [tuple(int(i) for i in generator.integers(4, vocab_size, length)) for length in lengths]


def run(engine: EmbeddingEngine, items: Sequence[Item]) -> list[Result]:
    done = {id(finished.item): finished for finished in engine.admit(items)}
    while engine.live():
        for finished in engine.step(Priority.BULK):
            done[id(finished.item)] = finished
    return [done[id(item)] for item in items]


def vectors_of(results: Sequence[Result]) -> Vector:
    assert [finished.error for finished in results] == [None] * len(results)
    return np.stack([finished.result for finished in results if finished.result is not None])


def cosines(left: Vector, right: Vector) -> Vector:
    norms = np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1)
    cosine: Vector = (left * right).sum(-1) / norms
    return cosine
