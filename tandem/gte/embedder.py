"""An embedding model loaded whole: tokenizer, encoder, and the engine made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from tandem.core.fingerprint import compute_fingerprint
from tandem.gte.checkpoint import load_bert
from tandem.gte.configuration import EncoderConfig, load_bert_config, load_config, load_max_tokens
from tandem.gte.encoder import Encoder
from tandem.gte.engine import EmbedderLimits, EmbeddingEngine
from tandem.gte.grouping import PADDING_SHARE
from tandem.gte.pooling import Pooling, load_pooling
from tandem.gte.tokenizer import TextTokenizer, load_tokenizer
from tandem.nn.precision import Precision, check_precision

_BATCH_TOKENS_CPU = 2048
_BATCH_TOKENS_CUDA = 32768


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model ready to serve.

    Attributes:
        tokenizer: Texts -> token ids.
        encoder: Token ids -> vectors.
        pooling: How vectors are made of hidden states.
        vocab_size: Token ids are below it.
        dimension: D, the length of a vector.
        fingerprint: Of files, precision, pooling and limit; see `compute_fingerprint`.
        precise: Makes a float32 twin; None when `encoder` is float32.
    """

    tokenizer: TextTokenizer
    encoder: Encoder
    pooling: Pooling
    vocab_size: int
    dimension: int
    fingerprint: str
    precise: Callable[[], Encoder] | None

    @property
    def max_tokens(self) -> int:
        """Longest text in tokens, marks included."""
        return self.tokenizer.max_tokens

    @property
    def precision(self) -> Precision:
        """What the encoder computes in."""
        return self.encoder.precision

    @property
    def device(self) -> torch.device:
        """Where the encoder lies."""
        return self.encoder.device

    def engine(self, limits: EmbedderLimits | None = None) -> EmbeddingEngine:
        """Make an engine; None takes limits that suit the device."""
        return EmbeddingEngine(
            self.encoder, vocab_size=self.vocab_size, limits=limits or self.limits(), precise=self.precise
        )

    def limits(self) -> EmbedderLimits:
        """Return limits that suit the device; a step on a CPU stays short."""
        tokens = _BATCH_TOKENS_CUDA if self.device.type == "cuda" else _BATCH_TOKENS_CPU
        return EmbedderLimits(tokens=tokens, text_tokens=self.max_tokens)

    def warm_up(self, limits: EmbedderLimits | None = None) -> None:
        """Run once what the first request would otherwise wait for; on CUDA the largest shape, to claim its memory."""
        tokens = (limits or self.limits()).tokens if self.device.type == "cuda" else self.max_tokens
        longest = (0,) * self.max_tokens
        self.encoder.vectors([longest] * max(tokens // self.max_tokens, 1))
        self.encoder.vectors([longest[:3]])


def load_embedder(model_dir: Path, precision: Precision, device: torch.device) -> Embedder:
    """Load a model directory of either layout.

    Args:
        model_dir: With `config.json`, weights and a vocabulary.
        precision: Of the matrix products.
        device: Where it runs.

    Raises:
        ModelError: A file is missing or damaged, or asks for what is not supported; the message names it.
        SettingsError: The device cannot compute in this precision.
    """
    check_precision(precision, device)
    config, pooling = load_config(model_dir), load_pooling(model_dir)
    max_tokens = load_max_tokens(model_dir, config)
    build = partial(load_encoder, model_dir, config, pooling, device=device)
    is_precise = precision is Precision.FLOAT32
    encoder = build(precision)  # before the tokenizer: an architecture that is not supported is the better message
    return Embedder(
        tokenizer=load_tokenizer(model_dir, max_tokens),
        encoder=encoder,
        pooling=pooling,
        vocab_size=config.vocab_size,
        dimension=config.hidden_size,
        fingerprint=compute_fingerprint(
            model_dir, _files(model_dir), precision, pooling.mode, str(pooling.normalise), str(max_tokens)
        ),
        precise=None if is_precise else partial(build, Precision.FLOAT32),
    )


def _files(model_dir: Path) -> list[Path]:
    """Return the files that decide vectors: configurations, vocabularies, weights."""
    patterns = ("*.json", "1_Pooling/*.json", "*.txt", "*.model", "*.safetensors", "*.bin")
    return sorted(path for pattern in patterns for path in model_dir.glob(pattern))


def load_encoder(
    model_dir: Path, config: EncoderConfig, pooling: Pooling, precision: Precision, *, device: torch.device
) -> Encoder:
    """Load the network alone: our own for BERT, transformers' for anything else.

    Raises:
        ModelError: The weights are missing, damaged or of another shape.
    """
    is_packed = config.is_bert and device.type == "cpu"
    return Encoder(
        network=load_bert(model_dir, load_bert_config(model_dir), pooling, precision, device)
        if config.is_bert
        else _load_transformers(model_dir, pooling, precision, device),
        precision=precision,
        device=device,
        pad_id=config.pad_id,
        # Our network on a CPU pays nothing for many small groups, so it runs without any padding.
        padding_share=0.0 if is_packed else PADDING_SHARE,
    )


def _load_transformers(model_dir: Path, pooling: Pooling, precision: Precision, device: torch.device) -> nn.Module:
    from tandem.gte.fallback import load_transformers  # slow to import, and rarely needed

    return load_transformers(model_dir, pooling, precision, device)
