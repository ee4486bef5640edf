"""From decoder states to each hypothesis' best continuations, and from those to each row's.

The vocabulary projection is the largest product of a step, and what is done with its result touches more memory than
all the rest. So it is taken in blocks whose memory malloc keeps, and normalised in chunks that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tandem.nn.precision import full_precision

_BLOCK = 128  # vocabulary entries whose maximum is taken at once
_BLOCKWISE_FROM = 40_000  # logits; sorting fewer costs less than finding out which blocks to sort
_RESCORED = 4  # continuations of a hypothesis, in beams, that are scored again after a rounded projection
_PROJECTED_ROWS = 128  # of a vocabulary of 50,000 they take 26 MB; from 32 MB on, malloc returns memory at every step
_NORMALISED_ROWS = 16  # at least
_NORMALISED_BYTES = 1 << 20  # what a core's own cache holds


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best 2K continuations of every row, best first.

    Attributes:
        scores: Length-normalised log-probs, float32 [B, 2K]; -inf where there is none.
        log_probs: Sums over tokens, float32 [B, 2K].
        parents: Slots they continue, int64 [B, 2K].
        tokens: int64 [B, 2K].
    """

    scores: Tensor
    log_probs: Tensor
    parents: Tensor
    tokens: Tensor


class VocabularyScorer:
    """Finds the best continuations of hypotheses.

    Args:
        projection: Decoder states to logits, [N, D] -> [N, V].
        weight: The projection's matrix, [V, D], for scoring again.
        beam_size: K.
        is_exact: True when the projection computes in float32.
    """

    def __init__(self, projection: nn.Module, weight: Tensor, beam_size: int, *, is_exact: bool) -> None:
        """Choose sizes for the device: a GPU takes everything at once."""
        self._projection = projection
        self._weight = weight
        self._is_exact = is_exact
        self._count = (2 if is_exact else _RESCORED) * beam_size
        chunk = max(_NORMALISED_ROWS, _NORMALISED_BYTES // (4 * len(weight)))
        self._blocks = (_PROJECTED_ROWS, chunk) if weight.device.type == "cpu" else (1 << 30, 1 << 30)

    def score(self, hidden: Tensor, constrain: Callable[[Tensor], None] | None) -> tuple[Tensor, Tensor]:
        """Return the best continuations of each hypothesis, best first.

        Args:
            hidden: Decoder output, float32 [N, D].
            constrain: Closes what may not follow in the logits [N, V], in place; None when nothing is forbidden.

        Returns:
            Log-probs, float32 [N, C] with C at least 2K, and token ids, int64 [N, C].
        """
        if constrain is not None:
            logits = self._projection(hidden).float()
            log_total = logits.logsumexp(-1, keepdim=True)
            constrain(logits)
            return self._finish(hidden, *top_candidates(logits, self._count), log_total)
        parts = [self._score_block(rows) for rows in hidden.split(self._blocks[0])]
        log_probs, tokens = map(_join, zip(*parts, strict=True))
        return log_probs, tokens

    def _score_block(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        chunks = self._projection(hidden).split(self._blocks[1])
        parts = [normalised_candidates(chunk.float(), self._count) for chunk in chunks]
        values, tokens, log_total = map(_join, zip(*parts, strict=True))
        return self._finish(hidden, values, tokens, log_total)

    def _finish(self, hidden: Tensor, values: Tensor, tokens: Tensor, log_total: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = values - log_total
        return log_probs if self._is_exact else rescore(hidden, self._weight, log_probs, tokens, log_total), tokens


def _join(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts))


def top_candidates(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest logits of each row and their token ids, [N, V] -> two of [N, count].

    The largest entries can only lie in the blocks with the largest maxima, so the sort sees a few blocks instead of the
    vocabulary.
    """
    vocabulary = logits.shape[1]
    blocks = vocabulary // _BLOCK
    if logits.numel() < _BLOCKWISE_FROM or blocks <= count:
        values, ids = logits.topk(count)
        return values, ids
    body = logits[:, : blocks * _BLOCK].unflatten(1, (blocks, _BLOCK))
    best_blocks = body.amax(-1).topk(count, sorted=False).indices
    inside = body.gather(1, best_blocks[..., None].expand(-1, -1, _BLOCK)).flatten(1)
    values, places = torch.cat((inside, logits[:, blocks * _BLOCK :]), 1).topk(count)
    block = best_blocks.gather(1, (places // _BLOCK).clamp_max(count - 1))
    tail = places - count * _BLOCK
    ids = torch.where(tail < 0, block * _BLOCK + places % _BLOCK, blocks * _BLOCK + tail)
    return values, ids


def normalised_candidates(logits: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest logits, their token ids, and the log of the sum of all exponentials.

    The log-sum-exp is read from the softmax of the largest entry, v - log(softmax(v)): one pass that writes to the
    cache, where `logsumexp` makes several that write to memory.

    Args:
        logits: float32 [N, V].
        count: How many.

    Returns:
        float32 [N, count], int64 [N, count], float32 [N, 1].
    """
    values, tokens = top_candidates(logits, count)
    best = logits.softmax(-1).gather(1, tokens[:, :1])
    return values, tokens, values[:, :1] - best.log()


def rescore(hidden: Tensor, weight: Tensor, rounded: Tensor, tokens: Tensor, log_total: Tensor) -> Tensor:
    """Return the log-probs of candidates whose logits came out of a rounded projection, without the rounding.

    A half-precision logit of 20 is off by up to 0.06 (bfloat16), more than what often separates two candidates. The
    candidates' own logits are computed again in float32; the total is corrected by what that changes in it, which is
    nearly all there is to correct, as the candidates hold nearly all of the probability.

    Args:
        hidden: Decoder output, float32 [N, D].
        weight: The projection, [V, D].
        rounded: The candidates' log-probs so far, float32 [N, C]; -inf where a constraint forbids one.
        tokens: Their ids, int64 [N, C].
        log_total: Log of the sum over the vocabulary of the rounded logits' exponentials, float32 [N, 1].
    """
    with full_precision(hidden.device):
        exact = (weight[tokens].float() @ hidden[..., None]).squeeze(-1) - log_total
    exact = exact.masked_fill(rounded == -torch.inf, -torch.inf)
    change = (exact.exp() - rounded.exp()).sum(-1, keepdim=True)
    return exact - change.clamp_min(-0.5).log1p()


def select_candidates(live: Tensor, values: Tensor, tokens: Tensor, penalty: Tensor) -> Candidates:
    """Choose the best 2K continuations of each row.

    Args:
        live: Log-probs of the live hypotheses, float32 [B, K]; -inf for none.
        values: Log-probs of each one's best continuations, float32 [B, K, C].
        tokens: Their token ids, int64 [B, K, C].
        penalty: The length penalty of each row, float32 [B, 1].
    """
    width = values.shape[2]
    log_probs = (live[..., None] + values).flatten(1)
    scores, order = (log_probs / penalty).topk(2 * live.shape[1])
    return Candidates(scores, log_probs.gather(1, order), order // width, tokens.flatten(1).gather(1, order))
