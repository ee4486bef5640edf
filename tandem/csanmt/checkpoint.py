"""Weights of a CSANMT model, from the official checkpoint or from a converted directory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

from tandem.core.errors import ModelError
from tandem.csanmt.bundle import Bundle
from tandem.csanmt.configuration import OFFICIAL_FILE, CsanmtConfig, load_official_config
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.nn.skeleton import skeleton

CHECKPOINT_PREFIX = Path("tf_ckpts") / "ckpt-0"
WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"

# A module of ours -> the official graph's scope; matched against the path after the layer.
_ATTENTION = {
    "self_attention.qkv": "{side}_self_attention/qkv_transform",
    "self_attention.output": "{side}_self_attention/output_transform",
    "self_attention.relative_keys": "{side}_self_attention/rpr_k",
    "self_attention.relative_values": "{side}_self_attention/rpr_v",
    "cross_attention.query": "encdec_attention/q_transform",
    "cross_attention.key_value": "encdec_attention/kv_transform",
    "cross_attention.output": "encdec_attention/output_transform",
    "feed_forward.input": "ffn_layer/input_layer/linear",
    "feed_forward.output": "ffn_layer/output_layer/linear",
    "augmentation.input": "embedding_augmentation_layer/input_layer/linear",
    "augmentation.output": "embedding_augmentation_layer/output_layer/linear",
    "norm": "layer_norm",
    "pooling": "pooling_layer/linear",
    "input_bias": "encoder_input_bias",
}
_ENCODER_NORMS = {"self_attention_norm": "layer_norm", "feed_forward_norm": "layer_norm_1"}
_DECODER_NORMS = {
    "augmentation_norm": "layer_norm",
    "self_attention_norm": "layer_norm_1",
    "cross_attention_norm": "layer_norm_2",
    "feed_forward_norm": "layer_norm_3",
}
_STACKS = {"encoder": "encoder", "semantic_encoder": "mini_xlm_encoder", "decoder": "decoder"}


def official_name(name: str, config: CsanmtConfig) -> str:
    """Return the official graph's variable for a parameter of ours."""
    shared = config.shared_source_target_embedding
    embeddings = {
        "source_embedding.weight": "Shared_Embedding" if shared else "Source_Embedding",
        "target_embedding.weight": "Shared_Embedding" if shared else "Target_Embedding",
        "semantic_embedding.weight": "Shared_Semantic_Embedding" if shared else "Source_Semantic_Embedding",
    }
    if name in embeddings:
        return f"NmtModel/{embeddings[name]}/Weights"
    if name == "encoder.input_bias":
        return "NmtModel/encoder_input_bias"
    stack, rest = name.split(".", 1)
    layer = re.match(r"layers\.(\d+)\.", rest)
    scope = f"{_STACKS[stack]}/" + (f"layer_{layer[1]}/" if layer else "")
    module = rest[layer.end() :] if layer else rest
    leaf = ""
    if module not in _ATTENTION:
        module, leaf = module.rsplit(".", 1)
    side = "decoder" if stack == "decoder" else "encoder"
    scopes = {**_ATTENTION, **(_DECODER_NORMS if stack == "decoder" else _ENCODER_NORMS)}
    is_norm = module.endswith("norm")
    leaves = {
        "": "",
        "weight": "/layer_norm_scale" if is_norm else "/matrix",
        "bias": "/layer_norm_offset" if is_norm else "/bias",
    }
    if is_norm:
        leaf_path = leaves[leaf]
        return f"NmtModel/{scope}{scopes[module]}{leaf_path}"
    return f"NmtModel/{scope}{scopes[module].format(side=side)}{leaves[leaf]}"


def is_official(model_dir: Path) -> bool:
    """Say whether a directory is a ModelScope download, to be converted."""
    return (model_dir / OFFICIAL_FILE).is_file() and not (model_dir / CONFIG_FILE).is_file()


def load_config(model_dir: Path) -> CsanmtConfig:
    """Read the configuration of either layout.

    Raises:
        ModelError: The directory is neither layout, or a file is damaged.
    """
    if is_official(model_dir):
        return load_official_config(model_dir)
    path = model_dir / CONFIG_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored.get("model_type") != CsanmtConfig.model_type:
            raise ModelError(f"{path} is not of a CSANMT model: model_type is {stored.get('model_type')!r}")
        return CsanmtConfig.from_dict(stored)
    except FileNotFoundError:
        raise ModelError(f"{model_dir} holds neither {OFFICIAL_FILE} nor {CONFIG_FILE}: not a CSANMT model") from None
    except ValueError as error:
        raise ModelError(f"{path} is damaged: {error}") from None


def read_official(model_dir: Path, config: CsanmtConfig, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters of an official checkpoint one at a time, in our names and orientation.

    Optimiser slots and whatever else the file holds are never read.

    Raises:
        ModelError: A variable is missing, misshapen or damaged; the message names it and the file.
    """
    bundle = Bundle(model_dir / CHECKPOINT_PREFIX)
    for name, shape in parameter_shapes(config).items():
        variable = official_name(name, config)
        is_matrix = variable.endswith("/matrix")
        stored = bundle.read(variable)
        if stored.dtype.kind != "f" or stored.shape != (shape[::-1] if is_matrix else shape):
            raise ModelError(
                f"{bundle.index_path}: {variable} is {stored.dtype} {list(stored.shape)}, "
                f"but {OFFICIAL_FILE} asks for {list(shape[::-1] if is_matrix else shape)}"
            )
        oriented = stored.T if is_matrix else stored
        parameter = torch.empty(shape, dtype=dtype)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(oriented))  # straight from the mapped file
        yield name, parameter


def parameter_shapes(config: CsanmtConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter that is stored; tied ones stand once."""
    with skeleton():
        model = CsanmtForConditionalGeneration(config)
    return {name: tuple(value.shape) for name, value in model.state_dict().items() if name not in model.tied}


def load_model(model_dir: Path, dtype: torch.dtype = torch.float32) -> CsanmtForConditionalGeneration:
    """Load a model of either layout onto the CPU, ready for inference.

    Args:
        model_dir: A ModelScope directory or a converted one.
        dtype: Type of the weights in memory.

    Raises:
        ModelError: A file is missing or damaged, a parameter missing, unexpected or misshapen.
    """
    config = load_config(model_dir)
    if is_official(model_dir):
        state = dict(read_official(model_dir, config, dtype))
    else:
        state = _read_converted(model_dir / WEIGHTS_FILE, dtype)
    _check_state(model_dir, state, parameter_shapes(config))
    with skeleton():
        model = CsanmtForConditionalGeneration(config)
    model.load_state_dict(state, strict=False, assign=True)
    model.tie()
    return model.requires_grad_(False).eval()


def _read_converted(path: Path, dtype: torch.dtype) -> dict[str, Tensor]:
    try:
        return {name: value.to(dtype) for name, value in load_file(path).items()}
    except FileNotFoundError:
        raise ModelError(f"{path} is missing") from None
    except (safetensors.SafetensorError, OSError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def _check_state(model_dir: Path, state: dict[str, Tensor], shapes: dict[str, tuple[int, ...]]) -> None:
    if missing := sorted(shapes.keys() - state.keys()):
        raise ModelError(f"{model_dir}: the weights lack {', '.join(missing[:5])}")
    if unexpected := sorted(state.keys() - shapes.keys()):
        raise ModelError(f"{model_dir}: the weights hold the unexpected {', '.join(unexpected[:5])}")
    for name, shape in shapes.items():
        if tuple(state[name].shape) != shape:
            raise ModelError(f"{model_dir}: {name} has the shape {list(state[name].shape)}, not {list(shape)}")
