"""Documents over a real gunicorn with the demo models, with the clients people have."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepl
import docx
import pytest
import requests

from tests.support.server import Server, run_server
from tests.support.waiting import eventually

_TEXT = "你好，世界。\n\n请打开文件。\n"


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A server with small limits."""
    with run_server(MAX_FILE_BYTES="200000", MAX_JOBS="6") as running:
        yield running


def _post(server: Server, path: str, data: bytes | str, name: str = "a.txt", **fields: Any) -> requests.Response:
    content = data.encode() if isinstance(data, str) else data
    return requests.post(server.url + path, files={"file": (name, content)}, data=fields, timeout=60)


def _job(server: Server, job_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = requests.get(f"{server.url}/documents/{job_id}", timeout=60).json()
    return answer


def _wait(server: Server, job_id: str) -> dict[str, Any]:
    eventually(lambda: _job(server, job_id)["status"] in ("done", "error"), 60)
    return _job(server, job_id)


def _word(*paragraphs: str) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def test_a_document_is_sent_watched_and_fetched(server: Server) -> None:
    answer = _post(server, "/documents", _word("你好，世界。", "12345"), "报告 1.docx", source="zh", target="en")
    assert answer.status_code == 200
    job = _wait(server, answer.json()["id"])
    assert (job["status"], job["percent"], job["name"]) == ("done", 100, "报告 1.en.docx")
    assert (job["source"], job["target"], job["characters"]) == ("zh", "en", 6)
    assert 0 < job["expires_in_s"] <= 3600
    result = requests.get(f"{server.url}/documents/{job['id']}/result", timeout=60)
    assert result.headers["Content-Type"].endswith("wordprocessingml.document")
    assert "attachment" in result.headers["Content-Disposition"]
    assert result.headers["X-Translation-Engine"] == "CSANMT-demo"
    texts = [paragraph.text for paragraph in docx.Document(io.BytesIO(result.content)).paragraphs]
    assert "world" in texts[0]
    assert texts[1] == "12345"


def test_the_columns_of_a_table_are_chosen_in_the_form(server: Server) -> None:
    source = "编号,名称\n你好,世界\n"
    answer = _post(server, "/documents", source, "a.csv", source="zh", target="en", columns="名称")
    job = _wait(server, answer.json()["id"])
    result = requests.get(f"{server.url}/documents/{job['id']}/result", timeout=60).content.decode()
    assert result.startswith("编号,名称\n你好,")
    assert "世界" not in result


def test_libretranslates_form_gives_the_address_of_the_translation(server: Server) -> None:
    answer = _post(server, "/translate_file", _TEXT, source="zh", target="en", api_key="")
    assert answer.status_code == 200, answer.text
    address = answer.json()["translatedFileUrl"]
    assert address.startswith(f"{server.url}/download_file/")
    result = requests.get(address, timeout=60)
    assert result.content.decode().count("\n") == 3
    assert result.headers["Content-Type"] == "text/plain"
    settings = requests.get(f"{server.url}/frontend/settings", timeout=60).json()
    assert settings["filesTranslation"] is True
    assert ".docx" in settings["supportedFilesFormat"]


@pytest.mark.parametrize(
    ("name", "data", "fields", "status", "words"),
    [
        ("a.pdf", "%PDF", {"source": "zh", "target": "en"}, 415, "cannot be translated"),
        ("a.docx", "words", {"source": "zh", "target": "en"}, 400, "ZIP archive"),
        ("a.txt", "words", {"source": "zh", "target": "fr"}, 400, "No loaded model"),
        ("a.txt", "words", {"source": "zh"}, 400, "target"),
        ("a.txt", "", {"source": "zh", "target": "en"}, 400, "empty"),
    ],
)  # fmt: skip
def test_libretranslates_errors_are_flat_sentences(
    server: Server, name: str, data: str, fields: dict[str, str], status: int, words: str
) -> None:
    answer = _post(server, "/translate_file", data, name, **fields)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_a_request_without_a_file_says_what_is_missing(server: Server) -> None:
    assert requests.post(f"{server.url}/documents", json={"file": "x"}, timeout=60).status_code == 415
    answer = requests.post(f"{server.url}/documents", files={"other": ("a.txt", b"x")}, timeout=60)
    assert (answer.status_code, "file" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize("path", ["/documents/x", "/documents/x/result", "/download_file/x.txt"])
def test_a_document_that_nobody_sent_is_not_found(server: Server, path: str) -> None:
    answer = requests.get(server.url + path, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_deepls_client_translates_a_document(server: Server, tmp_path: Path) -> None:
    client = deepl.DeepLClient("any-key", server_url=server.url)
    source, target = tmp_path / "a.docx", tmp_path / "b.docx"
    source.write_bytes(_word("你好，世界。"))
    status = client.translate_document_from_filepath(str(source), str(target), target_lang="EN-US")
    assert status.done
    assert status.billed_characters == 6
    assert "world" in docx.Document(str(target)).paragraphs[0].text


def test_deepls_client_is_told_why_a_document_cannot_be_translated(server: Server) -> None:
    client = deepl.DeepLClient("any-key", server_url=server.url)
    with pytest.raises(deepl.DocumentTranslationException, match="not valid JSON"):
        client.translate_document(b"[1,", io.BytesIO(), target_lang="EN-US", filename="a.json")
    handle = deepl.DocumentHandle("no-such", "key")
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_get_status(handle)


def test_deepls_key_guards_a_document(server: Server) -> None:
    made = _post(server, "/v2/document", _TEXT, target_lang="EN-US").json()
    answer = requests.post(f"{server.url}/v2/document/{made['document_id']}", json={"document_key": "x"}, timeout=60)
    assert answer.status_code == 404
    assert "message" in answer.json()


def _long(count: int) -> bytes:
    words = ["苹果", "银行", "天气", "学校", "音乐", "电影", "火车", "医院"]
    sentences = [
        f"第{n}个{words[n % 8]}和{words[n // 8 % 8]}在{n * 7}号的{words[n // 64 % 8]}旁边。" for n in range(count)
    ]
    return json.dumps(sentences, ensure_ascii=False).encode()


def test_progress_shows_and_others_are_served_meanwhile(small: Server) -> None:
    job_id = _post(small, "/documents", _long(400), "a.json", target="en").json()["id"]
    seen: set[int] = set()
    eventually(lambda: seen.add(_job(small, job_id)["percent"]) or max(seen) > 0, 60)
    start_s = time.monotonic()
    status, answer = small.ask("/translate", {"text": "今天天气很好。"})
    assert status == 200, answer
    assert time.monotonic() - start_s < 10
    assert _job(small, job_id)["status"] == "translating"
    early = requests.get(f"{small.url}/documents/{job_id}/result", timeout=60)
    assert (early.status_code, early.json()["code"]) == (409, "conflict")
    assert requests.delete(f"{small.url}/documents/{job_id}", timeout=60).json()["status"] == "cancelled"
    assert requests.get(f"{small.url}/documents/{job_id}", timeout=60).status_code == 404
    eventually(lambda: _is_idle(small), 15)


def _is_idle(server: Server) -> bool:
    queues = server.ask("/health")[1]["queue"]
    return all(count == 0 for queue in queues.values() for count in queue.values())


def test_a_libretranslate_caller_that_hangs_up_is_computed_no_further(small: Server) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\nen\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n' + _long(300) + b"\r\n--b--\r\n"
    )
    host, port = small.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = (
            "POST /translate_file HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        eventually(lambda: not _is_idle(small), 15)
    eventually(lambda: _is_idle(small), 15)


def test_a_job_survives_a_sender_that_hangs_up(small: Server) -> None:
    with requests.Session() as session:
        answer = session.post(f"{small.url}/documents", files={"file": ("a.txt", _TEXT.encode())}, timeout=60)
    assert _wait(small, answer.json()["id"])["status"] == "done"


def test_a_file_over_the_limit_is_refused_with_the_limit(small: Server) -> None:
    answer = _post(small, "/documents", "x" * 200_001, target="en")
    assert answer.status_code == 413
    assert "MAX_FILE_BYTES" in answer.json()["error"]
