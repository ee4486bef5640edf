"""Steps that are recorded once and replayed: on a GPU as CUDA graphs, which start hundreds of kernels in one call.

A step is recorded when its bucket comes for the second time. The first time it runs as it is, and with it everything
that a library sets up at its first call. Recording runs nothing, so no step is ever done twice.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol

import torch

LOGGER = logging.getLogger("tandem.models")
_MOST_RECORDS = 64  # kept; each holds some megabytes of the driver's memory

Work = Callable[[], None]


class Recorder(Protocol):
    """Knows how the device records work that reads and writes tensors which stay where they are."""

    def warm_up(self, work: Work) -> None:
        """Run the work where it will be recorded."""
        ...

    def record(self, work: Work) -> Work:
        """Record the work without running it; return what runs it."""
        ...


class CudaRecorder:
    """Records CUDA graphs, on a stream of its own; all of them share the memory of what they compute on the way."""

    def __init__(self, device: torch.device) -> None:
        """Make the stream and the memory pool.

        Args:
            device: A CUDA device.
        """
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def warm_up(self, work: Work) -> None:
        """Run the work on the recording stream; see `Recorder`."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            work()
        torch.cuda.current_stream().wait_stream(self._stream)

    def record(self, work: Work) -> Work:
        """Capture the work; see `Recorder`. Other threads may use the device meanwhile."""
        graph = torch.cuda.CUDAGraph()
        with (
            torch.cuda.stream(torch.cuda.current_stream()),  # a capture that fails may leave its own stream current
            torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
        ):
            work()
        return graph.replay


class StepGraphs:
    """Runs steps, recorded as soon as that pays; when recording fails once, all steps run as they are from then on.

    Args:
        recorder: Records for the device.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Start without records."""
        self._recorder = recorder
        self._records: OrderedDict[Hashable, Work | None] = OrderedDict()
        self.is_off = False

    def __len__(self) -> int:
        """Return the number of steps that are recorded."""
        return sum(record is not None for record in self._records.values())

    def run(self, bucket: Hashable, work: Work) -> None:
        """Do a step.

        Args:
            bucket: Equal for steps that differ in nothing but what lies in the tensors.
            work: The step.
        """
        if self.is_off:
            work()
        elif bucket not in self._records:
            self._recorder.warm_up(work)
            self._keep(bucket, None)
        elif replay := self._records[bucket] or self._record(work):
            self._keep(bucket, replay)
            replay()
        else:
            work()

    def clear(self) -> None:
        """Forget all records and give their memory back."""
        self._records.clear()

    def _keep(self, bucket: Hashable, record: Work | None) -> None:
        """Note a bucket as the one used last; forget the one that was not used for longest when there are many."""
        self._records[bucket] = record
        self._records.move_to_end(bucket)
        if len(self._records) > _MOST_RECORDS:
            self._records.popitem(last=False)

    def _record(self, work: Work) -> Work | None:
        try:
            return self._recorder.record(work)
        except Exception as error:
            self.is_off = True
            self.clear()
            LOGGER.warning("a decoding step could not be recorded as a CUDA graph; all run without: %s", error)
            return None
