from __future__ import annotations

import pytest

from tandem.text.languages import Direction
from tandem.text.plan import plan_text
from tandem.text.solving import Output
from tests.text import fakes
from tests.text.fakes import run


def html(text, translate=fakes.echo, source="zh", target="en", format="html"):
    return run(text, translate, source, target, format=format).text


def texts(document, source="zh", format="html"):
    plan = plan_text(document, Direction(source, "en" if source == "zh" else "zh"), fakes.profile(source), format)
    return [segment.source for segment in plan.segments]


@pytest.mark.parametrize(
    "document",
    [
        "",
        "<p></p>",
        "<!DOCTYPE html>\n<html><head><meta charset=utf-8></head><body></body></html>",
        "<br>",
        "a &amp; b",
        "<script>var a = '保存';</script>",
        "<style>p { content: '保存' }</style>",
        "<pre>保存\n  文件</pre>",
        "<!-- 保存 -->",
        "<code>保存</code>",
        '<p translate="no">保存</p>',
        '<span class="x notranslate">保存</span>',
        "<![CDATA[保存]]>",
        "<?php 保存 ?>",
        "<textarea>保存</textarea>",
        "<svg><text>保存</text></svg>",
        "&nbsp;&copy;",
        "<img alt='保存'>",
        "<a",
        "<![保",
        "</",
        '<b x="',
    ],
)
def test_a_document_without_words_to_translate_comes_back(document):
    assert html(document) == document or document.startswith(("<a", "<b", "</", "<!["))


def test_blocks_are_sentences_of_their_own():
    assert texts("<ul>\n <li>打开<em>文件</em></li>\n <li>保存</li>\n</ul>文件<br>关闭") == [
        "打开<em>文件</em>",
        "保存",
        "文件",
        "关闭",
    ]


def test_white_space_within_a_block_does_not_divide_it():
    document = "<p>\n\t\tIf a line has no verb\n\t\tthe translation fails.\n</p>"
    plan = plan_text(document, Direction("en", "zh"), fakes.profile("en"), "html")
    assert plan.segments[0].start_task().wanted[0].text == "If a line has no verb the translation fails."


def test_inline_tags_wrap_the_words_they_wrapped():
    answers = {"点击保存按钮。": "Click the Save button.", "保存": "Save"}
    translate = lambda request: Output(answers[request.text])  # noqa: E731
    assert html("<p>点击<b class='x'>保存</b>按钮。</p>", translate) == "<p>Click the <b class='x'>Save</b> button.</p>"


def test_nested_tags_around_the_same_words_are_one():
    answers = {"点击保存按钮。": "Click the Save button.", "保存": "Save"}
    translate = lambda request: Output(answers[request.text])  # noqa: E731
    assert (
        html("点击<a href='#'>\n<em>保存</em></a>按钮。", translate)
        == "Click the <a href='#'>\n<em>Save</em></a> button."
    )


def test_words_that_cannot_be_found_are_translated_by_themselves():
    def translate(request):
        return Output({"保存": "Keep", "点击": "Click", "按钮": "button"}.get(request.text.strip("。"), "All in one."))

    assert html("点击<b>保存</b>按钮。", translate) == "Click <b>Keep</b> button."


def test_entities_stay_and_the_model_s_words_are_escaped():
    answer = lambda request: Output("a < b & 'c' \"d\"")  # noqa: E731
    assert html("保存", answer) == "a &lt; b &amp; 'c' \"d\""
    assert html("<p>保存 &copy; 文件</p>").count("&copy;") == 1
    assert html("&quot;保存&quot;好", answer).count("&quot;") == 2


@pytest.mark.parametrize(
    ("broken", "fixed"),
    [
        ("<p>保存<b>文件</p>", "<p>保存 <b>文件</b></p>"),
        ("保存</b>", "保存"),
        ("<b><i>保存</b></i>", "<b><i>保存</i></b>"),
        ("<ul><li>保存<li>文件</ul>", "<ul><li>保存</li><li>文件</li></ul>"),
        ("<p>保存<p>文件", "<p>保存</p><p>文件</p>"),
        ("<table><tr><td>保存<td>文件</table>", "<table><tr><td>保存</td><td>文件</td></tr></table>"),
    ],
)
def test_a_document_that_is_not_balanced_is_balanced(broken, fixed):
    assert html(broken).replace(" ", "") == fixed.replace(" ", "")


def test_segments_of_a_broken_document_know_their_place_in_it():
    document = "<p>保存<p>文件</i>关闭</p>"
    plan = plan_text(document, Direction("zh", "en"), fakes.profile("zh"), "html")
    assert [document[segment.start : segment.end] for segment in plan.segments] == ["保存", "文件</i>关闭"]


def test_xml_elements_are_inline_and_lines_divide():
    document = '<?xml version="1.0"?>\n<doc>\n<t id="1">打开<x/>文件</t>\n<t>保存<br></br></t>\n</doc>'
    assert html(document, format="xml").replace(" ", "") == document.replace(" ", "")
    assert len(texts(document, format="xml")) == 2


def test_self_closing_markers_of_translation_tools_survive():
    document = "点击<x id='1'/>保存<g id='2'>文件</g>。"
    translation = html(document, fakes.shout)
    assert all(translation.count(mark) == 1 for mark in ("<x id='1'/>", "<g id='2'>", "</g>"))


def test_deeply_nested_markup_is_no_trouble():
    document = "<b>" * 3000 + "保存" + "</b>" * 3000
    assert html(document) == document


def test_a_document_that_never_ends_a_tag_is_read_in_time():
    import time

    start = time.perf_counter()
    html("<a " * 7000 + "保存")
    assert time.perf_counter() - start < 5
