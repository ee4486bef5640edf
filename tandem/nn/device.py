"""Which device and which precision to compute with."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from tandem.core.errors import SettingsError
from tandem.nn.precision import Precision, check_precision, has_fast_bfloat16

_GAIN_WANTED = 1.1  # bfloat16 gives up some accuracy: it must be faster by a tenth at least

M = TypeVar("M", bound=nn.Module)


def place(model: M, device: torch.device) -> M:
    """Put a model that was built on the CPU onto a device, with accelerate; returns it."""
    if device.type == "cpu":
        return model
    from accelerate import dispatch_model  # slow to import, and not needed where a model lies already

    placed: M = dispatch_model(model, {"": device})
    return placed


def choose_device(wanted: str) -> torch.device:
    """Return the device for a setting.

    Args:
        wanted: "auto", "cpu" or "cuda".

    Raises:
        SettingsError: CUDA is asked for and not there.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise SettingsError(
            "DEVICE=cuda, but torch finds no CUDA device: check the driver (nvidia-smi), `docker run --gpus all`, and "
            "that torch is a CUDA build (requirements-gpu.txt); or set DEVICE=cpu"
        )
    use_cuda = wanted != "cpu" and torch.cuda.is_available()
    return torch.device("cuda" if use_cuda else "cpu")


def choose_precision(
    wanted: str, device: torch.device, *, model: str, notes: Path, measure: Callable[[Precision], float]
) -> Precision:
    """Return the precision for a setting; what "auto" measured on a CPU is noted and not measured again.

    Args:
        wanted: "auto" or the name of a precision.
        device: Where the model will run.
        model: What tells this model from others in the notes.
        notes: JSON file of earlier choices; made if needed.
        measure: Loads the model in a precision and returns the seconds that some typical work takes.

    Raises:
        SettingsError: The device cannot compute in the precision asked for.
    """
    if wanted != "auto":
        precision = Precision(wanted)
        check_precision(precision, device)
        return precision
    if device.type == "cuda":
        return Precision.FLOAT16
    if not has_fast_bfloat16():
        return Precision.FLOAT32
    key = f"{model} on {_processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    noted = _read_notes(notes)
    if key not in noted:
        gain = measure(Precision.FLOAT32) / measure(Precision.BFLOAT16)
        noted[key] = (Precision.BFLOAT16 if gain >= _GAIN_WANTED else Precision.FLOAT32).value
        _write_notes(notes, noted)
    return Precision(noted[key])


def choose_threads(*, model: str, notes: Path, measure: Callable[[int], float]) -> int:
    """Return how many threads to compute with on a CPU: one or all; what was measured is noted and not measured again.

    A small model is faster with one, because its threads would wait for each other longer than they work.

    Args:
        model: What tells this model from others in the notes.
        notes: JSON file of earlier choices; made if needed.
        measure: Returns the seconds that some typical work takes with so many threads.
    """
    cores = torch.get_num_threads()
    if cores == 1:
        return 1
    key = f"threads for {model} on {_processor()}, {cores} cores, torch {torch.__version__}"
    noted = _read_notes(notes)
    if key not in noted:
        noted[key] = str(min((1, cores), key=measure))
        _write_notes(notes, noted)
    return int(noted[key])


def time_rounds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the seconds of the fastest of some rounds, after one that does not count."""
    work()
    times = []
    for _ in range(rounds):
        start_s = time.perf_counter()
        work()
        times.append(time.perf_counter() - start_s)
    return min(times)


def _read_notes(notes: Path) -> dict[str, str]:
    try:
        noted = json.loads(notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {key: value for key, value in noted.items() if value in list(Precision) or str(value).isdigit()}


def _write_notes(notes: Path, noted: dict[str, str]) -> None:
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
