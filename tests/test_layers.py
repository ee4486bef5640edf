"""Imports point down, and each outside library is known in its own place only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

LEVELS = [
    {"app"},
    {"tandem.web", "model_loader", "tandem.cli", "tandem.commands"},
    {"tandem.services", "tandem.model_files"},
    {"tandem.documents"},
    {"tandem.text", "tandem.csanmt", "tandem.gte", "cache", "batch_scheduler"},
    {"tandem.compiled"},
    {"tandem.nn"},
    {"tandem.core"},
]
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}
# Modules on the second level that may use a neighbour: the commands are small applications of their own.
NEIGHBOURS = {("tandem.cli", "tandem.commands"), ("tandem.commands", "model_loader"), ("tandem.commands", "app")}
AT_HOME = {
    "torch": {"tandem.nn", "tandem.csanmt", "tandem.gte", "tandem.model_files", "model_loader"},
    "transformers": {"tandem.csanmt", "tandem.gte"},
    "flask": {"tandem.web", "app"},
    "redis": {"cache"},
    "gevent": {"tandem.core.loops", "tandem.core.threads", "tandem.core.import_locks", "tandem.web.worker"},
    "jieba": {"tandem.csanmt"},
    "numba": {"tandem.compiled"},
    "llvmlite": {"tandem.compiled"},
    "prometheus_client": {"tandem.core.metrics"},
}


def sources() -> list[Path]:
    tops = [ROOT / name for name in ("app.py", "model_loader.py", "batch_scheduler.py", "cache.py")]
    return tops + sorted((ROOT / "tandem").rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def package_of(module: str) -> str | None:
    return next((name for name in LEVEL_OF if module == name or module.startswith(name + ".")), None)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_imports_point_down(path: Path) -> None:
    own = package_of(module_of(path))
    if own is None:
        return
    for imported in imports_of(path):
        other = package_of(imported)
        if other is None or other == own or (own, other) in NEIGHBOURS:
            continue
        assert LEVEL_OF[other] > LEVEL_OF[own], f"{module_of(path)} imports {imported}"


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_outside_libraries_stay_at_home(path: Path) -> None:
    module = module_of(path)
    for imported in imports_of(path):
        homes = AT_HOME.get(imported.split(".")[0])
        if homes is not None:
            assert any(module == home or module.startswith(home + ".") for home in homes), (
                f"{module} imports {imported}"
            )


def test_the_environment_is_read_in_the_settings_alone() -> None:
    writer = "tandem.core.openmp"  # for a library that reads it when it is loaded
    readers = {
        module_of(path)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    assert readers == {"tandem.core.settings", writer}


def test_no_module_is_outside_the_layers() -> None:
    lonely = [module_of(path) for path in sources() if package_of(module_of(path)) is None]
    assert set(lonely) <= {"tandem", "tandem.__main__"}
