"""Numbers of the official graph (float32): encoder, semantic vector, scores, beam-search ids."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.csanmt.support import (
    KINDS,
    best,
    build_engine,
    fixture_model,
    fixture_options,
    golden_cases,
    items_of,
    obvious_beam_search,
    run,
    until_end,
)

TOLERANCE = 1e-4

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("kind", KINDS)
def test_encoder_and_semantic_vector_are_the_official_graphs(kind: str) -> None:
    model = fixture_model(kind)
    for case in golden_cases(kind):
        with torch.inference_mode():
            encoded = model.encode(torch.from_numpy(case["input"]))
        np.testing.assert_allclose(encoded.states.numpy(), case["encoder"], atol=TOLERANCE)
        np.testing.assert_allclose(encoded.semantic.numpy(), case["semantic"], atol=TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "name", "limit"),
    [*((kind, "golden", None) for kind in KINDS), ("abs_shared", "golden.limit5", 5)],
)
def test_beam_search_gives_the_official_ids_and_scores(kind: str, name: str, limit: int | None) -> None:
    model = fixture_model(kind)
    engine = build_engine(model, options=fixture_options(model, limit))
    for case in golden_cases(kind, name):
        ranks = case["seqs"].shape[1] if len(case["input"]) == 1 else 1
        for row, finished in enumerate(run(engine, items_of(case["input"], n_best=ranks))):
            assert finished.error is None
            assert finished.result is not None
            assert [hypothesis.ids for hypothesis in finished.result] == [
                until_end(ids) for ids in case["seqs"][row, :ranks]
            ]
            scores = [hypothesis.score for hypothesis in finished.result]
            np.testing.assert_allclose(scores, case["scores"][row, :ranks], atol=TOLERANCE)


def test_a_translation_that_meets_the_limit_says_that_it_is_truncated() -> None:
    model = fixture_model("abs_shared")
    engine = build_engine(model, options=fixture_options(model, 5))
    found = [
        (hypothesis.truncated, len(hypothesis.ids))
        for case in golden_cases("abs_shared", "golden.limit5")
        for hypothesis in best(engine, items_of(case["input"]))
    ]
    assert {length for truncated, length in found if truncated} == {5}
    assert any(not truncated for truncated, _ in found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [1, 4])
def test_the_fast_search_agrees_with_the_obvious_one(kind: str, wanted: int) -> None:
    model = fixture_model(kind)
    options = fixture_options(model, 12)
    engine = build_engine(model, options=options)
    for case in golden_cases(kind)[:4]:
        items = items_of(case["input"][:2], n_best=wanted)
        for item, finished in zip(items, run(engine, items), strict=True):
            expected = obvious_beam_search(model, item.ids, options, wanted)
            assert finished.result is not None
            assert [hypothesis.ids for hypothesis in finished.result] == [ids for ids, _ in expected]
            np.testing.assert_allclose(
                [hypothesis.score for hypothesis in finished.result], [score for _, score in expected], atol=TOLERANCE
            )


def test_rescoring_a_translation_gives_the_searchs_score() -> None:
    model = fixture_model("abs_unshared")
    engine = build_engine(model)
    for case in golden_cases("abs_unshared")[:6]:
        items = items_of(case["input"])
        for item, hypothesis in zip(items, best(engine, items), strict=True):
            labels = torch.tensor([[*hypothesis.ids, 0]])
            with torch.inference_mode():
                loss = model(torch.tensor([item.ids]), labels=labels).loss
            penalty = ((5 + labels.shape[1]) / 6) ** model.config.lp_rate
            assert hypothesis.score == pytest.approx(-float(loss) * labels.shape[1] / penalty, abs=TOLERANCE)
