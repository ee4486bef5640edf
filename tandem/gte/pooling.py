"""From the hidden states of a text to its vector."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tandem.core.errors import ModelError
from tandem.gte.files import module_dir, module_kind, read_modules, read_object

_LEGACY_PREFIX = "pooling_mode_"
_LEGACY_NAMES = {"cls_token": "cls", "mean_tokens": "mean"}
_SUPPORTED_MODULES = ("Transformer", "Pooling", "Normalize")


class PoolingMode(StrEnum):
    """Which hidden states stand for the text."""

    CLS = "cls"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Pooling:
    """How hidden states become a vector.

    Attributes:
        mode: The first state, or the mean over the text's own positions.
        normalise: Scale the vector to unit length.
    """

    mode: PoolingMode = PoolingMode.CLS
    normalise: bool = True

    def pool(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector a text, in float32.

        Args:
            hidden: Last hidden states, float [B, S, D].
            mask: True on real positions, bool [B, S]; None when all are.

        Returns:
            [B, D], of unit length when this pooling normalises.
        """
        if self.mode is PoolingMode.CLS:
            return self.finish(hidden[:, 0])
        if mask is None:
            return self.finish(hidden.float().mean(1))
        weights = mask[..., None].float()
        # The states of padding may be infinite in half precision, and 0 x infinity is not 0.
        return self.finish(hidden.float().masked_fill(~mask[..., None], 0).sum(1) / weights.sum(1))

    def finish(self, pooled: Tensor) -> Tensor:
        """Normalise pooled states when this pooling does, [B, D] -> float32 [B, D]."""
        return F.normalize(pooled.float(), dim=-1) if self.normalise else pooled.float()


def load_pooling(model_dir: Path) -> Pooling:
    """Read a model's pooling; CLS and unit length where the directory says nothing.

    Raises:
        ModelError: A file is damaged, or asks for a module or a mode that is not supported.
    """
    modules = read_modules(model_dir)
    kinds = None if modules is None else [module_kind(module) for module in modules]
    for kind in kinds or []:
        if kind not in _SUPPORTED_MODULES:
            raise ModelError(f"{model_dir / 'modules.json'}: the module {kind!r} is not supported")
    path = module_dir(model_dir, "Pooling", "1_Pooling") / "config.json"
    has_pooling = path.is_file() if kinds is None else "Pooling" in kinds
    mode = _parse_mode(path, read_object(path)) if has_pooling else PoolingMode.CLS
    return Pooling(mode, kinds is None or "Normalize" in kinds)


def _parse_mode(path: Path, stored: dict[str, Any]) -> PoolingMode:
    mode = stored.get("pooling_mode")
    if mode is None:
        switched_on = [name for name, value in stored.items() if name.startswith(_LEGACY_PREFIX) and value]
        names = [name.removeprefix(_LEGACY_PREFIX) for name in switched_on]
        modes = [_LEGACY_NAMES.get(name, name) for name in names]
    else:
        modes = mode if isinstance(mode, list) else [mode]
    if len(modes) != 1 or modes[0] not in tuple(PoolingMode):
        found = ", ".join(map(str, modes)) or "none"
        raise ModelError(f"{path}: the pooling is {found}; only cls or mean is supported")
    return PoolingMode(modes[0])
