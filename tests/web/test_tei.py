"""Text Embeddings Inference: huggingface_hub's client, and exact requests."""

from __future__ import annotations

import numpy as np
import pytest
import requests
from huggingface_hub import InferenceClient, constants
from huggingface_hub.errors import HfHubHTTPError

from tests.support.server import Server

TEXTS = ["打开文件。", "今天天气很好。"]
LONG = "好" * 600


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client ask a server at all: the tests run with the hub switched off."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


def embed(server: Server, **fields: object) -> np.ndarray:
    status, answer = server.ask("/embed", fields)
    assert status == 200
    return np.array(answer, dtype=np.float32)


def test_the_client_gets_vectors_of_length_one(server: Server) -> None:
    client = InferenceClient(model=server.url)
    [vector] = client.feature_extraction(TEXTS[0])
    np.testing.assert_allclose(np.linalg.norm(vector), 1, rtol=1e-5)
    np.testing.assert_allclose(vector, embed(server, inputs=TEXTS[0])[0], atol=1e-6)
    assert client.feature_extraction(TEXTS, normalize=True, truncate=True).shape == (2, len(vector))


def test_the_client_hears_of_a_text_that_must_not_be_cut(server: Server) -> None:
    with pytest.raises(HfHubHTTPError) as caught:
        InferenceClient(model=server.url).feature_extraction(LONG, truncate=False)
    assert caught.value.response.status_code == 413


def test_a_single_text_gives_a_list_of_one_vector(server: Server) -> None:
    assert embed(server, inputs=TEXTS[0]).shape[0] == 1
    np.testing.assert_array_equal(embed(server, inputs=TEXTS)[0], embed(server, inputs=TEXTS[0])[0])


def test_texts_are_cut_unless_that_is_refused(server: Server) -> None:
    response = requests.post(f"{server.url}/embed", json={"inputs": ["好", LONG]}, timeout=60)
    assert response.headers["X-Truncated"] == "1"
    status, answer = server.ask("/embed", {"inputs": ["好", LONG], "truncate": False})
    assert (status, answer["error_type"]) == (413, "Validation")
    assert "inputs[1]" in answer["error"]
    assert "512" in answer["error"]
    assert embed(server, inputs=["好"], truncate=False).shape[0] == 1


def test_similarity_is_the_cosine(server: Server) -> None:
    status, answer = server.ask("/similarity", {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}})
    one, other = embed(server, inputs=TEXTS)
    assert status == 200
    np.testing.assert_allclose(answer, [1, one @ other], atol=1e-5)


def test_tokens_name_their_places(server: Server) -> None:
    status, [tokens] = server.ask("/tokenize", {"inputs": "你好 World"})
    assert status == 200
    assert [token["text"] for token in tokens] == ["[CLS]", "你", "好", "World", "[SEP]"]
    assert [token["special"] for token in tokens] == [True, False, False, False, True]
    assert [(token["start"], token["stop"]) for token in tokens] == [
        (None, None), (0, 1), (1, 2), (3, 8), (None, None),
    ]  # fmt: skip
    bare = server.ask("/tokenize", {"inputs": ["你好 World"], "add_special_tokens": False})[1]
    assert bare == [tokens[1:-1]]


def test_tokens_of_a_text_over_the_limit_are_all_there(server: Server) -> None:
    assert len(server.ask("/tokenize", {"inputs": LONG})[1][0]) == 602


def test_info_describes_the_model(server: Server) -> None:
    status, info = server.ask("/info")
    assert status == 200
    assert (info["max_input_length"], info["model_type"]) == (512, {"embedding": {"pooling": "cls"}})


def test_classification_is_refused(server: Server) -> None:
    status, answer = server.ask("/predict", {"inputs": "好"})
    assert status == 422
    assert "classifier" in answer["error"]


@pytest.mark.parametrize("path", ["/", "/embed", "/similarity", "/tokenize"])
@pytest.mark.parametrize("fields", [{}, {"inputs": []}, {"inputs": 1}, {"inputs": [1]}, {"inputs": None}])
def test_what_is_wrong_is_told_in_its_own_shape(server: Server, path: str, fields: dict[str, object]) -> None:
    status, answer = server.ask(path, fields)
    assert status == 400
    assert set(answer) == {"error", "error_type"}


def test_a_key_is_asked_for(locked: Server, key: str) -> None:
    assert InferenceClient(model=locked.url, token=key).feature_extraction("好").shape[0] == 1
    status, answer = locked.ask("/embed", {"inputs": "好"})
    assert (status, answer["error_type"]) == (401, "Validation")
    assert locked.ask("/info")[0] == 401
