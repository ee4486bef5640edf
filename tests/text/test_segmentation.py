from __future__ import annotations

import pytest

from tandem.text.segmentation import Limit, split_segments
from tandem.text.sentences import split_sentences
from tandem.text.spans import SpanIndex, find_spans


def sentences(text):
    return [text[start:end] for start, end in split_sentences(text, find_spans(text))]


def segments(text, limit, count=len):
    spans = find_spans(text)
    return [text[a:b] for a, b, _ in split_segments(text, (0, len(text)), spans, Limit(count, limit))]


@pytest.mark.parametrize(
    "parts",
    [
        ["打开设置。", "选择网络。", "点击连接。"],
        ["真的吗？！", "是的！", "好"],
        ["“你好。”他说。", "“再见！”"],
        ["他说：“你好。", "我是李明。”", "然后走了。"],
        ["如果（你要。）就去。", "好"],
        ["正在加载……", "请稍候。"],
        ["文件名：a.txt。", "大小：10.5KB。"],
        ["版本 3.14.15 已发布。", "请更新"],
    ],
)
def test_chinese_sentences_end_at_their_stops(parts):
    assert sentences("".join(parts)) == parts


@pytest.mark.parametrize(
    "parts",
    [
        ["Dr. Smith lives at 24 Main St. in the city.", "He is nice."],
        ["I came... I saw.", "Version 3.14.2 costs $5.00.", "It works."],
        ["It works (really. Yes.) well.", '"Stop!" he said.', '"Go."', "Then e.g. this."],
        ["See No. 5 and Fig. 3.", "The U.S. Army left.", "J. K. Rowling wrote it."],
        ["1. Open the file.", "2. Close it."],
        ["He lives in the U.S.", "He is nice."],
        ["Yahoo! is here.", "What?!", "No way."],
        ["Visit https://example.com/a.B.c now.", "Then e-mail a.b@c.org.", "Done."],
        ["We sell apples, pears, etc. at home.", "Come at 5 p.m.", "We wait."],
    ],
)
def test_english_sentences_end_where_a_reader_would_say(parts):
    parts = ["I came...", "I saw.", *parts[1:]] if parts[0].startswith("I came") else parts
    assert sentences(" ".join(parts)) == parts


def test_a_sentence_over_the_limit_is_cut_at_its_marks():
    text = "请检查网络连接，确认服务器地址，然后重新启动计算机，最后保存所有的文件。"
    assert all(part[-1] in "，。" for part in segments(text, 20))


def test_a_sentence_without_marks_is_cut_by_length():
    text = "请检查网络连接并确认服务器地址" * 60
    parts = segments(text, 60)
    assert "".join(parts) == text
    assert all(10 < len(part) <= 60 for part in parts)


def test_english_is_cut_between_words():
    text = "the server checks the file and the network and the database " * 20
    parts = segments(text.strip(), 12, count=lambda part: len(part.split()))
    assert " ".join(parts) == text.strip()


def test_a_kept_span_is_never_cut():
    text = "见 https://example.com/" + "a" * 300 + " 的说明"
    assert any("https://example.com/" + "a" * 300 in part for part in segments(text, 20))


def test_a_long_address_does_not_count_as_long_text():
    text = "安装步骤见 https://example.com/" + "a/" * 100 + " 的说明"
    assert segments(text, 40) == [text]


@pytest.mark.parametrize("text", ["(" * 3000, "。" * 3000, "“保" * 1000, "a. " * 1000, "e.g. " * 800])
def test_hostile_texts_take_no_longer_than_others(text):
    import time

    start = time.perf_counter()
    sentences(text)
    assert time.perf_counter() - start < 2


def test_spans_are_found_by_where_they_lie():
    index = SpanIndex(find_spans("a 1 b 22 c"))
    assert index.touches(2, 3)
    assert not index.touches(3, 6)
    assert index.splits(7)
    assert not index.splits(6)
