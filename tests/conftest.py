"""What all tests share: one thread for the tensors, and the folders of golden files and demo models."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: several processes share the cores
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from pathlib import Path

import pytest

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
