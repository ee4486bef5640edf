"""The sizes of an encoder, from its `config.json`, and the longest text it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.core.errors import ModelError
from tandem.gte.files import module_dir, read_object

CONFIG_FILE = "config.json"
MAX_TOKENS = 512
_SENTENCE_FILE = "sentence_bert_config.json"
_GELU = {
    "gelu": "none", "gelu_python": "none",
    "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh",
}  # fmt: skip
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert"})


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """What serving an encoder needs to know of it.

    Attributes:
        model_type: "bert" runs on our own network, anything else through transformers.
        vocab_size: Token ids are below it.
        hidden_size: D, also the length of a vector.
        max_positions: Longest sequence the position embeddings allow, in tokens.
        pad_id: Token that fills the end of short rows.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    max_positions: int
    pad_id: int

    @property
    def is_bert(self) -> bool:
        """True when our own network computes it."""
        return self.model_type == "bert"


@dataclass(frozen=True, slots=True)
class BertConfig:
    """Sizes of a BERT encoder.

    Attributes:
        vocab_size: V.
        hidden_size: D.
        num_layers: Encoder layers.
        num_heads: H; divides D.
        filter_size: Inner size of the feed-forward layers.
        max_positions: Rows of the position table.
        type_vocab_size: Rows of the token type table; only row 0 is used.
        norm_eps: Added to the variance in the normalisations.
        gelu: "none" for the exact function, "tanh" for the approximation.
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    filter_size: int
    max_positions: int
    type_vocab_size: int = 2
    norm_eps: float = 1e-12
    gelu: str = "none"


def load_config(model_dir: Path) -> EncoderConfig:
    """Read what is common to all encoders.

    Raises:
        ModelError: The file is missing or damaged, or a size is not a positive number.
    """
    path = model_dir / CONFIG_FILE
    stored = read_object(path)
    model_type = str(stored.get("model_type", ""))
    if not model_type:
        raise ModelError(f"{path} has no model_type: it is not the configuration of an encoder")
    pad_id = stored.get("pad_token_id")
    pad_id = pad_id if isinstance(pad_id, int) and pad_id >= 0 else 0
    positions = _size(path, stored, "max_position_embeddings")
    return EncoderConfig(
        model_type=model_type,
        vocab_size=_size(path, stored, "vocab_size"),
        hidden_size=_size(path, stored, "hidden_size"),
        max_positions=positions - (pad_id + 1 if model_type in _OFFSET_POSITIONS else 0),
        pad_id=pad_id,
    )


def load_bert_config(model_dir: Path) -> BertConfig:
    """Read the sizes of a BERT encoder.

    Raises:
        ModelError: The file is missing or damaged, or asks for something this network does not compute.
    """
    path = model_dir / CONFIG_FILE
    stored = read_object(path)
    config = BertConfig(
        vocab_size=_size(path, stored, "vocab_size"),
        hidden_size=_size(path, stored, "hidden_size"),
        num_layers=_size(path, stored, "num_hidden_layers"),
        num_heads=_size(path, stored, "num_attention_heads"),
        filter_size=_size(path, stored, "intermediate_size"),
        max_positions=_size(path, stored, "max_position_embeddings"),
        type_vocab_size=_size(path, {"type_vocab_size": 2, **stored}, "type_vocab_size"),
        norm_eps=float(stored.get("layer_norm_eps", 1e-12)),
        gelu=_gelu(path, stored),
    )
    if config.hidden_size % config.num_heads:
        raise ModelError(f"{path}: hidden_size is not a multiple of num_attention_heads")
    _check_kind(path, stored)
    return config


def load_max_tokens(model_dir: Path, config: EncoderConfig) -> int:
    """Return the longest text in tokens, marks included: the least of 512, the positions and the stored limit.

    Raises:
        ModelError: The stored limit is not a positive number, or leaves no room between the marks.
    """
    path = module_dir(model_dir, "Transformer", "") / _SENTENCE_FILE
    stored = read_object(path).get("max_seq_length") if path.is_file() else None
    limits = [MAX_TOKENS, config.max_positions]
    if stored is not None:
        limits.append(_size(path, {"max_seq_length": stored}, "max_seq_length"))
    if min(limits) < 3:
        raise ModelError(f"{model_dir}: a text may have {min(limits)} tokens; the two marks leave no room")
    return min(limits)


def _size(path: Path, stored: dict[str, Any], name: str) -> int:
    value = stored.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelError(f"{path}: {name} is {value!r}, not a positive number")
    return value


def _gelu(path: Path, stored: dict[str, Any]) -> str:
    name = stored.get("hidden_act", "gelu")
    if name not in _GELU:
        raise ModelError(f"{path}: hidden_act is {name!r}; only {', '.join(_GELU)} are supported")
    return _GELU[name]


def _check_kind(path: Path, stored: dict[str, Any]) -> None:
    """Refuse what would silently compute something else."""
    expected = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
    for name, value in expected.items():
        if stored.get(name, value) != value:
            raise ModelError(f"{path}: {name} is {stored[name]!r}; only {value!r} is supported")
