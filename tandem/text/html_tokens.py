"""HTML and XML as tokens that know where they stand.

The standard library's parser is the one that tells where each tag, reference and comment begins: a tree that is written
out again (lxml, html5lib, selectolax) is no longer the bytes that came, and a user's quotes, entities and white space
would change. The tests hold what comes out against html5lib's and lxml's opinion.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from html.parser import HTMLParser
from itertools import accumulate
from typing import Any


class TokenKind(StrEnum):
    """What a token is."""

    OPEN = "open"
    CLOSE = "close"
    ALONE = "alone"
    DATA = "data"
    REFERENCE = "reference"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of a document.

    Attributes:
        kind: What it is.
        start: Offset of its first character.
        end: Offset behind it.
        name: Of a tag, in lower case.
        is_kept: A start tag that says its element is not to be translated.
    """

    kind: TokenKind
    start: int
    end: int
    name: str = ""
    is_kept: bool = False


VOID = frozenset("area base br col embed hr img input link meta param source track wbr basefont keygen frame".split())


def tokenize(text: str, *, is_xml: bool = False) -> list[Token]:
    """Return the tokens of a document; one begins where the one before it ends, so that nothing is lost.

    Args:
        text: HTML or XML, whole or a fragment; whatever it is, it is read.
        is_xml: No element is void.
    """
    reader = _Reader(text, is_xml=is_xml)
    whole = (
        text.rfind(">") + 1
    )  # nothing that could be a tag ends behind it, and the parser would look for one for long
    reader.feed(text[:whole])
    reader.close()
    if whole < len(text):
        reader.found.append(Token(TokenKind.DATA, whole, whole))
    found = [Token(TokenKind.DATA, 0, 0), *reader.found]  # what the parser passes over in silence is data
    ends = [following.start for following in found[1:]] + [len(text)]
    return [
        Token(token.kind, token.start, end, token.name, token.is_kept)
        for token, end in zip(found, ends, strict=True)
        if end > token.start
    ]


class _Reader(HTMLParser):
    """Notes what begins where."""

    def __init__(self, text: str, *, is_xml: bool) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[Token] = []
        self._is_xml = is_xml
        self._line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    def set_cdata_mode(self, elem: str, **options: Any) -> None:
        """XML has no elements whose content is not markup."""
        if not self._is_xml:
            super().set_cdata_mode(elem, **options)

    def parse_html_declaration(self, i: int) -> int:
        """Read "<![CDATA[...]]>"; other sections, at which the base class raises, are comments as in a browser."""
        if not self.rawdata.startswith("<![", i):
            return super().parse_html_declaration(i)
        ending = "]]>" if self.rawdata.startswith("<![CDATA[", i) else ">"
        end = self.rawdata.find(ending, i + 3)
        if end < 0:
            return -1
        self.handle_comment("")
        return end + len(ending)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = TokenKind.ALONE if tag in VOID and not self._is_xml else TokenKind.OPEN
        self._note(kind, tag, is_kept=_says_keep(attrs))

    def handle_startendtag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self._note(TokenKind.ALONE, tag)

    def handle_endtag(self, tag: str) -> None:
        self._note(TokenKind.CLOSE, tag)

    def handle_data(self, _data: str) -> None:
        self._note(TokenKind.DATA)

    def handle_entityref(self, _name: str) -> None:
        self._note(TokenKind.REFERENCE)

    def handle_charref(self, _name: str) -> None:
        self._note(TokenKind.REFERENCE)

    def handle_comment(self, _data: str) -> None:
        self._note(TokenKind.SILENT)

    def handle_decl(self, _decl: str) -> None:
        self._note(TokenKind.SILENT)

    def handle_pi(self, _data: str) -> None:
        self._note(TokenKind.SILENT)

    def unknown_decl(self, _data: str) -> None:
        self._note(TokenKind.SILENT)

    def _note(self, kind: TokenKind, name: str = "", *, is_kept: bool = False) -> None:
        line, column = self.getpos()
        start = self._line_starts[line - 1] + column
        self.found.append(Token(kind, start, start, name, is_kept))


def _says_keep(attributes: list[tuple[str, str | None]]) -> bool:
    values = {name: value or "" for name, value in attributes}
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()
