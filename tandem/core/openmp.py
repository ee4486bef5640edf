"""How torch's OpenMP threads wait for each other: it must stand in the environment before torch is imported."""

from __future__ import annotations

import os
from types import MappingProxyType

# They look for work for some microseconds, then sleep: docs/decisions/0003-threads-that-soon-sleep.md has the figures.
# GNU's library, which torch brings along on Linux, goes by the count; others by the policy.
ENVIRONMENT = MappingProxyType({"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "3000"})


def set_defaults() -> None:
    """Set what the environment does not say otherwise."""
    if not ENVIRONMENT.keys() & os.environ.keys():
        os.environ.update(ENVIRONMENT)
