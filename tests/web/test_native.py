"""POST /translate and POST /predict of a real server."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest

from tests.csanmt.support import demo
from tests.support.server import Server


def post_raw(server: Server, path: str, data: bytes, content_type: str) -> tuple[int, Any, dict[str, str]]:
    request = urllib.request.Request(server.url + path, data=data, headers={"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read()), dict(response.headers)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), dict(error.headers)


def test_the_tutorials_request_gives_the_tutorials_answer(server: Server) -> None:
    status, answer = server.ask("/translate", {"text": "您确定要打开这个设置吗？"})
    assert status == 200
    assert isinstance(answer["translation"], str)
    assert "setting" in answer["translation"]
    assert (answer["source"], answer["target"]) == ("zh", "en")


def test_curl_without_a_content_type_works(server: Server) -> None:
    command = ["curl", "-s", f"{server.url}/translate", "-d", '{"text": "保存文件。"}']
    ran = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert json.loads(ran.stdout)["translation"]


def test_a_list_comes_back_as_a_list_in_order(server: Server) -> None:
    texts = ["打开文件。", "", "关闭文件。", "  ", "打开文件。"]
    _, answer = server.ask("/translate", {"text": texts})
    alone = [server.ask("/translate", {"text": text})[1]["translation"] for text in texts]
    assert answer["translation"] == alone
    assert (answer["translation"][1], answer["translation"][3]) == ("", "  ")


def test_both_directions_are_served(server: Server) -> None:
    _, answer = server.ask("/translate", {"text": "Open the file.", "source": "en", "target": "zh"})
    assert any("\u4e00" <= character <= "\u9fff" for character in answer["translation"])
    _, guessed = server.ask("/translate", {"text": "Open the file."})
    assert guessed["translation"] == answer["translation"]


def test_a_text_in_the_target_language_comes_back_as_it_is(server: Server) -> None:
    _, answer = server.ask("/translate", {"text": "Open the file, please.", "target": "en"})
    assert answer["translation"] == "Open the file, please."


def test_a_repeated_text_comes_from_the_cache(server: Server) -> None:
    text = "此选项用于设置默认的缓存位置。"
    server.ask("/translate", {"text": text})
    _, answer = server.ask("/translate", {"text": text})
    assert answer["cache"] == {"hits": 1, "misses": 0}


def test_equal_sentences_of_one_request_are_computed_once(server: Server) -> None:
    _, before = server.ask("/health")
    _, answer = server.ask("/translate", {"text": ["请重新启动这台旧计算机。"] * 40})
    assert len(set(answer["translation"])) == 1
    assert answer["timing_ms"]["compute"] < 5000
    assert before["status"] == "ok"


def test_segments_tell_where_they_stand_in_utf16_units(server: Server) -> None:
    text = "😀 打开文件。关闭文件。"
    _, answer = server.ask("/translate", {"text": text, "segments": True})
    units = text.encode("utf-16-le")
    target_units = answer["translation"].encode("utf-16-le")
    for segment in answer["segments"]:
        source = units[2 * segment["source_start"] : 2 * segment["source_end"]].decode("utf-16-le")
        target = target_units[2 * segment["target_start"] : 2 * segment["target_end"]].decode("utf-16-le")
        assert source == segment["source"]
        assert target == segment["target"]
    assert [segment["index"] for segment in answer["segments"]] == [0, 1]


def test_alternatives_are_different_and_scored(server: Server) -> None:
    _, answer = server.ask("/translate", {"text": "打开文件。", "alternatives": 3})
    [alternatives] = answer["alternatives"]
    assert 1 <= len(alternatives) <= 3
    assert answer["translation"] not in {one["target"] for one in alternatives}
    scores = [one["score"] for one in alternatives]
    assert scores == sorted(scores, reverse=True)


def test_a_target_prefix_begins_the_answer_exactly(server: Server) -> None:
    _, answer = server.ask("/translate", {"text": "打开文件。", "source": "zh", "target_prefix": "Please op"})
    assert answer["translation"].startswith("Please op")
    assert len(answer["translation"]) > len("Please op")


def events_of(server: Server, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    request = urllib.request.Request(
        server.url + "/translate", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        blocks = response.read().decode().strip().split("\n\n")
    parsed = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [(fields["event"], json.loads(fields["data"])) for fields in parsed]


def test_a_stream_gives_segments_in_order_and_then_the_whole(server: Server) -> None:
    text = "打开文件。关闭窗口。\n\n保存设置。"
    events = events_of(server, {"text": text, "stream": True})
    assert [name for name, _ in events] == ["segment"] * 3 + ["done"]
    assert [data["index"] for name, data in events if name == "segment"] == [0, 1, 2]
    whole = server.ask("/translate", {"text": text})[1]
    assert events[-1][1]["translation"] == whole["translation"]


def test_a_stream_of_a_blank_text_is_done_at_once(server: Server) -> None:
    assert [name for name, _ in events_of(server, {"text": " \n", "stream": True})] == ["done"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "text"),
        ({"text": 5}, 400, "text"),
        ({"text": ["好", 5]}, 400, "text"),
        ({"text": []}, 400, "empty"),
        ({"text": "好", "format": "pdf"}, 400, "format"),
        ({"text": "好", "alternatives": -1}, 400, "alternatives"),
        ({"text": "好" * 20_001}, 413, "20000"),
        ({"text": ["好"] * 2501}, 413, "2500"),
        ({"text": "好", "target": "xx"}, 422, "zh (Chinese)"),
        ({"text": "好", "source": "fr", "target": "en"}, 422, "zh to en, en to zh"),
        ({"text": "好", "alternatives": 4}, 422, "at most 3"),
        ({"text": "一。二。", "target_prefix": "One"}, 422, "one sentence only"),
        ({"text": ["一", "二"], "target_prefix": "One"}, 422, "one text only"),
    ],
)
def test_bad_requests_say_what_to_do(server: Server, body: dict[str, Any], status: int, words: str) -> None:
    found, answer = server.ask("/translate", body)
    assert (found, set(answer)) == (status, {"error", "code", "request_id"})
    assert words in answer["error"]
    assert answer["request_id"]


@pytest.mark.parametrize(
    ("data", "content_type", "status"),
    [
        (b'{"text": "\\ud83d\xe5\xa5\xbd"}', "application/json", 200),
        (b'{"text": ', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"", "application/json", 400),
        (b"hello", "text/plain", 415),
        ("text=你好".encode(), "application/x-www-form-urlencoded", 200),
    ],
)
def test_strange_bodies_get_their_status(server: Server, data: bytes, content_type: str, status: int) -> None:
    found, answer, _ = post_raw(server, "/translate", data, content_type)
    assert found == status, answer


def test_unknown_paths_and_methods_have_our_error_shape(server: Server) -> None:
    assert server.ask("/nowhere")[0] == 404
    status, answer = server.ask("/translate")
    assert status == 405
    assert set(answer) == {"error", "code", "request_id"}


def test_every_answer_carries_a_request_id_and_the_engines_name(server: Server) -> None:
    request = urllib.request.Request(
        server.url + "/translate", data=b'{"text": "\xe5\xa5\xbd"}',
        headers={"Content-Type": "application/json", "X-Request-Id": "mine-1"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["X-Request-Id"] == "mine-1"
        assert response.headers["X-Translation-Engine"] == "CSANMT-demo"
    with urllib.request.urlopen(server.url + "/health", timeout=60) as response:
        assert len(response.headers["X-Request-Id"]) == 32


def test_the_access_log_is_json_without_user_text(server: Server) -> None:
    secret = "这是一个秘密句子"
    server.ask("/translate", {"text": secret, "target": "xx"}, **{"X-Request-Id": "find-me"})
    server.ask("/translate", {"text": secret})
    lines = [line for line in server.log_lines() if line.get("request_id") == "find-me"]
    assert lines[-1]["status"] == 422
    assert lines[-1]["path"] == "/translate"
    assert lines[-1]["ms"] >= 0
    assert secret not in server.log.read_text(encoding="utf-8")


# -- /predict --------------------------------------------------------------------------------------------------------


def test_an_embedding_is_the_models_unit_vector(server: Server) -> None:
    _, answer = server.ask("/predict", {"task_type": "embedding", "input_text": "吃完海鲜可以喝牛奶吗?"})
    vector = np.array(answer["result"]["embedding"])
    assert vector.shape == (256,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_list_of_texts_gives_a_list_of_vectors_in_order(server: Server) -> None:
    texts = ["打开文件", "关闭文件", "打开文件"]
    _, answer = server.ask("/predict", {"task_type": "embedding", "input_text": texts})
    vectors = [np.array(one["embedding"]) for one in answer["result"]]
    assert len(vectors) == 3
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    assert not np.allclose(vectors[0], vectors[1])


def test_a_text_that_was_cut_says_so(server: Server) -> None:
    _, answer = server.ask("/predict", {"task_type": "embedding", "input_text": ["长" * 600, "短"]})
    assert answer["truncated"] == [True, False]
    _, cached = server.ask("/predict", {"task_type": "embedding", "input_text": "长" * 600})
    assert cached["truncated"] is True


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "task_type and input_text required"),
        ({"task_type": "embedding"}, 400, "missing: input_text"),
        ({"input_text": "x"}, 400, "missing: task_type"),
        ({"task_type": "embedding", "input_text": 5}, 400, "input_text"),
        ({"task_type": "sentiment", "input_text": "好"}, 422, "No head for the task sentiment"),
        ({"task_type": "poetry", "input_text": "好"}, 422, "Known are: embedding"),
        ({"inputs": "x"}, 422, "No classifier is installed"),
    ],
)
def test_bad_predictions_say_what_to_do(server: Server, body: dict[str, Any], status: int, words: str) -> None:
    found, answer = server.ask("/predict", body)
    assert found == status
    assert words in answer["error"]


# -- operators -------------------------------------------------------------------------------------------------------


def test_health_tells_device_models_and_queues(server: Server) -> None:
    _, answer = server.ask("/health")
    assert answer["status"] == "ok"
    assert answer["device"] == "cpu"
    assert answer["gpu_mem_used_gb"] is None
    assert [one["name"] for one in answer["models"]["translation"]] == ["demo-zh2en", "demo-en2zh"]
    assert set(answer["queue"]) == {"demo-zh2en", "demo-en2zh", "demo-gte"}


def test_metrics_count_requests_cache_and_batches(server: Server) -> None:
    server.ask("/translate", {"text": "度量。"})
    with urllib.request.urlopen(server.url + "/metrics", timeout=60) as response:
        text = response.read().decode()
    for name in (
        'tandem_requests_total{route="/translate",status="200"}', 'tandem_cache_total{event="miss"}',
        'tandem_batch_items_count{engine="demo-zh2en"}', "tandem_waiting_items 0.0",
    ):  # fmt: skip
        assert name in text


def test_the_official_lines_come_back_through_the_service_nearly_all(server: Server) -> None:
    """The service may do better than the official pipeline (a number kept); it must not do something else."""
    official = demo("demo-zh2en")
    _, answer = server.ask("/translate", {"text": official.source, "source": "zh", "target": "en"})
    same = sum(a == b for a, b in zip(answer["translation"], official.official, strict=True))
    assert same >= 300
