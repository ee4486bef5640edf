"""Browser extensions, by the requests that they send."""

from __future__ import annotations

import pytest
import requests

from tests.support.server import Server

MARKED = "点击 {0} 打开<b0>文件</b0>。"


def test_deeplx_gets_what_deeplx_gives(server: Server) -> None:
    status, answer = server.ask("/deeplx/translate", {"text": "打开文件。", "source_lang": "auto", "target_lang": "EN"})
    assert status == 200
    assert isinstance(answer.pop("id"), int)
    native = server.ask("/translate", {"text": "打开文件。"})[1]["translation"]
    assert answer == {
        "code": 200, "data": native, "alternatives": [], "source_lang": "ZH", "target_lang": "EN", "method": "Free",
    }  # fmt: skip


@pytest.mark.parametrize("fields", [{}, {"text": 1}, {"text": "好", "target_lang": "XX"}, {"text": None}])
def test_deeplx_tells_what_is_wrong_in_its_own_shape(server: Server, fields: dict[str, object]) -> None:
    status, answer = server.ask("/deeplx/translate", fields)
    assert (status, answer["code"]) == (400, 400)
    assert set(answer) == {"code", "message"}


def test_deeplx_sends_its_key_as_a_token_or_a_header(locked: Server, key: str) -> None:
    url, fields = f"{locked.url}/deeplx/translate", {"text": "好", "source_lang": "ZH", "target_lang": "EN"}
    assert requests.post(f"{url}?token={key}", json=fields, timeout=60).ok
    assert requests.post(url, json=fields, headers={"Authorization": f"Bearer {key}"}, timeout=60).ok
    refused = requests.post(f"{url}?token=wrong", json=fields, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (403, 403)


def test_immersive_translate_gets_a_translation_for_every_text(server: Server) -> None:
    status, answer = server.ask(
        "/immersive", {"source_lang": "auto", "target_lang": "en", "text_list": ["打开文件。", "Open the file."]}
    )
    assert status == 200
    assert [found["detected_source_lang"] for found in answer["translations"]] == ["zh-CN", "en"]
    assert answer["translations"][1]["text"] == "Open the file."
    assert all(set(found) == {"detected_source_lang", "text"} for found in answer["translations"])


def test_kiss_translator_gets_what_it_asks_for(server: Server) -> None:
    status, answer = server.ask("/kiss", {"text": "Open the file, please.", "from": "auto", "to": "zh-CN"})
    assert status == 200
    assert set(answer) == {"text", "from", "to"}
    assert (answer["from"], answer["to"]) == ("en", "zh-CN")
    assert answer["text"] != "Open the file, please."


def test_markers_survive_in_every_extension(server: Server) -> None:
    texts = [
        server.ask("/deeplx/translate", {"text": MARKED, "source_lang": "ZH", "target_lang": "EN"})[1]["data"],
        server.ask("/immersive", {"target_lang": "en", "text_list": [MARKED]})[1]["translations"][0]["text"],
        server.ask("/kiss", {"text": MARKED, "from": "zh", "to": "en"})[1]["text"],
    ]
    for text in texts:
        assert [text.count(marker) for marker in ("{0}", "<b0>", "</b0>")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/immersive", {"text_list": []}, 400),
        ("/immersive", {"text_list": "好"}, 400),
        ("/immersive", {"text_list": ["好"], "target_lang": "xx"}, 422),
        ("/kiss", {"from": "auto", "to": "en"}, 400),
        ("/kiss", {"text": "好", "to": "xx"}, 422),
    ],
)
def test_what_is_wrong_is_told_in_a_flat_error(
    server: Server, path: str, fields: dict[str, object], status: int
) -> None:
    got, answer = server.ask(path, fields)
    assert got == status
    assert isinstance(answer["error"], str)
