"""Building a network without weights, to be given them from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


class _NoFilling(TorchFunctionMode):
    """Leaves tensors as they are where `torch.nn.init` would fill them.

    Filling tensors that have no memory is pointless, and torch imports its compiler for it, which takes longer than
    loading a small model.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run anything but a filling function."""
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def skeleton() -> Iterator[None]:
    """Have modules that are built inside hold parameters with shapes and no memory."""
    with torch.device("meta"), _NoFilling():
        yield
