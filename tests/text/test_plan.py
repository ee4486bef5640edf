from __future__ import annotations

import pytest

from tandem.text.joining import utf16_offsets
from tandem.text.languages import Direction
from tandem.text.plan import plan_text
from tandem.text.solving import Output
from tests.text import fakes
from tests.text.fakes import run

WORDS = {
    "打开文件": "Open the file",
    "保存": "save",
    "点击": "Click",
    "按钮": "button",
    "您有": "You have",
    "条消息": "messages",
    "点击保存按钮": "Click the save button",
    "关闭": "Close",
}


def dictionary(request):
    """A translator that knows whole words and copies the rest."""
    text = request.text
    for source in sorted(WORDS, key=len, reverse=True):
        text = text.replace(source, f" {WORDS[source]} ")
    return Output(" ".join(text.split()).replace(" 。", " ."))


def plan_of(text, source="zh", target="en", **options):
    return plan_text(text, Direction(source, target), fakes.profile(source), **options)


@pytest.mark.parametrize(
    "text", ["", "   ", "\n\n\n", "\r\n", "12345", "😀🎉", "-", "https://a.b/c", "`x`", "| --- |", "\ud83d", "^_^"]
)
@pytest.mark.parametrize("direction", [("zh", "en"), ("en", "zh")])
def test_a_text_without_language_needs_no_model_and_comes_back(text, direction):
    plan = plan_of(text, *direction)
    assert plan.segments == ()
    assert plan.join([]).text == text


@pytest.mark.parametrize(
    ("text", "direction"), [("The quick brown fox.", ("zh", "en")), ("请打开窗户。", ("en", "zh"))]
)
def test_a_text_in_the_target_language_already_comes_back(text, direction):
    assert run(text, fakes.mute, *direction).text == text


def test_segments_know_their_place_in_the_source():
    text = "# 打开文件\r\n\r\n- 保存。关闭！\n"
    plan = plan_of(text)
    assert [segment.source for segment in plan.segments] == ["打开文件", "保存。", "关闭！"]
    assert all(text[segment.start : segment.end] == segment.source for segment in plan.segments)


def test_joined_text_knows_the_place_of_each_translation():
    joined = run("保存。关闭！\n打开文件", dictionary)
    assert joined.text == "save. Close!\nOpen the file"
    assert [joined.text[start:end] for start, end in joined.offsets] == ["save.", "Close!", "Open the file"]


def test_english_sentences_get_the_space_that_chinese_ones_lack():
    assert run("保存。关闭。", dictionary).text == "save. Close."


def test_chinese_sentences_lose_the_space_that_english_ones_have():
    assert run("One. Two.\nThree.", lambda request: Output("好。"), "en", "zh").text == "好。好。\n好。"


@pytest.mark.parametrize(
    "text",
    [
        "# {}",
        "- {}",
        "* [ ] {}",
        "1. {}",
        "> {}",
        "    {}",
        "\t{}",
        "  {}  ",
        "**{}**",
        "[{}](https://a.b/c)",
        "|{}|{}|",
        "{}\r\n{}\r\n",
        "```\nx = 保存\n```\n{}",
        "---\ntitle: 保存\n---\n{}",
        "00:00:01,000 --> 00:00:03,500\n{}",
        "[00:12.3]{}",
        "{}\t{}",
        "![{}](a.png)",
        "<b0>{}</b0>",
        "🎉 {}",
        "{}\u2028{}",
        "\u3000\u3000{}",
        "***\n{}\n===",
        "~~{}~~",
        "[a]: http://x\n{}",
    ],
)
def test_structure_around_the_words_is_kept(text):
    source = text.replace("{}", "打开文件")
    assert run(source, dictionary).text == text.replace("{}", "Open the file")


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("1、保存\n（2）关闭", "1. save\n(2) Close"),
        ("“保存。”", '"save."'),
        ("保存……！", "save...!"),
        ("您有 {count} 条消息。", "You have {count} messages."),
        ("点击<b>保存</b>按钮。", "Click the <b>save</b> button."),
        ("点击**保存**按钮。", "Click the **save** button."),
        ("保存🎉", "save 🎉"),
    ],
)
def test_marks_and_spans_come_out_as_a_reader_of_english_expects(text, translation):
    assert run(text, dictionary).text == translation


def test_a_lost_span_makes_the_sentence_be_translated_in_parts():
    def lose(request):
        return Output({"您有": "You have", "条消息": "messages"}.get(request.text.strip(" 。"), "nothing of it"))

    assert run("您有 {count} 条消息。", lose).text == "You have {count} messages."


def test_other_stand_ins_are_tried_before_a_sentence_is_divided():
    def fussy(request):
        return Output("Hello CSS." if "CSS" in request.text else "Hello.")

    assert run("您好 https://a.b/c。", fussy).text == "Hello https://a.b/c."


def test_a_number_written_as_a_word_is_written_as_it_was():
    assert run("您有 3 条消息", lambda request: Output("You have three messages")).text == "You have 3 messages"
    assert run("You have 3 messages", lambda request: Output("你有三条消息"), "en", "zh").text == "你有3条消息"


def test_a_loop_is_decoded_again_under_the_guard():
    def translate(request):
        return Output("fine" if request.strict else "a b a b a b a b a b")

    task = plan_of("保存").segments[0].start_task()
    while task.wanted:
        task.feed([translate(request) for request in task.wanted])
    assert task.result.text == "fine"
    assert task.result.warnings == ("repetition",)


def test_a_cut_translation_is_made_in_halves():
    def translate(request):
        return Output(request.text.replace("，", ","), truncated=len(request.text) > 12)

    text = "打开文件和窗口以及设置，然后保存并关闭它们全部"
    task = plan_of(text).segments[0].start_task()
    while task.wanted:
        task.feed([translate(request) for request in task.wanted])
    assert task.result.warnings == ()
    assert task.result.text.replace(" ", "").replace(",", "，") == text


def test_what_stays_cut_says_so():
    task = plan_of("保存").segments[0].start_task()
    while task.wanted:
        task.feed([Output("sa", truncated=True) for _ in task.wanted])
    assert task.result.warnings == ("truncated",)


def test_a_model_that_says_nothing_leaves_the_source_and_says_so():
    task = plan_of("保存").segments[0].start_task()
    task.feed([Output("")])
    assert task.result.text == "保存"
    assert task.result.warnings == ("untranslated",)


def test_alternatives_get_their_spans_and_keep_their_rank():
    task = plan_of("打开 https://a.b/c。").segments[0].start_task()
    task.feed([Output("Open X1.", alternatives=("Open it.", "Please open X1 ."))])
    assert task.result.text == "Open https://a.b/c."
    assert task.result.alternatives == ((1, "Please open https://a.b/c."),)


def test_a_given_beginning_is_asked_for_and_stands_at_the_beginning():
    task = plan_of("打开 https://a.b/c 文件。").segments[0].start_task("See https://a.b/c , th")
    assert task.wanted[0].target_prefix == "See X1 , th"
    task.feed([Output("See X1 , the file.")])
    assert task.result.text == "See https://a.b/c , the file."


def test_the_number_of_outputs_is_checked():
    task = plan_of("保存").segments[0].start_task()
    with pytest.raises(ValueError, match="1 outputs are wanted, not 2"):
        task.feed([Output("a"), Output("b")])


def test_a_glossary_decides_what_a_term_becomes():
    copy = fakes.echo
    assert "Widget" in run("打开控件", copy, glossary={"控件": "Widget"}).text
    assert "控件" in run("Open the Widget.", copy, "en", "zh", glossary={"widget": "控件"}).text


def test_traditional_characters_are_translated_as_simplified_ones():
    assert plan_of("請打開檔案。").segments[0].start_task().wanted[0].text == "请打开文件。"


def test_a_translation_may_be_written_in_traditional_characters():
    plan = plan_text("Open `软件`.", Direction("en", "zh", "Hant"), fakes.profile("en"))
    task = plan.segments[0].start_task()
    task.feed([Output("打开软件 {0} 。")])
    assert plan.join([task.result.text]).text.replace(" ", "") == "開啟軟體`软件`。"


def test_a_text_in_capitals_is_translated_as_one_in_small_letters():
    assert plan_of("PLEASE CLOSE IT.", "en", "zh").segments[0].start_task().wanted[0].text == "Please close it."


def test_an_unknown_character_copies_itself():
    profile = fakes.profile("zh", knows=lambda text: "㙡" not in text)
    task = plan_text("他叫王㙡。", Direction("zh", "en"), profile).segments[0].start_task()
    assert "㙡" not in task.wanted[0].text
    task.feed([Output("His name is Wang X1.")])
    assert task.result.text == "His name is Wang 㙡."


def test_a_long_sentence_goes_on_in_lower_case():
    text = "请检查网络连接并确认服务器的地址，然后保存所有文件"
    plan = plan_text(text, Direction("zh", "en"), fakes.profile("zh", max_tokens=20))
    assert plan.join(["Check the network,", "Then save"]).text == "Check the network, then save"


def test_translations_may_arrive_one_by_one():
    plan = plan_of("🎉 保存。关闭！\n打开文件")
    joiner = plan.joiner()
    placed = [joiner.add(text) for text in ("🎉 Save.", "Close!", "Open 🎉")]
    text = joiner.finish()
    assert text == "🎉 Save. Close!\nOpen 🎉"
    assert [text[place.start : place.end] for place in placed] == ["🎉 Save.", "Close!", "Open 🎉"]
    units = text.encode("utf-16-le")
    assert units[2 * placed[2].utf16_start : 2 * placed[2].utf16_end].decode("utf-16-le") == "Open 🎉"


def test_offsets_count_utf16_units():
    assert utf16_offsets("a🎉b好", [0, 1, 2, 3, 4]) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("translations", [[], ["a", "b"]])
def test_the_number_of_translations_is_checked(translations):
    with pytest.raises(ValueError, match="translations than segments"):
        plan_of("保存").join(translations)
