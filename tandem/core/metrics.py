"""What the service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tandem.core.runner import SchedulerEvent

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """All metrics of one process; updated on the event loop's side only."""

    def __init__(self) -> None:
        """Register them in a registry of their own."""
        self.registry = CollectorRegistry()
        self.requests = Counter("tandem_requests", "Requests answered.", ("route", "status"), registry=self.registry)
        self.request_seconds = Histogram(
            "tandem_request_seconds", "Time to answer.", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self.characters = Counter(
            "tandem_characters", "Source characters taken in.", ("route",), registry=self.registry
        )
        self.cache = Counter("tandem_cache", "Results by where they came from.", ("event",), registry=self.registry)
        self.batch_items = Histogram(
            "tandem_batch_items", "Items admitted together.", ("engine",), buckets=_SIZES, registry=self.registry
        )
        self.tokens = Counter("tandem_tokens", "Tokens admitted.", ("engine",), registry=self.registry)
        self.padded_tokens = Counter(
            "tandem_padded_tokens", "Tokens admitted, padding included.", ("engine",), registry=self.registry
        )
        self.queue_seconds = Histogram(
            "tandem_queue_seconds", "Wait of an item for its admission.", ("engine",), buckets=_SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self.step_seconds = Histogram(
            "tandem_step_seconds", "One step of an engine.", ("engine",), buckets=_SECONDS, registry=self.registry
        )
        self.engine_errors = Counter(
            "tandem_engine_errors", "Admissions and steps that failed.", ("engine", "kind"), registry=self.registry
        )

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a value that is read when somebody looks."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def observe(self, event: SchedulerEvent) -> None:
        """Book what a scheduler did."""
        engine = event.scheduler
        if event.kind == "admitted":
            self.batch_items.labels(engine).observe(event.items)
            self.tokens.labels(engine).inc(event.tokens)
            self.padded_tokens.labels(engine).inc(event.padded_tokens)
            for wait_ms in event.queue_ms:
                self.queue_seconds.labels(engine).observe(wait_ms / 1000)
        elif event.kind == "stepped":
            self.step_seconds.labels(engine).observe(event.duration_ms / 1000)
        else:
            self.engine_errors.labels(engine, event.kind).inc()

    def render(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)
