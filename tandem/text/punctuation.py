"""Marks in the target's script, one of each, and no blanks that belong to the other one.

Texts here may hold placeholders of kept spans: single characters of the last private-use planes, which no rule touches.
"""

from __future__ import annotations

import re

from tandem.text.languages import is_spaceless
from tandem.text.scripts import HAN

KEPT = "\U000f0000-\U0010fffd"  # one character stands for one kept span

_ENTITIES = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#124;": "|", "&#91;": "[", "&#93;": "]", "&#39;": "'",
    "&amp;": "&", "@-@": "-", "@/@": "/",
}  # fmt: skip
_ENTITY = re.compile(r" ?(@[-/]@) ?|&(?:apos|quot|lt|gt|amp|#124|#91|#93|#39);")
_NOISE = re.compile(rf"<unk>|<UNK>|</?s>|<pad>|@@ ?|[{KEPT}]|[\ud800-\udfff]|▁")

_TO_ASCII = dict(
    zip(
        "。，、；：？！（）【】“”‘’「」『』《》〈〉…～—．｡％＂＇〔〕［］｛｝￥＆＋－／",
        (
            *(".", ",", ",", ";", ":", "?", "!", "(", ")", "[", "]", '"', '"', "'", "'", '"', '"', '"', '"', '"', '"'),
            *(
                "'",
                "'",
                "...",
                "~",
                "-",
                ".",
                ".",
                "%",
                '"',
                "'",
                "[",
                "]",
                "[",
                "]",
                "{",
                "}",
                "¥",
                "&",
                "+",
                "-",
                "/",
            ),
        ),
        strict=True,
    )
)
_DOUBLED_TO_ASCII = {"…": "...", "—": " - "}
_ASCII_MARK = re.compile("……+|——+|[" + "".join(_TO_ASCII) + "]")
_TO_CHINESE = {
    ".": "。", ",": "，", ";": "；", ":": "：", "?": "？", "!": "！", "(": "（", ")": "）", "...": "……", "…": "……",
    '"': "”", "'": "’", "¿": "", "¡": "",
}  # fmt: skip
_CHINESE_MARK = re.compile(r"\.{3,}|…+|[.,;:?!()\"'¿¡]")

_END = r"(?:[.。｡!！?？…,，;；:：、~～]|(?<=[.。!！?？…,，;；:：])[\"'”’」』)）】》]|\s)"
_END_MARKS = re.compile(rf"{_END}+\Z")
_LEAD_MARKS = re.compile(r"\A[\s.。｡!！?？…,，;；:：、)）\]】”」』》—–-]+")
_CLOSERS = re.compile(r"[\"'”’」』)）】》\s]+\Z")
_ABBREVIATION = re.compile(r"(?:\b[A-Za-z]|\b(?:etc|Inc|Ltd|Co|Corp|[ap]\.m|approx))\.\Z")

_CJK = f"{HAN}，。！？；：、（）【】《》「」『』“”‘’…—"
_SPACES_IN_CHINESE = re.compile(
    rf"(?<=[{HAN}])\s+(?=[{HAN}])|\s+(?=[，。！？；：、）】》」』”’…])|(?<=[，。！？；：、（【《「『“‘…])\s+|\s+(?=[（【《「『“‘])|(?<=[）】》」』”’])\s+"
)  # fmt: skip
_ASCII_IN_CHINESE = re.compile(
    rf" ?(?<![0-9] )([,;:!?])(?=[\s{_CJK}{KEPT}\"')]|\Z)\s*|(?<=[{HAN}]) ?([,;:!?])(?=[A-Za-z])"
)
_FULL_STOP = re.compile(rf"(?<=[{_CJK}{KEPT}]) ?\.(?=\s*(?:[{_CJK}]|\Z))")
_ASIDE = re.compile(rf" ?\(\s*([^()]*[{HAN}][^()]*?)\s*\) ?")
_QUOTED = re.compile(r"\s*\"\s*([^\"\n]*?)\s*\"\s*")
_DOUBLED_CHINESE = re.compile(r"([，。；：、])[，。；：、]+")
_DOUBLED_ENGLISH = re.compile(r"([,;:])(?:\s*[,;:])+|(?<!\.)\.\.(?!\.)|([,;:])\s*(?=[.!?](?:\s|\Z))")
_SPACE_BEFORE_MARK = re.compile(r"\s+([,.;:!?)\]}](?=\s|\Z|[\"')\]]))|(?<=[(\[{])\s+")
_INSIDE_QUOTES = re.compile(r"(?<=[“‘「『《（【]) +| +(?=[”」』》）】])")
_MISSING_SPACE = re.compile(r"(?<=[A-Za-z)\"])([,;!?])(?=[A-Za-z])")
_BLANKS = re.compile(r"[ \t\xa0\u3000]{2,}|[\t\xa0\u3000\r\n\v\f\x1c-\x1f\x85\u2028\u2029]+")


def clean_output(text: str) -> str:
    """Return a model's output without what no reader should see: escapes, subword marks, unknown tokens."""
    text = _ENTITY.sub(lambda match: _ENTITIES[match[1] or match[0].strip()], text)
    return _BLANKS.sub(" ", _NOISE.sub("", text)).strip()


def fit_marks(text: str, target: str) -> str:
    """Return a translation with its marks in the target's script, one of each, spaced as the target does."""
    if is_spaceless(target):
        return _fit_chinese(text)
    text = map_marks(_INSIDE_QUOTES.sub("", text), target)
    text = _SPACE_BEFORE_MARK.sub(lambda match: match[1] or "", text)
    text = _DOUBLED_ENGLISH.sub(lambda match: match[1] or ("" if match[2] else "."), text)
    return _BLANKS.sub(" ", _MISSING_SPACE.sub(r"\1 ", text))


def map_marks(text: str, target: str) -> str:
    """Return a text with every mark that the target writes otherwise in its form there."""
    if not is_spaceless(target):
        return _ASCII_MARK.sub(lambda match: _TO_ASCII.get(match[0]) or _DOUBLED_TO_ASCII[match[0][0]], text)
    return _CHINESE_MARK.sub(lambda match: _TO_CHINESE.get(match[0]) or "……" * (len(match[0]) > 1), text)


def split_marks(text: str) -> tuple[str, str, str]:
    """Split a stretch of a source into the marks and blanks that lead, the words, and those that end it."""
    lead = _LEAD_MARKS.match(text)
    start = lead.end() if lead else 0
    tail = _END_MARKS.search(text, start)
    end = tail.start() if tail else len(text)
    return text[:start], text[start:end], text[end:]


def strip_marks(text: str, *, closers: bool) -> str:
    """Return a translation without the marks that lead and end it; those that close a quote go with them on demand."""
    text = _LEAD_MARKS.sub("", text)
    while True:
        stripped = _END_MARKS.sub("", text)
        if closers:
            stripped = _CLOSERS.sub("", stripped)
        if _ABBREVIATION.search(stripped + ".") and text[len(stripped) :].startswith(".") and len(stripped) > 2:
            return stripped + "."
        if stripped == text:
            return text
        text = stripped


def strip_end(text: str, marks: str) -> str:
    """Return a translation without the marks that lead and end it, to be followed by those of its source.

    Args:
        text: The translation.
        marks: The source's; a quote that they close is closed by them alone.
    """
    body = strip_marks(text, closers=any(mark in marks for mark in "\"'”’」』)）】》"))
    if body.endswith('"') and body.count('"') % 2:
        return strip_marks(body[:-1], closers=False)  # a quote that the model opened and nothing closes
    return body


def _fit_chinese(text: str) -> str:
    text = _QUOTED.sub("“\\1”", text)
    text = _ASIDE.sub(r"（\1）", text)
    text = _ASCII_IN_CHINESE.sub(lambda match: _TO_CHINESE[match[1] or match[2]], text)
    text = _FULL_STOP.sub("。", text)
    text = _SPACES_IN_CHINESE.sub("", _BLANKS.sub(" ", text))
    return _DOUBLED_CHINESE.sub(r"\1", text)
