"""Engines that compute with torch's operations, and with the compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.csanmt.support import Backend


@pytest.fixture(params=["torch", "kernels"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test once with each."""
    Backend.name = request.param
    yield request.param
    Backend.name = "torch"
