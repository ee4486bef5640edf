"""Which routes ask for a key, and where it may stand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.conftest import ROOT
from tests.support.server import Server

OPEN = [
    "/",
    "/health",
    "/ready",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/page.json",
    "/languages",
    "/frontend/settings",
]


@pytest.mark.parametrize("path", OPEN)
def test_the_page_and_the_operators_routes_need_no_key(locked: Server, path: str) -> None:
    assert requests.get(locked.url + path, timeout=60).status_code == 200


def test_a_missing_key_is_401_and_a_wrong_one_403(locked: Server) -> None:
    for path, fields in (("/translate", {"text": "好"}), ("/predict", {"task_type": "embedding", "input_text": "好"})):
        assert locked.ask(path, fields)[1]["code"] == "missing_key"
        assert locked.ask(path, fields)[0] == 401
        assert locked.ask(path, fields, Authorization="Bearer wrong")[0] == 403


def test_a_key_may_stand_in_a_header_the_query_or_the_body(locked: Server, key: str) -> None:
    url, fields = f"{locked.url}/translate", {"text": "好"}
    responses = [
        requests.post(url, json=fields, headers={"Authorization": f"Bearer {key}"}, timeout=60),
        requests.post(url, json=fields, headers={"Authorization": f"DeepL-Auth-Key {key}"}, timeout=60),
        requests.post(f"{url}?api_key={key}", json=fields, timeout=60),
        requests.post(url, json={**fields, "api_key": key}, timeout=60),
        requests.post(url, data={**fields, "api_key": key}, timeout=60),
        requests.post(url, data={**fields, "api_key": key}, files={"file": b"x"}, timeout=60),
    ]
    assert [response.status_code for response in responses] == [200] * 6


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff\xfe", b"a=b"])
def test_a_broken_body_without_a_key_is_401(locked: Server, body: bytes) -> None:
    assert requests.post(f"{locked.url}/translate", data=body, timeout=60).status_code == 401


def test_a_revoked_key_is_refused_at_once(locked: Server, add_key: Callable[..., str], keys_db: Path) -> None:
    headers = {"Authorization": f"Bearer {add_key('revoked')}"}
    assert requests.get(f"{locked.url}/v1/models", headers=headers, timeout=60).ok
    command = [sys.executable, "-m", "tandem", "keys", "revoke", "revoked"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "KEYS_DB": str(keys_db)}, check=True, timeout=60)
    assert requests.get(f"{locked.url}/v1/models", headers=headers, timeout=60).status_code == 401


def test_a_stream_is_charged_too(locked: Server, add_key: Callable[..., str]) -> None:
    headers = {"Authorization": f"Bearer {add_key('stream', '--characters', '5')}"}
    fields = {"text": "打开文件。", "stream": True}
    assert "event: done" in requests.post(f"{locked.url}/translate", json=fields, headers=headers, timeout=60).text
    refused = requests.post(f"{locked.url}/translate", json=fields, headers=headers, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (403, "quota_spent")


def test_keys_never_reach_the_log(locked: Server, key: str) -> None:
    requests.post(f"{locked.url}/deeplx/translate?token={key}", json={"text": "好"}, timeout=60)
    assert key not in locked.log.read_text(encoding="utf-8")
