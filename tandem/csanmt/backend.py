"""Which arithmetic a translator on a CPU uses: compiled kernels where they can be had, torch's operations otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.compiled.availability import prepare_kernels
from tandem.core.settings import load_settings
from tandem.csanmt.configuration import CsanmtConfig
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.nn.precision import Precision

if TYPE_CHECKING:
    from tandem.csanmt.kernel_search import Kernels


def make_kernels(
    model: CsanmtForConditionalGeneration,
    precision: Precision,
    source_positions: int,
    threads: int | None = None,
    cache_dir: Path | None = None,
) -> Kernels | None:
    """Prepare the kernels for a model; None where torch has to compute: on a GPU, in another precision, without numba.

    Args:
        model: Its linear layers not packed yet.
        precision: What the translator computes in.
        source_positions: The longest source, its end mark included.
        threads: How many compute; None for one a core.
        cache_dir: Where what is compiled is kept; None for that of the settings.
    """
    if model.device.type != "cpu" or not prepare_kernels(cache_dir or load_settings().cache_dir):
        return None
    from tandem.csanmt.kernel_search import Kernels, kernel_precisions  # imports numba

    if precision not in kernel_precisions():
        return None
    return Kernels(model, precision, source_positions, threads or count_cores())


def make_product(config: CsanmtConfig, precision: Precision, cache_dir: Path) -> Callable[[], object] | None:
    """Return what multiplies by a layer of a model's size, once for one sentence and once for many, on one thread.

    What the kernels of two precisions take differs by their products, so this tells which is faster before any of the
    other kernels is compiled, which takes much longer than the answer is worth.

    Args:
        config: The model's.
        precision: What it would compute in.
        cache_dir: Where what is compiled is kept.

    Returns:
        None where torch has to compute: in another precision, without numba.
    """
    if not prepare_kernels(cache_dir):
        return None
    from tandem.csanmt.kernel_search import kernel_precisions
    from tandem.csanmt.kernels.product import Product

    return Product(config, precision).run if precision in kernel_precisions() else None


def count_cores() -> int:
    """Return how many cores this process may use, where the system tells; those of the machine elsewhere."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
