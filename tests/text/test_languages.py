from __future__ import annotations

import pytest

from tandem.core.errors import UnprocessableError
from tandem.text.languages import LANGUAGES, Locale, is_spaceless, parse_language, parse_locale


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("zh", "zh"),
        ("ZH", "zh"),
        ("zh-CN", "zh"),
        ("zh_CN", "zh"),
        ("zh-Hans", "zh"),
        ("zh-Hant-TW", "zh"),
        ("zht", "zh"),
        ("zh-TW", "zh"),
        ("cmn", "zh"),
        ("Chinese", "zh"),
        ("en", "en"),
        ("EN-US", "en"),
        ("en_GB", "en"),
        ("English", "en"),
        ("fr-CA", "fr"),
        ("es-419", "es"),
        (" en ", "en"),
        ("auto", "auto"),
    ],
)
def test_every_spelling_of_a_language_is_understood(code, language):
    assert parse_language(code) == language


@pytest.mark.parametrize("code", ["", "xx", "klingon", "zh-", "en us", "z", "en-a-very-long-one"])
def test_an_unknown_language_is_refused_naming_the_known_ones(code):
    with pytest.raises(UnprocessableError, match=r"zh \(Chinese\), en \(English\)"):
        parse_language(code)


@pytest.mark.parametrize(
    ("code", "script"), [("zh", ""), ("zh-CN", "Hans"), ("zh-TW", "Hant"), ("zht", "Hant"), ("zh-HK", "Hant")]
)
def test_a_chinese_code_may_say_how_it_is_written(code, script):
    assert parse_locale(code) == Locale("zh", script)


def test_no_spelling_means_two_languages():
    spellings = [spelling for language in LANGUAGES for spelling in (language.code, *language.aliases)]
    assert len(spellings) == len(set(spellings))


def test_only_chinese_is_written_without_spaces():
    assert [language.code for language in LANGUAGES if is_spaceless(language.code)] == ["zh"]
