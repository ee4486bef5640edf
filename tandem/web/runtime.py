"""What one process serves, and whether it is ready to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.core.errors import NotReadyError, TandemError
from tandem.core.metrics import Metrics
from tandem.core.settings import Settings
from tandem.core.threads import NativeThread
from tandem.services.computing import Times
from tandem.services.prediction import PredictionService
from tandem.services.translation import TranslationService

LOGGER = logging.getLogger("tandem")

LOADING, READY, DRAINING, FAILED = "loading", "ready", "draining", "failed"


@dataclass(frozen=True, slots=True)
class Services:
    """Everything behind the routes.

    Attributes:
        translation: Texts into the other language.
        prediction: Texts into vectors.
        engine_name: For `X-Translation-Engine`: CSANMT-GPU-v1, CSANMT-CPU-v1 or CSANMT-demo.
        embedding_model: Name of the embedding model.
        models: What `/health` says of the models.
        queues: Reads how many items wait and run, by engine.
        are_alive: Says whether the engines' threads answer.
        memory: Reads the GPU memory in use in gigabytes; None on a CPU.
        device: "cuda" or "cpu".
    """

    translation: TranslationService
    prediction: PredictionService
    engine_name: str
    embedding_model: str
    models: Mapping[str, Any]
    queues: Callable[[], Mapping[str, Mapping[str, int]]]
    are_alive: Callable[[], bool]
    memory: Callable[[], float | None]
    device: str


class Runtime:
    """The state of one process; its services appear when the models are loaded.

    Args:
        settings: The process's.
        metrics: Where requests are counted.
        on_failure: Called when loading failed for good; ends the process in production.
    """

    def __init__(self, settings: Settings, metrics: Metrics, on_failure: Callable[[], object]) -> None:
        """Start in the state "loading"."""
        self.settings = settings
        self.metrics = metrics
        self.state = LOADING
        self.stage = "starting"
        self._on_failure = on_failure
        self._services: Services | None = None

    def start(self, build: Callable[[Callable[[str], object]], Services]) -> None:
        """Build the services on a thread of their own, so that the socket answers meanwhile.

        Args:
            build: Makes them; is given a function to report its stage to.
        """
        NativeThread(lambda: self._load(build)).start()

    @property
    def services(self) -> Services:
        """The services.

        Raises:
            NotReadyError: The models are still loading, or could not be loaded.
        """
        if self._services is None:
            raise NotReadyError(f"The models are not ready ({self.why_not_ready()}). Try again shortly.")
        return self._services

    @property
    def loaded(self) -> Services | None:
        """The services, or None while they are loading."""
        return self._services

    def why_not_ready(self) -> str | None:
        """Return the reason, or None when requests are welcome."""
        if self.state == READY and self._services is not None and not self._services.are_alive():
            return "engine stopped"
        reasons = {LOADING: f"loading: {self.stage}", DRAINING: "draining", FAILED: f"failed: {self.stage}"}
        return reasons.get(self.state)

    def count_cache(self, times: Times) -> None:
        """Book where a request's results came from."""
        self.metrics.cache.labels("hit").inc(times.hits)
        self.metrics.cache.labels("miss").inc(times.misses)

    def drain(self) -> None:
        """Say that no new requests are welcome; what is accepted is finished."""
        self.state = DRAINING

    def fail(self, reason: str) -> None:
        """Give up: something is broken that only a new process mends."""
        self.state, self.stage = FAILED, reason
        LOGGER.critical("giving up: %s", reason)
        self._on_failure()

    def note_stage(self, stage: str) -> None:
        """Remember what is being loaded."""
        self.stage = stage

    def _load(self, build: Callable[[Callable[[str], object]], Services]) -> None:
        try:
            self._services = build(self.note_stage)
        except TandemError as error:
            self.fail(str(error))
        except Exception as error:
            LOGGER.exception("the models could not be loaded")
            self.fail(f"the models could not be loaded ({type(error).__name__})")
        else:
            if self.state == LOADING:
                self.state = READY
            LOGGER.info("ready")
