"""The two singletons: load, measure, place, warm up; once per process, behind a lock.

`python model_loader.py prepare` does everything that takes long before a server starts: downloads and conversions, with
progress bars, and the measurements of `PRECISION=auto`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import torch

import tandem
from tandem.core.errors import SettingsError, TandemError
from tandem.core.fingerprint import compute_fingerprint
from tandem.core.native import native_lock
from tandem.core.settings import Settings, load_settings
from tandem.core.types import Item, Priority
from tandem.csanmt.backend import make_kernels, make_product
from tandem.csanmt.checkpoint import load_config, load_model
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.graphs import CudaRecorder
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.memory import MemoryPlan
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.csanmt.packing import pack_model
from tandem.csanmt.tokenizer import Tokenizer, keep_dictionary
from tandem.gte.embedder import Embedder, load_embedder
from tandem.model_files import (
    DEMO_EMBEDDER,
    DEMO_TRANSLATORS,
    embedder_name,
    prepare_translator,
    resolve_model,
    translator_names,
)
from tandem.nn.device import choose_device, choose_precision, choose_threads, place, time_rounds
from tandem.nn.precision import Precision

if TYPE_CHECKING:
    from tandem.csanmt.kernel_search import Kernels

LOGGER = logging.getLogger("tandem.models")
_MEASURED_ITEMS, _MEASURED_TOKENS, _MEASURED_STEPS = 8, 20, 12
_WARM_UP_STEPS = 3
_NOTES = "measured.json"  # in the cache folder: what was measured on this machine

T = TypeVar("T")
Stage = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Translator:
    """One loaded direction.

    Attributes:
        name: As it was asked for, "demo-zh2en" for a demo model.
        tokenizer: Text to source ids, target ids to text.
        engine: Runs the model.
        options: How translations are searched for.
        fingerprint: Part of every cache key.
        precision: What it computes in.
        device: Where.
        is_demo: True for the small models of the repository.
    """

    name: str
    tokenizer: Tokenizer
    engine: TranslationEngine
    options: DecodingOptions
    fingerprint: str
    precision: Precision
    device: torch.device
    is_demo: bool

    @property
    def direction(self) -> tuple[str, str]:
        """Source and target language."""
        return self.tokenizer.source_lang, self.tokenizer.target_lang


@dataclass(frozen=True, slots=True)
class LoadedModels:
    """Everything a process serves.

    Attributes:
        translators: One a direction, in the order of the setting.
        embedder: The embedding model.
        embedder_name: As it was asked for.
        is_demo_embedder: True for the small model of the repository.
    """

    translators: tuple[Translator, ...]
    embedder: Embedder
    embedder_name: str
    is_demo_embedder: bool


class Singleton(Generic[T]):
    """A value that is made once per process, whoever asks first; the others wait for it."""

    def __init__(self) -> None:
        """Start without the value."""
        self._lock = native_lock()
        self._value: T | None = None

    def get(self, build: Callable[[], T]) -> T:
        """Return the value: without the lock once it is there, so that this costs nothing.

        Args:
            build: Makes it; what it raises reaches the one who asked, and the next one tries again.
        """
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = build()
        return self._value


_MODELS: Singleton[LoadedModels] = Singleton()


def get_models(settings: Settings, on_stage: Stage = lambda _: None) -> LoadedModels:
    """Return what this process serves, loading it at the first call; see `load_models`."""
    return _MODELS.get(lambda: load_models(settings, on_stage))


# -- loading ---------------------------------------------------------------------------------------------------------


def load_translator(name: str, settings: Settings, device: torch.device) -> Translator:
    """Load, place and warm up one translation model.

    Raises:
        ModelError: The model is missing or broken.
        SettingsError: The device cannot compute in the precision asked for.
    """
    model_dir = prepare_translator(name, settings, device)
    config = load_config(model_dir)
    measure = partial(_measure_translator, model_dir, device, settings)
    precision = _choose_precision(name, settings, device, measure)
    options = DecodingOptions(config.beam_size, config.lp_rate, config.max_decoded_trg_len)
    tokenizer = Tokenizer(model_dir, config)
    tokenizer.encode("你好")  # loads the word splitter's dictionary
    limits = EngineLimits(settings.max_batch_size, settings.max_batch_tokens)
    model, kernels = _place_translator(model_dir, precision, device, settings)
    engine = TranslationEngine(
        model,
        prefix_index=lambda: tokenizer.prefix_index,
        options=options,
        limits=limits,
        precision=precision,
        precise=None
        if precision is Precision.FLOAT32
        else lambda: _place_translator(model_dir, Precision.FLOAT32, device)[0],
        kernels=kernels,
    )
    if device.type == "cuda" and settings.cuda_graphs == "auto":
        _record_steps(engine, device)
    LOGGER.info("%s: %s", name, describe_plan(engine.memory()))
    _warm_up(engine, device)
    files = sorted(path for path in model_dir.iterdir() if path.is_file())
    fingerprint = compute_fingerprint(model_dir, files, precision.value, str(options), tandem.__version__)
    return Translator(name, tokenizer, engine, options, fingerprint, precision, device, name in DEMO_TRANSLATORS)


def _place_translator(
    model_dir: Path, precision: Precision, device: torch.device, settings: Settings | None = None
) -> tuple[CsanmtForConditionalGeneration, Kernels | None]:
    """Load a model onto its device and pack it; with settings also for the kernels, where they can compute."""
    dtype = precision.dtype if device.type == "cuda" else torch.float32
    model = place(load_model(model_dir, dtype), device)
    kernels = None
    if settings is not None:
        longest = EngineLimits().source_tokens
        kernels = make_kernels(model, precision, longest, settings.threads, settings.cache_dir)
    pack_model(model, precision, device)
    return model, kernels


def _record_steps(engine: TranslationEngine, device: torch.device) -> None:
    """Let an engine replay its steps.

    Raises:
        SettingsError: The caches that this claims do not fit onto the GPU.
    """
    try:
        engine.record_steps(CudaRecorder(device))
    except torch.cuda.OutOfMemoryError as error:
        needed = describe_plan(engine.memory())
        raise SettingsError(
            f"MAX_BATCH_SIZE and MAX_BATCH_TOKENS ask for more than the GPU has ({needed}); lower them, or set "
            "CUDA_GRAPHS=off to let the caches grow as sentences come"
        ) from error


def describe_plan(plan: MemoryPlan) -> str:
    """Return the most memory that a translator takes under the limits, in words."""
    working = plan.working + plan.libraries
    parts = f"weights {plan.weights / 1e9:.2f}, caches {plan.caches / 1e9:.2f}, working memory {working / 1e9:.2f}"
    return f"at most {plan.total / 1e9:.2f} GB: {parts}"


def _measure_translator(
    model_dir: Path, device: torch.device, settings: Settings | None, precision: Precision
) -> float:
    """Return the seconds of a product by the kernels, where they can compute, or of a few steps by torch."""
    config = load_config(model_dir)
    if settings is not None and device.type == "cpu":
        multiply = make_product(config, precision, settings.cache_dir)
        if multiply is not None:
            return time_rounds(multiply, rounds=20)  # less than a millisecond each
    model, _ = _place_translator(model_dir, precision, device)
    engine = TranslationEngine(
        model,
        prefix_index=lambda: Tokenizer(model_dir, config).prefix_index,
        options=DecodingOptions(),
        limits=EngineLimits(),
        precision=precision,
    )

    def work() -> None:
        engine.admit([Item(tuple(range(1, _MEASURED_TOKENS))) for _ in range(_MEASURED_ITEMS)])
        for _ in range(_MEASURED_STEPS):
            engine.step(Priority.BULK)
        engine.reset()

    return time_rounds(work)


def _warm_up(engine: TranslationEngine, device: torch.device) -> None:
    """Run a few steps, on CUDA with as many and as long sentences as may ever run, so that the memory is claimed."""
    count, length = 2, 20
    if device.type == "cuda":
        count = engine.limits.segments
        length = max(engine.limits.tokens // count, 2)
    engine.admit([Item((1,) * (length - 1)) for _ in range(count)])
    for _ in range(_WARM_UP_STEPS):
        engine.step(Priority.BULK)
    engine.cancel(engine.live())


def load_embedding_model(name: str, settings: Settings, device: torch.device) -> Embedder:
    """Load, place and warm up the embedding model.

    Raises:
        ModelError: The model is missing or broken.
        SettingsError: The device cannot compute in the precision asked for.
    """
    model_dir = resolve_model(embedder_name(name), settings.cache_dir)

    def measure(precision: Precision) -> float:
        embedder = load_embedder(model_dir, precision, device)
        return time_rounds(lambda: embedder.encoder.vectors([(0,) * 32] * 8))

    embedder = load_embedder(model_dir, _choose_precision(name, settings, device, measure), device)
    embedder.warm_up()
    return embedder


def _choose_precision(
    name: str, settings: Settings, device: torch.device, measure: Callable[[Precision], float]
) -> Precision:
    notes = settings.cache_dir / _NOTES
    return choose_precision(settings.precision, device, model=name, notes=notes, measure=measure)


def load_models(settings: Settings, on_stage: Stage = lambda _: None) -> LoadedModels:
    """Load everything a process serves.

    Args:
        settings: Which models, where, in which precision.
        on_stage: Told what is being done, in a few words.

    Raises:
        ModelError: A model is missing or broken, or two have the same direction.
        SettingsError: A setting is impossible on this machine.
    """
    device = choose_device(settings.device)
    LOGGER.info("Using device: %s", device.type)
    if device.type == "cpu":
        torch.set_num_threads(settings.threads or _choose_threads(settings, device))
        LOGGER.info("threads: %d", torch.get_num_threads())
    keep_dictionary(settings.cache_dir)
    translators: dict[tuple[str, str], Translator] = {}
    for name in translator_names(settings.translation_model):
        on_stage(f"loading {name}")
        translator = load_translator(name, settings, device)
        if translator.direction in translators:
            other = translators[translator.direction].name
            raise SettingsError(f"TRANSLATION_MODEL: {other} and {name} translate the same direction; give one of them")
        translators[translator.direction] = translator
        LOGGER.info("%s: %s to %s, %s", name, *translator.direction, translator.precision)
    on_stage(f"loading {settings.embedding_model}")
    embedder = load_embedding_model(settings.embedding_model, settings, device)
    LOGGER.info("%s: %d dimensions, %s", settings.embedding_model, embedder.dimension, embedder.precision)
    LOGGER.info("models loaded; %s", describe_memory(device))
    name = embedder_name(settings.embedding_model)
    return LoadedModels(tuple(translators.values()), embedder, name, name == DEMO_EMBEDDER)


def _choose_threads(settings: Settings, device: torch.device) -> int:
    """Measure the first translator with one thread and with all."""
    name = translator_names(settings.translation_model)[0]
    model_dir = prepare_translator(name, settings, device)

    def measure(threads: int) -> float:
        torch.set_num_threads(threads)
        return _measure_translator(model_dir, device, None, Precision.FLOAT32)

    return choose_threads(model=name, notes=settings.cache_dir / _NOTES, measure=measure)


def describe_memory_gb(device: str) -> float | None:
    """Return the GPU memory in use in gigabytes; None on a CPU."""
    return torch.cuda.memory_allocated() / 1e9 if device == "cuda" else None


def describe_memory(device: torch.device) -> str:
    """Return how much memory is in use, in words."""
    if device.type == "cuda":
        return f"GPU memory: {torch.cuda.memory_allocated(device) / 1e9:.2f} GB"
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return f"memory: {pages * os.sysconf('SC_PAGE_SIZE') / 1e9:.2f} GB"


# -- the command -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Turn an expected error into a line on standard error and a failing exit status."""
    try:
        yield
    except TandemError as error:
        print(f"tandem: {error}", file=sys.stderr)
        sys.exit(1)


def prepare(settings: Settings) -> None:
    """Fetch and convert every model and load it once, so that what is missing or broken shows before a server starts.

    Raises:
        TandemError: As `load_models`.
    """
    device = choose_device(settings.device)
    for name in translator_names(settings.translation_model):
        prepare_translator(name, settings, device, progress=True)
    resolve_model(embedder_name(settings.embedding_model), settings.cache_dir)


def main(arguments: list[str]) -> None:
    """Run the command line."""
    if arguments != ["prepare"]:
        sys.exit("usage: python model_loader.py prepare")
    with _reported():
        settings = load_settings()
        logging.basicConfig(level=settings.log_level, format="%(message)s")
        prepare(settings)


if __name__ == "__main__":
    main(sys.argv[1:])
