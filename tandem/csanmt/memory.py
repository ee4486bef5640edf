"""How much memory a translator can take, from its settings: known before the first sentence comes.

The terms are those of `docs/operations.md`; a test holds the bound against what the process really takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tandem.csanmt.configuration import CsanmtConfig
from tandem.csanmt.grouping import MOST_PAIRS
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.csanmt.rows import RowLimits

_FLOAT_BYTES = 4
_STATES, _INNER = 10, 2  # tensors of hidden and of inner size that live together while a layer encodes
_WEIGHTS = 5  # tensors as large as the attention weights that live together in one attention
_LOGIT_BYTES = 10  # a logit in half precision and in float32, and its exponential
_PRODUCTS, _PRODUCT_BYTES = 1024, 128 << 10  # oneDNN keeps so many compiled ones, by shape, of at most about this size


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The most memory that a translator takes, in bytes.

    Attributes:
        weights: The model.
        caches: Keys, values and tables of all rows that the limits allow.
        working: What encoding, or a step, needs for a moment.
        libraries: What oneDNN keeps of its own on a CPU: the machine code of products, for each shape that came.
    """

    weights: int
    caches: int
    working: int
    libraries: int

    @property
    def total(self) -> int:
        """All together."""
        return self.weights + self.caches + self.working + self.libraries


def plan_memory(model: CsanmtForConditionalGeneration, limits: RowLimits, beam_size: int, caches: int) -> MemoryPlan:
    """Add up what a model and its work take under limits.

    Args:
        model: Packed for inference, on its device.
        limits: How many rows there may be, and how long.
        beam_size: K.
        caches: The rows' own memory under the limits, in bytes.
    """
    is_copied = model.device.type == "cuda"
    working = max(_encoding_bytes(model.config, limits), _step_bytes(model.config, limits, beam_size, is_copied))
    libraries = _PRODUCTS * _PRODUCT_BYTES if model.device.type == "cpu" else 0
    return MemoryPlan(weight_bytes(model), caches, working, libraries)


def weight_bytes(model: torch.nn.Module) -> int:
    """Return the size of a model's weights in bytes, packed ones and shared ones once."""
    unique = {id(tensor): tensor for module in model.modules() for tensor in _tensors(module)}
    return sum(tensor.numel() * tensor.element_size() for tensor in unique.values())


def _tensors(module: torch.nn.Module) -> Iterator[Tensor]:
    """Yield a module's own parameters, buffers, and the packed weights it keeps as plain attributes."""
    for values in (module._parameters.values(), module._buffers.values(), vars(module).values()):
        yield from (value for value in values if isinstance(value, Tensor))


def _encoding_bytes(config: CsanmtConfig, limits: RowLimits) -> int:
    states = limits.positions * (_STATES * config.hidden_size + _INNER * config.filter_size)
    return (states + _WEIGHTS * MOST_PAIRS * config.num_heads) * _FLOAT_BYTES


def _step_bytes(config: CsanmtConfig, limits: RowLimits, beam_size: int, is_copied: bool) -> int:
    hypotheses = limits.rows * beam_size
    slots = limits.target * beam_size
    longest = max(slots, limits.positions // limits.rows)
    weights = _WEIGHTS * hypotheses * longest * config.num_heads * _FLOAT_BYTES
    copies = 2 * limits.rows * slots * config.hidden_size * _FLOAT_BYTES if is_copied else 0
    return hypotheses * config.trg_vocab_size * _LOGIT_BYTES + weights + copies
