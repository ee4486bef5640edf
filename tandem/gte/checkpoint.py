"""Weights of a BERT encoder, in the names of transformers, into our network."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

from tandem.core.errors import ModelError
from tandem.gte.configuration import BertConfig
from tandem.gte.modeling import BertEmbedder
from tandem.gte.pooling import Pooling
from tandem.nn.device import place
from tandem.nn.linear import pack_linears
from tandem.nn.precision import Precision
from tandem.nn.skeleton import skeleton

SAFETENSORS_FILE = "model.safetensors"
PICKLE_FILE = "pytorch_model.bin"
_PREFIXES = ("", "bert.", "encoder.")
_WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
_IGNORED = re.compile(r"(bert\.|encoder\.)?(pooler\..*|embeddings\.position_ids)")
_NAMED_AT_MOST = 5

# A linear layer or normalisation of ours -> its scope in a stored layer; "qkv" is made of three.
_LAYER_SCOPES = {
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward_input": "intermediate.dense",
    "feed_forward_output": "output.dense",
    "norm": "output.LayerNorm",
}
_QKV_SCOPES = ("attention.self.query", "attention.self.key", "attention.self.value")


def find_weights(model_dir: Path) -> Path:
    """Return the file with the weights; safetensors where both are there.

    Raises:
        ModelError: Neither is there.
    """
    for name in (SAFETENSORS_FILE, PICKLE_FILE):
        if (model_dir / name).is_file():
            return model_dir / name
    raise ModelError(f"{model_dir} holds neither {SAFETENSORS_FILE} nor {PICKLE_FILE}")


def load_bert(
    model_dir: Path, config: BertConfig, pooling: Pooling, precision: Precision, device: torch.device
) -> BertEmbedder:
    """Load, convert and place a BERT encoder, ready for inference.

    Args:
        model_dir: The directory with the weights.
        config: Its sizes.
        pooling: How a vector is made.
        precision: Of the matrix products. Stored types do not matter: float16 is widened for float32 and int8.
        device: Where it runs.

    Raises:
        ModelError: The file is missing or damaged, a key missing, unexpected or misshapen; the message names it.
    """
    path = find_weights(model_dir)
    stored = _canonical(path, _read(path))
    _check(path, stored, stored_shapes(config))
    with skeleton():
        model = BertEmbedder(config, pooling)
    model.load_state_dict(dict(_convert(stored, config, precision.dtype)), assign=True)
    model.requires_grad_(False).eval()
    pack_linears(model, precision, device)
    return place(model, device)


def stored_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of every key a checkpoint must hold, without a prefix."""
    size, inner = config.hidden_size, config.filter_size
    shapes: dict[str, tuple[int, ...]] = {
        _WORD_EMBEDDINGS: (config.vocab_size, size),
        "embeddings.position_embeddings.weight": (config.max_positions, size),
        "embeddings.token_type_embeddings.weight": (config.type_vocab_size, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    square = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    matrices = {
        **dict.fromkeys(square, (size, size)),
        "intermediate.dense": (inner, size),
        "output.dense": (size, inner),
    }
    for number in range(config.num_layers):
        scope = f"encoder.layer.{number}."
        for name, shape in matrices.items():
            shapes |= {f"{scope}{name}.weight": shape, f"{scope}{name}.bias": shape[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{scope}{name}.weight": (size,), f"{scope}{name}.bias": (size,)}
    return shapes


def _read(path: Path) -> dict[str, Tensor]:
    """Map a file into memory; tensors are read when they are converted."""
    try:
        if path.name == SAFETENSORS_FILE:
            return load_file(path)
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (safetensors.SafetensorError, pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{path} is damaged or incomplete: {reason}") from error
    if not isinstance(stored, dict) or not all(isinstance(value, Tensor) for value in stored.values()):
        raise ModelError(f"{path} holds something other than named tensors")
    return dict(stored)


def _canonical(path: Path, stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Drop what is never used and take off the prefix; keys without it stay as they are, to be named as unexpected."""
    prefix = next((prefix for prefix in _PREFIXES if prefix + _WORD_EMBEDDINGS in stored), None)
    if prefix is None:
        raise ModelError(f"{path}: the weights lack {_WORD_EMBEDDINGS}")
    canonical: dict[str, Tensor] = {}
    for name, value in stored.items():
        if _IGNORED.fullmatch(name):
            continue
        if not name.startswith(prefix):
            raise ModelError(f"{path}: the weights hold the unexpected {name}")
        canonical[name.removeprefix(prefix)] = value
    return canonical


def _check(path: Path, stored: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    if missing := sorted(shapes.keys() - stored.keys()):
        raise ModelError(f"{path}: the weights lack {', '.join(missing[:_NAMED_AT_MOST])}")
    if unexpected := sorted(stored.keys() - shapes.keys()):
        raise ModelError(f"{path}: the weights hold the unexpected {', '.join(unexpected[:_NAMED_AT_MOST])}")
    for name, shape in shapes.items():
        if tuple(stored[name].shape) != shape:
            raise ModelError(f"{path}: {name} has the shape {list(stored[name].shape)}, not {list(shape)}")
        if not stored[name].is_floating_point():
            raise ModelError(f"{path}: {name} is {stored[name].dtype}, not a floating-point type")


def _convert(stored: Mapping[str, Tensor], config: BertConfig, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Yield our parameters: matrices in `dtype`, normalisations and positions in float32."""
    yield "embeddings.word.weight", stored[_WORD_EMBEDDINGS].to(dtype)
    positions = stored["embeddings.position_embeddings.weight"].float()
    yield "embeddings.position.weight", positions + stored["embeddings.token_type_embeddings.weight"][0].float()
    for leaf in ("weight", "bias"):
        yield f"embeddings.norm.{leaf}", stored[f"embeddings.LayerNorm.{leaf}"].float()
        for number in range(config.num_layers):
            ours, theirs = f"layers.{number}", f"encoder.layer.{number}"
            qkv = [stored[f"{theirs}.{scope}.{leaf}"].to(dtype) for scope in _QKV_SCOPES]
            yield f"{ours}.qkv.{leaf}", torch.cat(qkv)
            for name, scope in _LAYER_SCOPES.items():
                value = stored[f"{theirs}.{scope}.{leaf}"]
                yield f"{ours}.{name}.{leaf}", value.to(torch.float32 if name.endswith("norm") else dtype)
