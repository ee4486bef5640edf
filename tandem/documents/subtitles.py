"""SubRip and WebVTT: the words of the cues. Numbers, timecodes, settings, notes and styles stay byte for byte.

A cue's lines are one text, for a sentence runs over them, and the translation is broken into lines anew. There is no
need for a subtitle library: a cue is a line with an arrow and the lines below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from unicodedata import east_asian_width

from tandem.documents.document import ReadOptions, SourceText
from tandem.documents.encodings import decode
from tandem.documents.errors import BrokenDocumentError
from tandem.documents.splicing import Slot, SplicedDocument
from tandem.text.scripts import has_han, has_letter

_CUE = re.compile(
    r"^[ \t]*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}[ \t]*-->[ \t]*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}[^\n]*\n"
    r"(?P<body>(?:[ \t]*[^\s][^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_LEAD = re.compile(r"(?:\{\\[^{}\n]*\}|<v(?:\.[\w.]+)?[ \t][^<>\n]*>|\s)*")  # position codes, the speaker's name
_TIME_TAG = re.compile(r"<(?:\d+:)?\d{1,2}:\d{2}\.\d{3}>")  # karaoke: no place for them in another word order
_SPOKEN = re.compile(r"\s*(?:-|–|—|>>)\s*\S")
_BREAKS_AFTER = "，。！？；：、,.!?;: "
_LONGEST_COLUMNS = 44  # of a line; a longer one is broken even where the source had one line only


def read_subtitles(data: bytes, _: ReadOptions) -> SplicedDocument:
    """Read a subtitle file.

    Raises:
        BrokenDocumentError: It has no cue.
    """
    content = decode(data)
    cues = list(_CUE.finditer(content.text))
    if not cues and content.text.strip().removeprefix("WEBVTT"):
        raise BrokenDocumentError("The file has no subtitle cue: no line such as 00:00:01,000 --> 00:00:02,000.")
    slots = [slot for cue in cues for slot in _find_slots(content.text, *cue.span("body"))]
    return SplicedDocument(content, [slot for slot in slots if has_letter(slot.source.text)])


def _find_slots(text: str, start: int, end: int) -> Iterator[Slot]:
    """Yield a cue's texts: one, or one a line where its lines are spoken by several."""
    lines = [match.span() for match in re.finditer(r"[^\r\n]+", text[start:end])]
    if not lines:
        return
    if any(_SPOKEN.match(text, start + first, start + last) for first, last in lines[1:]):
        spans = [(start + first, start + last) for first, last in lines]
    else:
        spans = [(start + lines[0][0], start + lines[-1][1])]
    for first, last in spans:
        lead = _LEAD.match(text, first, last)
        begin = lead.end() if lead else first
        raw = _TIME_TAG.sub("", text[begin:last])
        newline = "\r\n" if "\r\n" in raw else "\n"
        count = raw.count("\n") + 1
        yield Slot(begin, last, SourceText(_join_lines(raw)), partial(break_lines, count=count, newline=newline))


def _join_lines(raw: str) -> str:
    glue = "" if has_han(raw) else " "
    return glue.join(line.strip() for line in raw.splitlines())


def break_lines(text: str, count: int, newline: str = "\n") -> str:
    """Return a text in lines of about equal width.

    Args:
        text: On one line.
        count: Lines of the source.
        newline: What ends a line.
    """
    lines = max(count, -(-_width(text) // _LONGEST_COLUMNS)) if count > 1 else 1
    broken: list[str] = []
    rest = " ".join(text.split("\n")).strip()
    for left in range(lines, 1, -1):
        at = _find_break(rest, _width(rest) / left)
        if at is None:
            break
        broken.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return newline.join([*broken, rest])


def _find_break(text: str, wanted: float) -> int | None:
    """Return where to break a text after about `wanted` columns; never inside a word or a tag."""
    best, cost = None, float("inf")
    width, depth = 0, 0
    for at, character in enumerate(text[:-1], 1):
        depth += (character == "<") - (character == ">")
        width += _width(character)
        after = text[at]
        can_break = character == " " or (east_asian_width(character) in "WF" and after not in _BREAKS_AFTER)
        penalty = abs(width - wanted) - (4 if character in _BREAKS_AFTER[:-1] else 0)
        if can_break and depth == 0 and penalty < cost:
            best, cost = at, penalty
    return best


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
