"""The encoding of text files is found, and kept."""

from __future__ import annotations

import pytest

from tandem.documents.document import translate_document
from tandem.documents.encodings import decode
from tandem.documents.errors import BrokenDocumentError
from tests.documents.support import read

_SIMPLIFIED = "你好，世界。\n请打开文件，然后保存。\n"
_TRADITIONAL = "請打開檔案，然後儲存。這是一個測試。\n"


_ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "gbk", "gb2312"]


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_chinese_is_read_in_every_encoding_it_comes_in(encoding: str) -> None:
    assert decode(_SIMPLIFIED.encode(encoding)).text == _SIMPLIFIED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_two_characters_are_enough_to_tell(encoding: str) -> None:
    assert decode("文件".encode(encoding)).text == "文件"


def test_traditional_characters_in_big5_are_told_from_gb() -> None:
    assert decode(_TRADITIONAL.encode("big5")).text == _TRADITIONAL
    assert decode(_SIMPLIFIED.encode("gb18030")).encoding == "gb18030"


def test_western_text_is_read() -> None:
    assert decode("Le café où naît la révolution".encode("cp1252")).text == "Le café où naît la révolution"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_the_file_comes_back_in_its_own_encoding_with_its_mark(encoding: str) -> None:
    data = _SIMPLIFIED.encode(encoding)
    assert translate_document(read(data, "a.txt"), lambda texts, _: texts, "en") == data


def test_a_translation_that_the_encoding_cannot_hold_is_written_in_utf_8() -> None:
    data = "Un café à Paris, s'il vous plaît".encode("cp1252")
    assert translate_document(read(data, "a.txt"), lambda _texts, _: ["中文"], "zh").decode() == "中文"


@pytest.mark.parametrize("data", [bytes(range(256)) * 4, b"\x00\x01\x02" * 99, b"\x7fELF\x02\x01\x01" + bytes(64)])
def test_a_binary_file_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenDocumentError):
        decode(data)


def test_a_wrong_declaration_is_not_believed() -> None:
    assert decode(_SIMPLIFIED.encode(), "ascii").text == _SIMPLIFIED
    assert decode(_SIMPLIFIED.encode(), "no-such-thing").text == _SIMPLIFIED
