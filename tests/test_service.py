"""The running service when things go wrong: stops, a failing Redis, callers that hang up, long texts, no models."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.redis_server import RedisServer, free_port
from tests.support.server import Server, run_server

CLIENTS = 12


class Load:
    """Clients that each keep sending new sentences until told to stop."""

    def __init__(self, server: Server, clients: int = CLIENTS) -> None:
        self.statuses: list[int] = []
        self.broken: list[str] = []
        self._server = server
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _send(self, number: int) -> None:
        port = int(self._server.url.rsplit(":", 1)[1])
        for count in range(100_000):
            if self._stop.is_set():
                return
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                connection.connect()
            except OSError:
                return  # not accepted any more
            try:
                body = json.dumps({"text": f"打开第{number}个文件中的第{count}行。", "source": "zh"})
                connection.request("POST", "/translate", body.encode(), {"Content-Type": "application/json"})
                response = connection.getresponse()
                answer = json.loads(response.read())
                self.statuses.append(response.status)
                assert response.status != 200 or answer["translation"]
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.broken.append(repr(error))
                return
            finally:
                connection.close()

    def wait_for(self, count: int) -> None:
        limit_s = time.monotonic() + 120
        while len(self.statuses) < count and time.monotonic() < limit_s:
            time.sleep(0.02)
        assert len(self.statuses) >= count

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


def test_a_killed_redis_costs_no_request_and_a_new_one_is_used_again() -> None:
    redis = RedisServer()
    redis.start()
    with run_server(REDIS_URL=redis.url) as server:
        load = Load(server)
        load.wait_for(60)
        assert redis.client.dbsize() > 0
        redis.kill()
        load.wait_for(len(load.statuses) + 100)
        load.stop()
        assert set(load.statuses) == {200}
        assert load.broken == []
    redis.close()


def test_results_are_shared_through_redis() -> None:
    redis = RedisServer()
    redis.start()
    try:
        for expected in ({"hits": 0, "misses": 1}, {"hits": 1, "misses": 0}):
            with run_server(REDIS_URL=redis.url) as server:
                assert server.ask("/translate", {"text": "保存所有文件。"})[1]["cache"] == expected
    finally:
        redis.close()


def test_sigterm_under_load_answers_everything_that_was_accepted() -> None:
    with run_server() as server:
        load = Load(server)
        load.wait_for(50)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(40) == 0
        load.stop()
        # A connection may still be in the listening socket's queue when it is closed: it was never accepted, and is
        # reset before a byte of an answer.
        cut = [error for error in load.broken if "ConnectionReset" not in error and "RemoteDisconnected" not in error]
        assert cut == []
        assert set(load.statuses) == {200}
        answered = [line for line in server.log_lines() if line.get("path") == "/translate"]
        assert len(answered) == len(load.statuses)


def test_an_idle_connection_does_not_delay_the_end() -> None:
    with run_server() as server:
        host, port = server.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port))
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        started_s = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(40) == 0
        assert time.monotonic() - started_s < 10
        connection.close()


def test_while_models_load_the_socket_answers_and_says_so() -> None:
    with run_server(ready=False) as server:
        limit_s = time.monotonic() + 60
        status, answer = 0, {}
        while time.monotonic() < limit_s:
            try:
                status, answer = server.ask("/ready")
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.02)
        assert status == 503
        assert answer["reason"].startswith("loading")
        assert server.ask("/health")[0] == 200
        status, answer = server.ask("/translate", {"text": "好"})
        assert status == 503
        assert answer["code"] == "not_ready"
        server.wait_until_ready()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"TRANSLATION_MODEL": "/nowhere"}, "neither a directory nor a hub id"),
        ({"EMBEDDING_MODEL": str(ROOT / "docs")}, "config.json"),
        ({"DEVICE": "cuda"}, "DEVICE=cuda, but torch finds no CUDA device"),
        ({"PORT": "none"}, "PORT='none'"),
    ],
)
def test_a_start_that_cannot_work_stops_with_the_reason(settings: dict[str, str], words: str) -> None:
    environment = {**os.environ, "PORT": str(free_port()), **settings}
    command = [sys.executable, "-m", "gunicorn", "app:create_app()"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode != 0
    assert words in ran.stderr + ran.stdout


def test_a_long_text_does_not_hold_up_health(server: Server) -> None:
    text = "".join(f"此选项用于设置默认的第{number}个文件。" for number in range(20_000))[:20_000]
    finished = threading.Event()
    answers: list[tuple[int, dict[str, object]]] = []

    def translate() -> None:
        answers.append(server.ask("/translate", {"text": text, "source": "zh"}))
        finished.set()

    threading.Thread(target=translate).start()
    port = int(server.url.rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times_ms = []
    while not finished.wait(0.02):
        start_s = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        times_ms.append((time.perf_counter() - start_s) * 1000)
    connection.close()
    assert answers[0][0] == 200
    assert len(str(answers[0][1]["translation"])) > 10_000
    assert len(times_ms) > 20
    # The bar is measured by `make load` on an idle machine; here other tests may run beside, so only a hold-up shows.
    assert sorted(times_ms)[int(len(times_ms) * 0.9)] < 250


def test_work_for_a_caller_that_hung_up_is_dropped(server: Server) -> None:
    port = int(server.url.rsplit(":", 1)[1])
    texts = [f"检查第{number}台服务器的网络连接并重新启动所有用户的计算机。" for number in range(800)]
    body = json.dumps({"text": texts}).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = ["POST /translate HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        limit_s = time.monotonic() + 30
        while running(server) == 0 and time.monotonic() < limit_s:
            time.sleep(0.02)
        assert running(server) > 0
    left_s = time.monotonic() + 10
    while running(server) > 0 and time.monotonic() < left_s:
        time.sleep(0.05)
    assert running(server) == 0, "the sentences of a caller that has gone are still computed"
    assert server.ask("/translate", {"text": "你好"})[0] == 200


def running(server: Server) -> int:
    queue = server.ask("/health")[1]["queue"]["demo-zh2en"]
    return int(queue["running"]) + int(queue["waiting"])


def test_a_full_queue_answers_429_and_a_late_one_504() -> None:
    with run_server(MAX_QUEUE="2", MAX_BATCH_SIZE="1", REQUEST_TIMEOUT_S="0.5") as server:
        found: dict[int, dict[str, object]] = {}

        def send(number: int) -> None:
            text = f"检查第{number}台服务器的网络连接并重新启动所有用户的计算机，然后安装最新的系统更新。"
            status, answer = server.ask("/translate", {"text": text})
            found.setdefault(status, answer)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert 429 in found
        assert found[429]["code"] == "overloaded"
        assert set(found) <= {200, 429, 504}
        assert server.ask("/ready")[0] == 200


def test_max_batch_size_of_one_computes_one_sentence_at_a_time() -> None:
    with run_server(MAX_BATCH_SIZE="1") as server:
        most = 0
        load = Load(server, clients=8)
        while len(load.statuses) < 60:
            most = max(most, int(server.ask("/health")[1]["queue"]["demo-zh2en"]["running"]))
        load.stop()
        assert most == 1


def test_the_log_of_the_start_says_device_precision_and_memory(server: Server) -> None:
    messages = [line["message"] for line in server.log_lines()]
    assert "Using device: cpu" in messages
    assert "demo-zh2en: zh to en, float32" in messages
    assert any("memory: " in message for message in messages)


def test_start_sh_serves_from_a_fresh_folder_where_nothing_is_compiled_yet(tmp_path: Path) -> None:
    """A fresh clone whose environment is this one: everything but the installation itself."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    (clone / ".venv").symlink_to(Path(sys.prefix))
    port = free_port()
    environment = {**os.environ, "PORT": str(port), "PRECISION": "float32", "THREADS": "2"}
    process = subprocess.Popen(["./start.sh"], cwd=clone, env=environment, stderr=subprocess.DEVNULL)
    server = Server(f"http://127.0.0.1:{port}", process, tmp_path / "log")
    (tmp_path / "log").touch()
    try:
        server.wait_until_ready()
        assert server.ask("/translate", {"text": ["保存所有文件。", "关闭窗口。"]})[0] == 200
        assert (clone / "cache" / "converted").is_dir()
        assert list((clone / "cache" / "kernels").rglob("*.nbc")) != []
    finally:
        process.terminate()
        process.wait(30)
