"""`tandem translate FILE`: a document into the other language, without a server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from tqdm import tqdm

from tandem.core.errors import InvalidRequestError
from tandem.core.settings import Settings, load_settings
from tandem.documents.document import ReadOptions
from tandem.documents.formats import find_format, supported_extensions
from tandem.services.documents import DocumentRequest, DocumentTranslator, translated_name
from tandem.services.translation import TranslationService
from tandem.text.languages import AUTO

_INTERRUPTED = 130  # the shell's status for Ctrl-C
_TIMEOUT_S = 600.0  # without any progress


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "translate",
        help="translate a file; layout, formulas, code and placeholders stay",
        description=f"Translate a file, one of: {', '.join(supported_extensions())}.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="what to translate")
    parser.add_argument(
        "--from", dest="source", default=AUTO, metavar="LANGUAGE", help="such as zh; found out by default"
    )
    parser.add_argument("--to", dest="target", default="", metavar="LANGUAGE", help="such as en; the other by default")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="where to; FILE with the language by default")
    parser.add_argument(
        "--columns", type=_split_columns, default=(), metavar="A,B", help="of a CSV: names, or numbers from 1"
    )
    parser.add_argument("--no-header", action="store_true", help="a CSV's first row is no heading: translate it too")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Translate a file.

    Raises:
        TandemError: The file, a language or the model is wrong; the message says what.
    """
    find_format(options.file.name)
    data = _read(options.file)
    wanted = DocumentRequest(
        options.file.name, options.source, options.target, ReadOptions(options.columns, not options.no_header)
    )
    try:
        with ExitStack() as stack:
            service = stack.enter_context(load_translation(load_settings()))
            translator = DocumentTranslator(lambda: service, _TIMEOUT_S)
            translator.check_languages(wanted.source, wanted.target)
            bar = stack.enter_context(_Bar(wanted.name))
            result = translator.translate(data, wanted, bar)
    except KeyboardInterrupt:
        print("tandem: interrupted; nothing was written", file=sys.stderr)
        return _INTERRUPTED
    output = options.output or options.file.with_name(translated_name(options.file.name, result.target))
    _write(output, result.data, options.file)
    print(output)
    return 0


@contextmanager
def load_translation(settings: Settings) -> Iterator[TranslationService]:
    """Load the translation models into this process, for as long as the context lasts.

    Raises:
        TandemError: A model is missing or broken, or a setting is impossible.
    """
    from app import build_policy, build_translation_model  # slow, as all that imports torch
    from batch_scheduler import BatchScheduler
    from cache import build_cache
    from model_loader import load_translator
    from tandem.model_files import translator_names
    from tandem.nn.device import choose_device

    device = choose_device(settings.device)
    cache = build_cache(settings.redis_url, settings.memory_cache_bytes)
    models = []
    with ExitStack() as stack:
        for name in translator_names(settings.translation_model):
            print(f"loading {name} …", file=sys.stderr)
            translator = load_translator(name, settings, device)
            scheduler = BatchScheduler(translator.engine, build_policy(settings, device.type), name=name)
            scheduler.start()
            stack.callback(scheduler.close)
            models.append(build_translation_model(translator, scheduler, cache, settings))
        yield TranslationService(models, settings.bulk_segments)


class _Bar:
    """A watcher that draws a progress bar on a terminal."""

    def __init__(self, name: str) -> None:
        self._bar = tqdm(desc=name, unit=" characters", disable=None)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def is_cancelled(self) -> bool:
        return False

    def note_progress(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def charge(self, _characters: int) -> AbstractContextManager[None]:
        return nullcontext()


def _split_columns(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from None


def _write(path: Path, data: bytes, source: Path) -> None:
    if path.exists() and path.samefile(source):
        raise InvalidRequestError("The output would overwrite the file itself; give another with -o.")
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be written: {error.strerror}") from None
