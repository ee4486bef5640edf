"""A second server, which asks for keys, and the keys to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.server import Server, run_server


@pytest.fixture(scope="session")
def keys_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the second server keeps its keys."""
    return tmp_path_factory.mktemp("keys") / "keys.sqlite3"


@pytest.fixture(scope="session")
def add_key(keys_db: Path) -> Callable[..., str]:
    """Make a key as an operator does: with the command."""

    def add(name: str, *options: str) -> str:
        command = [sys.executable, "-m", "tandem", "keys", "add", name, *options]
        environment = {**os.environ, "KEYS_DB": str(keys_db)}
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True, text=True, timeout=60)
        return ran.stdout.strip()

    return add


@pytest.fixture(scope="session")
def key(add_key: Callable[..., str]) -> str:
    """A key without limits."""
    return add_key("everything")


@pytest.fixture(scope="session")
def locked(keys_db: Path) -> Iterator[Server]:
    """A server that asks for keys."""
    with run_server(KEYS_REQUIRED="true", KEYS_DB=str(keys_db)) as running:
        yield running
