"""The configuration of a CSANMT model, from the official file or from a converted directory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from tandem.core.errors import ModelError

OFFICIAL_FILE = "configuration.json"
_SIZES = (
    "hidden_size", "filter_size", "num_heads", "num_encoder_layers", "num_decoder_layers",
    "num_semantic_encoder_layers", "max_relative_dis", "src_vocab_size", "trg_vocab_size",
)  # fmt: skip


@dataclass
class CsanmtConfig:
    """Sizes and decoding defaults of a CSANMT model; the names are the official file's.

    `tandem.csanmt.auto` makes a configuration of transformers of it, which is slow to import.

    Attributes:
        position_info_type: "absolute" (timing signal) or "relative", in encoder and decoder.
        max_relative_dis: m, the largest relative distance told apart.
        beam_size: K, hypotheses kept.
        lp_rate: Exponent of the length penalty.
        max_decoded_trg_len: Output limit in tokens, the end mark included.
        src_lang: Source language, "zh", "en", ...
        tgt_lang: Target language.
        src_bpe_file: Name of the file with the source's BPE codes.
    """

    model_type: ClassVar[str] = "csanmt"

    hidden_size: int = 1024
    filter_size: int = 4096
    num_heads: int = 16
    num_encoder_layers: int = 24
    num_decoder_layers: int = 6
    num_semantic_encoder_layers: int = 4
    max_relative_dis: int = 16
    position_info_type: str = "absolute"
    shared_source_target_embedding: bool = True
    src_vocab_size: int = 50000
    trg_vocab_size: int = 50000
    beam_size: int = 4
    lp_rate: float = 0.6
    max_decoded_trg_len: int = 100
    src_lang: str = "zh"
    tgt_lang: str = "en"
    src_bpe_file: str = "bpe.zh"
    src_vocab_file: str = "src_vocab.txt"
    trg_vocab_file: str = "trg_vocab.txt"

    @property
    def is_relative(self) -> bool:
        """True when encoder and decoder use relative positions instead of the timing signal."""
        return self.position_info_type == "relative"

    def to_dict(self) -> dict[str, Any]:
        """Return what `config.json` holds."""
        return {"model_type": self.model_type, **asdict(self)}

    @staticmethod
    def from_dict(stored: dict[str, Any]) -> CsanmtConfig:
        """Make a configuration of what `config.json` holds; entries that transformers added are passed over."""
        names = {field.name for field in fields(CsanmtConfig)}
        return CsanmtConfig(**{name: value for name, value in stored.items() if name in names})


def load_official_config(model_dir: Path) -> CsanmtConfig:
    """Read `configuration.json` of a ModelScope directory.

    Raises:
        ModelError: The file is missing or damaged, lacks a size, or the model is of a kind that was never released.
    """
    path = model_dir / OFFICIAL_FILE
    try:
        official = json.loads(path.read_text(encoding="utf-8"))
        model = official["model"]
        wanted: dict[str, Any] = {name: int(model[name]) for name in _SIZES}
        evaluation = {**model, **official.get("evaluation", {})}
        wanted |= {
            "beam_size": int(evaluation["beam_size"]),
            "lp_rate": float(evaluation["lp_rate"]),
            "max_decoded_trg_len": int(evaluation["max_decoded_trg_len"]),
            "position_info_type": model.get("position_info_type", "absolute"),
            "shared_source_target_embedding": bool(model["shared_source_target_embedding"]),
            "src_lang": official["preprocessor"]["src_lang"],
            "tgt_lang": official["preprocessor"]["tgt_lang"],
            "src_bpe_file": official["preprocessor"]["src_bpe"]["file"],
            "src_vocab_file": official["dataset"]["src_vocab"]["file"],
            "trg_vocab_file": official["dataset"]["trg_vocab"]["file"],
        }
    except FileNotFoundError:
        raise ModelError(f"{path} is missing: this is not a CSANMT model directory") from None
    except KeyError as error:
        raise ModelError(f"{path} lacks the entry {error}") from None
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path} is damaged: {error}") from None
    _check_kind(path, model, wanted)
    return CsanmtConfig(**wanted)


def _check_kind(path: Path, model: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse what no released model uses, instead of computing something else."""
    expected = {
        "layer_preproc": "layer_norm", "layer_postproc": "none", "shared_embedding_and_softmax_weights": True,
    }  # fmt: skip
    for name, value in expected.items():
        if model.get(name, value) != value:
            raise ModelError(f"{path}: {name} is {model[name]!r}; only {value!r} is supported")
    if wanted["position_info_type"] not in ("absolute", "relative"):
        raise ModelError(f"{path}: position_info_type is {wanted['position_info_type']!r}, not absolute or relative")
    if wanted["hidden_size"] % wanted["num_heads"]:
        raise ModelError(f"{path}: hidden_size is not a multiple of num_heads")
