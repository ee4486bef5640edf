"""What a document's translation means: a file in, its texts through the translation service in chunks, a file out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Protocol

from tandem.core.errors import CancelledError, OverloadedError, UnprocessableError
from tandem.core.threads import run_native
from tandem.documents.document import TEXT, Document, ReadOptions, SourceText
from tandem.documents.formats import read_document
from tandem.services.patience import Patience
from tandem.services.requests import TranslateRequest
from tandem.services.translation import TranslationService
from tandem.text.detection import Detection, detect_language
from tandem.text.languages import AUTO, parse_locale

_CHUNK_TEXTS, _CHUNK_CHARS = 64, 8000
_SAMPLE_TEXTS = 200  # that tell the document's language
_PAUSE_S = 0.5  # before a full waiting room is tried again
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """What is wanted of a file.

    Attributes:
        name: The file's; its extension tells the format.
        source: A language code in any spelling, or "auto".
        target: A language code in any spelling; "" for what the document's language is translated into.
        options: What may be chosen about tables.
    """

    name: str
    source: str = AUTO
    target: str = ""
    options: ReadOptions = field(default_factory=ReadOptions)


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A finished file.

    Attributes:
        data: The file.
        source: Code of the language most of it was in.
        target: Code of the language it is in now.
        characters: Characters of its texts.
    """

    data: bytes
    source: str
    target: str
    characters: int


def translated_name(name: str, target: str) -> str:
    """Return the name of a finished file: report.docx becomes report.en.docx."""
    path = PurePath(name)
    return f"{path.stem}.{target}{path.suffix}"


class Watcher(Protocol):
    """Who follows the translation of a document."""

    def is_cancelled(self) -> bool:
        """Say whether the document is wanted no more; asked a few times a second."""
        ...

    def note_progress(self, done: int, total: int) -> None:
        """Hear how many characters are translated."""
        ...

    def charge(self, characters: int) -> AbstractContextManager[None]:
        """Allow, before anything is computed, that so many characters are; the translation runs inside."""
        ...


class Nobody:
    """A watcher who wants everything and hears nothing."""

    def is_cancelled(self) -> bool:
        """Say no."""
        return False

    def note_progress(self, done: int, total: int) -> None:
        """Do nothing."""

    def charge(self, characters: int) -> AbstractContextManager[None]:  # noqa: ARG002 - the protocol's
        """Allow it."""
        return nullcontext()


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Texts that are translated together, and from which language."""

    texts: tuple[str, ...]
    format: str
    source: str


class DocumentTranslator:
    """Translates whole files, as bulk work that everything interactive precedes.

    Args:
        translation: Gives the service that translates texts; asked anew for each document, since models load late.
        timeout_s: Seconds without any progress after which a document is given up.
        pause: Waits so many seconds, letting others run.
    """

    def __init__(
        self,
        translation: Callable[[], TranslationService],
        timeout_s: float,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """Plug the parts together."""
        self._translation = translation
        self._timeout_s = timeout_s
        self._pause = pause

    def check_languages(self, source: str, target: str) -> None:
        """Refuse languages that no loaded model has, before a file is accepted.

        Raises:
            UnprocessableError: Naming the directions there are.
            NotReadyError: The models are still loading.
        """
        directions = self._translation().directions
        wanted = parse_locale(target).language if target else ""
        given = "" if source.lower() == AUTO else parse_locale(source).language
        if not any(wanted in ("", end) and given in ("", start) for start, end in directions):
            pairs = ", ".join(f"{start} to {end}" for start, end in directions)
            raise UnprocessableError(
                f"No loaded model translates {given or 'any language'} to {wanted}. There are: {pairs}."
            )

    def translate(self, data: bytes, request: DocumentRequest, watcher: Watcher | None = None) -> TranslatedDocument:
        """Translate a file.

        Args:
            data: The file.
            request: What is wanted of it.
            watcher: Hears of the progress, and may end it.

        Raises:
            UnsupportedDocumentError: The extension is none of ours.
            BrokenDocumentError: The file is damaged, or is not what its extension says.
            EncryptedDocumentError: It can be read with a password only.
            TooLargeError: It unpacks to too much.
            UnprocessableError: A language is not known, or a chosen column does not exist.
            CancelledError: The watcher wants it no more.
            DeadlineError: Nothing was translated for too long.
            TandemError: The watcher's refusal, or the translation's error.
        """
        watcher = watcher or Nobody()
        document: Document = run_native(read_document, data, request.name, request.options)
        texts = list(document.texts)
        source = run_native(_find_source, request.source, texts)
        target = request.target or self._default_target(source.language)
        known: dict[SourceText, str] = {}
        characters = sum(len(text.text) for text in texts)
        with watcher.charge(characters):
            self._translate_all(texts, replace(request, source=source.language, target=target), watcher, known)
        translations = [known.get(text, text.text) for text in texts]
        code = parse_locale(target).language
        return TranslatedDocument(run_native(document.render, translations, code), source.language, code, characters)

    def _default_target(self, source: str) -> str:
        directions = self._translation().directions
        return next((end for start, end in directions if start == source), directions[0][1])

    def _translate_all(
        self, texts: Sequence[SourceText], request: DocumentRequest, watcher: Watcher, known: dict[SourceText, str]
    ) -> None:
        """Translate every text that is not in the target language already; equal ones once."""
        chunks = run_native(self._plan, list(dict.fromkeys(texts)), request)
        total = sum(len(text) for chunk in chunks for text in chunk.texts)
        done = 0
        watcher.note_progress(done, total)
        for chunk in chunks:
            for text, translation in self._translate_chunk(chunk, request.target, watcher, (done, total)):
                known[SourceText(text, chunk.format)] = translation
            done += sum(map(len, chunk.texts))
            watcher.note_progress(done, total)

    def _plan(self, texts: Sequence[SourceText], request: DocumentRequest) -> list[_Chunk]:
        """Return the texts in chunks of one format and source language."""
        target = parse_locale(request.target).language
        directions = self._translation().directions
        groups: dict[tuple[str, str], list[str]] = {}
        for text in texts:
            language = _detect(text).language
            source = language if (language, target) in directions else request.source
            if target not in (language, source):
                groups.setdefault((text.format, source), []).append(text.text)
        return [
            _Chunk(tuple(chunk), format, source) for (format, source), group in groups.items() for chunk in _cut(group)
        ]

    def _translate_chunk(
        self, chunk: _Chunk, target: str, watcher: Watcher, progress: tuple[int, int]
    ) -> Iterator[tuple[str, str]]:
        request = TranslateRequest(chunk.texts, chunk.source, target, chunk.format)
        patience = Patience(self._timeout_s, watcher.is_cancelled)
        patience.become_bulk()
        while True:
            if watcher.is_cancelled():
                raise CancelledError("The document is wanted no more.")
            try:
                translations = self._run(request, patience, watcher, progress)
            except OverloadedError:
                self._pause(_PAUSE_S)  # others have filled the waiting room; a document has time
            else:
                return zip(chunk.texts, translations, strict=True)

    def _run(
        self, request: TranslateRequest, patience: Patience, watcher: Watcher, progress: tuple[int, int]
    ) -> tuple[str, ...]:
        done, total = progress
        starts = [0]
        for text in request.texts:
            starts.append(starts[-1] + len(text))
        steps = self._translation().stream(request, patience)
        while True:
            try:
                segment = next(steps)
            except StopIteration as end:
                translations: tuple[str, ...] = end.value.translations
                return translations
            watcher.note_progress(done + starts[segment.item] + segment.source_span[1], total)


def _cut(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in chunks that are neither too many nor too long."""
    chunk: list[str] = []
    length = 0
    for text in texts:
        if chunk and (len(chunk) == _CHUNK_TEXTS or length + len(text) > _CHUNK_CHARS):
            yield chunk
            chunk, length = [], 0
        chunk.append(text)
        length += len(text)
    if chunk:
        yield chunk


def _detect(text: SourceText) -> Detection:
    return detect_language(text.text if text.format == TEXT else _TAG.sub(" ", text.text))


def _find_source(source: str, texts: Sequence[SourceText]) -> Detection:
    """Return the language a document is in: what was said, or what its first texts seem to be in."""
    if source.lower() != AUTO:
        language = parse_locale(source).language
        return Detection(language, 1.0, language)
    sample = " ".join(_TAG.sub(" ", text.text) for text in texts[:_SAMPLE_TEXTS])
    return detect_language(sample)
