from __future__ import annotations

import pytest

from tandem.text.inline import find_inline
from tandem.text.languages import Direction
from tandem.text.spans import Kind, find_spans

KEPT = [
    ("https://example.com/a_(b)?x=1&y=2#top", Kind.URL),
    ("ftp://host/file", Kind.URL),
    ("www.example.com/a", Kind.URL),
    ("mailto:a@b.org", Kind.URL),
    ("support.team+zh@example.co.uk", Kind.EMAIL),
    ("/etc/nginx/app.conf", Kind.PATH),
    ("~/bin/run.sh", Kind.PATH),
    ("./a/b", Kind.PATH),
    ("C:\\Users\\demo\\a-01.log", Kind.PATH),
    ("\\\\server\\share", Kind.PATH),
    ("`a b`", Kind.CODE),
    ("``a ` b``", Kind.CODE),
    ("%1$s", Kind.PLACEHOLDER),
    ("%d", Kind.PLACEHOLDER),
    ("%5.2f", Kind.PLACEHOLDER),
    ("%(name)s", Kind.PLACEHOLDER),
    ("%APPDATA%", Kind.PLACEHOLDER),
    ("{name}", Kind.PLACEHOLDER),
    ("{0}", Kind.PLACEHOLDER),
    ("{{ x.y }}", Kind.PLACEHOLDER),
    ("${X}", Kind.PLACEHOLDER),
    ("{% if x %}", Kind.PLACEHOLDER),
    ("$HOME", Kind.PLACEHOLDER),
    ("\\n", Kind.PLACEHOLDER),
    ("\x1b[31m", Kind.PLACEHOLDER),
    ("<br/>", Kind.TAG),
    ('<a href="x">', Kind.TAG),
    ("&nbsp;", Kind.MARKER),
    ("[12]", Kind.MARKER),
    ("[00:12.3]", Kind.MARKER),
    ("1,234,567.89", Kind.NUMBER),
    ("3.14.15", Kind.NUMBER),
    ("v2.0", Kind.NUMBER),
    ("2.5 MB", Kind.NUMBER),
    ("10KB", Kind.NUMBER),
    ("12.5%", Kind.NUMBER),
    ("-5", Kind.NUMBER),
    ("$1,299.50", Kind.NUMBER),
    ("2026-12-01 09:30", Kind.NUMBER),
    ("192.0.2.15:8080", Kind.NUMBER),
    ("１２３", Kind.NUMBER),
    ("36.5℃", Kind.NUMBER),
    ("snake_case", Kind.IDENTIFIER),
    ("camelCase", Kind.IDENTIFIER),
    ("a.txt", Kind.IDENTIFIER),
    ("print()", Kind.IDENTIFIER),
    ("C++", Kind.IDENTIFIER),
    ("std::map", Kind.IDENTIFIER),
    ("--dry-run", Kind.IDENTIFIER),
    ("deadbeef01", Kind.IDENTIFIER),
    ("UTF-8", Kind.IDENTIFIER),
    ("a@@b", Kind.IDENTIFIER),
    (".gitignore", Kind.IDENTIFIER),
    ("@user", Kind.IDENTIFIER),
    ("🎉", Kind.EMOJI),
    ("👩\u200d💻", Kind.EMOJI),
    ("👍🏽", Kind.EMOJI),
    ("🇨🇳", Kind.EMOJI),
    ("1️⃣", Kind.EMOJI),
    ("❤️", Kind.EMOJI),
    ("(^_^)v", Kind.KAOMOJI),
    ("¯\\_(ツ)_/¯", Kind.KAOMOJI),
    ("(ง •̀_•́)ง", Kind.KAOMOJI),
    (":-)", Kind.KAOMOJI),
    ("T_T", Kind.KAOMOJI),
    ("a < b", Kind.SYMBOL),
    ("x == 1", Kind.SYMBOL),
    ("&", Kind.SYMBOL),
    ("→", Kind.SYMBOL),
    ("\x00", Kind.INVISIBLE),
    ("\u200b", Kind.INVISIBLE),
    ("\ue000", Kind.FOREIGN),
    ("\ud83d", Kind.FOREIGN),
]


@pytest.mark.parametrize(("raw", "kind"), KEPT)
@pytest.mark.parametrize("around", ["保存 {} 文件", "Save {} now", "{}"])
def test_what_is_not_language_is_found(raw, kind, around):
    text = around.replace("{}", raw)
    found = [(text[span.start : span.end], span.kind) for span in find_spans(text)]
    assert found == [(raw, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "Open the file.",
        "well-tested, state-of-the-art",
        "don't",
        "John's",
        "and/or",
        "e.g. this",
        "the U.S. Army",
        "1st and 2nd",
        "at 5pm",
        "the 1990s",
        "打开文件。",
        "“你好”，他说：是！",
        "Hello (world)",
        "A-Z",
        "What?! No...",
    ],
)
def test_language_is_left_alone(text):
    assert find_spans(text) == []


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("见 https://example.com/a。", "https://example.com/a"),
        ("(see https://example.com/a).", "https://example.com/a"),
        ("访问https://example.com获取", "https://example.com"),
        ("发邮件至a@b.org，谢谢", "a@b.org"),
        ("编辑/etc/hosts文件", "/etc/hosts"),
        ("https://x.org/{id}/edit", "https://x.org/{id}/edit"),
        ("${HOME}/bin", "${HOME}/bin"),
    ],
)
def test_a_span_ends_before_the_marks_and_words_around_it(text, raw):
    spans = find_inline(text, Direction("zh", "en"))
    assert raw in [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("direction", "text", "kept"),
    [
        (("zh", "en"), "使用 Docker Compose v2 启动 PostgreSQL 服务", ["Docker Compose v2", "PostgreSQL"]),
        (("zh", "en"), "iPhone 15 Pro 和 Windows 11", ["iPhone 15 Pro", "Windows 11"]),
        (("en", "zh"), "Please click 确定 or コピー", ["确定", "コピー"]),
        (("en", "zh"), "请打开窗户。", ["请打开窗户。"]),
        (("zh", "en"), "阅读[手册](https://a.b/c_(d))。", ["[", "](https://a.b/c_(d))"]),
        (("zh", "en"), "**注意**：__init__.py 和 `a*b*c`", ["**", "**", "__init__.py", "`a*b*c`"]),
        (("en", "zh"), "2 * 3 * 4 and snake_case_name", ["2", "*", "3", "*", "4", "snake_case_name"]),
    ],
)
def test_what_is_kept_depends_on_the_direction(direction, text, kept):
    assert [text[span.start : span.end] for span in find_inline(text, Direction(*direction))] == kept


@pytest.mark.parametrize(
    ("direction", "text", "shown"),
    [
        (("zh", "en"), "3.5万人", "35,000"),
        (("zh", "en"), "1.2亿", "120 million"),
        (("zh", "en"), "10亿美元", "1 billion US dollars"),
        (("zh", "en"), "5千万", "50 million"),
        (("zh", "en"), "2026年12月1日", "December 1, 2026"),
        (("zh", "en"), "2026年", "2026"),
        (("zh", "en"), "12月1日", "December 1"),
        (("zh", "en"), "2026年3月", "March 2026"),
        (("en", "zh"), "3.5 million", "350万"),
        (("en", "zh"), "$2 billion", "20亿美元"),
        (("en", "zh"), "Dec. 1, 2026", "2026年12月1日"),
        (("en", "zh"), "5:30 p.m.", "下午5:30"),
    ],
)
def test_amounts_and_dates_are_rewritten(direction, text, shown):
    spans = find_inline(text, Direction(*direction))
    assert [span.replacement for span in spans if span.kind is Kind.TERM] == [shown]
