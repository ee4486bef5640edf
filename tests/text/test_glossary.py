"""Terms of a glossary: shown to the model as they are, and put where the attention says their words are."""

from __future__ import annotations

import pytest

from tandem.core.types import Link
from tandem.text.attribution import attribute, move_links
from tandem.text.languages import Direction
from tandem.text.plan import SegmentTask, plan_text
from tandem.text.punctuation import clean_output
from tandem.text.solving import Output, Request
from tests.text import fakes


def start(text: str, glossary: dict[str, str], source: str = "zh", target: str = "en") -> SegmentTask:
    plan = plan_text(text, Direction(source, target), fakes.profile(source), glossary=glossary)
    return plan.segments[0].start_task()


def aligned(request: Request, text: str, pairs: list[tuple[str, str]], others: tuple[str, ...] = ()) -> Output:
    """An output whose words came from certain pieces of the source; equal ones are taken from left to right."""
    links, source_at, target_at = [], 0, {}
    for piece, word in pairs:
        source_at = request.text.index(piece, source_at)
        at = text.index(word, target_at.get(word, 0))
        target_at[word] = at + len(word)
        links.append(Link(source_at, source_at + len(piece), at, at + len(word), 0.8))
        source_at += len(piece)
    return Output(text, alternatives=others, links=tuple(links))


def finish(task: SegmentTask, text: str, pairs: list[tuple[str, str]]) -> str:
    task.feed([aligned(task.wanted[0], text, pairs)])
    assert task.result is not None
    return task.result.text


def test_a_term_is_shown_as_it_is_and_its_word_replaced() -> None:
    task = start("请检查网络。", {"网络": "Zorblatt"})
    assert task.wanted == [Request("请检查网络。", align=True)]
    pairs = [("检查", "check"), ("网络", "the"), ("网络", "network")]
    links = aligned(task.wanted[0], "Please check the network.", pairs[:1] + pairs[2:]).links
    task.feed([Output("Please check the network.", links=(*links, Link(3, 5, 13, 16, 0.9)))])
    assert task.result is not None
    assert task.result.text == "Please check the Zorblatt."


def test_a_sentence_without_terms_asks_for_no_alignment() -> None:
    assert start("请检查网络。", {"文件": "file"}).wanted == [Request("请检查网络。")]


def test_repeated_and_several_terms_get_a_word_each() -> None:
    task = start("文件和网络和文件", {"文件": "Foo", "网络": "Bar"})
    pairs = [("文件", "file"), ("网络", "network"), ("文件", "file")]
    assert finish(task, "The file, network and file", pairs) == "The Foo, Bar and Foo"


def test_a_translation_that_is_the_term_already_stays() -> None:
    assert finish(start("检查网络", {"网络": "network"}), "Check network", [("网络", "network")]) == "Check network"


def test_a_term_keeps_its_capitals_at_the_beginning() -> None:
    assert finish(start("网络故障。", {"网络": "eNet"}), "Network failure.", [("网络", "Network")]) == "eNet failure."


@pytest.mark.parametrize(("term", "expected"), [("Omnivault", "Open an Omnivault."), ("Zorblatt", "Open a Zorblatt.")])
def test_the_article_before_a_term_fits_it(term: str, expected: str) -> None:
    for article in ("a", "an"):
        task = start("打开一份文件。", {"文件": term})
        assert finish(task, f"Open {article} file.", [("文件", "file")]) == expected


def test_chinese_terms_stand_without_blanks_between_han() -> None:
    task = start("Open the panel now.", {"panel": "控制面板"}, "en", "zh")
    assert finish(task, "现在打开 面板 吧。", [("panel", "面板")]) == "现在打开控制面板吧。"


def test_a_sentence_in_capitals_shows_its_terms_in_small_letters() -> None:
    task = start("PLEASE OPEN THE PANEL.", {"panel": "控制面板"}, "en", "zh")
    assert task.wanted[0].text == "Please open the panel."
    assert finish(task, "请打开面板。", [("panel", "面板")]) == "请打开控制面板。"


def test_a_term_without_words_is_asked_for_again_with_a_stand_in() -> None:
    task = start("请检查网络。", {"网络": "Zorblatt"})
    task.feed([Output("Please check.")])
    [again] = task.wanted
    assert "网络" not in again.text
    assert not again.align
    task.feed([Output(again.text.replace("请检查", "Please check ").replace("。", "."))])
    assert task.result is not None
    assert task.result.text == "Please check Zorblatt."


def test_two_terms_do_not_share_a_word() -> None:
    task = start("检查网络吧", {"检查": "Foo", "网络": "Bar"})
    task.feed([Output("Check", links=(Link(0, 2, 0, 5, 0.5), Link(2, 4, 0, 5, 0.4)))])
    assert task.result is None


def test_what_belongs_to_another_span_is_not_taken() -> None:
    task = start("打开 GPU 网络", {"网络": "Zorblatt"})
    task.feed([aligned(task.wanted[0], "Open GPU", [("网络", "GPU")])])
    assert task.result is None


def test_a_number_that_is_lost_does_not_cost_the_term_its_words() -> None:
    task = start("打开 3 个网络", {"网络": "Zorblatt"})
    task.feed([aligned(task.wanted[0], "Open network", [("网络", "network")])])
    assert "网络" in task.wanted[0].text
    assert "3" not in task.wanted[0].text


def test_alternatives_have_the_term_where_they_have_its_word() -> None:
    task = start("检查网络", {"网络": "Zorblatt"})
    task.feed([aligned(task.wanted[0], "Check network", [("网络", "network")], ("Inspect it", "Inspect the Network"))])
    assert task.result is not None
    assert task.result.alternatives == ((1, "Inspect the Zorblatt"),)


# -- choosing words --------------------------------------------------------------------------------------------------


def test_words_beside_that_look_at_nothing_else_belong_to_the_term() -> None:
    output = "The default value is 10"
    links = [Link(0, 3, 4, 11, 0.6), Link(0, 3, 12, 17, 0.5), Link(3, 4, 12, 17, 0.1), Link(0, 3, 18, 20, 0.5)]
    assert attribute(output, links, [(0, 3)], [], "en") == [(4, 17)]


def test_words_beside_that_look_elsewhere_too_do_not() -> None:
    links = [Link(0, 2, 0, 6, 0.4), Link(2, 4, 0, 6, 0.3), Link(2, 4, 7, 13, 0.6)]
    assert attribute("record backup", links, [(2, 4)], [], "en") == [(7, 13)]


def test_glue_is_never_a_terms_word() -> None:
    assert attribute("the", [Link(0, 2, 0, 3, 0.9)], [(0, 2)], [], "en") == [None]


def test_links_follow_their_words_through_cleaning() -> None:
    output = "a@@ &quot; b&quot; b"
    links = [Link(0, 1, 11, 12, 0.5), Link(1, 2, 19, 20, 0.5), Link(2, 3, 1, 3, 0.5)]
    cleaned = clean_output(output)
    moved = move_links(links, output, cleaned, clean_output)
    assert [cleaned[link.target_start : link.target_end] for link in moved] == ["b", "b"]
    assert moved[0].target_start < moved[1].target_start
