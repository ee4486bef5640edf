"""What all tests share: one thread for the tensors, and the folders of golden files and demo models."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: several processes share the cores
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.server import Server

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
MODELS = ROOT / "models"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of numbers and texts that came from the reference models."""
    return GOLDEN


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of the demo models."""
    return MODELS


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server with the demo models for all tests that do not change it."""
    from tests.support.server import run_server  # it needs ROOT

    with run_server() as running:
        yield running
