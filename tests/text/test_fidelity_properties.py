"""Whatever the text and whatever the model says: separators and kept spans are identical, and nothing is raised."""

from __future__ import annotations

import os
import re

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tandem.text.segmentation import LINE_END
from tests.text import fakes

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "500"))

KEPT = (
    *("https://example.com/a/b?x=1&y=2#top", "test.user+tag@example.co.uk", "/etc/nginx/conf.d/app.conf", "README.md"),
    *("C:\\Users\\demo\\a.log", "`pip install -U redis==5.0.1`", "%1$s", "{name}", "{{ x.y }}", "${FOLDER}", "{7}"),
    *("<b1></b1>", "1,234,567.89", "3.14.15", "2.5 MB", "12.5%", "2026-12-01", "09:30:59", "192.0.2.15:8080", "42"),
    *("snake_case_name", "camelCaseName", "deadbeef01", "550e8400-e29b-41d4-a716-446655440000", "--dry-run", "$HOME"),
    *(
        "🎉",
        "👩\u200d💻",
        "👍🏽",
        "(^_^)v",
        "¯\\_(ツ)_/¯",
        "(ง •̀_•́)ง",
        "<SENT_SPLIT>",
        "a@@b",
        "&copy;",
        "https://x.org/{id}/e",
    ),
)
CHINESE = ("打开文件", "请检查网络连接", "保存", "服务器地址", "他说", "如果", "第一行", "請打開檔案", "㙡")
ENGLISH = (
    "Open the file",
    "please check",
    "the server",
    "Dr. Smith",
    "if it fails",
    "WARNING SIGNS",
    "e.g. this",
    "don't",
)
MARKS = (
    "。",
    "，",
    "！",
    "？",
    "……",
    "；",
    "：",
    ".",
    ",",
    "!",
    "?",
    "...",
    ";",
    ":",
    "“",
    "”",
    '"',
    "（",
    "）",
    "(",
    ")",
)
SPACES = (" ", "\n", "\r\n", "\n\n", "\t", "    ", "\u3000", "\u2028", "\n- ", "\n## ", "\n> ", "\n1. ", "| ", "  \n")
CONTROLS = (
    "\x00",
    "\x07",
    "\u200b",
    "\ufeff",
    "\u00ad",
    "\u202e",
    "\x85",
    "\x0c",
    "\ue000",
    "\U000f0000",
    "\ud83d",
    "\ufffd",
)
MARKUP = (
    "**",
    "*",
    "_",
    "[",
    "](",
    ")",
    "<b>",
    "</b>",
    "<b0>",
    "</b0>",
    "~~",
    "`",
    "{",
    "}",
    "<",
    ">",
    "&",
    "@@",
    "|",
    "#",
    "$",
)


@st.composite
def texts(draw, words):
    """A text of words, kept spans, marks, markup and control characters; kept spans stand between blanks."""
    parts = draw(
        st.lists(
            st.one_of(
                st.sampled_from(words),
                st.sampled_from(words),
                st.sampled_from(MARKS),
                st.sampled_from(SPACES),
                st.sampled_from(KEPT).map(lambda kept: f" {kept} "),
                st.sampled_from(MARKUP),
                st.sampled_from(CONTROLS),
                st.text(max_size=4),
            ),
            max_size=24,
        )
    )
    return "".join(parts)


@st.composite
def tidy_texts(draw, words):
    """A text in which every kept span stands between words, so that it cannot be part of anything else."""
    parts = draw(
        st.lists(
            st.tuples(st.sampled_from(words), st.sampled_from(KEPT), st.sampled_from((*MARKS[:12], "\n", "\r\n", ""))),
            min_size=1,
            max_size=6,
        )
    )
    return "".join(f"{word} {kept} {word}{mark}" for word, kept, mark in parts)


translators = st.one_of(st.sampled_from(fakes.ALL), st.integers(0, 9).map(fakes.scramble))
directions = st.sampled_from((("zh", "en"), ("en", "zh"), ("es", "en"), ("en", "fr")))
fuzz = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=EXAMPLES <= 500
)


def separators(text):
    return LINE_END.findall(text)


def edges(text):
    """The white space at both ends of every line."""
    lines = LINE_END.split(text)
    return [(len(x) - len(x.lstrip()), len(x) - len(x.rstrip())) if x.strip() else x for x in lines]


@fuzz
@given(st.data(), translators, directions)
def test_lines_and_their_white_space_are_kept(data, translate, direction):
    text = data.draw(texts(CHINESE if direction[0] == "zh" else ENGLISH))
    translation = fakes.run(text, translate, *direction).text
    assert separators(translation) == separators(text)
    assert [bool(line.strip()) for line in LINE_END.split(translation)] == [
        bool(x.strip()) for x in LINE_END.split(text)
    ]
    assert edges(translation) == edges(text)


@fuzz
@given(st.data(), translators, directions)
def test_kept_spans_come_back_exactly_once(data, translate, direction):
    text = data.draw(tidy_texts(CHINESE if direction[0] == "zh" else ENGLISH))
    translation = fakes.run(text, translate, *direction).text
    for kept in KEPT:
        pattern = (
            rf"(?<![A-Za-z0-9_])(?<!\d[.,]){re.escape(kept)}(?![A-Za-z0-9_])" if kept[0].isalnum() else re.escape(kept)
        )
        assert len(re.findall(pattern, translation)) == len(re.findall(pattern, text)), kept


@fuzz
@given(st.data(), directions)
def test_no_unknown_token_or_subword_mark_comes_out(data, direction):
    text = data.draw(texts(CHINESE if direction[0] == "zh" else ENGLISH))
    translation = fakes.run(text, fakes.mumble, *direction).text
    assert "<unk>" not in translation
    assert translation.count("@@") <= text.count("@@")
    assert "&quot;" not in translation


@fuzz
@given(st.text(max_size=200), translators, directions)
@example("[](](](", fakes.echo, ("zh", "en"))
def test_no_text_raises(text, translate, direction):
    for format in ("text", "html", "xml"):
        fakes.run(text, translate, *direction, format=format)


@fuzz
@given(st.data(), translators, directions)
def test_offsets_point_at_the_segments(data, translate, direction):
    text = data.draw(texts(CHINESE if direction[0] == "zh" else ENGLISH))
    joined = fakes.run(text, translate, *direction)
    ends = [end for _, end in joined.offsets]
    assert all(start <= end for start, end in joined.offsets)
    assert all(start >= end for (start, _), end in zip(joined.offsets[1:], ends, strict=False))
