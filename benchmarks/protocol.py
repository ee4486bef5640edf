"""The worker's side of the conversation: one JSON object a line, in and out. Needs nothing but Python."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(build: Callable[[], dict[str, Callable[..., Any]]]) -> None:
    """Build an engine, say so, then run commands until the input ends.

    A line {"op": name, "arguments": {...}} calls a function by name; the answer is {"wall_ms", "cpu_ms", "result"} with
    the time of that call alone. What the engine prints goes to standard error.

    Args:
        build: Loads the engine and returns its commands by name.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    commands = build()
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        command = commands[request["op"]]
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        result = command(**request["arguments"])
        elapsed_s, cpu_s = time.perf_counter() - started_s, time.process_time() - started_cpu_s
        _answer(answers, {"wall_ms": elapsed_s * 1000, "cpu_ms": cpu_s * 1000, "result": result})


def _answer(answers: Any, value: dict[str, Any]) -> None:
    print(json.dumps(value), file=answers, flush=True)
