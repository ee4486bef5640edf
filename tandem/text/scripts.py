"""Scripts of characters, as pieces of regular-expression classes and as tests."""

from __future__ import annotations

import re

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
CYRILLIC = "\u0400-\u052f"
GREEK = "\u0370-\u03ff\u1f00-\u1fff"
ARABIC = "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc"
HEBREW = "\u0590-\u05ff"
THAI = "\u0e00-\u0e7f"
DEVANAGARI = "\u0900-\u097f"

# Marks of Chinese text, and the closing ones among them.
CJK_MARKS = (
    "\u2014\u2018\u2019\u201c\u201d\u2026\u3001\u3002\u3008-\u3011\u3014-\u301b"
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5e"
)

# Characters that show nothing: format and control characters, without those that separate.
INVISIBLE = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"

_HAN = re.compile(f"[{HAN}]")
_LETTER = re.compile(r"[^\W\d_]")


def has_han(text: str) -> bool:
    """Say whether a text has a Chinese character."""
    return _HAN.search(text) is not None


def has_letter(text: str) -> bool:
    """Say whether a text has a letter of any script."""
    return _LETTER.search(text) is not None
