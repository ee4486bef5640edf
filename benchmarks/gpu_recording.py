"""How the GPU check lets an engine record its steps, with a stand-in where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tandem.csanmt.engine import TranslationEngine
from tandem.csanmt.graphs import CudaRecorder, Recorder


class NoRecorder:
    """Runs buckets of rows as recorded steps do, and records nothing: for testing on a CPU."""

    def warm_up(self, work: Callable[[], None]) -> None:
        """Run the work."""
        work()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return the work itself."""
        return work


def record_steps(engine: TranslationEngine, device: torch.device) -> None:
    """Let an engine record its steps as the device does it."""
    recorder: Recorder = CudaRecorder(device) if device.type == "cuda" else NoRecorder()
    engine.record_steps(recorder)
