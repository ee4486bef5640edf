"""DeepL's official client, and the requests it cannot make itself."""

from __future__ import annotations

from collections.abc import Callable

import deepl
import pytest
import requests
from deepl import http_client

from tests.support.server import Server

CHINESE = "打开文件。"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "max_network_retries", 0)


def client_of(server: Server, key: str = "any") -> deepl.DeepLClient:
    return deepl.DeepLClient(key, server_url=server.url, send_platform_info=False)


def test_a_text_is_translated_and_billed(server: Server) -> None:
    result = client_of(server).translate_text(CHINESE, target_lang="EN-US")
    assert result.text == server.ask("/translate", {"text": CHINESE})[1]["translation"]
    assert (result.detected_source_lang, result.billed_characters) == ("ZH", len(CHINESE))


def test_a_list_comes_back_in_order(server: Server) -> None:
    texts = [CHINESE, "", "Open the file, please."]
    results = client_of(server).translate_text(texts, target_lang="EN-GB")
    assert results[0].text == client_of(server).translate_text(CHINESE, source_lang="ZH", target_lang="EN-GB").text
    assert [result.text for result in results[1:]] == texts[1:]


@pytest.mark.parametrize("handling", ["html", "xml"])
def test_tags_are_kept(server: Server, handling: str) -> None:
    markup = "<p>打开<b>文件</b>。</p>"
    result = client_of(server).translate_text(markup, target_lang="EN-US", tag_handling=handling)
    assert result.text.startswith("<p>")
    assert result.text.endswith("</p>")
    assert result.text.count("<b>") == result.text.count("</b>") == 1


def test_options_that_change_nothing_here_are_accepted(server: Server) -> None:
    client_of(server).translate_text(
        CHINESE, source_lang="ZH", target_lang="EN-US", split_sentences="0", preserve_formatting=True,
        formality="prefer_more", context="a menu", model_type="quality_optimized",
    )  # fmt: skip


def test_languages_are_those_of_the_models(server: Server) -> None:
    client = client_of(server)
    assert {language.code for language in client.get_source_languages()} == {"ZH", "EN"}
    assert {language.code for language in client.get_target_languages()} == {
        "ZH", "ZH-HANS", "ZH-HANT", "EN-US", "EN-GB",
    }  # fmt: skip


def test_every_target_language_can_be_asked_for(server: Server) -> None:
    client = client_of(server)
    for language in client.get_target_languages():
        assert client.translate_text("OK 好", target_lang=language).text


def test_the_type_of_languages_may_stand_in_the_query(server: Server) -> None:
    assert len(requests.get(f"{server.url}/v2/languages?type=target", timeout=60).json()) == 5


def test_usage_has_no_limit_while_keys_are_off(server: Server) -> None:
    usage = client_of(server).get_usage()
    assert usage.character.count == 0
    assert not usage.any_limit_reached


def test_a_form_may_repeat_its_text(server: Server) -> None:
    fields = {"text": [CHINESE, "关闭文件。"], "target_lang": "EN", "show_billed_characters": "0"}
    answer = requests.post(f"{server.url}/v2/translate", data=fields, timeout=60).json()
    assert len(answer["translations"]) == 2
    assert set(answer["translations"][0]) == {"detected_source_language", "text"}


def test_a_wrong_key_is_an_authorization_error(locked: Server) -> None:
    client = client_of(locked, "wrong")
    for ask in (
        client.get_usage,
        client.get_source_languages,
        lambda: client.translate_text("好", target_lang="EN-US"),
    ):
        with pytest.raises(deepl.AuthorizationException, match="key"):
            ask()
    assert requests.get(f"{locked.url}/v2/usage", timeout=60).status_code == 403


def test_a_spent_quota_is_a_quota_error_and_usage_counts(locked: Server, add_key: Callable[..., str]) -> None:
    client = client_of(locked, add_key("deepl-quota", "--characters", "10"))
    client.translate_text("打开文件夹。", target_lang="EN-US")
    assert (client.get_usage().character.count, client.get_usage().character.limit) == (6, 10)
    with pytest.raises(deepl.QuotaExceededException):
        client.translate_text("打开文件夹。", target_lang="EN-US")
    assert client.get_usage().character.count == 6


def test_a_request_that_fails_is_not_billed(locked: Server, add_key: Callable[..., str]) -> None:
    client = client_of(locked, add_key("deepl-failures", "--characters", "10"))
    with pytest.raises(deepl.DeepLException, match="Bad request"):
        client.translate_text("打开文件", target_lang="KO")
    assert client.get_usage().character.count == 0


def test_too_many_requests_are_told_when_to_come_back(locked: Server, add_key: Callable[..., str]) -> None:
    key = add_key("deepl-rate", "--requests-per-minute", "1")
    headers = {"Authorization": f"DeepL-Auth-Key {key}"}
    first, second = (requests.get(f"{locked.url}/v2/usage", headers=headers, timeout=60) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 429)
    assert 50 <= int(second.headers["Retry-After"]) <= 60
    with pytest.raises(deepl.TooManyRequestsException):
        client_of(locked, key).get_usage()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"text": ["好"], "target_lang": "XX"}, 400),
        ({"text": ["好"]}, 400),
        ({"target_lang": "EN-US"}, 400),
        ({"text": [1], "target_lang": "EN-US"}, 400),
        ({"text": ["好"], "target_lang": "EN-US", "tag_handling": "pdf"}, 400),
        ({"text": ["好"], "target_lang": "EN-US", "glossary_id": "1"}, 400),
        ({"text": ["好"] * 2501, "target_lang": "EN-US"}, 413),
    ],
)
def test_what_is_wrong_is_told_in_a_message(server: Server, fields: dict[str, object], status: int) -> None:
    response = requests.post(f"{server.url}/v2/translate", json=fields, timeout=60)
    assert response.status_code == status
    assert set(response.json()) == {"message"}


def test_unknown_paths_methods_and_types_have_deepls_shape_too(server: Server) -> None:
    responses = [
        requests.get(f"{server.url}/v2/glossaries", timeout=60),
        requests.get(f"{server.url}/v2/translate", timeout=60),
        requests.post(f"{server.url}/v2/translate", data="nonsense", headers={"Content-Type": "text/csv"}, timeout=60),
        requests.post(f"{server.url}/v2/translate", data="{", timeout=60),
    ]
    assert [response.status_code for response in responses] == [404, 405, 415, 400]
    assert all(set(response.json()) == {"message"} for response in responses)
