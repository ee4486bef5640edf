"""A folder for files that matter only while the process lives; what a killed process left is cleared away."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

_LOCK = ".lock"
_YOUNG_S = 60.0  # another process may have made a folder and not locked it yet


class ScratchFolder:
    """A folder of this process alone, locked while the process lives, deleted at its end.

    Args:
        prefix: Of its name; folders with the same one that nobody holds any more are deleted.
    """

    def __init__(self, prefix: str) -> None:
        """Make it."""
        remove_abandoned(Path(tempfile.gettempdir()), prefix)
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        self._lock = FileLock(self.path / _LOCK, thread_local=False)
        self._lock.acquire(timeout=0)

    def remove(self) -> None:
        """Delete it with everything in it."""
        self._lock.release()
        self._folder.cleanup()


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Delete the folders of processes that ended without doing so.

    Args:
        parent: Where such folders are made.
        prefix: Of their names.
    """
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, Timeout):
            if _is_ours(folder):
                with FileLock(folder / _LOCK, timeout=0, thread_local=False):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Say whether a folder is this user's, and no longer young."""
    found = folder.lstat()
    is_folder = folder.is_dir() and not folder.is_symlink()
    return is_folder and found.st_uid == os.getuid() and time.time() - found.st_mtime > _YOUNG_S
