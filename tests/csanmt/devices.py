"""What a GPU would do, told on a CPU: when the host waits for it, how it records work, which branches it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

READS = {"tolist", "item", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__", "__contains__"}
BY_INDEX = (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default)
WAITS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class Waits(TorchDispatchMode):
    """Counts what would make the host wait for a device: reading a value, a shape that depends on values, an upload.

    `log` names each in order; every other operation of a step is logged as None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str | None] = []
        self._on_host: set[int] = set()
        self._inside_read = False
        self._methods = _Methods(self)

    def __enter__(self) -> Waits:
        self._methods.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._methods.__exit__(*error)

    @property
    def found(self) -> list[str]:
        return [name for name in self.log if name is not None]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if not self._inside_read and not self._is_about_host(args):
            self.log.append(str(func) if self._waits(func, args) else None)
        return func(*args, **(kwargs or {}))

    def read(self, name: str, func, args, kwargs):  # type: ignore[no-untyped-def]
        if self._is_about_host(args):
            return func(*args, **kwargs)
        self.log.append(name)
        self._inside_read = True
        try:
            out = func(*args, **kwargs)
            if name == "cpu":
                out = out.clone()
                self._on_host.add(out.untyped_storage().data_ptr())
            return out
        finally:
            self._inside_read = False

    def _is_about_host(self, args: object) -> bool:
        tensors = [leaf for leaf in tree_leaves(args) if isinstance(leaf, Tensor)]
        strided = [tensor for tensor in tensors if tensor.layout == torch.strided]
        return bool(strided) and all(t.untyped_storage().data_ptr() in self._on_host for t in strided)

    @staticmethod
    def _waits(func, args) -> bool:  # type: ignore[no-untyped-def]
        if func in BY_INDEX:  # only a mask as an index has to be counted first
            return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
        return any(tag in func.tags for tag in WAITS)


class _Methods(TorchFunctionMode):
    """Sees what never reaches the dispatcher on a CPU: the methods that read values, and tensors made from lists."""

    def __init__(self, waits: Waits) -> None:
        super().__init__()
        self._waits = waits

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in READS or (func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None):
            return self._waits.read(name, func, args, kwargs)
        return func(*args, **kwargs)


class PretendCuda(TorchFunctionMode):
    """Lets tensors say that they lie on CUDA, so that the code takes the branches it takes there."""

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func == torch.Tensor.is_cuda.__get__:  # made anew each time it is asked for
            return True
        return func(*args, **(kwargs or {}))


class TapeRecorder:
    """Records as CUDA does: operations and tensors, not the Python around them; what it runs leaves no trace."""

    def __init__(self) -> None:
        self.warm_ups = self.records = self.replays = 0

    def warm_up(self, work: Callable[[], None]) -> None:
        self.warm_ups += 1
        work()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self.records += 1
        tape = _Tape()
        with tape:
            work()
        tape.undo()

        def replay() -> None:
            self.replays += 1
            tape.replay()

        return replay


class _Tape(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[object, tuple, dict, object]] = []  # type: ignore[type-arg]
        self._saved: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self._saved.append((value, value.clone()))
        out = func(*args, **kwargs)
        self._calls.append((func, args, kwargs, out))
        return out

    def undo(self) -> None:
        for tensor, before in reversed(self._saved):
            tensor.copy_(before)
        self._saved.clear()

    def replay(self) -> None:
        made: dict[int, Tensor] = {}

        def current(tensor: Tensor) -> Tensor:
            return made.get(id(tensor), tensor)

        for func, args, kwargs, recorded in self._calls:
            now_args, now_kwargs = tree_map_only(Tensor, current, (args, kwargs))
            out = func(*now_args, **now_kwargs)  # type: ignore[operator]
            for before, now in zip(tree_leaves(recorded), tree_leaves(out), strict=True):
                made[id(before)] = now


@contextmanager
def counting_waits() -> Iterator[Waits]:
    waits = Waits()
    with waits:
        yield waits
