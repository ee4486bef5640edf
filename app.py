"""Wiring: settings, models, schedulers, caches, services, routes. gunicorn serves "app:create_app()"."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from flask import Flask

from batch_scheduler import BatchPolicy, BatchScheduler, SchedulerEvent
from cache import Cache, build_cache
from tandem.core.device_lock import DeviceLock, DeviceShare
from tandem.core.import_locks import make_import_locks_native
from tandem.core.logs import set_up_logging
from tandem.core.metrics import Metrics
from tandem.core.settings import Settings, load_settings
from tandem.services.prediction import PredictionService
from tandem.services.recent import RecentResults
from tandem.services.translation import TranslationService
from tandem.services.translation_model import ModelFacts, TranslationModel
from tandem.web.deepl import build_deepl
from tandem.web.docs import build_docs
from tandem.web.documents import build_documents
from tandem.web.errors import register_error_handlers
from tandem.web.extensions import build_extensions
from tandem.web.faces import shape_error
from tandem.web.hooks import register_hooks
from tandem.web.json import JsonProvider
from tandem.web.libretranslate import build_libretranslate
from tandem.web.native import build_native
from tandem.web.openai import build_openai
from tandem.web.ops import build_ops
from tandem.web.pages import build_pages
from tandem.web.runtime import Runtime, Services
from tandem.web.tei import build_tei

if TYPE_CHECKING:
    from model_loader import LoadedModels, Translator

LOGGER = logging.getLogger("tandem")

_BLUEPRINTS = (
    build_native,
    build_libretranslate,
    build_deepl,
    build_extensions,
    build_openai,
    build_tei,
    build_documents,
    build_ops,
    build_pages,
    build_docs,
)
_MAX_BODY_BYTES = 64 << 20
_SWITCH_INTERVAL_S = (
    0.0005  # the engine asks for the interpreter after every operation: it must not wait 5 ms each time
)
# Its requests are many and short, and what they cost the event loop on a CPU slows the translator's steps down too.
_EMBEDDER_COST = 1.5
_BOOT_FAILED = 4  # gunicorn's status for "do not start another worker"


def create_app(settings: Settings | None = None) -> Flask:
    """Make the application; the models load on a thread of their own while it answers already.

    Args:
        settings: Read from the environment by default.

    Raises:
        SettingsError: A setting is impossible.
    """
    settings = settings or load_settings()
    set_up_logging(settings.log_level)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    make_import_locks_native()
    metrics = Metrics()
    runtime = Runtime(settings, metrics, on_failure=_end_process)
    app = Flask(__name__, static_folder=None)  # the page has its own addresses for its files
    app.config["MAX_CONTENT_LENGTH"] = _MAX_BODY_BYTES
    app.json = JsonProvider(app)
    app.extensions["tandem"] = runtime
    register_hooks(app, runtime)
    register_error_handlers(app, shape_error)
    for build in _BLUEPRINTS:
        app.register_blueprint(build(runtime))
    _drain_on_sigterm(runtime)
    runtime.start(lambda on_stage: build_services(settings, runtime, on_stage))
    return app


def build_services(settings: Settings, runtime: Runtime, on_stage: Callable[[str], object]) -> Services:
    """Load the models and build everything behind the routes.

    Args:
        settings: The process's.
        runtime: Told of what the schedulers do.
        on_stage: Told what is being loaded.
    """
    on_stage("importing torch")
    from model_loader import describe_memory_gb, get_models  # slow: only here, beside an open socket

    models = get_models(settings, on_stage)
    cache = build_cache(settings.redis_url, settings.memory_cache_bytes)
    device = models.embedder.device.type

    schedule, lock = partial(_start_scheduler, runtime, build_policy(settings, device)), DeviceLock()
    translators = {
        translator.name: (translator, schedule(lock.share(), translator.engine, translator.name))
        for translator in models.translators
    }
    embedding = schedule(lock.share(_EMBEDDER_COST), models.embedder.engine(), models.embedder_name)
    schedulers = {name: scheduler for name, (_, scheduler) in translators.items()} | {models.embedder_name: embedding}
    _add_gauges(runtime.metrics, schedulers, lambda: describe_memory_gb(device))
    return Services(
        translation=TranslationService(
            [build_translation_model(*pair, cache, settings) for pair in translators.values()],
            settings.bulk_segments,
            RecentResults(settings.cache_ttl_s if settings.redis_url or settings.memory_cache_bytes else 0),
        ),
        prediction=PredictionService(
            models.embedder.tokenizer,
            embedding,
            cache,
            fingerprint=models.embedder.fingerprint,
            ttl_s=settings.cache_ttl_s,
            bulk_texts=settings.bulk_segments,
        ),
        engine_name=_engine_name(models, device),
        embedding_model=models.embedder_name,
        models=_describe(models),
        queues=lambda: {name: _queue(scheduler) for name, scheduler in schedulers.items()},
        are_alive=lambda: all(scheduler.is_alive() for scheduler in schedulers.values()),
        memory=lambda: describe_memory_gb(device),
        device=device,
    )


def _start_scheduler(
    runtime: Runtime, policy: BatchPolicy, share: DeviceShare, engine: Any, name: str
) -> BatchScheduler[Any]:
    scheduler = BatchScheduler(
        engine, policy, name=name, device=share, on_event=lambda event: _on_event(runtime, event)
    )
    scheduler.start()
    return scheduler


def build_policy(settings: Settings, device: str) -> BatchPolicy:
    """Return how a scheduler batches on a device, "cuda" or "cpu"."""
    return BatchPolicy(
        max_batch_size=settings.max_batch_size,
        max_batch_tokens=settings.max_batch_tokens,
        max_wait_ms=settings.max_wait_ms,
        max_queue=settings.max_queue,
        continuous=settings.batching == "continuous",
        pause_bulk=device != "cuda",
    )


def build_translation_model(
    translator: Translator, scheduler: BatchScheduler[Any], cache: Cache, settings: Settings
) -> TranslationModel:
    """Return a loaded direction with its queue and its cache."""
    options = translator.options
    facts = ModelFacts(translator.fingerprint, options.beam_size, options.max_target_tokens)
    return TranslationModel(translator.tokenizer, scheduler, cache, facts, settings.cache_ttl_s)


def _engine_name(models: LoadedModels, device: str) -> str:
    if any(translator.is_demo for translator in models.translators):
        return "CSANMT-demo"
    return "CSANMT-GPU-v1" if device == "cuda" else "CSANMT-CPU-v1"


def _describe(models: LoadedModels) -> dict[str, Any]:
    return {
        "translation": [
            {
                "name": translator.name,
                "source": translator.direction[0],
                "target": translator.direction[1],
                "precision": translator.precision.value,
                "is_demo": translator.is_demo,
            }
            for translator in models.translators
        ],
        "embedding": {
            "name": models.embedder_name,
            "dimension": models.embedder.dimension,
            "max_tokens": models.embedder.max_tokens,
            "pooling": models.embedder.pooling.mode,
            "precision": models.embedder.precision.value,
            "is_demo": models.is_demo_embedder,
        },
    }


def _queue(scheduler: BatchScheduler[Any]) -> dict[str, int]:
    stats = scheduler.stats()
    return {"waiting": stats.waiting + stats.backlog, "running": stats.live}


def _add_gauges(
    metrics: Metrics, schedulers: Mapping[str, BatchScheduler[Any]], memory_gb: Callable[[], float | None]
) -> None:
    metrics.gauge(
        "tandem_waiting_items",
        "Items in all queues.",
        lambda: sum(_queue(scheduler)["waiting"] for scheduler in schedulers.values()),
    )
    metrics.gauge(
        "tandem_running_items",
        "Items the engines work on.",
        lambda: sum(_queue(scheduler)["running"] for scheduler in schedulers.values()),
    )
    metrics.gauge("tandem_gpu_memory_gigabytes", "GPU memory in use; 0 on a CPU.", lambda: memory_gb() or 0.0)


def _on_event(runtime: Runtime, event: SchedulerEvent) -> None:
    runtime.metrics.observe(event)
    if event.detail:
        LOGGER.error("%s: %s\n%s", event.scheduler, event.kind, event.detail)
    if "AcceleratorError" in event.detail:
        # A device-side assert: nothing on this device works any more in this process.
        runtime.fail("the GPU reported an error that only a new process mends")


def _end_process() -> None:
    """End this process, and gunicorn with it; whoever supervises it decides whether to start again."""
    os._exit(_BOOT_FAILED)


def _drain_on_sigterm(runtime: Runtime) -> None:
    """Make /ready false as soon as the server is told to stop; what it does then stays its own."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        runtime.drain()
        if callable(before):
            before(number, frame)
        else:
            sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
