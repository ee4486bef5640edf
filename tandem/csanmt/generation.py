"""`model.generate` of transformers, by this package's own beam search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tandem.core.errors import InvalidRequestError
from tandem.core.types import Hypothesis, Item
from tandem.csanmt.decoding import Search
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.modeling import EOS_ID
from tandem.nn.precision import half_autocast

if TYPE_CHECKING:
    from tandem.csanmt.modeling import CsanmtForConditionalGeneration


def generate(
    model: CsanmtForConditionalGeneration, input_ids: Tensor, options: DecodingOptions, sequences: int
) -> Tensor:
    """Translate padded source sentences.

    Args:
        model: In any precision that transformers can load it in, on any device.
        input_ids: int64 [B, S], 0 is padding, no end marks.
        options: Beam size, length penalty, output limit.
        sequences: Translations wanted of each row, best first; at most the beam size.

    Returns:
        int64 [B * sequences, T] on the input's device, ended and padded with 0.

    Raises:
        InvalidRequestError: More sequences are asked for than the beam holds.
    """
    if not 1 <= sequences <= options.beam_size:
        raise InvalidRequestError(f"num_return_sequences must lie between 1 and num_beams ({options.beam_size})")
    items = [Item(tuple(row[row != EOS_ID].tolist()), n_best=sequences) for row in input_ids]
    results: dict[int, list[Hypothesis]] = {}
    is_half = model.dtype != torch.float32
    cache_dtype = model.dtype if input_ids.is_cuda else torch.float32
    search = Search(model, options, input_ids.device, cache_dtype, exact_logits=not is_half)
    with torch.inference_mode(), half_autocast(model.dtype, input_ids.device):
        search.join(items, model.encode(input_ids), [[] for _ in items])
        while len(search):
            for finished in search.step():
                if finished.error is not None:
                    raise finished.error
                results[id(finished.item)] = finished.result or []
    rows = [hypothesis.ids for item in items for hypothesis in _filled(results[id(item)], sequences)]
    longest = max(map(len, rows)) + 1
    padded = [[*ids, *[EOS_ID] * (longest - len(ids))] for ids in rows]
    return torch.tensor(padded, device=input_ids.device)


def _filled(hypotheses: list[Hypothesis], count: int) -> list[Hypothesis]:
    """Repeat the last one where the search found fewer than wanted, so that the result is rectangular."""
    return hypotheses + [hypotheses[-1]] * (count - len(hypotheses))
