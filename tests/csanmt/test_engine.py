"""The translator's engine: rows that join, pause, move, leave, fail; what restricts them."""

from __future__ import annotations

import pytest

from tandem.core.errors import NonFiniteError, TooLargeError
from tandem.core.types import Item, Priority
from tandem.csanmt.checkpoint import load_model
from tandem.csanmt.engine import EngineLimits
from tandem.csanmt.grouping import group_by_length
from tests.csanmt.support import FIXTURES, best, build_engine, demo, drain, fixture_model, run

BULK, INTERACTIVE = Priority.BULK, Priority.INTERACTIVE

pytestmark = pytest.mark.usefixtures("backend")


def first_lines(count: int, **fields: object) -> list[Item]:
    return [Item(ids, **fields) for ids in demo("demo-zh2en").ids[:count]]  # type: ignore[arg-type]


def expected(count: int) -> list[tuple[int, ...]]:
    return [hypothesis.ids for hypothesis in best(demo("demo-zh2en").engine, first_lines(count))]


def test_bulk_rows_pause_while_interactive_ones_run_and_lose_nothing() -> None:
    engine = build_engine(demo("demo-zh2en").model)
    bulk, urgent = first_lines(6, priority=BULK), first_lines(2)
    engine.admit(bulk)
    for _ in range(4):
        engine.step(BULK)
    engine.admit(urgent)
    done = {}
    while any(item.priority is INTERACTIVE for item in engine.live()):
        for finished in engine.step(INTERACTIVE):
            assert finished.item in urgent
            done[id(finished.item)] = finished
    assert set(engine.live()) == set(bulk)
    drain(engine, done)
    found = [done[id(item)].result[0].ids for item in bulk]
    assert found == expected(6)


def test_a_raised_row_moves_between_steps_and_goes_on_where_it_was() -> None:
    engine = build_engine(demo("demo-zh2en").model)
    bulk = first_lines(5, priority=BULK)
    engine.admit(bulk)
    for _ in range(5):
        engine.step(BULK)
    bulk[1].priority = INTERACTIVE
    done = {}
    for _ in range(100):
        for finished in engine.step(INTERACTIVE):
            done[id(finished.item)] = finished
    assert list(done) == [id(bulk[1])]
    drain(engine, done)
    assert [done[id(item)].result[0].ids for item in bulk] == expected(5)


def test_a_cancelled_row_leaves_and_its_neighbours_do_not_notice() -> None:
    engine = build_engine(demo("demo-zh2en").model)
    items = first_lines(4)
    engine.admit(items)
    engine.step(BULK)
    engine.cancel([items[1], items[3]])
    assert set(engine.live()) == {items[0], items[2]}
    done: dict[int, object] = {}
    drain(engine, done)  # type: ignore[arg-type]
    wanted = expected(4)
    assert [done[id(item)].result[0].ids for item in (items[0], items[2])] == [wanted[0], wanted[2]]  # type: ignore[attr-defined]


def test_a_reset_gives_the_live_items_back_and_they_can_start_again() -> None:
    engine = build_engine(demo("demo-zh2en").model)
    items = first_lines(3)
    engine.admit(items)
    engine.step(BULK)
    assert set(engine.reset()) == set(items)
    assert engine.live() == []
    assert [hypothesis.ids for hypothesis in best(engine, items)] == expected(3)


def test_an_admission_that_fails_leaves_nothing_behind(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = build_engine(demo("demo-zh2en").model)
    items = [Item((5,) * 40), Item((5,) * 4)]
    encode, calls = demo("demo-zh2en").model.encode, []

    def failing(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise RuntimeError("the second group fails")
        return encode(*arguments) if backend == "torch" else None

    if backend == "kernels":
        monkeypatch.setattr("tandem.csanmt.kernel_search.encode", failing)
    else:
        monkeypatch.setattr(demo("demo-zh2en").model, "encode", failing)
    with pytest.raises(RuntimeError, match="second group"):
        engine.admit(items)
    assert len(calls) == 2
    assert engine.live() == []


def test_ids_outside_the_vocabulary_are_an_error_and_touch_no_memory() -> None:
    engine = build_engine(demo("demo-zh2en").model)
    for ids in ((5, 1 << 20), (5, -3)):
        with pytest.raises(IndexError):
            engine.admit([Item(ids)])
    assert engine.live() == []


def test_a_source_over_the_limit_is_refused_alone() -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=EngineLimits(source_tokens=20))
    long, short = Item((5,) * 20), Item((5,) * 19)
    [refused, fine] = run(engine, [long, short])
    assert isinstance(refused.error, TooLargeError)
    assert fine.error is None


def test_room_counts_live_rows_and_keeps_places_for_interactive_items() -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=EngineLimits(segments=16, tokens=800))
    assert engine.room(INTERACTIVE).segments == 16
    assert engine.room(BULK).segments == 14
    engine.admit([Item((5,) * 9, priority=BULK) for _ in range(14)])
    assert (engine.room(INTERACTIVE).segments, engine.room(BULK).segments) == (2, 0)
    assert engine.room(INTERACTIVE).tokens == 800 - 14 * 10


def test_a_limit_of_one_leaves_bulk_items_their_place() -> None:
    engine = build_engine(demo("demo-zh2en").model, limits=EngineLimits(segments=1))
    assert engine.room(BULK).segments == 1


def test_numbers_that_overflow_are_computed_again_in_float32() -> None:
    broken = load_model(FIXTURES / "abs_shared")
    broken.decoder.layers[0].cross_attention.output.bias.data[0] = float("inf")
    precise = fixture_model("abs_shared")
    items = [Item((7, 8, 9)), Item((20, 21))]
    engine = build_engine(broken, precise=lambda: precise)
    found = [hypothesis.ids for hypothesis in best(engine, items)]
    assert found == [hypothesis.ids for hypothesis in best(build_engine(precise), items)]


def test_numbers_that_overflow_in_float32_too_are_an_error_of_that_item_alone() -> None:
    model = load_model(FIXTURES / "abs_shared")
    model.semantic_embedding.weight.data[33] = float("nan")
    engine = build_engine(model, precise=lambda: model)
    bad, good = Item((33, 8, 9)), Item((7, 8, 9))
    [failed, fine] = run(engine, [bad, good])
    assert isinstance(failed.error, NonFiniteError)
    assert fine.error is None
    # What the broken row left in the caches must not reach the row that takes its place.
    again = run(engine, [Item((7, 8, 9)), Item((10, 11))])
    assert [finished.error for finished in again] == [None, None]
    assert again[0].result is not None
    assert fine.result is not None
    assert again[0].result[0].ids == fine.result[0].ids


def test_groups_hold_sources_of_similar_length_only() -> None:
    items = [Item((1,) * length) for length in (40, 3, 3, 11, 10, 9, 44)]
    groups = [[item.length for item in group] for group in group_by_length(items)]
    assert groups == [[4, 4], [10, 11, 12], [41, 45]]


def test_n_best_gives_different_translations_best_first() -> None:
    for finished in run(demo("demo-zh2en").engine, first_lines(10, n_best=4)):
        assert finished.result is not None
        scores = [hypothesis.score for hypothesis in finished.result]
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.ids for hypothesis in finished.result}) == len(scores) >= 2


def test_asking_for_alternatives_does_not_change_the_best_translation() -> None:
    alone, ranked = (
        run(demo("demo-zh2en").engine, first_lines(40)),
        run(demo("demo-zh2en").engine, first_lines(40, n_best=4)),
    )
    assert [f.result[0] for f in alone if f.result] == [f.result[0] for f in ranked if f.result]


@pytest.mark.parametrize(
    ("name", "source", "prefix"),
    [
        ("demo-zh2en", "您确定要打开这45个设置吗？", "Do you rea"),
        ("demo-zh2en", "您确定要打开这45个设置吗？", "Do you "),
        ("demo-zh2en", "您确定要打开这45个设置吗？", "Xylophonequartz"),
        ("demo-zh2en", "您确定要打开这45个设置吗？", "€ don't stop — "),
        ("demo-en2zh", "Are you sure you want to open it?", "是否要打"),
        ("demo-en2zh", "Are you sure you want to open it?", "请问 GNOME 是"),
    ],
)
def test_a_given_beginning_is_kept_to_the_letter(name: str, source: str, prefix: str) -> None:
    model = demo(name)
    item = Item(model.tokenizer.encode(source), target_prefix=model.tokenizer.prepare_prefix(prefix))
    [hypothesis] = best(model.engine, [item])
    text = model.tokenizer.decode_with_prefix(hypothesis.ids, prefix)
    assert text.startswith(prefix)
    assert len(text) > len(prefix)
    assert "<unk>" not in text


def test_a_finished_word_is_not_continued() -> None:
    model = demo("demo-zh2en")
    ids = model.tokenizer.encode("默认")
    texts = {}
    for prefix in ("The def", "The def "):
        item = Item(ids, target_prefix=model.tokenizer.prepare_prefix(prefix))
        texts[prefix] = model.tokenizer.decode_with_prefix(best(model.engine, [item])[0].ids, prefix)
    assert texts["The def"].split()[1] == "default"
    assert texts["The def "].split()[1] == "def"


def test_a_beginning_does_not_touch_the_neighbours() -> None:
    model = demo("demo-zh2en")
    items = first_lines(4)
    items[1].target_prefix = model.tokenizer.prepare_prefix("Please ")
    found = [hypothesis.ids for hypothesis in best(model.engine, items)]
    wanted = expected(4)
    assert found[0] == wanted[0]
    assert found[2:] == wanted[2:]
    assert found[1] != wanted[1]


def test_the_repetition_guard_lets_no_three_tokens_stand_twice() -> None:
    model = demo("demo-zh2en")

    def repeats(ids: tuple[int, ...]) -> bool:
        grams = [ids[at : at + 3] for at in range(len(ids) - 2)]
        return len(grams) != len(set(grams))

    looping = [ids for ids, target in zip(model.ids[:200], expected(200), strict=True) if repeats(target)]
    assert looping, "the demo model no longer repeats itself: find other sentences"
    guarded = best(model.engine, [Item(ids, strict=True) for ids in looping])
    assert not any(repeats(hypothesis.ids) for hypothesis in guarded)
