"""Threads of the operating system that import the same modules at once, in a process that gevent has patched."""

from __future__ import annotations

import importlib._bootstrap
import subprocess
import sys
from pathlib import Path

from tandem.core.import_locks import make_import_locks_native
from tests.conftest import ROOT

_MODULES = 200
_IN_A_CHAIN = 5

# With gevent's locks this waits for ever in practically every run.
_SCENARIO = """
import gevent.monkey
gevent.monkey.patch_all()
import faulthandler, gevent, importlib, os, sys
from tandem.core.import_locks import make_import_locks_native

folder, count = sys.argv[1], int(sys.argv[2])
make_import_locks_native()
sys.path.insert(0, folder)
done = []

def import_all():
    for i in range(count):
        importlib.import_module(f"slow_module_{i}")
    done.append(i)

faulthandler.dump_traceback_later(40, exit=True)
for _ in range(2):
    gevent.monkey.get_original("_thread", "start_new_thread")(import_all, ())
for i in range(count):
    importlib.import_module(f"slow_module_{i}")
    if i % 7 == 0:
        gevent.sleep(0)
while len(done) < 2:
    gevent.sleep(0.01)
print("imported")
os._exit(0)
"""


def test_threads_and_greenlets_import_the_same_modules_at_once(tmp_path: Path) -> None:
    for i in range(_MODULES):
        follows = f"import slow_module_{i + 1}\n" if i % _IN_A_CHAIN != _IN_A_CHAIN - 1 and i + 1 < _MODULES else ""
        (tmp_path / f"slow_module_{i}.py").write_text(f"import time\nx = [i for i in range(20000)]\n{follows}")
    command = [sys.executable, "-c", _SCENARIO, str(tmp_path), str(_MODULES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "imported\n", done.stderr[-3000:]


def test_without_gevent_nothing_changes() -> None:
    before = importlib._bootstrap._thread  # type: ignore[attr-defined]
    make_import_locks_native()
    assert importlib._bootstrap._thread is before  # type: ignore[attr-defined]
