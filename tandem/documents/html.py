"""HTML and XHTML: pieces that are balanced in themselves, so that the text layer sees whole elements.

The text layer itself takes a whole document, but it would be one text: without progress until its end, and more
sentences at once than may wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tandem.core.errors import TooLargeError
from tandem.documents.document import HTML, ReadOptions, SourceText
from tandem.documents.encodings import Content, decode
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.splicing import Slot, SplicedDocument
from tandem.text.html_balance import apply_edits, find_edits
from tandem.text.html_tokens import Token, TokenKind, tokenize
from tandem.text.scripts import has_letter

# Elements that may be entered: they hold blocks. All others are left whole to the text layer.
_CONTAINERS = frozenset(
    "html head body div section article main header footer nav aside table thead tbody tfoot tr td th ul ol li dl dd"
    " blockquote figure form fieldset details".split()
)
_BLOCKS = frozenset("p h1 h2 h3 h4 h5 h6 pre title dt caption figcaption summary".split())
_CHARSET = re.compile(rb"""(?:charset\s*=\s*["']?|<\?xml[^>]{0,80}encoding\s*=\s*["'])([\w.:-]{1,40})""", re.I)
_LANGUAGE = re.compile(r"""\s(?:xml:)?lang\s*=\s*["']?([\w-]+)""", re.I)
_ENTITY = re.compile(r"<!ENTITY\s", re.I)
_HEAD_BYTES = 4096
MAX_PAGE_BYTES = 10 << 20  # the parser is Python: a larger page would keep a core busy for minutes


def read_html(data: bytes, _: ReadOptions) -> SplicedDocument:
    """Read a page; one that is not balanced is balanced.

    Raises:
        BrokenDocumentError: It is no text, its encoding is not known, or it declares entities.
        TooLargeError: It is too large to be parsed.
    """
    if len(data) > MAX_PAGE_BYTES:
        raise TooLargeError(f"The page is larger than {MAX_PAGE_BYTES >> 20} MiB. Split it.")
    declared = _CHARSET.search(data[:_HEAD_BYTES])
    content = replace(decode(data, declared[1].decode() if declared else ""), is_markup=True)
    if _ENTITY.search(content.text[:_HEAD_BYTES]):
        raise BrokenDocumentError("The file declares XML entities, which are not accepted.")
    content, tokens = _balance(content)
    slots = [
        Slot(piece.start, piece.end, SourceText(content.text[piece.start : piece.end], HTML))
        for piece in _find_pieces(content.text, tokens)
        if piece.has_words
    ]
    return SplicedDocument(content, slots, list(_find_languages(content.text, tokens)))


@dataclass(slots=True)
class _Piece:
    """A stretch between the containers' tags."""

    start: int
    end: int
    has_words: bool = False


def _balance(content: Content) -> tuple[Content, list[Token]]:
    tokens = tokenize(content.text)
    edits = find_edits(tokens, len(content.text), is_xml=False)
    if not edits:
        return content, tokens
    text = apply_edits(content.text, edits)
    return replace(content, text=text), tokenize(text)


def _find_pieces(text: str, tokens: Sequence[Token]) -> Iterator[_Piece]:
    """Yield the stretches between the containers' tags, each block by itself."""
    piece: _Piece | None = None
    depth = 0  # within elements that are left whole
    for token in tokens:
        enters = depth == 0 and _is_container(token)
        if piece is not None and (enters or (depth == 0 and _begins_block(token))):
            yield piece
            piece = None
        if enters:
            continue
        depth += {TokenKind.OPEN: 1, TokenKind.CLOSE: -1}.get(token.kind, 0)
        piece = piece or _Piece(token.start, token.end)
        piece.end = token.end
        piece.has_words |= token.kind is TokenKind.DATA and has_letter(text[token.start : token.end])
    if piece is not None:
        yield piece


def _is_container(token: Token) -> bool:
    return token.kind in (TokenKind.OPEN, TokenKind.CLOSE) and token.name in _CONTAINERS and not token.is_kept


def _begins_block(token: Token) -> bool:
    return token.kind is TokenKind.OPEN and token.name in _BLOCKS


def _find_languages(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the values of the root element's language attributes."""
    root = next((token for token in tokens if token.kind is TokenKind.OPEN), None)
    if root is not None and root.name == "html":
        for match in _LANGUAGE.finditer(text, root.start, root.end):
            yield match.span(1)
