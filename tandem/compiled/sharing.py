"""Work that threads share out among themselves while they compute, without the interpreter."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from tandem.compiled.vectors import data_of


@intrinsic  # type: ignore[untyped-decorator]
def take(typing_context: Any, taken: Any, count: Any) -> Any:
    """Return how much has been taken, and take so many more, in one operation that no other thread comes between.

    Args:
        typing_context: numba's.
        taken: int64 [1].
        count: At least 1.
    """
    del typing_context, count
    return types.int64(taken, types.int64), _generate_take


def _generate_take(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.atomic_rmw(
        "add", data_of(context, builder, signature.args[0], arguments[0]), arguments[1], "monotonic"
    )
