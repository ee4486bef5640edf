from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from tandem.core.errors import EngineError, NonFiniteError, SettingsError, TooLargeError
from tandem.core.types import Budget, Engine, Item, Priority
from tandem.gte.embedder import Embedder
from tandem.gte.encoder import Vector
from tandem.gte.engine import EmbedderLimits, EmbeddingEngine
from tandem.nn.precision import Precision
from tests.gte.support import demo, random_texts, reference_texts, run, vectors_of

LIMITS = EmbedderLimits(segments=16, tokens=64, text_tokens=20)
POISON = 666


class Fake:
    """A model whose vector is the sum of the ids; infinite where one of them is POISON and it is not precise."""

    padding_share = 0.0

    def __init__(self, *, poisoned: float = math.inf, error: Exception | None = None) -> None:
        self.poisoned = poisoned
        self.error = error
        self.batches: list[list[tuple[int, ...]]] = []

    def vectors(self, texts: Sequence[Sequence[int]]) -> Vector:
        self.batches.append([tuple(text) for text in texts])
        if self.error is not None:
            raise self.error
        sums = [self.poisoned if POISON in text else sum(text) for text in texts]
        return np.array(sums, dtype=np.float32)[:, None]


def build(model: Fake, limits: EmbedderLimits = LIMITS, precise: Fake | None = None) -> EmbeddingEngine:
    return EmbeddingEngine(model, vocab_size=1000, limits=limits, precise=None if precise is None else lambda: precise)


def item(*ids: int, priority: Priority = Priority.INTERACTIVE) -> Item:
    return Item(ids, priority=priority)


def test_the_embedder_is_an_engine() -> None:
    engine: Engine[Vector] = build(Fake())
    assert engine.live() == []


def test_one_step_finishes_everything_that_was_admitted() -> None:
    model = Fake()
    engine = build(model)
    items = [item(1, 2), item(3), item(4, 5, 6)]
    assert engine.admit(items) == []
    assert engine.live() == items
    finished = engine.step(Priority.BULK)
    assert [done.item for done in finished] == items
    assert [done.result.tolist() for done in finished if done.result is not None] == [[3], [3], [15]]
    assert engine.live() == []
    assert len(model.batches) == 1


def test_a_step_without_items_runs_nothing() -> None:
    model = Fake()
    assert build(model).step(Priority.BULK) == []
    assert model.batches == []


def test_a_step_never_exceeds_its_tokens_and_the_rest_follows_in_order() -> None:
    model = Fake()
    engine = build(model)
    items = [item(*[n] * 20) for n in range(10)]
    results = run(engine, items)
    assert [len(batch) for batch in model.batches] == [3, 3, 3, 1]
    assert vectors_of(results)[:, 0].tolist() == [20 * n for n in range(10)]


def test_padding_counts_against_the_tokens_of_a_step() -> None:
    model = Fake()
    model.padding_share = 0.5
    run(build(model), [item(*[1] * 16) for _ in range(4)])
    assert [len(batch) for batch in model.batches] == [2, 2]


def test_interactive_items_go_first() -> None:
    model = Fake()
    engine = build(model)
    bulk = [item(*[1] * 20, priority=Priority.BULK) for _ in range(3)]
    urgent = item(*[2] * 20)
    engine.admit([*bulk, urgent])
    assert [done.item for done in engine.step(Priority.BULK)] == [urgent, *bulk[:2]]


def test_bulk_items_pause_when_only_interactive_ones_may_run() -> None:
    engine = build(Fake())
    bulk, urgent = item(1, priority=Priority.BULK), item(2)
    engine.admit([bulk, urgent])
    assert [done.item for done in engine.step(Priority.INTERACTIVE)] == [urgent]
    assert engine.live() == [bulk]
    bulk.priority = Priority.INTERACTIVE
    assert [done.item for done in engine.step(Priority.INTERACTIVE)] == [bulk]


def test_cancelled_items_are_not_computed() -> None:
    model = Fake()
    engine = build(model)
    gone, kept = item(1), item(1)
    engine.admit([gone, kept])
    engine.cancel([gone, item(1)])
    assert [done.item for done in engine.step(Priority.BULK)] == [kept]
    assert model.batches == [[(1,)]]


def test_reset_gives_back_what_a_failed_step_left() -> None:
    model = Fake(error=RuntimeError("broken"))
    engine = build(model)
    items = [item(1), item(2)]
    engine.admit(items)
    with pytest.raises(RuntimeError, match="broken"):
        engine.step(Priority.BULK)
    assert engine.reset() == items
    assert engine.live() == []


def test_room_shrinks_by_what_is_live_and_keeps_an_eighth_for_interactive_items() -> None:
    engine = build(Fake())
    assert engine.room(Priority.INTERACTIVE) == Budget(16, 64)
    assert engine.room(Priority.BULK) == Budget(14, 56)
    engine.admit([item(*range(1, 11)), item(*range(1, 10))])
    assert engine.room(Priority.INTERACTIVE) == Budget(14, 64 - 21)
    engine.admit([item(*[1] * 20), item(*[1] * 20)])
    assert engine.room(Priority.INTERACTIVE) == Budget(12, 1)
    assert engine.room(Priority.BULK) == Budget(10, 0)


def test_a_batch_too_small_for_the_longest_text_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="too small for texts of 512"):
        build(Fake(), EmbedderLimits(tokens=512, text_tokens=512))


@pytest.mark.parametrize(
    ("ids", "error"),
    [((1,) * 21, TooLargeError), ((), EngineError), ((1, 1000), EngineError), ((-1, 5), EngineError)],
)
def test_an_item_that_no_model_could_run_fails_alone(ids: tuple[int, ...], error: type[Exception]) -> None:
    engine = build(Fake())
    bad, good = item(*ids), item(5)
    (refused,) = engine.admit([bad, good])
    assert refused.item is bad
    assert isinstance(refused.error, error)
    assert engine.live() == [good]


@pytest.mark.parametrize("poisoned", [math.inf, -math.inf, math.nan])
def test_a_vector_that_is_not_finite_is_computed_again_alone_in_float32(poisoned: float) -> None:
    precise = Fake(poisoned=7)
    results = run(build(Fake(poisoned=poisoned), precise=precise), [item(1), item(POISON, 2), item(3)])
    assert vectors_of(results)[:, 0].tolist() == [1, 7, 3]
    assert precise.batches == [[(POISON, 2)]]


def test_the_float32_model_is_made_once_and_only_when_needed() -> None:
    made: list[Fake] = []

    def make() -> Fake:
        made.append(Fake(poisoned=7))
        return made[-1]

    engine = EmbeddingEngine(Fake(), vocab_size=1000, limits=LIMITS, precise=make)
    run(engine, [item(1)])
    assert made == []
    run(engine, [item(POISON), item(POISON)])
    run(engine, [item(POISON)])
    assert len(made) == 1


@pytest.mark.parametrize("precise", [None, Fake(poisoned=math.nan)], ids=["no other model", "not finite there either"])
def test_a_text_without_a_finite_vector_fails_and_its_neighbours_do_not(precise: Fake | None) -> None:
    good, bad = run(build(Fake(), precise=precise), [item(1), item(POISON)])
    assert good.error is None
    assert bad.result is None
    assert isinstance(bad.error, NonFiniteError)


def test_an_overflow_in_float16_is_repaired_by_the_real_float32_model() -> None:
    exact, embedder = demo(), demo(Precision.FLOAT16)
    engine = EmbeddingEngine(
        Overflowing(embedder), vocab_size=11000, limits=embedder.limits(), precise=embedder.precise
    )
    items = [Item(text.ids) for text in exact.tokenizer.encode_many(reference_texts()[:3])]
    expected = exact.encoder.vectors([done.ids for done in items])
    np.testing.assert_allclose(vectors_of(run(engine, items)), expected, atol=1e-5, rtol=0)


class Overflowing:
    """The real model, its vectors scaled past what float16 holds."""

    def __init__(self, embedder: Embedder) -> None:
        self.encoder = embedder.encoder
        self.padding_share = self.encoder.padding_share

    def vectors(self, texts: Sequence[Sequence[int]]) -> Vector:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return ((self.encoder.vectors(texts) * 1e9).astype(np.float16)).astype(np.float32)


@pytest.mark.parametrize("precision", list(Precision))
def test_a_batch_through_the_engine_equals_its_texts_one_by_one(precision: Precision) -> None:
    texts = random_texts([5, 400, 30, 30, 31, 77, 512, 3], 11000)
    together = vectors_of(run(demo(precision).engine(), [Item(ids) for ids in texts]))
    alone = np.concatenate([vectors_of(run(demo(precision).engine(), [Item(ids)])) for ids in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5 if precision is Precision.FLOAT32 else 5e-3, rtol=0)
    assert (together * alone).sum(1).min() >= 0.9999


def test_a_result_owns_its_numbers() -> None:
    (done,) = run(demo().engine(), [Item((2, 5, 3))])
    assert done.result is not None
    assert (done.result.shape, done.result.dtype, done.result.base) == ((256,), np.float32, None)


def test_running_out_of_memory_is_told_from_other_errors() -> None:
    engine = build(Fake())
    assert engine.is_out_of_memory(torch.cuda.OutOfMemoryError("full"))
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert engine.is_out_of_memory(caught.value)
    assert not engine.is_out_of_memory(RuntimeError("shapes cannot be multiplied"))
