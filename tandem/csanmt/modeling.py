"""The CSANMT network: encoder, semantic encoder and decoder with continuous semantic augmentation.

Tensor letters: B segments, S source positions, T target positions, K beam, H heads, D hidden, V vocabulary.

Source: Wei et al. 2022, "Learning to Generalize to More: Continuous Semantic Augmentation for Neural Machine
Translation", and the official TensorFlow graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tandem.csanmt.configuration import CsanmtConfig
from tandem.nn.attention import RelativePositions, attend, join_heads, relative_index, split_heads
from tandem.nn.fusion import linear_add, linear_relu
from tandem.nn.normalization import LayerNorm
from tandem.nn.precision import half_autocast

if TYPE_CHECKING:
    from transformers.modeling_outputs import Seq2SeqLMOutput

EOS_ID = 0
_NORM_EPS = 1e-6

SelfAttend = Callable[[Tensor, Tensor, Tensor], Tensor]
CrossAttend = Callable[[Tensor], Tensor]
Watch = Callable[[Tensor, Tensor, Tensor], None]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the decoder needs of a source batch.

    Attributes:
        states: Encoder output, float [B, S, D].
        mask: True on the subwords and the end mark of each sentence, bool [B, S].
        semantic: One vector a sentence, float [B, 1, D].
    """

    states: Tensor
    mask: Tensor
    semantic: Tensor


def timing_signal(positions: Tensor, size: int) -> Tensor:
    """Return the sinusoids of positions, [...] -> [..., size]: first half sin, second half cos.

    Source: Vaswani et al. 2017, section 3.5, in the layout of the official graph.
    """
    half = size // 2
    steps = torch.arange(half, device=positions.device, dtype=torch.float32)
    inverse = torch.exp(steps * (-math.log(10000.0) / max(half - 1, 1)))
    angles = positions.float()[..., None] * inverse
    return torch.cat((angles.sin(), angles.cos()), -1)


def open_mask(mask: Tensor) -> Tensor:
    """Turn a bool mask into 0 where True and -inf where False, float32, to be added to attention logits."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, -math.inf)


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them."""

    def __init__(self, size: int, inner: int) -> None:
        """Build the layers: size -> inner -> size."""
        super().__init__()
        self.input = nn.Linear(size, inner)
        self.output = nn.Linear(inner, size)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        out: Tensor = self.output(linear_relu(self.input, x))
        return out

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return residual + forward(x), [..., D] in the residual's type."""
        return linear_add(self.output, linear_relu(self.input, x), residual)


class SelfAttention(nn.Module):
    """The projections of a self attention and, when positions are relative, its tables."""

    def __init__(self, config: CsanmtConfig, *, relative: bool) -> None:
        """Build one fused projection for queries, keys and values."""
        super().__init__()
        size, heads = config.hidden_size, config.num_heads
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)
        if relative:
            rows = 2 * config.max_relative_dis + 1
            self.relative_keys = nn.Parameter(torch.zeros(rows, size // heads))
            self.relative_values = nn.Parameter(torch.zeros(rows, size // heads))

    def forward(self, x: Tensor, residual: Tensor, attend_to: SelfAttend) -> Tensor:
        """Project, attend by `attend_to(query, key, value)` on [B, H, T, D/H] tensors, project back, add."""
        # [B, T, 3D] -> three of [B, H, T, D/H]
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        return linear_add(self.output, join_heads(attend_to(query, key, value)), residual)

    def relative_positions(self, index: Tensor | None) -> RelativePositions | None:
        """Return this layer's tables with the given index, or None where there is no index."""
        return None if index is None else RelativePositions(self.relative_keys, self.relative_values, index)


class CrossAttention(nn.Module):
    """The projections of the attention over the source."""

    def __init__(self, config: CsanmtConfig) -> None:
        """Build the projections; keys and values share one."""
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_heads
        self.query = nn.Linear(size, size)
        self.key_value = nn.Linear(size, 2 * size)
        self.output = nn.Linear(size, size)

    def forward(self, x: Tensor, residual: Tensor, attend_to: CrossAttend) -> Tensor:
        """Project the queries, attend by `attend_to(query)` on [B, H, T, D/H], project back, add."""
        return linear_add(self.output, join_heads(attend_to(split_heads(self.query(x), self.heads))), residual)

    def keys_and_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Project the encoder output once a sentence, [B, S, D] -> two of [B, H, S, D/H]."""
        key, value = (split_heads(part, self.heads) for part in self.key_value(states).chunk(2, -1))
        return key, value


class EncoderLayer(nn.Module):
    """Self attention and feed-forward, both pre-norm."""

    def __init__(self, config: CsanmtConfig, *, relative: bool) -> None:
        """Build the layer."""
        super().__init__()
        self.self_attention_norm = LayerNorm(config.hidden_size, eps=_NORM_EPS)
        self.self_attention = SelfAttention(config, relative=relative)
        self.feed_forward_norm = LayerNorm(config.hidden_size, eps=_NORM_EPS)
        self.feed_forward = FeedForward(config.hidden_size, config.filter_size)

    def forward(self, x: Tensor, open_keys: Tensor, index: Tensor | None) -> Tensor:
        """[B, S, D] -> [B, S, D]; `open_keys` as the mask of `attend`, `index` of relative positions or None."""
        relative = self.self_attention.relative_positions(index)
        x = self.self_attention(
            self.self_attention_norm(x), x, lambda query, key, value: attend(query, key, value, open_keys, relative)
        )
        return self.feed_forward.add_to(x, self.feed_forward_norm(x))


class Encoder(nn.Module):
    """The source encoder."""

    def __init__(self, config: CsanmtConfig) -> None:
        """Build the layers."""
        super().__init__()
        self.config = config
        self.input_bias = nn.Parameter(torch.zeros(config.hidden_size))
        self.layers = nn.ModuleList(
            EncoderLayer(config, relative=config.is_relative) for _ in range(config.num_encoder_layers)
        )
        self.norm = LayerNorm(config.hidden_size, eps=_NORM_EPS)

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Encode scaled embeddings, [B, S, D] and bool [B, S] -> [B, S, D]."""
        positions = torch.arange(mask.shape[1], device=mask.device)
        index = None
        if self.config.is_relative:
            index = relative_index(positions, positions, self.config.max_relative_dis)
        else:
            embedded = embedded + timing_signal(positions, self.config.hidden_size)
        real, open_keys = mask[..., None].float(), open_mask(mask)[:, None, None]
        x = embedded * real + self.input_bias
        for layer in self.layers:
            x = layer(x, open_keys, index) * real
        out: Tensor = self.norm(x)
        return out


class SemanticEncoder(nn.Module):
    """The encoder whose pooled vector stands for the sentence's meaning ("mini_xlm_encoder" in the official graph)."""

    def __init__(self, config: CsanmtConfig) -> None:
        """Build the layers; their positions are always relative."""
        super().__init__()
        self.limit = config.max_relative_dis
        self.layers = nn.ModuleList(
            EncoderLayer(config, relative=True) for _ in range(config.num_semantic_encoder_layers)
        )
        self.pooling = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = LayerNorm(config.hidden_size, eps=_NORM_EPS)

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Encode and pool scaled embeddings, [B, S, D] and bool [B, S] -> [B, 1, D]."""
        positions = torch.arange(mask.shape[1], device=mask.device)
        index = relative_index(positions, positions, self.limit)
        real, open_keys = mask[..., None].float(), open_mask(mask)[:, None, None]
        x = embedded * real
        for layer in self.layers:
            x = layer(x, open_keys, index) * real
        mean = (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        out: Tensor = self.norm(self.pooling(mean))
        return out


class DecoderLayer(nn.Module):
    """Semantic augmentation, self attention, attention over the source, feed-forward; all pre-norm."""

    def __init__(self, config: CsanmtConfig) -> None:
        """Build the layer."""
        super().__init__()
        size = config.hidden_size
        self.augmentation_norm = LayerNorm(size, eps=_NORM_EPS)
        self.augmentation = FeedForward(size, size)
        self.self_attention_norm = LayerNorm(size, eps=_NORM_EPS)
        self.self_attention = SelfAttention(config, relative=config.is_relative)
        self.cross_attention_norm = LayerNorm(size, eps=_NORM_EPS)
        self.cross_attention = CrossAttention(config)
        self.feed_forward_norm = LayerNorm(size, eps=_NORM_EPS)
        self.feed_forward = FeedForward(size, config.filter_size)

    def augment(self, semantic: Tensor) -> Tensor:
        """Return the term added to this layer's input, [B, 1, D] -> [B, 1, D]; constant for a sentence."""
        out: Tensor = self.augmentation(self.augmentation_norm(semantic))
        return out

    def forward(self, x: Tensor, augmentation: Tensor, attend_self: SelfAttend, attend_source: CrossAttend) -> Tensor:
        """[B, T, D] -> [B, T, D]; what is attended to, and where keys and values are kept, is the caller's."""
        x = x + augmentation
        x = self.self_attention(self.self_attention_norm(x), x, attend_self)
        x = self.cross_attention(self.cross_attention_norm(x), x, attend_source)
        return self.feed_forward.add_to(x, self.feed_forward_norm(x))


class Decoder(nn.Module):
    """The target decoder; its output is normalised and ready for the vocabulary projection."""

    def __init__(self, config: CsanmtConfig) -> None:
        """Build the layers."""
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.norm = LayerNorm(config.hidden_size, eps=_NORM_EPS)

    @property
    def stack(self) -> list[DecoderLayer]:
        """The layers, typed."""
        return cast(list[DecoderLayer], list(self.layers))

    def embed(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """Add what absolute positions add to scaled embeddings, [..., D] and int64 [...] -> [..., D]."""
        if self.config.is_relative:
            return embedded
        return embedded + timing_signal(positions, self.config.hidden_size)

    def forward(self, embedded: Tensor, encoded: Encoded, watch: Watch | None = None) -> Tensor:
        """Decode whole target sentences at once, as in training: [B, T, D] -> [B, T, D].

        Args:
            embedded: Scaled embeddings of the tokens before each position, [B, T, D]; zeros at position 0.
            encoded: The source.
            watch: Is shown each layer's queries, keys and mask of the attention over the source; see `attend`.
        """
        positions = torch.arange(embedded.shape[1], device=embedded.device)
        x = self.embed(embedded, positions)
        earlier = open_mask(positions[None, :] <= positions[:, None])
        source = open_mask(encoded.mask)[:, None, None]
        index = None
        if self.config.is_relative:
            index = relative_index(positions, positions, self.config.max_relative_dis)
        for layer in self.stack:
            x = _decode_layer(layer, x, encoded, (earlier, source, index), watch)
        out: Tensor = self.norm(x)
        return out


def _decode_layer(
    layer: DecoderLayer, x: Tensor, encoded: Encoded, masks: tuple[Tensor, Tensor, Tensor | None], watch: Watch | None
) -> Tensor:
    earlier, source, index = masks
    relative = layer.self_attention.relative_positions(index)
    source_key, source_value = layer.cross_attention.keys_and_values(encoded.states)

    def attend_source(query: Tensor) -> Tensor:
        if watch is not None:
            watch(query, source_key, source)
        return attend(query, source_key, source_value, source)

    out: Tensor = layer(
        x,
        layer.augment(encoded.semantic),
        lambda query, key, value: attend(query, key, value, earlier, relative),
        attend_source,
    )
    return out


class CsanmtForConditionalGeneration(nn.Module):
    """The whole network; `tandem.csanmt.auto` makes a transformers model of it, which is slow to import.

    `input_ids` carry no end mark (the model adds its own column) and 0 is padding; labels end with 0 and -100 is
    ignored. Weights that the configuration shares are one parameter.
    """

    def __init__(self, config: CsanmtConfig) -> None:
        """Build the network with untrained weights."""
        super().__init__()
        self.config = config
        self._add_parts(config)
        self.tie()

    def _add_parts(self, config: CsanmtConfig) -> None:
        self.source_embedding = nn.Embedding(config.src_vocab_size, config.hidden_size)
        self.target_embedding = nn.Embedding(config.trg_vocab_size, config.hidden_size)
        self.semantic_embedding = nn.Embedding(config.src_vocab_size, config.hidden_size)
        self.encoder = Encoder(config)
        self.semantic_encoder = SemanticEncoder(config)
        self.decoder = Decoder(config)
        self.output_projection = nn.Linear(config.hidden_size, config.trg_vocab_size, bias=False)

    @property
    def tied(self) -> dict[str, str]:
        """Parameters that are another one: name -> the name it is stored under."""
        shared = ["source_embedding.weight"] if self.config.shared_source_target_embedding else []
        return dict.fromkeys(["output_projection.weight", *shared], "target_embedding.weight")

    def tie(self) -> None:
        """Make tied parameters one, as after loading them."""
        for name, stored in self.tied.items():
            module, leaf = name.rsplit(".", 1)
            setattr(self.get_submodule(module), leaf, self.get_parameter(stored))

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.source_embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return self.source_embedding.weight.dtype

    def encode(self, input_ids: Tensor) -> Encoded:
        """Encode padded source sentences.

        Args:
            input_ids: int64 [B, S-1], 0 is padding, no end marks.

        Returns:
            The encoder output with the end mark's column added, its mask and the semantic vectors.
        """
        real = F.pad(input_ids != EOS_ID, (1, 0), value=True)
        ids = F.pad(input_ids, (0, 1), value=EOS_ID)
        states = self.encoder(self._embed(self.source_embedding, ids), real)
        semantic = self.semantic_encoder(self._embed(self.semantic_embedding, ids), real)
        return Encoded(states, real, semantic)

    def embed_target(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed the tokens before each position, int64 [...] -> float32 [..., D]; position 0 has the zero vector."""
        embedded = self._embed(self.target_embedding, ids) * (positions > 0)[..., None]
        return self.decoder.embed(embedded, positions)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None, **_: Any) -> Seq2SeqLMOutput:
        """Return the logits of a target sentence and, as `loss`, their cross-entropy against it.

        Args:
            input_ids: Source, int64 [B, S], 0 is padding.
            labels: Target with an end mark, int64 [B, T]; -100 is ignored. Without it the loss is None and T is 1.
            _: Whatever else a training loop passes; not needed.

        Returns:
            `logits` [B, T, V] and `loss`, the mean over the labels that count.
        """
        with half_autocast(self.dtype, input_ids.device):
            return self._teach(input_ids, labels)

    def _teach(self, input_ids: Tensor, labels: Tensor | None) -> Seq2SeqLMOutput:
        from transformers.modeling_outputs import Seq2SeqLMOutput  # slow to import, and only training needs it

        encoded = self.encode(input_ids)
        targets = input_ids.new_zeros(len(input_ids), 1) if labels is None else labels
        previous = F.pad(targets.clamp_min(0)[:, :-1], (1, 0))
        embedded = self._embed(self.target_embedding, previous)
        embedded = F.pad(embedded[:, 1:], (0, 0, 1, 0))  # position 0 has the zero vector
        logits = self.output_projection(self.decoder(embedded, encoded)).float()
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=encoded.states)

    def generate(
        self,
        input_ids: Tensor,
        *,
        num_beams: int | None = None,
        max_length: int | None = None,
        length_penalty: float | None = None,
        num_return_sequences: int = 1,
        **_: Any,
    ) -> Tensor:
        """Translate padded source sentences by beam search, as transformers' `generate` would.

        Args:
            input_ids: int64 [B, S], 0 is padding, no end marks.
            num_beams: Hypotheses kept; the configuration's `beam_size` by default.
            max_length: Output limit in tokens, the end mark included; `max_decoded_trg_len` by default.
            length_penalty: Exponent of the length penalty; `lp_rate` by default.
            num_return_sequences: Translations wanted of each row, best first.
            _: Options of other searches (`early_stopping`, `attention_mask`, ...): this one always stops a row as soon
                as its best translation is certain, and finds the mask in the padding.

        Returns:
            int64 [B * num_return_sequences, T], ended and padded with 0.
        """
        from tandem.csanmt.generation import generate
        from tandem.csanmt.live import DecodingOptions  # these two build on this module

        options = DecodingOptions(
            num_beams or self.config.beam_size,
            self.config.lp_rate if length_penalty is None else length_penalty,
            max_length or self.config.max_decoded_trg_len,
        )
        return generate(self, input_ids, options, num_return_sequences)

    def _embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        out: Tensor = embedding(ids).float() * self.config.hidden_size**0.5
        return out
