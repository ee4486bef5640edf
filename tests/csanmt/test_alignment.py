"""Which source words a translation's words came from: by tokens in the engine, by characters in the tokenizer."""

from __future__ import annotations

import pytest
import torch

from tandem.core.types import Item
from tandem.csanmt import alignment
from tandem.csanmt.offsets import find_links, group_words, locate
from tandem.nn.precision import Precision
from tests.csanmt.support import KINDS, best, build_engine, demo, fixture_model, run

OBVIOUS = {
    "demo-zh2en": ("请检查网络并重命名文件。", {"检查": "check", "网络": "network", "文件": "file"}),
    "demo-en2zh": ("Please update the image.", {"update": "更新", "image": "图像"}),
}


def strongest(name: str, text: str) -> dict[str, str]:
    """For each linked piece of a source, the word of the translation that has most to do with it."""
    model = demo(name)
    [hypothesis] = best(model.engine, [Item(model.tokenizer.encode(text), align=True)])
    translation = model.tokenizer.decode(hypothesis.ids)
    links = sorted(model.tokenizer.link(text, translation, hypothesis), key=lambda link: link.weight)
    return {
        text[link.source_start : link.source_end]: translation[link.target_start : link.target_end] for link in links
    }


@pytest.mark.parametrize("name", OBVIOUS)
def test_obvious_words_are_linked_to_their_translations(name: str) -> None:
    text, pairs = OBVIOUS[name]
    found = strongest(name, text)
    assert {source: found.get(source) for source in pairs} == pairs


@pytest.mark.parametrize("name", OBVIOUS)
def test_an_alignment_has_a_row_for_each_token_that_shares_out_its_attention(name: str) -> None:
    items = [Item(ids, align=True) for ids in demo(name).ids[:12]]
    for item, hypothesis in zip(items, best(demo(name).engine, items), strict=True):
        assert len(hypothesis.alignment) == len(hypothesis.ids)
        assert {len(row) for row in hypothesis.alignment} == {item.length}
        assert [sum(row) for row in hypothesis.alignment] == pytest.approx([1.0] * len(hypothesis.ids), abs=1e-4)


def test_an_alignment_does_not_depend_on_neighbours() -> None:
    model = demo("demo-zh2en")
    together = best(model.engine, [Item(ids, align=True) for ids in model.ids[:12]])
    for ids, beside in zip(model.ids, together, strict=False):
        [alone] = best(model.engine, [Item(ids, align=True)])
        assert alone.ids == beside.ids
        torch.testing.assert_close(torch.tensor(alone.alignment), torch.tensor(beside.alignment), atol=1e-4, rtol=0)


def test_only_the_best_hypothesis_of_items_that_ask_is_aligned() -> None:
    ids = demo("demo-zh2en").ids[0]
    asks, does_not = run(demo("demo-zh2en").engine, [Item(ids, n_best=2, align=True), Item(ids, n_best=2)])
    assert asks.result is not None
    assert does_not.result is not None
    assert [bool(hypothesis.alignment) for hypothesis in asks.result] == [True, False]
    assert [bool(hypothesis.alignment) for hypothesis in does_not.result] == [False, False]
    assert asks.item.key() != does_not.item.key()
    assert [one.ids for one in asks.result] == [one.ids for one in does_not.result]


def test_an_alignment_that_fails_is_an_error_of_that_item_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = demo("demo-zh2en")
    bad, plain, good = Item(model.ids[0], align=True), Item(model.ids[0]), Item(model.ids[2], align=True)
    genuine = alignment.align

    def failing(network: object, source_ids: torch.Tensor, target_ids: torch.Tensor) -> torch.Tensor:
        if any(tuple(row[: len(bad.ids)]) == bad.ids for row in source_ids.tolist()):
            raise RuntimeError("no room")
        return genuine(network, source_ids, target_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(alignment, "align", failing)
    failed, untouched, fine = run(build_engine(model.model), [bad, plain, good])
    assert isinstance(failed.error, RuntimeError)
    assert (untouched.error, fine.error) == (None, None)
    assert fine.result is not None
    assert fine.result[0].alignment


# -- characters ------------------------------------------------------------------------------------------------------


def spelled(tokens: list[str], text: str) -> list[str]:
    return [text[start:end] for start, end in locate(tokens, text)]


def test_subwords_are_found_in_the_text_they_came_from() -> None:
    assert spelled(["检查@@", "和", "打开", "GPU"], "检查和打开 GPU") == ["检查", "和", "打开", "GPU"]
    assert spelled(["custom@@", "er", "'s", "name"], "customer's name") == ["custom", "er", "'s", "name"]


def test_escapes_are_read_even_where_they_were_split() -> None:
    assert spelled(["&quot;", "A", "&quot;"], '"A"') == ['"', "A", '"']
    assert spelled(["R@@", "&a@@", "mp;@@", "D", "now"], "R&D now") == ["R&D"] * 4 + ["now"]
    assert spelled(["well", "@-@", "known"], "well-known") == ["well", "-", "known"]


def test_what_a_normalizer_changed_is_passed_over() -> None:
    assert spelled(["&quot;", "Certificate", "&quot;", "page"], "“Certificate” page") == ["", "Certificate", "", "page"]
    assert spelled(["a", "b"], "") == ["", ""]


@pytest.mark.parametrize("name", OBVIOUS)
def test_every_subword_of_the_demo_lines_is_found(name: str) -> None:
    model = demo(name)
    for line in model.source[:100]:
        tokens = model.tokenizer.tokenize(line)
        starts = [start for start, _ in locate(tokens, line)]
        assert starts == sorted(starts)
        assert "".join(spelled(tokens, line)).replace('"', "") == "".join(line.split()).replace('"', "")


def test_words_are_groups_of_subwords() -> None:
    assert list(group_words(["a@@", "b", "c", "d@@"])) == [[0, 1], [2], [3]]


def test_links_are_between_words_and_faint_ones_are_left_out() -> None:
    rows = [(0.9, 0.04, 0.06), (0.5, 0.4, 0.1), (0.0, 0.7, 0.3)]
    links = find_links((["打开", "文件"], "打开文件"), (["Op@@", "en", "it"], "Open it"), rows)
    assert [tuple(link) for link in links] == [(0, 2, 0, 4, 0.7), (2, 4, 0, 4, 0.22), (2, 4, 5, 7, 0.7)]
    assert find_links((["打开"], "打开"), (["Open"], "Open"), ()) == ()


# -- every kind of model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_can_be_aligned(kind: str) -> None:
    items = [Item((7, 8, 9), align=True), Item((20,), align=True), Item(tuple(range(5, 25)), align=True)]
    for item, hypothesis in zip(items, best(build_engine(fixture_model(kind)), items), strict=True):
        assert [len(row) for row in hypothesis.alignment] == [item.length] * len(hypothesis.ids)


@pytest.mark.parametrize("precision", [Precision.BFLOAT16, Precision.INT8])
def test_lower_precisions_find_the_same_words(precision: Precision) -> None:
    ids = demo("demo-zh2en").ids[:3]
    exact = best(demo("demo-zh2en").engine, [Item(row, align=True) for row in ids])
    rounded = best(demo("demo-zh2en", precision).engine, [Item(row, align=True) for row in ids])
    for one, other in zip(exact, rounded, strict=True):
        if one.ids == other.ids:
            torch.testing.assert_close(torch.tensor(one.alignment), torch.tensor(other.alignment), atol=0.1, rtol=0)
