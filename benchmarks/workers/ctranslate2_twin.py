"""CTranslate2 on the same weights, as a plain pre-norm Transformer, token ids in and out.

Our encoder's input bias goes into its position encodings, and the zero vector at the first target position is an
option of CTranslate2, so the twin is exact.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from safetensors.numpy import load_file

from benchmarks.protocol import serve

_POSITIONS = 512
_SPECIAL = ("<unk>", "<s>")  # the last two ids, which no sentence uses
_END = "</s>"

Weights = dict[str, Any]


def _build() -> dict[str, Callable[..., Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path, help="in our layout: config.json and model.safetensors")
    parser.add_argument("out", type=Path, help="where CTranslate2's model is, or is made")
    parser.add_argument("compute_type")
    parser.add_argument("threads", type=int)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    config = json.loads((arguments.model / "config.json").read_text(encoding="utf-8"))
    if not (arguments.out / "config.json").is_file():
        _convert(arguments.model, arguments.out, config)
    translator = ctranslate2.Translator(
        str(arguments.out), device=arguments.device, compute_type=arguments.compute_type,
        intra_threads=arguments.threads,
    )  # fmt: skip
    return _commands(translator, vocabulary(config["trg_vocab_size"]), config)


def _commands(translator: Any, tokens: list[str], config: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    ids = {token: number for number, token in enumerate(tokens)}
    length = config["max_decoded_trg_len"]

    def translate(sources: list[list[int]]) -> Any:
        return translator.translate_batch(
            [[*(tokens[number] for number in source), _END] for source in sources], max_batch_size=0,
            beam_size=config["beam_size"], min_decoding_length=length, max_decoding_length=length, return_scores=True,
        )  # fmt: skip

    def run(sources: list[list[int]]) -> int:
        return sum(len([ids[token] for token in best.hypotheses[0]]) for best in translate(sources))

    def search(sources: list[list[int]]) -> list[tuple[list[int], float]]:
        """Return the best target of each source and its log-prob; CTranslate2 divides it by the length."""
        return [([ids[token] for token in best.hypotheses[0]], best.scores[0] * length) for best in translate(sources)]

    def score(sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """Return the log-probs of given targets, end mark included."""
        found = translator.score_batch(
            [[*(tokens[number] for number in source), _END] for source in sources],
            [[tokens[number] for number in target] for target in targets],
        )
        return [list(result.log_probs) for result in found]

    return {"run": run, "search": search, "score": score}


def vocabulary(size: int) -> list[str]:
    """Return a made-up vocabulary whose id 0 is the end mark."""
    return [_END, *(f"t{number}" for number in range(1, size - len(_SPECIAL))), *_SPECIAL]


def _convert(model: Path, out: Path, config: dict[str, Any]) -> None:
    weights = load_file(model / "model.safetensors")
    layers = config["num_encoder_layers"], config["num_decoder_layers"]
    spec = TransformerSpec.from_config(layers, config["num_heads"], pre_norm=True)
    encodings = timing_signal(_POSITIONS, config["hidden_size"])
    spec.encoder.position_encodings.encodings = encodings + weights["encoder.input_bias"]
    spec.decoder.position_encodings.encodings = encodings
    spec.decoder.start_from_zero_embedding = True
    spec.encoder.embeddings[0].weight = weights["source_embedding.weight"]
    spec.decoder.embeddings.weight = weights["target_embedding.weight"]
    spec.decoder.projection.weight = weights["target_embedding.weight"]
    _fill_stack(spec.encoder, weights, "encoder")
    _fill_stack(spec.decoder, weights, "decoder")
    spec.config.layer_norm_epsilon = 1e-6
    spec.register_source_vocabulary(vocabulary(config["src_vocab_size"]))
    spec.register_target_vocabulary(vocabulary(config["trg_vocab_size"]))
    spec.validate()
    spec.optimize()
    out.mkdir(parents=True, exist_ok=True)
    spec.save(str(out))


def timing_signal(count: int, size: int) -> Any:
    """Return the sinusoids of the official graph, float32 [count, size]: first half sin, second half cos."""
    half = size // 2
    inverse = np.exp(np.arange(half, dtype=np.float32) * np.float32(-np.log(10000.0) / (half - 1)))
    angles = np.arange(count, dtype=np.float32)[:, None] * inverse
    return np.concatenate((np.sin(angles), np.cos(angles)), 1)


def _fill_stack(spec: Any, weights: Weights, name: str) -> None:
    _fill_norm(spec.layer_norm, weights, f"{name}.norm")
    for number, layer in enumerate(spec.layer):
        scope = f"{name}.layers.{number}"
        _fill_norm(layer.self_attention.layer_norm, weights, f"{scope}.self_attention_norm")
        _fill_linears(layer.self_attention.linear, weights, f"{scope}.self_attention", ("qkv", "output"))
        if name == "decoder":
            _fill_norm(layer.attention.layer_norm, weights, f"{scope}.cross_attention_norm")
            _fill_linears(layer.attention.linear, weights, f"{scope}.cross_attention", ("query", "key_value", "output"))
        _fill_norm(layer.ffn.layer_norm, weights, f"{scope}.feed_forward_norm")
        linears = (layer.ffn.linear_0, layer.ffn.linear_1)
        _fill_linears(linears, weights, f"{scope}.feed_forward", ("input", "output"))


def _fill_linears(specs: Any, weights: Weights, scope: str, names: tuple[str, ...]) -> None:
    for spec, name in zip(specs, names, strict=True):
        spec.weight = weights[f"{scope}.{name}.weight"]
        spec.bias = weights[f"{scope}.{name}.bias"]


def _fill_norm(spec: Any, weights: Weights, scope: str) -> None:
    spec.gamma = weights[f"{scope}.weight"]
    spec.beta = weights[f"{scope}.bias"]


if __name__ == "__main__":
    serve(_build)
