"""The interface's documentation, and generated requests that keep to it and that do not."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.server import Server

# Generated requests of the whole run, both kinds together; `make schemathesis` asks for more.
REQUESTS = int(os.environ.get("SCHEMATHESIS_REQUESTS", "300"))
# Put into the generated bodies, where hardly any string is a language or a task.
CODES = [None, ("auto", "en"), ("zh", "EN-US"), ("en", "zh-Hant"), ("auto", "zh")]
SOURCES, TARGETS = ("source", "source_lang", "from"), ("target", "target_lang", "to")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
REFERENCE = re.compile(r'"\$ref": ?"#/components/schemas/([^"]+)"')


@pytest.fixture(scope="module")
def document(server: Server) -> dict:
    return requests.get(f"{server.url}/openapi.json", timeout=60).json()


def test_every_foreign_route_is_described(document: dict) -> None:
    assert {
        "/translate", "/predict", "/health", "/ready", "/metrics", "/languages", "/detect", "/frontend/settings",
        "/v2/translate", "/v2/usage", "/v2/languages", "/deeplx/translate", "/immersive", "/kiss", "/v1/embeddings",
        "/v1/models", "/embed", "/", "/similarity", "/tokenize", "/info", "/openapi.json", "/docs",
    } <= set(document["paths"])  # fmt: skip


def test_every_operation_says_what_it_does_and_has_a_name_of_its_own(document: dict) -> None:
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert all(operation["summary"] for operation in operations)
    names = Counter(operation["operationId"] for operation in operations)
    assert set(names.values()) == {1}


def test_every_reference_leads_somewhere(server: Server, document: dict) -> None:
    text = requests.get(f"{server.url}/openapi.json", timeout=60).text
    assert set(REFERENCE.findall(text)) == set(document["components"]["schemas"])


def test_errors_are_described_in_the_shape_and_with_the_status_of_their_product(document: dict) -> None:
    responses = document["paths"]["/v2/translate"]["post"]["responses"]
    assert {"400", "403", "429", "456", "503"} <= set(responses)
    assert "422" not in responses
    assert responses["456"]["content"]["application/json"]["schema"]["$ref"].endswith("/DeepLError")


def test_the_page_shows_every_path_and_asks_no_other_host(server: Server, document: dict) -> None:
    page = requests.get(f"{server.url}/docs", timeout=60).text
    assert all(f"<code>{path}</code>" in page for path in document["paths"])
    assert all(f'id="{name}"' in page for name in document["components"]["schemas"])
    assert "http://" not in page.replace(server.url, "")
    assert "https://" not in page
    assert "<script" not in page
    [style] = re.findall(r'rel="stylesheet" href="([^"]+)"', page)
    assert requests.get(server.url + style, timeout=60).headers["Content-Type"].startswith("text/css")


def test_generated_requests_find_no_500_and_no_undocumented_status(server: Server) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    kinds = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    # An operation with a body has endlessly many requests; one without has a few.
    busy = [operation for operation in operations if operation.body]
    each = -(-REQUESTS // (len(busy) * len(kinds)))
    seen: Counter[tuple[str, int]] = Counter()
    for operation in operations:
        for kind in kinds:
            # Unsatisfiable: there is nothing about the operation that could be wrong.
            with contextlib.suppress(Unsatisfiable):
                _try_out(operation, kind, each if operation in busy else min(each, 5), seen)
    print(f"{sum(seen.values())} generated requests over {len(operations)} operations", sorted(seen.items()))
    assert sum(seen.values()) >= REQUESTS


def _try_out(operation: object, kind: object, count: int, seen: Counter[tuple[str, int]]) -> None:
    strategy = operation.as_strategy(generation_mode=kind)

    @seed(2026)
    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=strategy, codes=st.sampled_from(CODES))
    def check(case: schemathesis.Case, codes: tuple[str, str] | None) -> None:
        if kind is schemathesis.GenerationMode.POSITIVE and isinstance(case.body, dict) and codes:
            case.body = _with_codes(case.body, *codes)
        response = case.call(timeout=60)
        seen[(operation.label, response.status_code)] += 1
        case.validate_response(response, checks=CHECKS)

    check()


def _with_codes(body: dict, source: str, target: str) -> dict:
    """Return a body that names languages and a task there are, where it names any."""
    codes = dict.fromkeys(SOURCES, source) | dict.fromkeys(TARGETS, target) | {"task_type": "embedding"}
    return body | {name: code for name, code in codes.items() if name in body}
