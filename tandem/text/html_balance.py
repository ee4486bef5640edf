"""Documents whose every start tag has its end tag: what a browser assumes is written, what it ignores is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tandem.text.html_tokens import Token, TokenKind

_ITEMS = {
    "li": ("li",), "dt": ("dt", "dd"), "dd": ("dt", "dd"), "tr": ("td", "th", "tr"), "td": ("td", "th"),
    "th": ("td", "th"), "option": ("option",), "optgroup": ("option", "optgroup"),
    "tbody": ("td", "th", "tr", "thead", "tbody"),
    "tfoot": ("td", "th", "tr", "tbody"), "rt": ("rt", "rp"), "rp": ("rt", "rp"), "body": ("head",),
}  # fmt: skip
_ENDS_PARAGRAPH = frozenset(
    "address article aside blockquote details div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr"
    " main menu nav ol p pre section table ul".split()
)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that balances a document.

    Attributes:
        at: Offset in the source.
        end: Offset behind what is left out; `at` where nothing is.
        text: What is written there.
    """

    at: int
    end: int
    text: str = ""


def find_edits(tokens: Sequence[Token], length: int, *, is_xml: bool) -> list[Edit]:
    """Return what must be changed for a document to be balanced; nothing for one that is.

    Args:
        tokens: The document.
        length: Its characters.
        is_xml: No end tag is implied.
    """
    edits: list[Edit] = []
    stack: list[str] = []
    for token in tokens:
        if token.kind in (TokenKind.OPEN, TokenKind.ALONE) and not is_xml:
            for name in _implied_ends(stack, token.name):
                edits.append(Edit(token.start, token.start, f"</{name}>"))
        if token.kind is TokenKind.OPEN:
            stack.append(token.name)
        elif token.kind is TokenKind.CLOSE:
            if token.name not in stack:
                edits.append(Edit(token.start, token.end))
                continue
            while (name := stack.pop()) != token.name:
                edits.append(Edit(token.start, token.start, f"</{name}>"))
    edits += [Edit(length, length, f"</{name}>") for name in reversed(stack)]
    return edits


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a balanced document."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += (text[at : edit.at], edit.text)
        at = edit.end
    return "".join(parts) + text[at:]


def original_offset(offset: int, edits: Sequence[Edit]) -> int:
    """Return where in the source an offset of the balanced document lies."""
    shift = 0
    for edit in edits:
        if edit.at + shift >= offset:
            break
        shift += len(edit.text) - (edit.end - edit.at)
    return max(offset - shift, 0)


def _implied_ends(stack: list[str], name: str) -> Iterator[str]:
    """Take from the stack, and yield, the elements that a start tag ends without saying so."""
    ended = _ITEMS.get(name, ("p",) if name in _ENDS_PARAGRAPH else ())
    while stack and stack[-1] in ended:
        yield stack.pop()
