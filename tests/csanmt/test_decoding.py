"""The named pieces of the beam search, each against an obvious version."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.csanmt.candidates import (
    VocabularyScorer,
    normalised_candidates,
    rescore,
    select_candidates,
    top_candidates,
)
from tandem.csanmt.live import length_penalty


@pytest.mark.parametrize("vocabulary", [40, 2048, 2049, 5608, 12345])
@pytest.mark.parametrize("count", [8, 16])
def test_blockwise_candidates_are_the_plain_ones(vocabulary: int, count: int) -> None:
    logits = torch.randn(12, vocabulary, generator=torch.Generator().manual_seed(vocabulary + count))
    values, ids = top_candidates(logits, count)
    expected = logits.topk(count)
    torch.testing.assert_close(values, expected.values, rtol=0, atol=0)
    assert torch.equal(ids, expected.indices)


def test_candidates_in_the_vocabularys_tail_are_found() -> None:
    logits = torch.zeros(1, 4000)
    logits[0, 3990:3999] = torch.arange(9.0) + 1
    _, ids = top_candidates(logits, 8)
    assert ids[0].tolist() == list(range(3998, 3990, -1))


def test_closed_entries_are_never_preferred() -> None:
    logits = torch.full((1, 4000), -math.inf)
    logits[0, [3, 2500]] = torch.tensor([1.0, 2.0])
    values, ids = top_candidates(logits, 8)
    assert ids[0, :2].tolist() == [2500, 3]
    assert values[0, 2:].tolist() == [-math.inf] * 6


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 1000))
def test_selection_takes_the_best_of_all_continuations(rows: int, beam: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    live = torch.randn(rows, beam, generator=random)
    values = torch.randn(rows, beam, 2 * beam, generator=random).sort(-1, descending=True).values
    tokens = torch.randint(0, 99, values.shape, generator=random)
    penalty = torch.rand(rows, 1, generator=random) + 0.5
    found = select_candidates(live, values, tokens, penalty)
    for row in range(rows):
        everything = sorted(
            (float((live[row, k] + values[row, k, c]) / penalty[row, 0]) for k in range(beam) for c in range(2 * beam)),
            reverse=True,
        )
        assert found.scores[row].tolist() == pytest.approx(everything[: 2 * beam])
        for score, log_prob, parent, token in zip(
            found.scores[row], found.log_probs[row], found.parents[row], found.tokens[row], strict=True
        ):
            assert float(log_prob / penalty[row, 0]) == pytest.approx(float(score))
            assert token in tokens[row, parent]


def test_the_length_penalty_is_the_papers() -> None:
    assert float(length_penalty(torch.tensor(1.0), 0.6)) == 1.0
    assert float(length_penalty(torch.tensor(25.0), 0.6)) == pytest.approx((30 / 6) ** 0.6)


def test_rescoring_undoes_the_rounding_of_a_projection() -> None:
    random = torch.Generator().manual_seed(3)
    hidden, weight = torch.randn(6, 32, generator=random), torch.randn(500, 32, generator=random)
    exact = torch.log_softmax(hidden @ weight.T, -1)
    logits = (hidden.bfloat16() @ weight.bfloat16().T).float()
    total = logits.logsumexp(-1, keepdim=True)
    rounded, tokens = logits.topk(16)
    rounded = rounded - total
    rounded[0, 3] = -math.inf
    found = rescore(hidden, weight, rounded, tokens, total)
    assert found[0, 3] == -math.inf
    before = (rounded - exact.gather(1, tokens))[1:].abs().max()
    after = (found - exact.gather(1, tokens))[1:].abs().max()
    assert after < 0.01
    assert before > 0.03


def test_the_log_sum_read_from_the_softmax_is_the_log_sum() -> None:
    logits = torch.randn(20, 5000, generator=torch.Generator().manual_seed(9)) * 8
    values, tokens, total = normalised_candidates(logits, 8)
    torch.testing.assert_close(total, logits.logsumexp(-1, keepdim=True), rtol=0, atol=1e-5)
    expected = logits.topk(8)
    assert torch.equal(values, expected.values)
    assert torch.equal(tokens, expected.indices)


def test_nan_in_the_logits_reaches_the_log_probs() -> None:
    logits = torch.randn(2, 5000)
    logits[1, 7] = math.nan
    values, _, total = normalised_candidates(logits, 8)
    assert torch.isfinite(values[0] - total[0]).all()
    assert not torch.isfinite((values[1] - total[1])[0])


@pytest.mark.parametrize("is_exact", [True, False])
def test_scoring_in_blocks_is_scoring_at_once(is_exact: bool) -> None:
    random = torch.Generator().manual_seed(4)
    projection = torch.nn.Linear(16, 3000, bias=False)
    hidden = torch.randn(300, 16, generator=random)
    scorer = VocabularyScorer(projection, projection.weight, 4, is_exact=is_exact)
    with torch.no_grad():
        log_probs, tokens = scorer.score(hidden, None)
        whole, whole_tokens = scorer.score(hidden, lambda _: None)
        expected = torch.log_softmax(projection(hidden), -1)
    assert torch.equal(tokens, whole_tokens)
    torch.testing.assert_close(log_probs, whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(log_probs, expected.gather(1, tokens), rtol=0, atol=1e-5)
