"""CSANMT's configuration as transformers has its own: by itself, since transformers imports it before its models."""

from __future__ import annotations

from transformers import PretrainedConfig

from tandem.csanmt.configuration import CsanmtConfig


class CsanmtHubConfig(PretrainedConfig, CsanmtConfig):
    """The configuration with what transformers' ones can do besides."""

    model_type = CsanmtConfig.model_type
    attribute_map = {  # noqa: RUF012 - the base class's contract
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_decoder_layers",
        "vocab_size": "trg_vocab_size",
    }

    is_encoder_decoder: bool = True
    pad_token_id: int | None = 0
    eos_token_id: int | None = 0
    decoder_start_token_id: int | None = 0
    tie_word_embeddings: bool = True
