"""The encoding of text files: found where nobody says it, and kept where it can hold the translation.

Written here and not left to charset-normalizer, whose verdict on a few short Chinese lines is a guess among dozens of
encodings; ours are few, and each is told by its structure or by how common its characters are.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from tandem.documents.errors import BrokenDocumentError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMMON_LEADS = {"gb18030": ("gb2312", 0xB0, 0xD7), "big5": ("big5", 0xA4, 0xC6)}  # rows of the everyday characters
_SAMPLE = 20_000  # characters that decide
_ENOUGH = 0.6  # share of everyday characters below which a guess is wrong
_ALIASES = {"gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252"}
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class Content:
    """A file's text.

    Attributes:
        text: Without the byte order mark.
        encoding: Python's name for it.
        bom: The mark, or nothing.
        is_markup: A character that the encoding lacks can be written as a reference.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    is_markup: bool = False

    def encode(self, text: str) -> bytes:
        """Return another text in the same encoding, or in UTF-8 where that one lacks a character."""
        try:
            return self.bom + text.encode(self.encoding, "xmlcharrefreplace" if self.is_markup else "strict")
        except UnicodeEncodeError:
            return text.encode()


def decode(data: bytes, declared: str = "") -> Content:
    """Find out the encoding of a file and read it.

    Args:
        data: The file.
        declared: What the file itself says; a wrong one is not believed.

    Raises:
        BrokenDocumentError: It is no text, or in no encoding that is known here.
    """
    content = _by_mark(data) or _by_name(data, declared) or _by_structure(data) or _by_frequency(data)
    if content is None:
        raise BrokenDocumentError("The file's encoding is not known. Save it as UTF-8 and send it again.")
    if len(_BINARY.findall(content.text)) * 100 > len(content.text):
        raise BrokenDocumentError("The file is not a text file. Is its extension right?")
    return content


def _by_mark(data: bytes) -> Content | None:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _try(data[len(bom) :], encoding, bom)
    return None


def _by_name(data: bytes, declared: str) -> Content | None:
    name = _ALIASES.get(declared.strip().lower(), declared.strip())
    if not name:
        return None
    try:
        codecs.lookup(name)
    except LookupError:
        return None
    return _try(data, name)


def _by_structure(data: bytes) -> Content | None:
    content = _try(data, "utf-8")
    if content is not None and "\0" not in content.text:
        return content
    if len(data) % 2 == 0:
        little, big = _line_ends(data, b"\n\0", 0), _line_ends(data, b"\0\n", 0)
        zeros_late, zeros_early = data[1::2].count(0), data[::2].count(0)
        if little + zeros_late > big + zeros_early:
            return _try(data, "utf-16-le")
        if big + zeros_early:
            return _try(data, "utf-16-be")
    return None


def _line_ends(data: bytes, pair: bytes, at: int) -> int:
    return sum(data[place : place + 2] == pair for place in range(at, min(len(data), _SAMPLE), 2))


def _by_frequency(data: bytes) -> Content | None:
    if b"\0" in data:
        return None
    guesses = [
        (score, content) for name in _COMMON_LEADS if (content := _try(data, name)) and (score := _score(content))
    ]
    if guesses:
        best, content = max(guesses, key=lambda guess: guess[0])
        if best >= _ENOUGH:
            return content
    western = _try(data, "cp1252")
    return western if western is not None and _is_western(western.text) else None


def _score(content: Content) -> float:
    """Return the share of everyday characters among those that are not ASCII."""
    characters = [character for character in content.text[:_SAMPLE] if character > "\x7f" and character.isalpha()]
    encoding, first, last = _COMMON_LEADS[content.encoding]
    leads = [character.encode(encoding, "ignore")[:1] for character in characters]
    return sum(bool(lead) and first <= lead[0] <= last for lead in leads) / max(len(characters), 1)


def _is_western(text: str) -> bool:
    """Say whether the characters beyond ASCII look like the few of a European text."""
    beyond = [character for character in text[:_SAMPLE] if character > "\x7f"]
    letters = sum(character.isalpha() for character in text[:_SAMPLE])
    return len(beyond) * 3 <= letters


def _try(data: bytes, encoding: str, bom: bytes = b"") -> Content | None:
    try:
        return Content(data.decode(encoding), encoding, bom)
    except (UnicodeDecodeError, LookupError):
        return None
