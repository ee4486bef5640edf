"""Gettext PO: entries without a translation, and fuzzy ones, are filled. What people have translated stays.

polib, small and stable, knows the format's comments, flags, contexts, plurals and obsolete entries; translate-toolkit
would be the alternative, and is GPL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polib

from tandem.documents.document import ReadOptions, SourceText
from tandem.documents.encodings import Content, decode
from tandem.documents.errors import BrokenDocumentError
from tandem.text.scripts import has_letter

_CHARSET = re.compile(rb"Content-Type:[^\n]{0,80}charset=([\w.:-]{1,40})", re.I)
_PLURALS = {"zh": "nplurals=1; plural=0;", "en": "nplurals=2; plural=(n != 1);"}
_COUNT = re.compile(r"nplurals\s*=\s*(\d)")


def read_po(data: bytes, _: ReadOptions) -> PoDocument:
    """Read a PO or POT file.

    Raises:
        BrokenDocumentError: It is not valid.
    """
    declared = _CHARSET.search(data)
    content = decode(data, declared[1].decode() if declared else "")
    text = content.text.replace("\r\n", "\n")
    try:
        # The library takes a string for a file's name when there is such a file; none has a line end in its name.
        catalog = polib.pofile(f"{text}\n", wrapwidth=_wrap_width(text))
    except (OSError, ValueError, IndexError, AttributeError, UnicodeError):
        raise BrokenDocumentError("The file is not a valid PO file.") from None
    return PoDocument(catalog, content)


class PoDocument:
    """A catalogue of messages.

    Args:
        catalog: The messages.
        content: The file they came from.
    """

    def __init__(self, catalog: polib.POFile, content: Content) -> None:
        """Find the entries to fill."""
        self._catalog = catalog
        self._content = content
        self._entries = [entry for entry in catalog if not entry.obsolete and _is_open(entry)]
        self.texts = [SourceText(text) for entry in self._entries for text in _sources(entry)]

    def render(self, translations: Sequence[str], target: str) -> bytes:
        """Return the file with its gaps filled."""
        given = iter(translations)
        self._set_header(target)
        for entry in self._entries:
            _fill(entry, [next(given) for _ in _sources(entry)], self._plural_count())
        text = str(self._catalog)
        if not self._content.text.startswith("#"):
            text = text.removeprefix("#\n")  # the library's empty comment at the beginning
        if "\r\n" in self._content.text:
            text = text.replace("\n", "\r\n")
        return f"{text.rstrip()}\n".encode()

    def _set_header(self, target: str) -> None:
        header = self._catalog.metadata
        is_other = header.get("Language", "").split("_")[0].split("-")[0] != target
        if header or self._entries:
            header["Language"] = target
            header["Content-Type"] = "text/plain; charset=UTF-8"  # which alone holds both languages
        has_plurals = any(entry.msgid_plural for entry in self._catalog)
        if target in _PLURALS and has_plurals and (is_other or not _COUNT.search(header.get("Plural-Forms", ""))):
            header["Plural-Forms"] = _PLURALS[target]

    def _plural_count(self) -> int:
        found = _COUNT.search(self._catalog.metadata.get("Plural-Forms", ""))
        return int(found[1]) if found else 2


def _is_open(entry: polib.POEntry) -> bool:
    is_filled = all(entry.msgstr_plural.values()) and entry.msgstr_plural if entry.msgid_plural else entry.msgstr
    return has_letter(entry.msgid) and (entry.fuzzy or not is_filled)


def _sources(entry: polib.POEntry) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]


def _fill(entry: polib.POEntry, translations: Sequence[str], plurals: int) -> None:
    if not entry.msgid_plural:
        entry.msgstr = _end_like(entry.msgid, translations[0])
    else:
        one, many = (_end_like(entry.msgid, text) for text in translations)
        entry.msgstr_plural = {0: many} if plurals == 1 else {0: one, **dict.fromkeys(range(1, plurals), many)}
    if entry.fuzzy:
        entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None


def _end_like(source: str, text: str) -> str:
    """Return a translation that ends with a line end if and only if its source does, as msgfmt demands."""
    return text.rstrip("\n") + "\n" if source.endswith("\n") else text.rstrip("\n")


def _wrap_width(text: str) -> int:
    """Return the width at which the file's lines are broken; 0 for none."""
    longest = max((len(line) for line in text.splitlines() if line[:1] == '"' or line[:3] == "msg"), default=0)
    return 0 if longest > 100 else 78
