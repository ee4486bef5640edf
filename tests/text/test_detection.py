from __future__ import annotations

import pytest

from tandem.text.detection import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("你", "zh"),
        ("保存", "zh"),
        ("Save", "en"),
        ("OK", "en"),
        ("The file was not found.", "en"),
        ("请打开 https://example.com/a/very/long/address?with=words&in=english 查看", "zh"),
        ("Run `保存文件` now, please", "en"),
        ("使用 Docker Compose 启动 PostgreSQL 服务。", "zh"),
        ("Le fichier n'a pas été trouvé dans le dossier.", "fr"),
        ("El archivo no está en la carpeta.", "es"),
        ("これはファイルです。", "ja"),
        ("파일을 열 수 없습니다", "ko"),
        ("Файл не найден", "ru"),
        ("Please click the 确定 button", "en"),
    ],
)
def test_the_language_of_most_words_is_found(text, language):
    assert detect_language(text).language == language


@pytest.mark.parametrize(
    ("text", "variant"), [("请打开软件", "zh-Hans"), ("請打開軟體", "zh-Hant"), ("你好", "zh"), ("hello there", "en")]
)
def test_the_variant_is_told_by_characters_that_only_one_has(text, variant):
    assert detect_language(text).variant == variant


@pytest.mark.parametrize("text", ["", "   ", "12345", "🎉", "...", "https://example.com", "\x00"])
def test_a_text_without_words_is_of_no_certain_language(text):
    assert detect_language(text).confidence < 0.7


@pytest.mark.parametrize("text", ["你好", "你好 hello", "hello", "The file and the network.", "a你b好c"])
def test_confidence_is_a_share(text):
    assert 0 < detect_language(text).confidence <= 1


def test_a_pure_text_is_more_certain_than_a_mixed_one():
    assert detect_language("请打开文件").confidence > detect_language("请打开 file and window").confidence
