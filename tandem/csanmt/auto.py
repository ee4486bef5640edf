"""CSANMT as transformers has its models and tokenizers; slow to import, see `registration`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizer

from tandem.csanmt import modeling
from tandem.csanmt.checkpoint import load_config
from tandem.csanmt.hub_configuration import CsanmtHubConfig
from tandem.csanmt.modeling import EOS_ID
from tandem.csanmt.tokenizer import UNKNOWN, Tokenizer


class CsanmtForConditionalGeneration(modeling.CsanmtForConditionalGeneration, PreTrainedModel):
    """The network with what transformers' models can do besides: loading, saving, training."""

    config_class = CsanmtHubConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = False

    def __init__(self, config: CsanmtHubConfig) -> None:
        """Build the network with untrained weights."""
        PreTrainedModel.__init__(self, config)
        self._add_parts(config)
        self._tied_weights_keys = self.tied
        PreTrainedModel.post_init(self)

    def get_input_embeddings(self) -> nn.Module:
        """Return the source embedding."""
        return self.source_embedding

    def get_output_embeddings(self) -> nn.Module:
        """Return the vocabulary projection."""
        return self.output_projection


class CsanmtTokenizer(PreTrainedTokenizer):
    """The source side encodes, the target side decodes; each has its own vocabulary.

    Args:
        vocab_file: Path of the source vocabulary; `config.json`, the target vocabulary and the codes lie beside it.
    """

    vocab_files_names = {"vocab_file": "src_vocab.txt"}  # noqa: RUF012 - the base class's contract
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012
    padding_side = "right"

    def __init__(self, vocab_file: str, **kwargs: Any) -> None:
        """Read vocabularies and codes."""
        self._folder = Path(vocab_file).parent
        self._config = load_config(self._folder)
        self._tokenizer = Tokenizer(self._folder, self._config)
        defaults = {"pad_token": "</s>", "eos_token": "</s>", "unk_token": UNKNOWN, "special_tokens_pattern": "none"}
        super().__init__(**{**defaults, **kwargs})

    @property
    def vocab_size(self) -> int:
        """The source vocabulary's size, unknown subwords included."""
        return int(self._config.src_vocab_size)

    def get_vocab(self) -> dict[str, int]:
        """Return the source subwords and their ids."""
        return {**self._tokenizer.source_ids, UNKNOWN: self.vocab_size - 1}

    def tokenize(self, text: str, **_: Any) -> list[str]:
        """Split one sentence into source subwords."""
        return self._tokenizer.tokenize(text)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Copy vocabularies, codes and configuration; returns their new paths."""
        config, folder, prefix = self._config, Path(save_directory), filename_prefix or ""
        names = ("config.json", config.src_vocab_file, config.trg_vocab_file, config.src_bpe_file)
        if folder.resolve() != self._folder.resolve():
            for name in names:
                shutil.copyfile(self._folder / name, folder / (prefix + name))
        return tuple(str(folder / (prefix + name)) for name in names)

    def _convert_token_to_id(self, token: str) -> int:
        return self._tokenizer.source_id(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._tokenizer.target_token(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Return the text of target subwords."""
        return self._tokenizer.join_tokens(tokens)

    def _decode(self, token_ids: Any, skip_special_tokens: bool = False, **_: Any) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else [int(token_id) for token_id in token_ids]
        text = self._tokenizer.decode(ids)
        return text if skip_special_tokens or EOS_ID not in ids else f"{text}</s>"
