"""OpenAI's official client, langchain's, and the requests neither makes."""

from __future__ import annotations

import base64
from collections.abc import Callable

import numpy as np
import openai
import pytest
import requests
import tiktoken
from langchain_openai import OpenAIEmbeddings

from tests.support.server import Server

TEXTS = ["打开文件。", "今天天气很好。"]
# The ids of these characters in cl100k_base, the tokenizer that langchain takes for OpenAI's models.
FOREIGN_IDS = {"你": 57668, "好": 53901}


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def native(server: Server, texts: list[str]) -> np.ndarray:
    answer = server.ask("/predict", {"task_type": "embedding", "input_text": texts})[1]
    return np.array([result["embedding"] for result in answer["result"]], dtype=np.float32)


def embed(client: openai.OpenAI, contents: object, **options: object) -> np.ndarray:
    answer = client.embeddings.create(model="text-embedding-3-small", input=contents, **options)
    assert [item.index for item in answer.data] == list(range(len(answer.data)))
    return np.array([item.embedding for item in answer.data], dtype=np.float32)


@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}])
def test_a_list_gives_the_native_vectors(server: Server, client: openai.OpenAI, options: dict[str, str]) -> None:
    np.testing.assert_array_equal(embed(client, TEXTS, **options), native(server, TEXTS))


def test_base64_holds_little_endian_float32(server: Server) -> None:
    _, answer = server.ask("/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"})
    vector = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), "<f4")
    np.testing.assert_array_equal(vector, native(server, TEXTS[:1])[0])


def test_dimensions_cut_and_normalise_again(server: Server, client: openai.OpenAI) -> None:
    [vector] = embed(client, TEXTS[0], dimensions=16)
    whole = native(server, TEXTS[:1])[0]
    assert len(vector) == 16
    np.testing.assert_allclose(vector, whole[:16] / np.linalg.norm(whole[:16]), rtol=1e-5)


def test_our_own_token_ids_give_the_vector_of_their_text(server: Server, client: openai.OpenAI) -> None:
    spelt = server.ask("/tokenize", {"inputs": TEXTS})[1]
    with_marks = [[token["id"] for token in tokens] for tokens in spelt]
    without = [ids[1:-1] for ids in with_marks]
    for ids in (with_marks, without):
        np.testing.assert_allclose(embed(client, ids), native(server, TEXTS), atol=1e-6)
    np.testing.assert_allclose(embed(client, without[0]), native(server, TEXTS[:1]), atol=1e-6)


def test_usage_counts_tokens_with_their_marks(server: Server, client: openai.OpenAI) -> None:
    usage = client.embeddings.create(model="any", input="你好").usage
    assert usage.prompt_tokens == usage.total_tokens == 4


def test_the_real_model_is_named_whatever_was_asked_for(client: openai.OpenAI) -> None:
    [model] = client.models.list().data
    assert client.embeddings.create(model="nonsense", input="好").model == model.id
    assert client.models.retrieve(model.id).id == model.id
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nonsense")


def test_a_text_over_the_limit_is_marked(server: Server) -> None:
    response = requests.post(f"{server.url}/v1/embeddings", json={"input": ["好", "好" * 600]}, timeout=60)
    assert [item.get("truncated") for item in response.json()["data"]] == [None, True]
    assert response.headers["X-Truncated"] == "1"


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"input": ""}, "input", "input[0]"),
        ({"input": ["好", ""]}, "input", "input[1]"),
        ({"input": []}, "input", "empty"),
        ({"input": [[]]}, "input", "input[0]"),
        ({"input": [True]}, "input", "token ids"),
        ({"input": {"text": "好"}}, "input", "token ids"),
        ({"input": [["好"]]}, "input", "token ids"),
        ({}, "input", "required"),
        ({"input": "好", "dimensions": 0}, "dimensions", "greater"),
        ({"input": "好", "dimensions": 100_000}, "dimensions", "at most"),
        ({"input": "好", "encoding_format": "int8"}, "encoding_format", "base64"),
        ({"input": [10**9]}, None, "langchain"),
        ({"input": [-1]}, None, "langchain"),
    ],
)
def test_what_is_wrong_is_400_in_openais_shape(
    server: Server, fields: dict[str, object], param: str | None, words: str
) -> None:
    status, answer = server.ask("/v1/embeddings", {"model": "any", **fields})
    assert status == 400
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert (answer["error"]["type"], answer["error"]["param"]) == ("invalid_request_error", param)
    assert words in answer["error"]["message"]


def test_unknown_paths_and_methods_have_openais_shape_too(server: Server) -> None:
    for response in (
        requests.post(f"{server.url}/v1/chat/completions", json={}, timeout=60),
        requests.get(f"{server.url}/v1/embeddings", timeout=60),
    ):
        assert response.status_code in (404, 405)
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_langchain_embeds_when_it_sends_texts(server: Server) -> None:
    embeddings = OpenAIEmbeddings(base_url=f"{server.url}/v1", api_key="any", check_embedding_ctx_length=False)
    np.testing.assert_allclose(embeddings.embed_documents(TEXTS), native(server, TEXTS), atol=1e-6)
    np.testing.assert_allclose(embeddings.embed_query(TEXTS[0]), native(server, TEXTS[:1])[0], atol=1e-6)


def test_langchains_default_gets_the_400_that_explains(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {text.encode(): rank for text, rank in FOREIGN_IDS.items()}
    encoding = tiktoken.Encoding("cl100k_base", pat_str=".", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda name: encoding)
    embeddings = OpenAIEmbeddings(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
        embeddings.embed_documents(["你好"])


def test_ids_inside_the_vocabulary_that_no_text_gives_are_foreign_too(server: Server) -> None:
    tokens = server.ask("/tokenize", {"inputs": "打开这个文件。"})[1][0]
    pieces = server.ask("/tokenize", {"inputs": "unbelievablyoverengineered"})[1][0][2:-1]
    scrambled = [token["id"] for token in (*pieces, *tokens[1:3], *pieces)]
    status, answer = server.ask("/v1/embeddings", {"input": scrambled})
    assert status == 400
    assert "another tokenizer" in answer["error"]["message"]


def test_a_wrong_key_and_a_spent_quota_are_the_clients_errors(locked: Server, add_key: Callable[..., str]) -> None:
    wrong = openai.OpenAI(base_url=f"{locked.url}/v1", api_key="wrong", max_retries=0)
    for ask in (wrong.models.list, lambda: wrong.embeddings.create(model="any", input="好")):
        with pytest.raises(openai.AuthenticationError):
            ask()
    key = add_key("openai-quota", "--characters", "3")
    client = openai.OpenAI(base_url=f"{locked.url}/v1", api_key=key, max_retries=0)
    client.embeddings.create(model="any", input="你好")
    with pytest.raises(openai.RateLimitError) as caught:
        client.embeddings.create(model="any", input="你好")
    assert caught.value.code == "insufficient_quota"
