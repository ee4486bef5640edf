"""How much memory there is, and how its lack shows."""

from __future__ import annotations

import torch

_CPU_ALLOCATOR_FULL = ("can't allocate memory", "not enough memory")  # torch has no exception class for it


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that the device's memory, or the host's, is full."""
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _CPU_ALLOCATOR_FULL)
