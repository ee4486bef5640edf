"""The translator in a real browser, with the demo models behind it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.screenshots import shoot
from tests.support.server import Server

if TYPE_CHECKING:
    from tests.support.browser import OpenPage

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: the page was not tested")
pytest_plugins = ["tests.support.browser"]

playwright.expect.set_options(timeout=30_000)
expect = playwright.expect

FIRST, SECOND, THIRD = "我喜欢学习中文。", "谢谢你的帮助。", "我们需要更多的时间。"
COMBINATIONS = [
    (size, language, theme) for size in ("desktop", "phone") for language in ("en", "zh") for theme in ("light", "dark")
]
OVERLOADED = {
    "status": 429,
    "headers": {"Retry-After": "1"},
    "json": {"error": "The waiting room is full.", "code": "overloaded", "request_id": "1"},
}


def write(page: Any, text: str) -> None:
    """Type a text and wait until its translation is there."""
    page.locator("#source").press_sequentially(text, delay=5)
    wait_until_done(page, len(page.locator("#source").input_value()))


def wait_until_done(page: Any, characters: int) -> None:
    """Wait for a result that fits the text."""
    expect(page.locator("#count")).to_have_text(f"{characters:,} / 20,000")
    expect(page.locator("#target")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#target .s").first).to_be_visible()
    expect(page.locator("#target .stale")).to_have_count(0)
    expect(page.locator("#result")).not_to_be_empty()


def sentences(page: Any) -> list[str]:
    """Return the sentences of the translation."""
    return list(page.locator("#target .s").all_text_contents())


def scroll_top(page: Any, selector: str) -> float:
    return float(page.locator(selector).evaluate("node => node.scrollTop"))


# -- the panes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "language", "theme"), COMBINATIONS)
def test_every_size_language_and_theme_shows_a_translation(
    open_page: OpenPage, size: str, language: str, theme: str
) -> None:
    page = open_page(size, language, theme)
    expect(page.locator("#example")).to_be_visible()
    shoot(page, f"translate-empty-{size}-{language}-{theme}")
    write(page, FIRST + SECOND)
    shoot(page, f"translate-{size}-{language}-{theme}")
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-Hans"}[language]
    assert page.locator("nav a").first.inner_text() == {"en": "Translate", "zh": "翻译"}[language]
    background = page.locator("html").evaluate("node => getComputedStyle(node).backgroundColor")
    assert background == {"light": "rgb(252, 252, 250)", "dark": "rgb(22, 24, 26)"}[theme]
    overflow = page.locator("html").evaluate("node => node.scrollWidth - node.clientWidth")
    assert overflow == 0, "nothing is wider than the screen"


def test_the_panes_stand_side_by_side_on_a_desktop_and_stacked_on_a_phone(open_page: OpenPage) -> None:
    def boxes(size: str) -> tuple[Any, Any]:
        page = open_page(size)
        return page.locator("#source-pane").bounding_box(), page.locator("#target-pane").bounding_box()

    left, right = boxes("desktop")
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    upper, lower = boxes("phone")
    assert upper["y"] + upper["height"] <= lower["y"]
    assert lower["y"] < 844 - 100, "the result is in sight while one types"


def test_touch_targets_on_a_phone_are_44_pixels_high(open_page: OpenPage) -> None:
    page = open_page("phone")
    write(page, FIRST)
    small = page.locator("button:visible, select:visible, nav a, summary").evaluate_all(
        "nodes => nodes.filter(n => n.getBoundingClientRect().height < 44 && n.id !== 'example').map(n => n.outerHTML)"
    )
    assert small == []


def test_a_click_on_the_example_translates_it(open_page: OpenPage) -> None:
    page = open_page(language="zh")
    page.locator("#example").click()
    expect(page.locator("#target .s")).to_have_count(3)
    expect(page.locator("#example")).to_be_hidden()


def test_the_source_grows_with_its_text_and_both_panes_scroll_by_sentence(open_page: OpenPage) -> None:
    page = open_page()
    area = page.locator("#source")
    low = area.bounding_box()["height"]
    text = "\n\n".join([FIRST + SECOND] * 60)
    area.fill(text)
    wait_until_done(page, len(text))
    assert area.bounding_box()["height"] > low
    page.wait_for_timeout(600)  # scrolling is linked once the keys have rested
    page.locator("#source-scroller").evaluate("node => node.scrollTop = node.scrollHeight / 2")
    page.wait_for_timeout(100)
    target = page.locator("#target-scroller")
    assert scroll_top(page, "#target-scroller") > 0.25 * target.evaluate(
        "node => node.scrollHeight - node.clientHeight"
    )


# -- languages -----------------------------------------------------------------------------------------------------


def test_the_language_is_detected_and_the_target_follows(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST)
    expect(page.locator("#source-language option:checked")).to_have_text("Chinese (detected)")
    page.locator("#source").fill("The weather is fine today.")
    expect(page.locator("#source-language option:checked")).to_have_text("English (detected)")
    assert page.locator("#target-language").input_value() == "zh"


def test_swapping_exchanges_languages_and_texts(open_page: OpenPage) -> None:
    page = open_page()
    write(page, SECOND)
    translated = page.locator("#target").inner_text()
    page.keyboard.press("Alt+s")
    expect(page.locator("#source")).to_have_value(translated)
    expect(page.locator("#target-language")).to_have_value("zh")
    expect(page.locator("#target .stale")).to_have_count(0)


def test_swap_is_off_and_says_why_when_no_model_has_that_direction(open_page: OpenPage) -> None:
    def only_into_english(page: Any) -> None:
        def answer(route: Any) -> None:
            data = route.fetch().json()
            route.fulfill(json={**data, "directions": [["zh", "en"]]})

        page.route("**/page.json", answer)

    page = open_page(prepare=only_into_english)
    button = page.locator("#swap")
    expect(button).to_have_attribute("aria-disabled", "true")
    reason = "No model from English to Chinese is loaded, so the languages cannot be swapped."
    expect(button).to_have_attribute("title", reason)
    button.press("Enter")
    expect(page.locator("#notice")).to_contain_text(reason)
    shoot(page, "swap-off")


def test_traditional_characters_can_be_chosen(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#source").fill("The weather is fine today.")
    expect(page.locator("#target-language")).to_have_value("zh")
    wait_until_done(page, 26)
    page.locator("#target-language").select_option("zh-Hant")
    expect(page.locator("#target")).to_contain_text("氣")


# -- as one types --------------------------------------------------------------------------------------------------


def test_typing_waits_for_a_pause_and_computes_changed_sentences_only(open_page: OpenPage) -> None:
    requests: list[str] = []
    page = open_page(prepare=lambda page: page.on("request", lambda request: requests.append(request.url)))
    write(page, FIRST + SECOND)
    assert sum(url.endswith("/translate") for url in requests) < 6, "not a request for every key"
    page.locator("#source").fill(f"{FIRST}{SECOND}他在{time.time_ns()}年去了北京。")
    expect(page.locator("#result")).to_contain_text("3 sentences")
    expect(page.locator("#result")).to_contain_text("2 cached")


def test_a_new_text_aborts_the_request_before(open_page: OpenPage) -> None:
    page = open_page()
    text = "".join(f"第{number}章讲的是一个很长的故事。" for number in range(200))
    page.locator("#source").fill(text)
    expect(page.locator("#target .s").first).to_be_visible()
    with page.expect_event("requestfailed", lambda request: request.failure == "net::ERR_ABORTED"):
        page.locator("#source").fill(FIRST)
    wait_until_done(page, len(FIRST))
    assert len(sentences(page)) == 1


def test_sentences_appear_as_they_come(open_page: OpenPage) -> None:
    page = open_page()
    page.evaluate(
        """() => {
            window.counts = new Set();
            new MutationObserver(() => counts.add(document.querySelectorAll('#target .s').length))
                .observe(document.querySelector('#target'), {childList: true});
        }"""
    )
    text = "".join(f"他在{year}年去了北京。" for year in range(1900, 1960))
    page.locator("#source").fill(text)
    wait_until_done(page, len(text))
    expect(page.locator("#target .s")).to_have_count(60)
    assert 0 < min(page.evaluate("() => [...counts]")) < 60, "some were shown before all were done"


def test_the_result_never_flashes_empty_while_typing(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST)
    page.evaluate(
        """() => {
            window.empty = 0;
            new MutationObserver(() => { if (!document.querySelector('#target').textContent.trim()) empty += 1; })
                .observe(document.querySelector('#target'), {childList: true, characterData: true, subtree: true});
        }"""
    )
    write(page, SECOND)
    page.locator("#source").press("Home")
    write(page, THIRD)
    page.locator("#target-language").select_option("en")
    expect(page.locator("#target .s")).to_have_count(3)
    assert page.evaluate("() => empty") == 0


# -- sentences -----------------------------------------------------------------------------------------------------


def test_pointing_at_a_sentence_tints_its_counterpart(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST + SECOND)
    tinted = """() => [...CSS.highlights.get('sentence') ?? []].map(range => range.toString())"""
    page.locator("#target .s").nth(1).hover()
    assert page.evaluate(tinted) == [SECOND]
    page.locator("#source").hover(position={"x": 30, "y": 12})
    expect(page.locator("#target .s.on")).to_have_text(sentences(page)[0])
    assert page.evaluate(tinted) == [FIRST]
    page.locator("#source").press("End")
    page.locator("#source").press("ArrowLeft")
    expect(page.locator("#target .s.on")).to_have_text(sentences(page)[1])
    page.locator("#target .s").nth(1).hover()
    shoot(page, "sentence-tinted")


def test_a_sentence_offers_alternatives_with_scores_and_keeps_the_choice(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST + SECOND)
    page.locator("#target .s").nth(1).click()
    options = page.locator("[role=option]")
    expect(options).to_have_count(4)
    scores = [float(text) for text in options.locator(".score").all_text_contents()]
    assert scores == sorted(scores, reverse=True)
    shoot(page, "alternatives")
    page.keyboard.press("ArrowDown")
    wanted = options.nth(1).locator("span").first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("#target .s").nth(1)).to_have_text(wanted)
    write(page, THIRD)
    assert sentences(page)[1] == wanted, "typing on does not lose the choice"
    page.locator("#target .s").nth(1).click()
    page.get_by_role("button", name="Back to the machine's").click()
    expect(page.locator("#target .s").nth(1)).not_to_have_text(wanted)


def test_the_model_finishes_a_sentence_whose_beginning_was_edited(open_page: OpenPage) -> None:
    page = open_page()
    write(page, SECOND)
    page.locator("#target .s").click()
    field = page.locator(".card textarea")
    expect(page.locator("[role=option]").first).to_be_visible()
    field.fill("Many than")
    field.press("End")
    with page.expect_request("**/translate") as sent:
        field.press("Tab")
    assert json.loads(sent.value.post_data)["target_prefix"] == "Many than"
    expect(page.locator(".card .hint")).to_contain_text("What stood before the cursor is kept")
    finished = field.input_value()
    assert finished.startswith("Many than")
    assert len(finished) > len("Many than")
    shoot(page, "prefix")
    field.press("Enter")
    expect(page.locator("#target .s")).to_have_text(finished)


# -- glossary, history, files --------------------------------------------------------------------------------------


def test_the_glossary_is_sent_and_survives_a_reload(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST)
    page.locator("#open-glossary").click()
    page.get_by_label("Term").fill("中文")
    with page.expect_request(lambda request: "Mandarin" in (request.post_data or "")) as sent:
        page.get_by_label("Translation", exact=True).last.fill("Mandarin")
    assert json.loads(sent.value.post_data)["glossary"] == {"中文": "Mandarin"}
    shoot(page, "glossary")
    page.keyboard.press("Escape")
    expect(page.locator("#target")).to_contain_text("Mandarin")
    page.wait_for_timeout(1000)
    page.reload()
    expect(page.locator("#open-glossary")).to_have_text("Glossary (1)")


def test_the_history_restores_and_can_be_switched_off(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST)
    page.wait_for_timeout(2000)
    page.locator("#source").fill(SECOND)
    wait_until_done(page, len(SECOND))
    page.wait_for_timeout(2000)
    page.locator("#open-history").click()
    entries = page.locator(".entry")
    expect(entries).to_have_count(2)
    shoot(page, "history")
    entries.nth(1).click()
    expect(page.locator("#source")).to_have_value(FIRST)
    page.locator("#open-history").click()
    page.get_by_label("Keep a history in this browser").uncheck()
    expect(page.locator(".entry")).to_have_count(0)
    page.keyboard.press("Escape")
    page.locator("#source").fill(THIRD)
    wait_until_done(page, len(THIRD))
    page.wait_for_timeout(2000)
    page.locator("#open-history").click()
    expect(page.locator(".entry")).to_have_count(0)


def test_text_files_can_be_opened_and_dropped(open_page: OpenPage, tmp_path: Any) -> None:
    page = open_page()
    file = tmp_path / "text.txt"
    file.write_text(FIRST, encoding="utf-8")
    page.locator("#file").set_input_files(file)
    expect(page.locator("#source")).to_have_value(FIRST)
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], 'dropped.txt', {type: 'text/plain'}));
            const area = document.querySelector('#source');
            for (const type of ['dragover', 'drop'])
                area.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        SECOND,
    )
    expect(page.locator("#source")).to_have_value(SECOND)
    expect(page.locator("#drop")).to_be_hidden()


def test_copy_paste_save_and_clear(open_page: OpenPage) -> None:
    page = open_page()
    write(page, SECOND)
    translated = page.locator("#target").inner_text()
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == translated
    with page.expect_download() as saved:
        page.locator("#save").click()
    assert saved.value.path().read_text(encoding="utf-8") == translated
    page.locator("#clear").click()
    expect(page.locator("#source")).to_have_value("")
    expect(page.locator("#target")).to_have_text("")
    page.evaluate("text => navigator.clipboard.writeText(text)", FIRST)
    page.locator("#paste").click()
    expect(page.locator("#source")).to_have_value(FIRST)
    wait_until_done(page, len(FIRST))
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#copy")).to_have_text("Copied")


def test_the_translation_is_read_aloud_where_the_browser_can(open_page: OpenPage) -> None:
    page = open_page(script="speechSynthesis.speak = (said) => { window.said = [said.text, said.lang]; };")
    write(page, SECOND)
    page.locator("#speak-target").click()
    assert page.evaluate("() => said") == [page.locator("#target").inner_text(), "en-US"]
    expect(page.locator("#speak-target")).to_have_text("Stop")
    page.locator("#speak-target").click()
    expect(page.locator("#speak-target")).to_have_text("Listen")


# -- language and theme --------------------------------------------------------------------------------------------


def test_language_and_theme_can_be_switched_and_are_remembered(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST)
    page.locator("#theme").click()
    page.locator("#language").click()
    expect(page.locator("#open-glossary")).to_have_text("术语表")
    expect(page.locator("#source")).to_have_value(FIRST)
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    expect(page.locator("#target .s")).to_have_count(1)


def test_the_text_and_its_translation_survive_a_reload(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST + SECOND)
    before = sentences(page)
    page.route("**/translate", lambda route: route.abort())
    page.reload()
    expect(page.locator("#source")).to_have_value(FIRST + SECOND)
    assert sentences(page) == before, "shown before the service is asked"


# -- errors --------------------------------------------------------------------------------------------------------


def test_a_text_over_the_limit_is_a_sentence_with_ways_out(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#source").fill("好" * 20_007)
    expect(page.locator("#notice")).to_contain_text("7 characters over the limit of 20,000")
    shoot(page, "too-long")
    page.get_by_role("button", name="Cut it there").click()
    expect(page.locator("#count")).to_have_text("20,000 / 20,000")
    expect(page.locator("#notice")).to_be_hidden()
    page.locator("#clear").click()


def test_an_overloaded_service_is_asked_again_after_a_countdown(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#example")).to_be_visible()
    answers = [OVERLOADED, OVERLOADED]
    page.route("**/translate", lambda route: route.fulfill(**answers.pop()) if answers else route.continue_())
    page.locator("#source").fill(FIRST)
    expect(page.locator("#notice")).to_contain_text("The service is busy. Your text is safe")
    expect(page.locator("#notice")).to_contain_text(" s")
    shoot(page, "overloaded")
    expect(page.locator("#target .s")).to_have_count(1)
    expect(page.locator("#notice")).to_be_hidden()
    assert page.locator("#source").input_value() == FIRST


@pytest.mark.parametrize("language", ["en", "zh"])
def test_when_the_service_is_gone_the_page_says_so_and_comes_back(open_page: OpenPage, language: str) -> None:
    page = open_page(language=language)
    write(page, FIRST)
    page.context.set_offline(True)
    page.locator("#source").fill(SECOND)
    expect(page.locator("#notice")).to_contain_text({"en": "cannot be reached", "zh": "无法连接服务"}[language])
    assert page.locator("#source").input_value() == SECOND
    shoot(page, f"offline-{language}")
    page.context.set_offline(False)
    expect(page.locator("#target")).to_contain_text("help")
    expect(page.locator("#notice")).to_be_hidden()


def test_a_sentence_that_failed_is_marked_and_retried(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#example")).to_be_visible()
    segment = {
        "index": 0, "item": 0, "source": FIRST, "target": "I like it.", "source_start": 0, "source_end": len(FIRST),
        "score": -1,
    }  # fmt: skip
    error = {"error": "The engine could not compute this.", "code": "internal", "request_id": "1"}
    stream = f"event: segment\ndata: {json.dumps(segment)}\n\nevent: error\ndata: {json.dumps(error)}\n\n"
    page.route("**/translate", lambda route: route.fulfill(body=stream, content_type="text/event-stream"), times=1)
    page.locator("#source").fill(FIRST + SECOND)
    expect(page.locator("#target .failed")).to_have_text(SECOND)
    expect(page.locator("#notice")).to_contain_text("they are marked")
    shoot(page, "partly-failed")
    page.locator("#target .failed").click()
    expect(page.locator("#target .failed")).to_have_count(0)
    expect(page.locator("#notice")).to_be_hidden()


def test_a_service_that_wants_a_key_gets_one(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#example")).to_be_visible()
    missing = {"error": "An API key is required here.", "code": "missing_key", "request_id": "1"}
    page.route("**/translate", lambda route: route.fulfill(status=401, json=missing), times=1)
    page.locator("#source").fill(FIRST)
    page.get_by_role("button", name="Enter a key").click()
    page.get_by_label("API key").last.fill("secret")
    with page.expect_request("**/translate") as sent:
        page.keyboard.press("Enter")
    assert sent.value.headers["authorization"] == "Bearer secret"
    expect(page.locator("#notice")).to_be_hidden()


def test_the_demo_model_is_named(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#demo")).to_contain_text("TRANSLATION_MODEL=iic/nlp_csanmt_translation_zh2en")


# -- API panel -----------------------------------------------------------------------------------------------------


def test_the_api_panel_shows_calls_that_work(open_page: OpenPage, page_server: Server) -> None:
    page = open_page()
    text = "我喜欢学习'中文'。\n谢谢\"你\"的帮助。"
    page.locator("#source").fill(text)
    wait_until_done(page, len(text))
    wanted = page_server.ask("/translate", {"text": text, "source": "auto", "target": "en"})[1]["translation"]
    page.locator("#api summary").click()
    code = page.locator("#snippet")
    if shutil.which("curl"):
        expect(code).to_contain_text("curl http")
        answer = subprocess.run(["bash", "-c", code.inner_text()], capture_output=True, check=True)
        assert json.loads(answer.stdout)["translation"] == wanted
    page.get_by_role("tab", name="Python").click()
    program = code.inner_text().replace("print(response.json())", "import json; print(json.dumps(response.json()))")
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert json.loads(answer.stdout)["translation"] == wanted
    shoot(page, "api")
    page.get_by_role("tab", name="JavaScript").click()
    program = code.inner_text().replace("console.log(await response.json());", "return (await response.json());")
    assert page.evaluate(f"async () => {{ {program} }}")["translation"] == wanted


# -- keyboard ------------------------------------------------------------------------------------------------------


def test_everything_in_the_result_can_be_reached_by_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    write(page, FIRST + SECOND)
    page.locator("#target .s").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#target .s").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[role=option]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("#target .s").nth(1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Alt + S")
    shoot(page, "shortcuts")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    with page.expect_request("**/translate"):
        page.keyboard.press("Control+Enter")
