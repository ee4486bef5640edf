"""Word, PowerPoint and Excel files, made and read with the usual libraries."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import docx
import openpyxl
import pptx
import pytest
import xlsxwriter
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table
from pptx.util import Inches

from tandem.documents.document import translate_document
from tests.documents.support import altered, pack, read, translate, unpack
from tests.text.fakes import ALL
from tests.text.fakes import run as fake


def _saved(file: Any) -> bytes:
    target = io.BytesIO()
    file.save(target)
    return target.getvalue()


def _word(data: bytes) -> Any:
    return docx.Document(io.BytesIO(data))


def _runs(paragraph: Any) -> list[tuple[str, bool | None]]:
    return [(run.text, run.bold) for run in paragraph.runs]


def _insert(paragraph: Any, xml: str) -> None:
    for element in parse_xml(f"<w:x {nsdecls('w', 'r')}>{xml}</w:x>"):
        paragraph._p.append(element)


def _run(content: str, properties: str = "") -> str:
    """Return a run of words, or of other content."""
    inner = content if content.startswith("<") else f'<w:t xml:space="preserve">{content}</w:t>'
    return f"<w:r><w:rPr>{properties}</w:rPr>{inner}</w:r>"


def _field(code: str, shown: str) -> str:
    """Return a complex field."""
    marks = [f'<w:fldChar w:fldCharType="{kind}"/>' for kind in ("begin", "separate", "end")]
    parts = (marks[0], f"<w:instrText>{code}</w:instrText>", marks[1], shown, marks[2])
    return "".join(map(_run, parts))


def _translated_paragraph(xml: str) -> Any:
    document = docx.Document()
    _insert(document.add_paragraph(), xml)
    return _word(translate(_saved(document), "a.docx")).paragraphs[0]


# -- Word ------------------------------------------------------------------------------------------------------------


def test_word_keeps_styles_tables_headers_and_numbers() -> None:
    document = docx.Document()
    document.add_heading("The title", 1)
    document.add_paragraph("a list item", style="List Bullet")
    document.add_paragraph("12345")
    document.add_table(2, 2).cell(1, 1).text = "a cell"
    document.sections[0].header.paragraphs[0].text = "the header"
    document.sections[0].footer.paragraphs[0].text = "the footer"
    result = _word(translate(_saved(document), "a.docx"))
    assert [(p.text, p.style.name) for p in result.paragraphs] == [
        ("THE TITLE", "Heading 1"),
        ("A LIST ITEM", "List Bullet"),
        ("12345", "Normal"),
    ]
    assert result.tables[0].cell(1, 1).text == "A CELL"
    assert result.sections[0].header.paragraphs[0].text == "THE HEADER"
    assert result.sections[0].footer.paragraphs[0].text == "THE FOOTER"


def test_formatting_stays_with_the_words_it_was_on() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("This is ")
    paragraph.add_run("very important").bold = True
    paragraph.add_run(" for us.")
    data = _saved(document)
    assert read(data, "a.docx").texts[0].text == "This is <g1>very important</g1> for us."
    assert _runs(_word(translate(data, "a.docx")).paragraphs[0]) == [
        ("THIS IS ", None),
        ("VERY IMPORTANT", True),
        (" FOR US。", None),
    ]


def test_a_word_that_is_split_into_many_runs_is_one_text() -> None:
    xml = "".join(
        _run(part, f'<w:rFonts w:hint="eastAsia"/><w:lang w:val="en-{number}"/>') + '<w:proofErr w:type="spellStart"/>'
        for number, part in enumerate(("He", "llo ", "wor", "ld"))
    )
    document = docx.Document()
    _insert(document.add_paragraph(), xml)
    assert [text.text for text in read(_saved(document), "a.docx").texts] == ["Hello world"]


def test_tabs_and_line_breaks_part_sentences_and_stay() -> None:
    document = docx.Document()
    document.add_paragraph("a name\ta value\nnext line")
    assert _word(translate(_saved(document), "a.docx")).paragraphs[0].text == "A NAME\tA VALUE\nNEXT LINE"


def test_links_wrap_the_words_they_wrapped() -> None:
    link = f'<w:hyperlink w:anchor="there">{_run("the page", "<w:b/>")}</w:hyperlink>'
    paragraph = _translated_paragraph(_run("see ") + link + _run(" now"))
    assert paragraph.text == "SEE THE PAGE NOW"
    [link] = paragraph.hyperlinks
    assert (link.text, link.fragment, link.runs[0].bold) == ("THE PAGE", "there", True)


def test_fields_footnotes_and_bookmarks_survive_in_a_valid_order() -> None:
    paragraph = _translated_paragraph(
        _run("on page ") + _field("PAGE", "seven") + '<w:bookmarkStart w:id="1" w:name="m"/>' + _run(" of the ")
        + _field('HYPERLINK "x"', "linked book") + '<w:bookmarkEnd w:id="1"/>' + _run('<w:footnoteReference w:id="2"/>')
        + _run(" we wrote")
    )  # fmt: skip
    xml = re.sub(r"\s+", " ", "".join(_names(paragraph._p)))
    assert paragraph.text.split() == "ON PAGE seven OF THE LINKED BOOK WE WROTE".split()
    assert xml.index("bookmarkStart") < xml.index("bookmarkEnd")
    assert xml.count("fldChar") == 6
    assert xml.count("footnoteReference") == 1


def _names(element: Any) -> list[str]:
    return [f"{child.tag.rpartition('}')[2]} " for child in element.iter()]


def test_a_table_of_contents_entry_keeps_its_tab_and_its_page() -> None:
    entry = _run("The chapter") + _run("<w:tab/>") + _run("12")
    paragraph = _translated_paragraph(f'<w:hyperlink w:anchor="t">{entry}</w:hyperlink>')
    assert paragraph.text == "THE CHAPTER\t12"
    assert len(paragraph.hyperlinks) == 1


def test_text_boxes_are_translated_where_they_are() -> None:
    inner = f"<w:txbxContent><w:p>{_run('in a box')}</w:p></w:txbxContent>"
    shape = f'<v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox>{inner}</v:textbox></v:shape>'
    paragraph = _translated_paragraph(_run("before it") + _run(f"<w:pict>{shape}</w:pict>"))
    texts = [element.text for element in paragraph._p.iter() if element.tag.endswith("}t")]
    assert texts == ["BEFORE IT", "IN A BOX"]


def test_deleted_words_and_code_are_not_translated() -> None:
    paragraph = _translated_paragraph(
        _run("call ") + _run("open file", '<w:rStyle w:val="HTMLCode"/>')
        + f'<w:del w:id="1">{_run("<w:delText>old words</w:delText>")}</w:del>'
        + f'<w:ins w:id="2">{_run(" new words")}</w:ins>'
    )  # fmt: skip
    xml = "".join(paragraph._p.itertext())
    assert "open file" in xml
    assert "old words" in xml
    assert "NEW WORDS" in xml
    assert "CALL" in xml


def test_all_other_parts_of_a_file_stay_byte_for_byte() -> None:
    document = docx.Document()
    document.add_paragraph("some words")
    data = pack(
        unpack(_saved(document)) | {"word/media/image1.png": b"\x89PNG", "customXml/item1.xml": b"<a>words</a>"}
    )
    before, after = unpack(data), unpack(translate(data, "a.docx"))
    changed = {name for name in before if before[name] != after[name]}
    assert list(before) == list(after)
    assert changed == {"word/document.xml"}


@pytest.mark.parametrize("translator", ALL, ids=lambda translator: translator.__name__)
def test_nothing_but_words_is_lost_however_badly_a_model_translates(translator: Callable[..., Any]) -> None:
    document = docx.Document()
    link = f'<w:hyperlink w:anchor="there">{_run("the page", "<w:b/>")}</w:hyperlink>'
    mark = _run('<w:footnoteReference w:id="2"/>')
    _insert(document.add_paragraph(), _run("see ") + link + mark + _run(" on ") + _field("PAGE", "7") + _run(" today"))

    def translate_badly(texts: Sequence[str], format: str) -> list[str]:
        return [fake(text, translator, "en", "zh", format=format).text for text in texts]

    result = _word(translate_document(read(_saved(document), "a.docx"), translate_badly, "zh")).paragraphs[0]
    names = "".join(_names(result._p))
    assert [names.count(name) for name in ("hyperlink", "footnoteReference", "fldChar", "instrText")] == [1, 1, 3, 1]


# -- PowerPoint ------------------------------------------------------------------------------------------------------


def test_slides_notes_and_tables_are_translated_and_keep_their_formatting() -> None:
    file = pptx.Presentation()
    slide = file.slides.add_slide(file.slide_layouts[1])
    slide.shapes.title.text = "Hello there"
    frame = slide.placeholders[1].text_frame
    frame.text = "first point"
    paragraph = frame.add_paragraph()
    paragraph.level = 1
    paragraph.add_run().text = "second "
    run = paragraph.add_run()
    run.text, run.font.bold = "bold thing", True
    slide.shapes.add_table(1, 1, Inches(1), Inches(1), Inches(1), Inches(1)).table.cell(0, 0).text = "a cell"
    slide.notes_slide.notes_text_frame.text = "the notes"
    result = pptx.Presentation(io.BytesIO(translate(_saved(file), "a.pptx"))).slides[0]
    assert result.shapes.title.text == "HELLO THERE"
    first, second = result.placeholders[1].text_frame.paragraphs
    assert (first.text, second.level) == ("FIRST POINT", 1)
    assert "".join(run.text for run in second.runs) == "SECOND BOLD THING"
    assert [run.font.bold for run in second.runs] == [None, True]
    assert result.shapes[2].table.cell(0, 0).text == "A CELL"
    assert result.notes_slide.notes_text_frame.text == "THE NOTES"


def test_prompts_of_layouts_and_slide_numbers_stay() -> None:
    file = pptx.Presentation()
    slide = file.slides.add_slide(file.slide_layouts[5])
    slide.shapes.title.text = "Page"
    field = (
        '<a:fld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" type="slidenum"'
        ' id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}"><a:rPr/><a:t>one</a:t></a:fld>'
    )
    slide.shapes.title.text_frame.paragraphs[0]._p.append(parse_xml(field))
    result = pptx.Presentation(io.BytesIO(translate(_saved(file), "a.pptx")))
    texts = [e.text for e in result.slides[0].shapes.title._element.iter() if e.tag.endswith("}t")]
    assert texts == ["PAGE", "one"]
    assert any("Click to edit" in shape.text_frame.text for shape in result.slide_layouts[5].placeholders)


# -- Excel -----------------------------------------------------------------------------------------------------------


def test_cells_are_translated_and_formulas_numbers_and_sheets_stay() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "My sheet"
    values = ["hello world", 42, "=A2*2", '=IF(A1="hello world",1,0)', 1.5, "hello world", "two\nlines"]
    for value in values:
        sheet.append([value])
    sheet["A1"].font = openpyxl.styles.Font(bold=True)
    sheet["A1"].comment = Comment("a remark", "me")
    result = openpyxl.load_workbook(io.BytesIO(translate(_saved(book), "a.xlsx")))
    column = result["My sheet"]["A"]
    assert [cell.value for cell in column] == [
        "HELLO WORLD", 42, "=A2*2", '=IF(A1="hello world",1,0)', 1.5, "HELLO WORLD", "TWO\nLINES",
    ]  # fmt: skip
    assert column[0].font.bold
    assert column[0].comment.text == "A REMARK"
    assert result.calculation.fullCalcOnLoad


def test_rich_cells_keep_their_formatting() -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = CellRichText("a ", TextBlock(InlineFont(b=True), "very bold"), " word")
    result = openpyxl.load_workbook(io.BytesIO(translate(_saved(book), "a.xlsx")), rich_text=True)
    value = result.active["A1"].value
    assert str(value) == "A VERY BOLD WORD"
    assert [part.text.strip() for part in value if isinstance(part, TextBlock) and part.font.b] == ["VERY BOLD"]


def test_shared_strings_rich_ones_too_are_translated_once_for_all_their_cells() -> None:
    target = io.BytesIO()
    book = xlsxwriter.Workbook(target, {"in_memory": True})
    sheet = book.add_worksheet()
    sheet.write_column(0, 0, ["hello world", "hello world", "12"])
    sheet.write_rich_string(3, 0, "a ", book.add_format({"bold": True}), "very bold", " word")
    book.close()
    data = target.getvalue()
    assert [text.text for text in read(data, "a.xlsx").texts] == ["hello world", "<g1>a </g1>very bold<g2> word</g2>"]
    result = openpyxl.load_workbook(io.BytesIO(translate(data, "a.xlsx")), rich_text=True).active
    values = [cell.value for cell in result["A"]]
    assert values[:3] == ["HELLO WORLD", "HELLO WORLD", "12"]
    bold = [part.text.strip() for part in values[3] if isinstance(part, TextBlock) and part.font.b]
    assert (str(values[3]).split(), bold) == (["A", "VERY", "BOLD", "WORD"], ["VERY BOLD"])


def test_how_a_cell_is_read_aloud_goes_with_its_source() -> None:
    strings = (
        b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>hello</t>'
        b'<rPh sb="0" eb="1"><t>reading</t></rPh><phoneticPr fontId="1"/></si></sst>'
    )
    data = pack(unpack(_saved(openpyxl.Workbook())) | {"xl/sharedStrings.xml": strings})
    result = unpack(translate(data, "a.xlsx"))["xl/sharedStrings.xml"]
    assert b"<si><t>HELLO</t></si>" in result


def test_the_names_of_a_tables_columns_stay_so_that_excel_opens_it() -> None:
    book = openpyxl.Workbook()
    for row in (["a name", "a price"], ["red apple", 3]):
        book.active.append(row)
    book.active.add_table(Table(displayName="T", ref="A1:B2"))
    result = openpyxl.load_workbook(io.BytesIO(translate(_saved(book), "a.xlsx"))).active
    assert [[cell.value for cell in row] for row in result.rows] == [["a name", "a price"], ["RED APPLE", 3]]


def test_chart_titles_are_translated() -> None:
    book = openpyxl.Workbook()
    for number in range(3):
        book.active.append([number])
    chart = BarChart()
    chart.title = "the chart"
    chart.add_data(Reference(book.active, min_col=1, min_row=1, max_row=3))
    book.active.add_chart(chart, "C1")
    assert b"THE CHART" in unpack(translate(_saved(book), "a.xlsx"))["xl/charts/chart1.xml"]


# -- all -------------------------------------------------------------------------------------------------------------


def test_strict_files_have_other_namespaces_and_are_read_alike() -> None:
    document = docx.Document()
    document.add_paragraph("some words").add_run(" in bold").bold = True
    old = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    new = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
    data = altered(_saved(document), "word/document.xml", old, new)
    result = unpack(translate(data, "a.docx"))["word/document.xml"]
    assert b"SOME WORDS" in result
    assert old not in result


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx"])
def test_an_empty_file_of_the_library_comes_back_whole(name: str) -> None:
    files = {"a.docx": docx.Document, "a.pptx": pptx.Presentation, "a.xlsx": openpyxl.Workbook}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = _saved(files[name]())
        assert list(unpack(translate(data, name))) == list(unpack(data))
