"""Tensors of a changing set of live rows: they join at the end, leave anywhere, and are never copied otherwise.

The tensors are allocated once and written in place. They grow by whole steps when more rows, longer sources or longer
targets come than before; a hole that a leaving row makes is filled with the last row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_STEPS = {"R": 8, "S": 32, "T": 32}


@dataclass(frozen=True, slots=True)
class RowTensor:
    """The shape of one tensor: sizes, and "R", "S" or "T" for the axis of rows, source or target positions."""

    shape: tuple[int | str, ...]
    dtype: torch.dtype
    fill: float = 0


class Rows:
    """The tensors of all live rows, by name.

    Args:
        layout: What each tensor looks like; every one has an axis "R".
        device: Where they lie.
    """

    def __init__(self, layout: Mapping[str, RowTensor], device: torch.device) -> None:
        """Start without rows and without memory."""
        self._layout = layout
        self._device = device
        self._capacity = {"R": 0, "S": 0, "T": 0}
        self._tensors: dict[str, Tensor] = {}
        self.reserve({})

    def __getitem__(self, name: str) -> Tensor:
        """Return a whole tensor, capacity included; do not keep it over a `reserve`."""
        return self._tensors[name]

    def reserve(self, wanted: Mapping[str, int]) -> None:
        """Make room for that many rows, source and target positions; what is there stays."""
        capacity = {
            axis: max(old, -(-wanted.get(axis, 0) // _STEPS[axis]) * _STEPS[axis])
            for axis, old in self._capacity.items()
        }
        capacity["R"] = max(self._capacity["R"], 1 << (capacity["R"] - 1).bit_length() if capacity["R"] else 0)
        if capacity == self._capacity and self._tensors:
            return
        self._capacity = capacity
        for name, spec in self._layout.items():
            shape = [capacity[size] if isinstance(size, str) else size for size in spec.shape]
            grown = torch.full(shape, spec.fill, dtype=spec.dtype, device=self._device)
            if (old := self._tensors.get(name)) is not None and old.numel():
                grown[tuple(slice(size) for size in old.shape)] = old
            self._tensors[name] = grown

    def copy_row(self, source: Rows, src: int, dst: int, used: Mapping[str, int]) -> None:
        """Overwrite row `dst` with a row of the same layout.

        Args:
            source: These rows or another set.
            src: The row in `source`.
            dst: The row here.
            used: Source and target positions in use ("S", "T"); what lies behind them is not copied.
        """
        for name, spec in self._layout.items():
            self._tensors[name][_index(spec, dst, used)] = source[name][_index(spec, src, used)]

    def clear_row(self, row: int) -> None:
        """Reset a row to its fill values, so that nothing of it (NaN) can leak into the row that takes its place."""
        for name, spec in self._layout.items():
            self._tensors[name][_index(spec, row, self._capacity)] = spec.fill

    def release(self) -> None:
        """Give all memory back."""
        self._capacity = dict.fromkeys(self._capacity, 0)
        self._tensors.clear()
        self.reserve({})


def _index(spec: RowTensor, row: int, used: Mapping[str, int]) -> tuple[int | slice, ...]:
    sizes = {**used, "R": row}
    return tuple(
        row if size == "R" else slice(sizes[size]) if isinstance(size, str) else slice(None) for size in spec.shape
    )
