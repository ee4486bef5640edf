"""The embedder's benchmarks: what is compared with what, and the work that is counted."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig as TheirConfig
from transformers import BertModel

from benchmarks.embedder import AUTO, DEFAULT, count_operations, equal_texts, plan_peers, random_lengths, random_texts
from benchmarks.harness import WorkerError
from benchmarks.infinity import CLIENTS, send_all
from benchmarks.workers.ours_embedder import multiply
from tandem.gte.configuration import BertConfig
from tests.conftest import MODELS


def test_equal_precisions_are_compared_and_auto_with_the_peers_default() -> None:
    theirs = {"float32", "bfloat16", DEFAULT}
    assert plan_peers("float32", theirs) == ["float32"]
    assert plan_peers("bfloat16", theirs) == ["bfloat16", "float32"]
    assert plan_peers("int8", theirs) == ["float32"]
    assert plan_peers(AUTO, theirs) == [DEFAULT]


def test_lengths_are_natural() -> None:
    lengths = random_lengths(512)
    assert min(lengths) >= 5 and max(lengths) <= 400
    assert sorted(lengths)[256] == pytest.approx(30, abs=4)
    assert [len(text) + 2 for text in random_texts(MODELS / "demo-gte")] == lengths
    assert {len(text) for text in equal_texts(MODELS / "demo-gte")} == {126}


def test_counted_operations_are_those_that_the_network_computes() -> None:
    config = BertConfig(vocab_size=50, hidden_size=32, num_layers=3, num_heads=4, filter_size=64, max_positions=40)
    model = BertModel(
        TheirConfig(
            vocab_size=50, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=40, attn_implementation="eager",
        ),
        add_pooling_layer=False,
    )  # fmt: skip
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.ones(5, 24, dtype=torch.int64))
    assert count_operations(config, texts=5, tokens=24) == counter.get_total_flops()


def test_the_yardstick_multiplies_as_often_as_it_is_told() -> None:
    with FlopCounterMode(display=False) as counter:
        multiply("float32", 16, 3)
    assert counter.get_total_flops() == 3 * 2 * 16**3


class Embedder(BaseHTTPRequestHandler):
    """Remembers what it was sent; refuses one text."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()
    together = threading.Barrier(CLIENTS)

    def do_POST(self) -> None:
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        with self.lock:
            type(self).seen[text] += 1
        if text.startswith("together"):
            self.together.wait(60)
        self.send_response(500 if text == "bad" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as clients open."""

    request_queue_size = 2 * CLIENTS
    daemon_threads = True


@pytest.fixture
def embedder() -> Iterator[int]:
    Embedder.seen.clear()
    server = Server(("127.0.0.1", 0), Embedder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_clients_are_busy_at_once_and_each_text_is_sent_once(embedder: int) -> None:
    texts = [f"together {number}" for number in range(CLIENTS)] + [f"text {number}" for number in range(50)]
    assert send_all(embedder, "/embeddings", texts) > 0
    assert Embedder.seen == Counter(texts)


def test_an_answer_that_is_an_error_is_no_result(embedder: int) -> None:
    with pytest.raises(WorkerError, match=r"1 of 3 requests were answered \[500\]"):
        send_all(embedder, "/embeddings", ["good", "bad", "fine"])
