"""Text, Markdown, JSON, CSV, HTML and subtitles: every byte that is not translated stays."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.core.errors import UnprocessableError
from tandem.documents.document import translate_document
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.subtitles import break_lines
from tests.documents.support import read, translate

_PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=("Cs", "Cc")), max_size=12)


def _echo(texts: object, _: str) -> object:
    return texts


def test_blank_lines_indentation_and_line_ends_of_a_text_stay() -> None:
    source = "\r\n  first line\r\n\r\n\r\n\tsecond line\r\n12345\r\n   \r\nlast line"
    assert translate(source, "a.txt").decode() == (
        "\r\n  FIRST LINE\r\n\r\n\r\n\tSECOND LINE\r\n12345\r\n   \r\nLAST LINE"
    )


def test_a_long_text_is_several_texts_that_together_are_the_whole() -> None:
    source = "".join(f"This is line number {number} of the text.\n\n" for number in range(400))
    document = read(source.encode(), "a.txt")
    assert len(document.texts) > 5
    assert "".join(text.text for text in document.texts) == source


def test_markdown_keeps_its_fences_however_long_they_are() -> None:
    code = "".join(f"print('line {number}')\n" for number in range(300))
    source = f"# A title\n\n```python\n{code}```\n\nSome words with `code` and a [link](https://example.com/x).\n"
    result = translate(source, "a.md").decode()
    assert f"```python\n{code}```" in result
    assert "# A TITLE" in result
    assert "`code`" in result
    assert "(https://example.com/x)" in result


def test_a_rule_in_the_middle_of_markdown_never_becomes_front_matter() -> None:
    filler = "Some words of prose here.\n" * 80
    source = f"{filler}---\nname: words\n---\n{filler}"
    assert "name: words" not in translate(source, "a.md").decode()


def test_json_values_are_translated_and_all_else_stays_byte_for_byte() -> None:
    source = '{\n  "open file": "open file",\t"n": 1.50e3, "id": "12", "list": ["one word", null, true, "Hi {name}"]}\n'
    expected = (
        '{\n  "open file": "OPEN FILE",\t"n": 1.50e3, "id": "12", "list": ["ONE WORD", null, true, "HI {name}"]}\n'
    )
    assert translate(source, "a.json").decode() == expected


def test_json_strings_with_escapes_come_back_as_valid_json() -> None:
    source = rb'{"a": "a \"quoted\" word\nand a line", "b\\": "x \\ y"}'
    result = translate_document(read(source, "a.json"), lambda texts, _: [f'{text}"\t\u4e2d' for text in texts], "zh")
    assert json.loads(result) == {"a": 'a "quoted" word\nand a line"\t\u4e2d', "b\\": 'x \\ y"\t\u4e2d'}
    assert "\u4e2d" in result.decode()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(_PLAIN, inner),
    max_leaves=8,
)


@given(_JSON)
def test_any_json_that_is_not_changed_comes_back_as_it_was(value: object) -> None:
    data = json.dumps([value, "x"], ensure_ascii=False, indent=1).encode()
    assert translate_document(read(data, "a.json"), _echo, "zh") in (data, json.dumps([value, "x"], indent=1).encode())


@pytest.mark.parametrize("text", ['{"a": }', "[1,", '"a', "[" * 100_000])
def test_json_that_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(BrokenDocumentError, match="not valid JSON"):
        read(text.encode(), "a.json")


def test_only_the_chosen_columns_of_a_table_change() -> None:
    source = 'id;title;note\r\n1;"hello; you";keep this\r\n\r\n2;big world;"keep\r\nthat"\r\n'
    expected = 'id;title;note\r\n1;"HELLO；YOU";keep this\r\n\r\n2;BIG WORLD;"keep\r\nthat"\r\n'
    assert translate(source, "a.csv", columns=("title",)).decode() == expected
    assert translate(source, "a.csv", columns=("2",)) == translate(source, "a.csv", columns=("title",))


def test_a_first_row_without_names_is_translated_too() -> None:
    assert translate("one word,12\ntwo words,13\n", "a.csv", has_header=False) == b"ONE WORD,12\nTWO WORDS,13\n"
    assert translate("one word\ttwo words\nred\tbig dog\n", "a.tsv") == b"one word\ttwo words\nRED\tBIG DOG\n"


def test_a_column_that_does_not_exist_is_named_with_those_that_may_be_chosen() -> None:
    with pytest.raises(UnprocessableError, match="numbers from 1 to 2"):
        read(b"a,b\n1,2\n", "a.csv", columns=("title",))


def test_a_quote_that_is_never_closed_is_refused() -> None:
    with pytest.raises(BrokenDocumentError, match="row 2"):
        read(b'a,b\n1,"two\n3,4\n', "a.csv")


@given(st.lists(st.lists(_PLAIN, min_size=2, max_size=4), min_size=1, max_size=5))
def test_cells_are_those_that_the_csv_module_finds(rows: list[list[str]]) -> None:
    target = io.StringIO()
    csv.writer(target).writerows(rows)
    # A comma in most rows, so that there is no doubt about the delimiter.
    data = ("a,b,c,d\n" * 20 + target.getvalue()).encode()
    result = translate_document(read(data, "a.csv", has_header=False), _echo, "zh").decode()
    assert list(csv.reader(io.StringIO(result, newline=""))) == list(csv.reader(io.StringIO(data.decode(), newline="")))


def test_a_page_keeps_its_tags_and_names_its_new_language() -> None:
    source = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>The page</title>\n'
        "<script>let word = 'a word';</script></head>\n<body class='x'><p>Hello <b>big</b> world &amp; all</p>"
        '<pre>some code</pre><div translate="no">keep this</div><table><tr><td>one cell<td>two cells</table>'
        '<ul><li>an item <a href="/a word">a link</a></li></ul><!-- a comment --></body></html>\n'
    )
    result = translate(source, "a.html").decode()
    assert result.startswith('<!DOCTYPE html>\n<html lang="zh"><head><meta charset="utf-8"><title>THE PAGE</title>')
    for kept in ("let word = 'a word';", "<pre>some code</pre>", "keep this", 'href="/a word"', "<!-- a comment -->"):
        assert kept in result
    assert "<p>HELLO <b>BIG</b> WORLD &amp; ALL</p>" in result
    assert "<td>ONE CELL</td><td>TWO CELLS</td>" in result


def test_the_pieces_of_a_page_are_translated_as_the_whole_would_be() -> None:
    source = (
        "<body><div><p>One word. <i>Two</i> words.</p><p>Three</p> four <b>five</b></div><h2>six <br> seven</h2></body>"
    )
    whole = translate_document(read(source.encode(), "a.html"), _echo, "en").decode()
    assert whole == source
    assert [text.text for text in read(source.encode(), "a.html").texts] == [
        "<p>One word. <i>Two</i> words.</p>",
        "<p>Three</p> four <b>five</b>",
        "<h2>six <br> seven</h2>",
    ]


def test_a_page_in_another_encoding_stays_in_it() -> None:
    source = '<html><head><meta charset="gb2312"></head><body><p>中文 and words</p></body></html>'
    result = translate(source.encode("gb2312"), "a.html", "en").decode("gb18030")
    assert "中文" in result
    western = '<meta charset="iso-8859-1"><p>café — words</p>'.encode("cp1252")
    result = translate_document(read(western, "a.html"), lambda texts, _: [f"{text}中" for text in texts], "zh")
    assert result == western + b"&#20013;"


def test_the_lines_of_a_cue_are_one_sentence_and_numbers_and_times_stay() -> None:
    source = (
        "1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello my</i>\r\nfriend of old\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\n123\r\n"
    )
    expected = source.replace("Hello my", "HELLO MY").replace("friend of old", "FRIEND OF OLD")
    document = read(source.encode(), "a.srt")
    assert [text.text for text in document.texts] == ["<i>Hello my</i> friend of old"]
    assert translate(source, "a.srt").decode() == expected


def test_lines_spoken_by_two_stay_two() -> None:
    source = "1\n00:00:01,000 --> 00:00:02,500\n- Who is it?\n- Only me.\n"
    assert translate(source, "a.srt").decode().splitlines()[2:] == ["- WHO IS IT？", "- ONLY ME。"]


def test_chinese_lines_are_joined_without_a_space() -> None:
    assert read("1\n00:00:01,000 --> 00:00:02,500\n你好\n世界\n".encode(), "a.srt").texts[0].text == "你好世界"


def test_webvtt_keeps_its_head_notes_styles_settings_and_speakers() -> None:
    source = (
        "WEBVTT - a title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE a note\n\nintro\n"
        "00:01.000 --> 00:02.000 align:start\n<v Bob>Hello <00:00:01.500>there &amp; you\n"
    )
    result = translate(source, "a.vtt").decode()
    assert result == source.replace("Hello <00:00:01.500>there", "HELLO THERE").replace("; you", "; YOU")


def test_position_codes_stay_before_the_words() -> None:
    source = "1\n00:00:01,000 --> 00:00:02,500\n{\\an8}Hello there\n"
    assert translate(source, "a.srt").decode().endswith("\n{\\an8}HELLO THERE\n")


def test_a_subtitle_file_without_cues_is_refused() -> None:
    with pytest.raises(BrokenDocumentError, match="no subtitle cue"):
        read(b"Just some words.\n", "a.srt")


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("text", ["one two three four five six seven", "这是一个很长的句子，应该在逗号之后换行。", "a"])
def test_breaking_lines_loses_nothing(text: str, count: int) -> None:
    lines = break_lines(text, count).split("\n")
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert len(lines) <= count or max(map(len, lines)) <= 44


def test_lines_are_broken_between_words_and_near_the_middle() -> None:
    english = break_lines("the quick brown fox jumps over the dog", 2)
    assert english == "the quick brown fox\njumps over the dog"
    assert break_lines("我们今天去公园，明天去图书馆。", 2) == "我们今天去公园，\n明天去图书馆。"
