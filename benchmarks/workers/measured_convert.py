"""Convert a checkpoint and print the peak of this process's anonymous memory, in bytes.

What the checkpoint's mapped file takes does not count: the system takes those pages back whenever it needs them.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

from tandem.csanmt.convert import main

_LOOK_EVERY_S = 0.002


def _anonymous_bytes() -> int:
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None, "this kernel does not say how much memory is anonymous"
    return int(found[1]) << 10


def _measure(arguments: list[str]) -> int:
    peak, ended = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(_LOOK_EVERY_S):
            peak = max(peak, _anonymous_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        status = main(arguments)
    finally:
        ended.set()
        watcher.join()
    print(peak)
    return status


if __name__ == "__main__":
    sys.exit(_measure(sys.argv[1:]))
