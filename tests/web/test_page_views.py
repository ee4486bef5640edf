"""The page's other views in a real browser: documents, embeddings, status."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.screenshots import shoot
from tests.support.server import Server

if TYPE_CHECKING:
    from tests.support.browser import OpenPage

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: the page was not tested")
pytest_plugins = ["tests.support.browser"]

playwright.expect.set_options(timeout=30_000)
expect = playwright.expect

LINES = ["今天天气很好", "明天会下雨", "我喜欢吃苹果", "他买了一些水果"]
LOOKS = [("desktop", "en", "light"), ("desktop", "zh", "dark"), ("phone", "zh", "light"), ("phone", "en", "dark")]


def write_lines(page: Any) -> None:
    page.locator("#view-embeddings textarea").fill("\n".join(LINES))
    expect(page.locator("#view-embeddings canvas")).to_be_visible()


# -- documents -----------------------------------------------------------------------------------------------------


def test_a_file_is_translated_with_progress_and_downloaded(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(view="#documents")
    file = tmp_path / "letter.md"
    file.write_text("# 谢谢你的帮助。\n\n我喜欢学习中文。\n", encoding="utf-8")
    page.locator("#view-documents input[type=file]").set_input_files(file)
    expect(page.locator(".jobs")).to_contain_text("Done")
    shoot(page, "documents")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    text = saved.value.path().read_text(encoding="utf-8")
    assert text.startswith("# Thank you")
    assert saved.value.suggested_filename.endswith(".md")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".jobs li")).to_have_count(0)


def test_a_file_under_way_survives_a_reload_and_can_be_cancelled(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(view="#documents")
    file = tmp_path / "long.txt"
    file.write_text("\n".join(f"他在{year}年去了北京，{year}本书很有意思。" for year in range(3000)), encoding="utf-8")
    page.locator("#view-documents input[type=file]").set_input_files(file)
    expect(page.locator(".jobs progress")).to_be_visible()
    expect(page.locator(".jobs")).to_contain_text("%")
    shoot(page, "documents-under-way")
    page.wait_for_timeout(1000)
    page.reload()
    expect(page.locator(".jobs progress")).to_be_visible()
    with page.expect_request(lambda request: request.method == "DELETE"):
        page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".jobs")).to_contain_text("Cancelled")


def test_a_file_of_an_unknown_kind_is_refused_with_a_sentence(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(view="#documents")
    file = tmp_path / "song.mp3"
    file.write_bytes(b"ID3")
    page.locator("#view-documents input[type=file]").set_input_files(file)
    expect(page.locator(".jobs")).to_contain_text(".docx")
    shoot(page, "documents-refused")


def test_a_document_dropped_on_the_translator_becomes_a_file_translation(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#example")).to_be_visible()
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(['a,b\\n我喜欢学习中文。,2\\n'], 'table.csv', {type: 'text/csv'}));
            const options = {dataTransfer: data, bubbles: true, cancelable: true};
            document.querySelector('#source').dispatchEvent(new DragEvent('drop', options));
        }"""
    )
    expect(page.locator(".jobs")).to_contain_text("table.csv")
    expect(page.locator(".jobs")).to_contain_text("Done")


# -- embeddings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "language", "theme"), LOOKS)
def test_lines_get_a_heat_map_and_a_map(open_page: OpenPage, size: str, language: str, theme: str) -> None:
    page = open_page(size, language, theme, view="#embeddings")
    write_lines(page)
    expect(page.locator(".map circle")).to_have_count(len(LINES))
    label = page.locator("#view-embeddings canvas").get_attribute("aria-label")
    assert {"en": "the closest are", "zh": "最接近的是"}[language] in label
    shoot(page, f"embeddings-{size}-{language}-{theme}", whole=True)


def test_the_similarities_are_those_of_the_service(open_page: OpenPage, page_server: Server) -> None:
    page = open_page(view="#embeddings")
    write_lines(page)
    result = page_server.ask("/predict", {"task_type": "embedding", "input_text": LINES})[1]["result"]
    vectors = np.array([entry["embedding"] for entry in result])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = units @ units.T
    page.locator("#view-embeddings canvas").focus()
    for _ in LINES:
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#view-embeddings [aria-live]")).to_contain_text(f"2 × 1: {similarity[1, 0]:.3f}")

    page.locator("#view-embeddings input[type=search]").fill("天气")
    expect(page.locator(".near li")).to_have_count(len(LINES))
    query = np.array(
        page_server.ask("/predict", {"task_type": "embedding", "input_text": "天气"})[1]["result"]["embedding"]
    )
    order = np.argsort(-(units @ query))
    assert page.locator(".near li span:last-child").all_text_contents() == [LINES[index] for index in order]


def test_the_points_are_the_principal_components(open_page: OpenPage, page_server: Server) -> None:
    page = open_page(view="#embeddings")
    write_lines(page)
    result = page_server.ask("/predict", {"task_type": "embedding", "input_text": LINES})[1]["result"]
    vectors = np.array([entry["embedding"] for entry in result])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
    wanted = u[:, :2] * s[:2]
    drawn = np.array(
        page.locator(".map circle").evaluate_all("all => all.map(c => [+c.getAttribute('cx'), +c.getAttribute('cy')])")
    )
    for axis in range(2):
        assert abs(np.corrcoef(wanted[:, axis], drawn[:, axis])[0, 1]) > 0.999


def test_vectors_are_copied_as_json_and_saved_as_npy(open_page: OpenPage, page_server: Server) -> None:
    page = open_page(view="#embeddings")
    write_lines(page)
    result = page_server.ask("/predict", {"task_type": "embedding", "input_text": LINES})[1]["result"]
    vectors = np.array([entry["embedding"] for entry in result])
    page.get_by_role("button", name="Copy as JSON").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    np.testing.assert_allclose(json.loads(page.evaluate("() => navigator.clipboard.readText()")), vectors, rtol=1e-6)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as .npy").click()
    loaded = np.load(io.BytesIO(saved.value.path().read_bytes()))
    assert loaded.dtype == np.float32
    np.testing.assert_allclose(loaded, vectors, rtol=1e-6)


def test_only_new_lines_are_sent(open_page: OpenPage) -> None:
    page = open_page(view="#embeddings")
    write_lines(page)
    with page.expect_request("**/predict") as sent:
        page.locator("#view-embeddings textarea").fill("\n".join([*LINES, "你好"]))
    assert json.loads(sent.value.post_data)["input_text"] == ["你好"]


# -- status --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "language", "theme"), LOOKS)
def test_the_status_view_draws_live_charts(
    open_page: OpenPage, page_server: Server, size: str, language: str, theme: str
) -> None:
    page = open_page(size, language, theme, view="#status")
    expect(page.locator(".facts")).to_contain_text("CSANMT-demo")
    for _ in range(3):
        page_server.ask("/translate", {"text": f"他在{size}{language}年去了北京。"})
        page.wait_for_timeout(1500)
    expect(page.locator("figcaption", has_text={"en": "Latency", "zh": "延迟"}[language])).to_contain_text("ms")
    expect(page.locator("figcaption", has_text={"en": "Cache hit rate", "zh": "缓存命中率"}[language])).to_contain_text(
        "%"
    )
    expect(page.locator(".bar-fill").first).to_be_attached()
    assert page.locator(".plot").first.get_attribute("d").count("L") >= 1
    shoot(page, f"status-{size}-{language}-{theme}", whole=True)


def test_the_status_is_the_metrics_in_json(open_page: OpenPage, page_server: Server) -> None:
    status = page_server.ask("/status.json")[1]
    assert status["ready"] is True
    assert set(status["queue"]) == {"demo-zh2en", "demo-en2zh", "demo-gte"}
    page = open_page()
    metrics = page.request.get(f"{page_server.url}/metrics").text()
    names = {line.split("{")[0].split(" ")[0] for line in metrics.splitlines() if line and not line.startswith("#")}
    assert {name for name in names if not name.endswith("_created")} == set(status["samples"])


def test_the_status_view_says_when_the_service_is_gone(open_page: OpenPage) -> None:
    page = open_page(view="#status")
    message = page.locator("#view-status [role=status]")
    expect(message).to_have_text("Ready")
    page.context.set_offline(True)
    expect(message).to_contain_text("cannot be reached")
    page.context.set_offline(False)
    expect(message).to_have_text("Ready")
