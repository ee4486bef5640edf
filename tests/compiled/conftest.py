"""The kernels of these tests are compiled once for all of them."""

from __future__ import annotations

from tandem.compiled.availability import prepare_kernels
from tandem.core.settings import load_settings

assert prepare_kernels(load_settings().cache_dir)  # before the modules under test import numba
