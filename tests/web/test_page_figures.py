"""What can be measured of the page: speed, size, stillness, accessibility, headers."""

from __future__ import annotations

import gzip
import re
import statistics
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.screenshots import ARTIFACTS
from tests.support.server import Server

if TYPE_CHECKING:
    from tests.support.browser import OpenPage

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: the page was not tested")
pytest_plugins = ["tests.support.browser"]

playwright.expect.set_options(timeout=30_000)
expect = playwright.expect

PARAGRAPH = "今天天气很好，我们去公园散步。回来以后一起做饭。" * 6
MOST_BYTES = 60 * 1024
WATCH_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts.push([entry.value, entry.startTime,
    entry.sources.map((source) => source.node && (source.node.id || source.node.className || source.node.nodeName))]);
}).observe({ type: "layout-shift", buffered: true });
"""
WATCH_KEYS = """
window.keys = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (entry.name === "keydown") keys.push(entry.duration);
}).observe({ type: "event", durationThreshold: 16 });
"""
FASTER_THAN_MEASURED_MS = 16  # shorter events are not reported


def note(figure: str) -> None:
    """Keep a measured figure beside the screenshots."""
    ARTIFACTS.mkdir(exist_ok=True)
    with (ARTIFACTS / "figures.txt").open("a", encoding="utf-8") as file:
        file.write(f"{figure}\n")


def fetch(url: str, **headers: str) -> tuple[int, Any, bytes]:
    """Return status, headers and body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


# -- speed and size ------------------------------------------------------------------------------------------------


def test_the_first_contentful_paint_comes_within_300_ms(open_page: OpenPage) -> None:
    paints = []
    for _ in range(5):
        page = open_page()
        expect(page.locator("#example")).to_be_visible()
        [paint] = page.evaluate(
            "() => performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"
        )
        paints.append(paint)
    note(f"first contentful paint, cold, median of 5: {statistics.median(paints):.0f} ms")
    assert min(paints) < 300, paints  # a busy machine slows some of them; the page's own time is the least


def test_everything_together_is_under_60_kilobytes(open_page: OpenPage) -> None:
    addresses: dict[str, str] = {}
    received: dict[str, int] = {}  # by address, headers included

    def finish(event: dict[str, Any]) -> None:
        received[addresses[event["requestId"]]] = event["encodedDataLength"]

    def count(page: Any) -> None:
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on(
            "Network.requestWillBeSent", lambda event: addresses.update({event["requestId"]: event["request"]["url"]})
        )
        session.on("Network.loadingFinished", finish)

    page = open_page(prepare=count)
    expect(page.locator("#example")).to_be_visible()
    first = sum(received.values())
    for view in ("documents", "embeddings", "status"):
        page.locator(f"nav a[href='#{view}']").click()
        expect(page.locator(f"#view-{view} > *").first).to_be_attached()
    page.wait_for_load_state("networkidle")
    live = next(address for address in received if address.endswith("/status.json"))
    everything = sum(received.values()) - received[live]
    note(f"transfer: {first} bytes for the translator, {everything} with all views; {received[live]} for a status")
    assert first < everything < MOST_BYTES


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_nothing_shifts(open_page: OpenPage, size: str) -> None:
    page = open_page(size, script=WATCH_SHIFTS)
    expect(page.locator("#example")).to_be_visible()
    page.locator("#source").press_sequentially("我喜欢学习中文。", delay=5)
    expect(page.locator("#target .s")).to_have_count(1)
    text = "".join(f"他在{size}{year}年去了北京。" for year in range(60))
    page.keyboard.press("End")
    page.locator("#source").fill(text)
    expect(page.locator("#target .s")).to_have_count(60)
    expect(page.locator("#target .stale")).to_have_count(0)
    page.wait_for_timeout(300)
    page.reload()
    expect(page.locator("#target .s")).to_have_count(60)
    page.wait_for_timeout(500)
    shifts = page.evaluate("() => shifts")
    note(f"layout shift, {size}: {sum(value for value, *_ in shifts)}")
    assert shifts == []


@pytest.mark.parametrize("text", ["\n\n".join([PARAGRAPH] * 140)[:19_900], (PARAGRAPH * 140)[:19_900]],
                         ids=["paragraphs", "one-paragraph"])  # fmt: skip
def test_a_key_is_painted_within_50_ms_with_a_long_text_open(open_page: OpenPage, text: str) -> None:
    page = open_page(script=WATCH_KEYS)
    area = page.locator("#source")
    area.fill(text)
    expect(page.locator("#result")).to_contain_text("sentences", timeout=120_000)
    area.press("Control+Home")
    page.wait_for_timeout(1000)
    rounds = []
    while not rounds or (rounds[-1] >= 50 and len(rounds) < 3):  # a busy machine slows some rounds, a slow page all
        rounds.append(press_keys(page, f"{len(text)} characters"))
    assert rounds[-1] < 50, rounds


def press_keys(page: Any, what: str, count: int = 80) -> float:
    """Press keys at the speed of a typist; return the 95th percentile from key to paint in milliseconds."""
    page.evaluate("() => { keys.length = 0; }")
    for index in range(count):
        page.keyboard.press("abcdefgh"[index % 8])
        page.wait_for_timeout(1500 if index % 20 == 19 else 70)  # so that requests and answers fall among the keys
    slow = page.evaluate("() => keys")
    durations = sorted([*slow, *[FASTER_THAN_MEASURED_MS] * (count - len(slow))])
    p95 = durations[int(0.95 * count)]
    note(f"key to paint with {what} open: p50 {durations[count // 2]} ms, p95 {p95} ms, max {durations[-1]} ms")
    return float(p95)


# -- accessibility -------------------------------------------------------------------------------------------------

PLACES = ["translate", "card", "glossary", "history", "help", "api", "problem", "documents", "embeddings", "status"]


def go(page: Any, place: str) -> None:
    """Bring the page to a place."""
    expect(page.locator("#example")).to_be_visible()
    if place in ("documents", "embeddings", "status"):
        page.locator(f"nav a[href='#{place}']").click()
        expect(page.locator(f"#view-{place} > *").first).to_be_attached()
    if place == "embeddings":
        page.locator("#view-embeddings button").first.click()
        page.locator("#view-embeddings input[type=search]").fill("天气")
        expect(page.locator(".near li").first).to_be_visible()
    if place == "status":
        expect(page.locator(".plot").first).to_be_attached()
    if page.locator("#view-translate").is_hidden():
        return
    page.locator("#source").fill("我喜欢学习中文。谢谢你的帮助。")
    expect(page.locator("#target .s")).to_have_count(2)
    if place == "card":
        page.locator("#target .s").first.click()
        expect(page.locator("[role=option]").first).to_be_visible()
    if place == "problem":
        page.locator("#source").fill("好" * 20_001)
        expect(page.locator("#notice")).to_be_visible()
    opener = {"glossary": "#open-glossary", "history": "#open-history", "help": "#open-help", "api": "#api summary"}
    if place in opener:
        page.locator(opener[place]).click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("size", "language"), [("desktop", "en"), ("phone", "zh")])
def test_axe_finds_nothing(open_page: OpenPage, size: str, language: str, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing: not checked").Axe()
    found = []
    for place in PLACES:
        page = open_page(size, language, theme)
        go(page, place)
        for violation in axe.run(page).response["violations"]:
            nodes = [(node["html"][:160], node["failureSummary"]) for node in violation["nodes"][:3]]
            found.append((place, violation["impact"], violation["id"], nodes))
        page.context.close()
    assert not found, "\n".join(map(str, found))


def test_nothing_moves_for_those_who_ask(open_page: OpenPage) -> None:
    page = open_page(reduced_motion="reduce")
    moving = page.evaluate(
        """() => [...document.querySelectorAll('*')].flatMap(node => ['', '::before', '::after'].map(pseudo =>
            getComputedStyle(node, pseudo || null))).filter(style => style.transitionDuration !== '0s'
            || style.animationDuration !== '0s').length"""
    )
    assert moving == 0


def test_whatever_has_the_focus_shows_it(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#source").fill("我喜欢学习中文。谢谢你的帮助。")
    expect(page.locator("#target .s")).to_have_count(2)
    page.evaluate("() => document.activeElement.blur()")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline, frame = page.evaluate(
            """() => {
                const node = document.activeElement;
                const style = getComputedStyle(node);
                const pane = getComputedStyle(document.querySelector('#source-pane'));
                const text = node.textContent.trim().slice(0, 20);
                return [node === document.body ? "BODY" : node.id || text, style.outlineStyle, pane.boxShadow];
            }"""
        )
        seen.append(name)
        assert name == "BODY" or outline != "none" or (name == "source" and frame != "none"), name
    wanted = {"source-language", "swap", "target-language", "source", "copy", "open-glossary", "open-history", "theme"}
    assert wanted <= set(seen)


# -- headers -------------------------------------------------------------------------------------------------------


def test_files_are_compressed_kept_for_ever_and_addressed_by_content(page_server: Server) -> None:
    page = fetch(f"{page_server.url}/", **{"Accept-Encoding": "gzip"})
    assert page[1]["Content-Encoding"] == "gzip"
    assert page[1]["Cache-Control"] == "no-cache"
    html = gzip.decompress(page[2]).decode()
    addresses = re.findall(r'(?:href|src)="(/[^"]+)"', html)
    assert len(addresses) >= 5
    for address in addresses:
        status, headers, body = fetch(page_server.url + address, **{"Accept-Encoding": "gzip"})
        assert status == 200
        assert headers["Content-Encoding"] == "gzip"
        assert "immutable" in headers["Cache-Control"]
        assert "Accept-Encoding" in headers["Vary"]
        plain = fetch(page_server.url + address)
        assert plain[2] == gzip.decompress(body)
        assert fetch(page_server.url + address, **{"If-None-Match": plain[1]["ETag"]})[0] == 304
        other_version = re.sub(r"/assets/\w+/", "/assets/000000000000/", address)
        assert fetch(page_server.url + other_version)[0] == 404
    assert fetch(f"{page_server.url}/", **{"If-None-Match": page[1]["ETag"], "Accept-Encoding": "gzip"})[0] == 304


def test_the_page_has_no_inline_script_or_style_and_asks_no_other_host(page_server: Server) -> None:
    _, headers, body = fetch(f"{page_server.url}/")
    html = body.decode()
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|https?://", html)


@pytest.mark.parametrize(
    ("headers", "language"),
    [
        ({"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}, "zh-Hans"),
        ({"Accept-Language": "fr,en;q=0.5"}, "en"),
        ({"Accept-Language": "de"}, "en"),
        ({"Accept-Language": "zh-CN", "Cookie": "tandem_language=en"}, "en"),
        ({"Cookie": "tandem_language=zh"}, "zh-Hans"),
    ],
)
def test_the_page_comes_in_the_visitors_language(page_server: Server, headers: dict[str, str], language: str) -> None:
    assert f'<html lang="{language}"' in fetch(f"{page_server.url}/", **headers)[2].decode()
