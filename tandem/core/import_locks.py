"""Import locks that work between operating-system threads although gevent has patched `_thread`.

The import system makes a lock for every module while it is being imported, from `_thread` as it finds it. Once gevent
has patched that, the locks are greenlets' locks: when the thread that loads the models and the thread that answers
requests import the same module at the same moment, both can wait for ever.
"""

from __future__ import annotations

import _thread
import importlib
from typing import Any

from tandem.core.native import is_patched


class _NativeThread:
    """Stands for the module `_thread` as it was before gevent patched it."""

    def __init__(self, monkey: Any) -> None:
        self._monkey = monkey

    def __getattr__(self, name: str) -> Any:
        value = self._monkey.get_original("_thread", name)
        setattr(self, name, value)
        return value


def make_import_locks_native() -> None:
    """Give the import system the locks of the operating system again; call it before a second thread imports.

    Without gevent's patches nothing changes.
    """
    if not is_patched():
        return
    import gevent.monkey

    bootstrap: Any = importlib._bootstrap
    if bootstrap._thread is _thread:
        bootstrap._thread = _NativeThread(gevent.monkey)
