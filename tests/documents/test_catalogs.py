"""PO and XLIFF: gaps are filled, what people have translated stays."""

from __future__ import annotations

import re

import polib
import pytest
from lxml import etree

from tandem.documents.errors import BrokenDocumentError
from tests.documents.support import read, translate

_PO = """# Translators: somebody
msgid ""
msgstr ""
"Project-Id-Version: x 1\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: de\\n"

#. a hint for translators
#: src/main.c:12
#, python-format
msgid "Hello %(name)s, you have %d files"
msgstr ""

msgctxt "menu"
msgid "Open"
msgstr "Offen"

#, fuzzy
#| msgid "Save all"
msgid "Save it"
msgstr "Sichern"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "a line\\n"
msgstr ""

#~ msgid "old words"
#~ msgstr ""
"""

_XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" source-language="en" datatype="plaintext"><body>
    <trans-unit id="1">
      <source>Press <g id="1">the <bpt>&lt;b&gt;</bpt>red<ept>&lt;/b&gt;</ept> button</g><x/> &amp; wait</source>
      <note>a note</note>
    </trans-unit>
    <trans-unit id="2"><source>Old words</source><target state="final">Alte Worte</target></trans-unit>
    <trans-unit id="3" translate="no"><source>kept words</source></trans-unit>
    <trans-unit id="4"><source>Empty target</source><target state="new"/></trans-unit>
    <trans-unit id="5"><source>12</source></trans-unit>
  </body></file>
</xliff>
"""

_XLIFF_2 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
  <file id="f"><unit id="u">
    <segment><source>Hello <pc id="1">big</pc> world<ph id="2"/></source></segment>
  </unit></file>
</xliff>
"""


def _catalog(data: bytes) -> polib.POFile:
    return polib.pofile(data.decode() + "\n")


def test_only_open_and_fuzzy_entries_are_filled() -> None:
    catalog = _catalog(translate(_PO, "a.po"))
    assert catalog.find("Hello %(name)s, you have %d files").msgstr.startswith("HELLO %(name)s，")
    assert catalog.find("Open", msgctxt="menu").msgstr == "Offen"
    fuzzy = catalog.find("Save it")
    assert (fuzzy.msgstr, fuzzy.fuzzy, fuzzy.previous_msgid) == ("SAVE IT", False, None)


def test_comments_flags_and_obsolete_entries_stay() -> None:
    result = translate(_PO, "a.po").decode()
    for kept in ("# Translators: somebody", "#. a hint for translators", "#: src/main.c:12", "#, python-format"):
        assert kept in result
    assert '#~ msgid "old words"' in result


def test_plurals_and_header_are_those_of_the_target() -> None:
    catalog = _catalog(translate(_PO, "a.po"))
    assert catalog.metadata["Language"] == "zh"
    assert catalog.metadata["Plural-Forms"] == "nplurals=1; plural=0;"
    assert list(catalog.find("%d file").msgstr_plural.values()) == ["%d FILES"]
    english = _catalog(translate(_PO, "a.po", "en"))
    assert list(english.find("%d file").msgstr_plural.values()) == ["%d FILE", "%d FILES"]


def test_a_translation_ends_with_a_line_end_as_its_source_does() -> None:
    assert _catalog(translate(_PO, "a.po")).find("a line\n").msgstr == "A LINE\n"


def test_a_catalogue_that_names_a_file_reads_no_file(tmp_path: object) -> None:
    with pytest.raises(BrokenDocumentError):
        read(b"pyproject.toml", "a.po")


@pytest.mark.parametrize("text", ["words", 'msgid "a" b\nmsgstr "c"', "msgstr[x] a\n"])
def test_a_broken_catalogue_is_refused(text: str) -> None:
    with pytest.raises(BrokenDocumentError, match="not a valid PO"):
        read(text.encode(), "a.po")


def _units(data: bytes) -> dict[str, etree._Element]:
    root = etree.fromstring(data)
    names = {"trans-unit", "unit"}
    return {unit.get("id", ""): unit for unit in root.iter() if etree.QName(unit).localname in names}


def _target(unit: etree._Element) -> etree._Element | None:
    return unit.find(".//{*}target")


def test_missing_targets_are_made_with_their_inline_codes() -> None:
    target = _target(_units(translate(_XLIFF_1, "a.xlf"))["1"])
    assert target is not None
    names = [etree.QName(element).localname for element in target.iter()]
    assert names == ["target", "g", "bpt", "ept", "x"]
    assert re.sub(r"\s*(</?b>)\s*", r"\1", "".join(target.itertext())) == "PRESS THE<b>RED</b>BUTTON & WAIT"
    assert target.find("{*}g").get("id") == "1"


def test_finished_and_locked_units_stay() -> None:
    units = _units(translate(_XLIFF_1, "a.xliff"))
    assert _target(units["2"]).text == "Alte Worte"
    assert _target(units["3"]) is None
    assert _target(units["5"]) is None
    assert (_target(units["4"]).text, _target(units["4"]).get("state")) == ("EMPTY TARGET", "translated")


def test_the_target_language_is_written_down() -> None:
    assert b'target-language="zh"' in translate(_XLIFF_1, "a.xlf")
    assert b'trgLang="zh"' in translate(_XLIFF_2, "a.xlf")


def test_version_2_is_read_too() -> None:
    target = _target(_units(translate(_XLIFF_2, "a.xlf"))["u"])
    assert etree.tostring(target, method="text", encoding="unicode").strip() == "HELLO BIG WORLD"
    assert [etree.QName(element).localname for element in target] == ["pc", "ph"]


def test_xml_that_is_no_xliff_is_refused() -> None:
    with pytest.raises(BrokenDocumentError, match="not an XLIFF"):
        read(b"<html/>", "a.xlf")
