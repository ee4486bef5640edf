"""LibreTranslate's clients: libretranslatepy, forms, JSON."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable

import pytest
import requests
from libretranslatepy import LibreTranslateAPI

from tests.support.server import Server

CHINESE = "打开文件。"


@pytest.fixture
def client(server: Server) -> LibreTranslateAPI:
    return LibreTranslateAPI(server.url)


def translate(server: Server, **fields: object) -> requests.Response:
    return requests.post(f"{server.url}/translate", json=fields, timeout=60)


def test_the_client_translates_as_the_native_route_does(server: Server, client: LibreTranslateAPI) -> None:
    native = server.ask("/translate", {"text": CHINESE, "source": "zh", "target": "en"})[1]["translation"]
    assert client.translate(CHINESE, "zh", "en") == native


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zh_CN", "zh-Hans", "ZH", "zht"])
def test_every_spelling_of_chinese_is_understood(client: LibreTranslateAPI, code: str) -> None:
    assert client.translate(CHINESE, code, "en") == client.translate(CHINESE, "zh", "en")


def test_the_client_detects_languages(client: LibreTranslateAPI) -> None:
    [chinese], [english] = client.detect("请打开这个文件。"), client.detect("Please open the file.")
    assert (chinese["language"], english["language"]) == ("zh-Hans", "en")
    assert 50 < chinese["confidence"] <= 100


def test_the_client_lists_languages(client: LibreTranslateAPI) -> None:
    languages = {language["code"]: language for language in client.languages()}
    assert languages["zh-Hans"]["targets"] == ["en"]
    assert set(languages["en"]["targets"]) == {"zh-Hans", "zh-Hant"}
    assert all(language["name"] for language in languages.values())


def test_every_listed_pair_can_be_translated(client: LibreTranslateAPI) -> None:
    for language in client.languages():
        for target in language["targets"]:
            assert client.translate("OK", language["code"], target)


def test_a_source_of_auto_tells_what_was_detected(server: Server) -> None:
    answer = translate(server, q=CHINESE, source="auto", target="en").json()
    assert answer["detectedLanguage"]["language"] == "zh-Hans"
    assert "detectedLanguage" not in translate(server, q=CHINESE, source="zh", target="en").json()


def test_a_list_gives_lists_and_every_item_is_detected_for_itself(server: Server) -> None:
    answer = translate(server, q=[CHINESE, "Open the file, please.", ""], source="auto", target="en").json()
    assert answer["translatedText"][1:] == ["Open the file, please.", ""]
    assert [found["language"] for found in answer["detectedLanguage"]][:2] == ["zh-Hans", "en"]


def test_html_keeps_its_tags(server: Server) -> None:
    answer = translate(server, q='<p class="a">打开<b>文件</b>。</p>', source="zh", target="en", format="html").json()
    assert answer["translatedText"].startswith('<p class="a">')
    assert answer["translatedText"].endswith("</p>")


def test_alternatives_are_of_the_whole_text(server: Server) -> None:
    answer = translate(server, q="打开文件。今天天气很好。", source="zh", target="en", alternatives=2).json()
    assert 1 <= len(answer["alternatives"]) <= 2
    assert answer["translatedText"] not in answer["alternatives"]
    assert all(text.count(".") == 2 for text in answer["alternatives"])
    listed = translate(server, q=[CHINESE], source="zh", target="en", alternatives=1).json()
    assert isinstance(listed["alternatives"][0], list)


def test_a_form_is_as_good_as_json(server: Server) -> None:
    fields = {"q": CHINESE, "source": "zh", "target": "en", "alternatives": "", "format": ""}
    posted = requests.post(f"{server.url}/translate", data=fields, timeout=60).json()
    assert posted == translate(server, q=CHINESE, source="zh", target="en").json()


@pytest.mark.parametrize(
    "fields",
    [
        {"q": CHINESE, "source": "zh", "target": "xx"},
        {"q": CHINESE, "source": "zh", "target": "en", "alternatives": 99},
        {"q": CHINESE, "source": "zh", "target": "en", "format": "pdf"},
        {"q": {"text": CHINESE}, "target": "en"},
        {"q": []},
        {"q": "好" * 20_001, "source": "zh", "target": "en"},
    ],
)
def test_what_is_wrong_is_400_with_a_flat_error(server: Server, fields: dict[str, object]) -> None:
    response = translate(server, **fields)
    assert response.status_code == 400
    assert isinstance(response.json()["error"], str)


def test_the_settings_name_the_limits(server: Server) -> None:
    settings = requests.get(f"{server.url}/frontend/settings", timeout=60).json()
    assert settings["charLimit"] == 20_000
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "auto", "name": "Auto Detect"}
    assert set(settings) == {
        "charLimit", "frontendTimeout", "apiKeys", "keyRequired", "suggestions", "filesTranslation",
        "supportedFilesFormat", "language",
    }  # fmt: skip


def test_any_key_is_accepted_while_keys_are_off(server: Server) -> None:
    assert LibreTranslateAPI(server.url, api_key="whatever").translate(CHINESE, "zh", "en")


def test_the_client_sends_its_key_in_the_body(locked: Server, key: str) -> None:
    client = LibreTranslateAPI(locked.url, api_key=key)
    assert client.translate(CHINESE, "zh", "en")
    assert client.detect(CHINESE)
    assert requests.post(
        f"{locked.url}/translate", json={"q": CHINESE, "target": "en", "api_key": key}, timeout=60
    ).ok  # fmt: skip


@pytest.mark.parametrize("given", [None, "wrong"])
def test_a_missing_and_a_wrong_key_are_403(locked: Server, given: str | None) -> None:
    client = LibreTranslateAPI(locked.url, api_key=given)
    for ask in (lambda: client.translate(CHINESE, "zh", "en"), lambda: client.detect(CHINESE)):
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask()
        assert caught.value.code == 403
        caught.value.close()


def test_languages_and_settings_need_no_key(locked: Server) -> None:
    assert LibreTranslateAPI(locked.url).languages()
    assert requests.get(f"{locked.url}/frontend/settings", timeout=60).json()["keyRequired"] is True


def test_a_spent_quota_is_403_and_says_so(locked: Server, add_key: Callable[..., str]) -> None:
    key = add_key("libre-quota", "--characters", "6")
    fields = {"q": CHINESE, "source": "zh", "target": "en", "api_key": key}
    assert translate(locked, **fields).status_code == 200
    refused = translate(locked, **fields)
    assert refused.status_code == 403
    assert "characters" in refused.json()["error"]
