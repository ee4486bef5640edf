from __future__ import annotations

import pytest

from tandem.text.punctuation import clean_output, fit_marks, split_marks, strip_end
from tandem.text.repetition import collapse_loops, has_repetition_loop

MARK = "\U000f0000"


@pytest.mark.parametrize(
    ("text", "fitted"),
    [
        ("当邮件时 ， 将自动移动到系统目录。", "当邮件时，将自动移动到系统目录。"),
        ("在 “服务器 ” 中的证书。", "在“服务器”中的证书。"),
        ("文件 , 然后 ( 你好 ) 运行 Docker , 好.", "文件，然后（你好）运行 Docker，好。"),
        ('他说 " 你好 " 。', "他说“你好”。"),
        ("时间 : 09:30", "时间：09:30"),
        (f"请参见 {MARK} 。", f"请参见 {MARK}。"),
        ("打 开 文 件", "打开文件"),
        ("好 。 。", "好。"),
        ("使用 Docker 启动", "使用 Docker 启动"),
        ("1,234.5 元", "1,234.5 元"),
    ],
)
def test_chinese_marks_are_full_width_and_alone(text, fitted):
    assert fit_marks(text, "zh") == fitted


@pytest.mark.parametrize(
    ("text", "fitted"),
    [
        ("Hello , world 。", "Hello, world."),
        ("He said “ Hi ” （ok）", 'He said "Hi" (ok)'),
        ("a,, b;. c", "a, b. c"),
        ("Wait ...", "Wait ..."),
        ("Done..", "Done."),
        (f"See {MARK} .", f"See {MARK}."),
        ("costs 1,234.5", "costs 1,234.5"),
    ],
)
def test_english_marks_are_ascii_and_alone(text, fitted):
    assert fit_marks(text, "en").replace(" ...", "...") == fitted.replace(" ...", "...")


@pytest.mark.parametrize(
    ("output", "clean"),
    [
        ("a@@ b", "ab"),
        ("<unk> x <unk>", "x"),
        ("x @-@ y", "x-y"),
        ("It &apos;s &quot;a&quot; &amp; b", 'It \'s "a" & b'),
        (f"a{MARK}b", "ab"),
        ("a\n\tb  c", "a b c"),
        ("a\ud83d", "a"),
        ("<s>a</s>", "a"),
    ],
)
def test_what_no_reader_should_see_is_taken_out(output, clean):
    assert clean_output(output) == clean


def test_a_source_is_parted_from_its_marks():
    assert split_marks("，打开 a.txt。”") == ("，", "打开 a.txt", "。”")


@pytest.mark.parametrize(
    ("output", "marks", "body"),
    [
        ("Hello world!", "。", "Hello world"),
        ("apples etc.", "", "apples etc."),
        ('say "Hello."', "。”", 'say "Hello'),
        ("in the U.S.", "。", "in the U.S."),
        ("打开文件。", "", "打开文件"),
        ('Hi there. "', "。", "Hi there"),
    ],
)
def test_a_translation_is_parted_from_its_marks(output, marks, body):
    assert strip_end(output, marks) == body


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("正在加载", "the file the file the file the file"),
        ("x", "文件文件文件文件"),
        ("注意", "(笑声) (掌声) (掌声) (掌声) (掌声)"),
        ("Xqzwy", "Xzzzzzzzzzz"),
        ("短", "word " * 60),
        ("enrolled", "inscrit inscrit inscrit"),
    ],
)
def test_a_decoding_loop_is_noticed_and_taken_out(source, target):
    assert has_repetition_loop(source, target)
    assert not has_repetition_loop("", collapse_loops(source, target)) or target.startswith("word")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("哈哈哈哈哈", "ha ha ha ha ha"),
        ("打开文件。", "Open the file."),
        ("非常非常好", "very very good"),
        ("The file is in the folder.", "文件在文件夹中。"),
        ("1 1 1 1", "1 1 1 1"),
        ("请", "Please"),
    ],
)
def test_an_ordinary_translation_is_no_loop(source, target):
    assert not has_repetition_loop(source, target)
