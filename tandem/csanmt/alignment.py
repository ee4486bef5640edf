"""Which source tokens a finished translation's tokens came from, by the decoder's attention over the source.

The attention of all layers and heads, averaged, at the position that predicts a token: on the demo models it finds more
words than any layer or head alone, or than the position that reads the token; see
`docs/decisions/0006-glossary-by-attention.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from tandem.core.types import Finished, Hypothesis
from tandem.csanmt.grouping import group_by_length
from tandem.csanmt.modeling import EOS_ID, CsanmtForConditionalGeneration
from tandem.nn.attention import attention_weights

Result = Finished[list[Hypothesis]]


def align(model: CsanmtForConditionalGeneration, source_ids: Tensor, target_ids: Tensor) -> Tensor:
    """Return how each target token shares its attention among the source positions.

    Args:
        model: In evaluation mode, its linear layers packed or not.
        source_ids: int64 [B, S-1], 0 is padding, no end marks.
        target_ids: Translations, int64 [B, T], 0 is padding; T may be 0.

    Returns:
        Float32 [B, T, S], averaged over layers and heads; a sentence's last real column is its end mark's.
    """
    encoded = model.encode(source_ids)
    positions = torch.arange(target_ids.shape[1], device=target_ids.device).expand_as(target_ids)
    total = torch.zeros((*target_ids.shape, encoded.mask.shape[1]), device=target_ids.device)

    def watch(query: Tensor, key: Tensor, mask: Tensor) -> None:
        total.add_(attention_weights(query, key, mask).mean(1))

    previous = F.pad(target_ids, (1, 0))[:, : target_ids.shape[1]]
    model.decoder(model.embed_target(previous, positions), encoded, watch)
    return total / len(model.decoder.stack)


def add_alignments(model: CsanmtForConditionalGeneration, finished: list[Result]) -> list[Result]:
    """Give the best hypotheses of finished items that ask for it their alignment.

    Args:
        model: What computed them.
        finished: Items that leave the engine.

    Returns:
        The same, in order; an item whose alignment fails by itself has that error as its result.
    """
    wanted = {id(done.item): done for done in finished if done.item.align and done.result}
    if not wanted:
        return finished
    aligned: dict[int, Result] = {}
    for group in group_by_length([done.item for done in wanted.values()]):
        aligned |= _align_safely(model, [wanted[id(item)] for item in group])
    return [aligned.get(id(done.item), done) for done in finished]


def _align_safely(model: CsanmtForConditionalGeneration, group: Sequence[Result]) -> dict[int, Result]:
    """Align a group; one by one when it fails together. Nothing is raised: these items have left the engine."""
    try:
        return {id(done.item): done for done in _align_group(model, group)}
    except Exception as error:
        if len(group) == 1:
            return {id(group[0].item): Finished(group[0].item, error=error)}
    return {key: done for one in group for key, done in _align_safely(model, [one]).items()}


def _align_group(model: CsanmtForConditionalGeneration, group: Sequence[Result]) -> list[Result]:
    pairs = [(done, done.result[0]) for done in group if done.result]
    sources = _pad([done.item.ids for done, _ in pairs], model.device)
    targets = _pad([best.ids for _, best in pairs], model.device)
    weights = align(model, sources, targets).tolist()
    aligned: list[Result] = []
    for (done, best), rows in zip(pairs, weights, strict=True):
        shares = tuple(tuple(row[: done.item.length]) for row in rows[: len(best.ids)])
        others = done.result[1:] if done.result else []
        aligned.append(Finished(done.item, [replace(best, alignment=shares), *others]))
    return aligned


def _pad(rows: Sequence[tuple[int, ...]], device: torch.device) -> Tensor:
    """Return rows of ids as one tensor, int64 [B, longest], padded with 0."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[EOS_ID] * (longest - len(row))] for row in rows], dtype=torch.int64, device=device)
