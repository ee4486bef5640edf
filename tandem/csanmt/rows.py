"""Tensors of a changing set of live rows: they join at the end, leave anywhere, and are never copied otherwise.

The tensors are allocated once and written in place. They grow by whole steps when more rows, longer sources or longer
targets come than before; a hole that a leaving row makes is filled with the last row. Under `RowLimits` one long source
cannot make room for long ones in all rows: rows x source positions is bounded, and either shrinks when the other grows.

`claim` allocates all that the limits allow. From then on the memory does not move, as steps recorded for a GPU need it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_STEPS = {"R": 8, "S": 32, "T": 32}
_SPARE = 64  # elements behind the end of each tensor: kernels read whole vectors
_SHORTEST_SOURCE = 16  # positions; shorter ones take as much once the memory is claimed


@dataclass(frozen=True, slots=True)
class RowTensor:
    """The shape of one tensor: sizes, and "R", "S" or "T" for the axis of rows, source or target positions."""

    shape: tuple[int | str, ...]
    dtype: torch.dtype
    fill: float = 0


@dataclass(frozen=True, slots=True)
class RowLimits:
    """How large a set of rows may become.

    Attributes:
        rows: Live rows.
        positions: Rows x source positions of the longest; a single row may have as many.
        target: Target positions of a row.
    """

    rows: int
    positions: int
    target: int


def ceil_power(count: int) -> int:
    """Return the smallest power of two that is not smaller; 0 for 0."""
    return 1 << (count - 1).bit_length() if count else 0


class Rows:
    """The tensors of all live rows, by name.

    Args:
        layout: What each tensor looks like; every one has an axis "R".
        device: Where they lie.
        limits: How large they may become; None for as large as is asked for.

    Attributes:
        version: Changes whenever tensors have been replaced.
    """

    def __init__(self, layout: Mapping[str, RowTensor], device: torch.device, limits: RowLimits | None = None) -> None:
        """Start without rows and without memory."""
        self._layout = layout
        self._device = device
        self._limits = limits
        self._is_claimed = False
        self._capacity = {"R": 0, "S": 0, "T": 0}
        self.version = 0
        self._stores: dict[str, Tensor] = {}
        self._tensors: dict[str, Tensor] = {}
        self._resize(self._capacity)

    def __getitem__(self, name: str) -> Tensor:
        """Return a whole tensor, capacity included; do not keep it over a `reserve`."""
        return self._tensors[name]

    @property
    def capacity(self) -> Mapping[str, int]:
        """Rows ("R"), source ("S") and target positions ("T") there is room for."""
        return self._capacity

    @property
    def allocated_bytes(self) -> int:
        """Memory held now, in bytes."""
        return sum(store.nbytes for store in self._stores.values())

    def most_bytes(self) -> int:
        """Return the most memory that the limits allow, in bytes; while tensors grow, two copies of one of them.

        Raises:
            ValueError: There are no limits.
        """
        sizes = [(self._most_elements(spec) + _SPARE) * spec.dtype.itemsize for spec in self._layout.values()]
        return sum(sizes) + (0 if self._is_claimed else max(sizes))

    def fits(self, rows: int, source: int) -> bool:
        """Say whether the limits allow so many rows with sources of up to so many positions; one always fits."""
        if self._limits is None or rows <= 1:
            return True
        if self._is_claimed:
            source = _source_bucket(source)
        return rows <= self._limits.rows and rows * source <= self._limits.positions

    def claim(self) -> None:
        """Allocate all that the limits allow, at once; the memory stays where it is from now on.

        Raises:
            ValueError: There are no limits.
        """
        self._is_claimed = True
        for name, spec in self._layout.items():
            size = self._most_elements(spec) + _SPARE
            self._stores[name] = torch.full((size,), spec.fill, dtype=spec.dtype, device=self._device)
        self._resize(self._arrange(1))

    def reserve(self, wanted: Mapping[str, int]) -> None:
        """Make room for that many rows, source and target positions; what is there stays.

        Args:
            wanted: What all rows need by axis, those that are there included; an axis left out stays as it is.
        """
        capacity = self._capacity
        if self._is_claimed:
            planned = self._arrange(wanted.get("S", capacity["S"]))
        elif all(size <= capacity[axis] for axis, size in wanted.items()):
            return
        else:
            planned = self._grow({**capacity, **wanted})
        if planned != capacity:
            self._resize(planned)

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
        """Forget all rows and give their memory back; what is claimed is kept and reset to the fill values."""
        if self._is_claimed:
            for name, spec in self._layout.items():
                self._stores[name].fill_(spec.fill)
            return
        self._stores.clear()
        self._resize(dict.fromkeys(self._capacity, 0))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _arrange(self, source: int) -> dict[str, int]:
        """Return the capacity that claimed memory has for sources of a length."""
        limits = self._known_limits()
        positions = _source_bucket(source)
        return {"R": max(min(limits.rows, limits.positions // positions), 1), "S": positions, "T": limits.target}

    def _grow(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Return the capacity to grow to: in whole steps as far as the limits allow, by what is needed beyond."""
        rounded = {axis: -(-size // _STEPS[axis]) * _STEPS[axis] for axis, size in wanted.items()}
        grown = {axis: max(self._capacity[axis], size) for axis, size in rounded.items()}
        grown["R"] = max(self._capacity["R"], ceil_power(rounded["R"]))
        if self._limits is None:
            return grown
        rows = max(min(grown["R"], self._limits.rows), wanted["R"])
        target = max(min(grown["T"], self._limits.target), wanted["T"])
        choices = ((rows, grown["S"]), (rows, rounded["S"]), (wanted["R"], rounded["S"]), (wanted["R"], wanted["S"]))
        allowed = (choice for choice in choices if choice[0] * choice[1] <= self._limits.positions)
        rows, source = next(allowed, choices[-1])
        return {"R": rows, "S": source, "T": target}

    def _resize(self, capacity: dict[str, int]) -> None:
        """Give every tensor the shape of a capacity, in the memory it has where that is enough."""
        self._capacity = capacity
        self.version += 1
        for name, spec in self._layout.items():
            shape = [capacity[size] if isinstance(size, str) else size for size in spec.shape]
            old = self._tensors.get(name)
            if old is None or list(old.shape) != shape:
                self._tensors[name] = self._reshape(name, old, shape)

    def _reshape(self, name: str, old: Tensor | None, shape: list[int]) -> Tensor:
        spec, size = self._layout[name], math.prod(shape)
        store = self._stores.get(name)
        common = () if old is None else tuple(slice(min(sizes)) for sizes in zip(old.shape, shape, strict=True))
        kept = None if old is None else old[common]
        if store is None or size + _SPARE > len(store):
            store = self._stores[name] = torch.empty(size + _SPARE, dtype=spec.dtype, device=self._device)
        elif kept is not None:
            kept = kept.clone()  # it lies where the new shape is written
        tensor = store[:size].view(shape).fill_(spec.fill)
        if kept is not None:
            tensor[common] = kept
        return tensor

    def _most_elements(self, spec: RowTensor) -> int:
        limits = self._known_limits()
        most = {"R": limits.rows, "S": 1, "T": limits.target}
        if "S" in spec.shape:
            most["R"] = limits.positions  # rows x source positions
        return math.prod(most[size] if isinstance(size, str) else size for size in spec.shape)

    def _known_limits(self) -> RowLimits:
        if self._limits is None:
            raise ValueError("rows without limits have no bound")
        return self._limits


def _source_bucket(source: int) -> int:
    return max(ceil_power(source), _SHORTEST_SOURCE)


def _index(spec: RowTensor, row: int, used: Mapping[str, int]) -> tuple[int | slice, ...]:
    sizes = {**used, "R": row}
    return tuple(
        row if size == "R" else slice(sizes[size]) if isinstance(size, str) else slice(None) for size in spec.shape
    )
