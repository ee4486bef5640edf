"""What a measurement ran on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

# Name in the results -> flag of the kernel.
_INSTRUCTION_SETS = {
    "avx2": "avx2", "avx512f": "avx512f", "avx512_bf16": "avx512_bf16", "avx512_vnni": "avx512_vnni", "amx": "amx_tile",
}  # fmt: skip


def describe_machine(threads: int) -> dict[str, object]:
    """Return processor, cores, instruction sets, torch version, threads of each side and the date (UTC)."""
    import torch

    cpuinfo = _read_cpuinfo()
    return {
        "cpu": cpuinfo.get("model name", platform.processor() or platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_sets": parse_instruction_sets(cpuinfo.get("flags", "")),
        "torch": torch.__version__,
        "threads": threads,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def parse_instruction_sets(flags: str) -> dict[str, bool]:
    """Say which instruction sets are among the kernel's flags."""
    present = set(flags.split())
    return {name: flag in present for name, flag in _INSTRUCTION_SETS.items()}


def _read_cpuinfo() -> dict[str, str]:
    """Return the entries of the first processor; empty where the kernel has no such file."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
