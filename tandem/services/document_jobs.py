"""Documents translated while their senders do something else: queued, watched, cancelled, fetched, forgotten."""

from __future__ import annotations

import logging
import secrets
import shutil
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from tandem.core.errors import CancelledError, InvalidRequestError, OverloadedError, TandemError, TooLargeError
from tandem.core.futures import Future
from tandem.core.native import native_lock
from tandem.core.threads import run_native, start_background
from tandem.documents.formats import find_format
from tandem.services.documents import DocumentRequest, DocumentTranslator, TranslatedDocument, translated_name
from tandem.services.scratch import ScratchFolder

LOGGER = logging.getLogger("tandem.documents")

_PREFIX = "tandem-documents-"
_SWEEP_S = 30.0
_LOOK_EVERY_S = 0.25
_COPY_BYTES = 1 << 20

Charge = Callable[[int], AbstractContextManager[None]]


class UnknownDocumentError(TandemError):
    """There is no such document; its result may have expired."""

    status = 404
    code = "not_found"


class UnfinishedDocumentError(TandemError):
    """The result was asked for before it was there."""

    status = 409
    code = "conflict"
    retry_after_s = 1.0


class JobState(StrEnum):
    """Where a document stands; DeepL's words."""

    QUEUED = "queued"
    TRANSLATING = "translating"
    DONE = "done"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What a process keeps of documents.

    Attributes:
        max_file_bytes: Of one file.
        max_jobs: Documents, finished ones too; with the size of a file this bounds the disk space.
        max_running: Documents translated at a time.
        ttl_s: Seconds a finished document is kept.
    """

    max_file_bytes: int
    max_jobs: int
    ttl_s: float
    max_running: int = 2


@dataclass(eq=False, slots=True)
class Job:
    """A document on its way.

    Attributes:
        id: For addresses; cannot be guessed.
        key: A second secret, which DeepL's clients send along.
        request: What is wanted of it.
        folder: Where its files are.
        charge: Allows that characters are computed.
        state: Where it stands.
        done: Characters translated.
        total: Characters to translate; 0 until that is known.
        result: What is known of the finished file, but for its data.
        error: Why there is none.
        is_cancelled: It is wanted no more.
        ended_s: When it was finished, on the service's clock.
        ended: Resolved when it is finished, well or badly.
    """

    id: str
    key: str
    request: DocumentRequest
    folder: Path
    charge: Charge
    state: JobState = JobState.QUEUED
    done: int = 0
    total: int = 0
    result: TranslatedDocument | None = None
    error: TandemError | None = None
    is_cancelled: bool = False
    ended_s: float | None = None
    ended: Future[None] = field(default_factory=Future)

    @property
    def percent(self) -> int:
        """How much is done; 100 only when the result is there."""
        if self.state is JobState.DONE:
            return 100
        return min(self.done * 100 // self.total, 99) if self.total else 0

    @property
    def upload_path(self) -> Path:
        """The file that came."""
        return self.folder / "upload"

    @property
    def result_path(self) -> Path:
        """The file that goes."""
        return self.folder / "result"

    @property
    def result_name(self) -> str:
        """The finished file's name."""
        return translated_name(self.request.name, self.result.target if self.result else self.request.target)

    def is_opened_by(self, key: str) -> bool:
        """Say whether a key is the document's."""
        return secrets.compare_digest(key.encode(), self.key.encode())


class _JobWatcher:
    """Writes down how far a job is."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def is_cancelled(self) -> bool:
        return self._job.is_cancelled

    def note_progress(self, done: int, total: int) -> None:
        self._job.done, self._job.total = done, total

    def charge(self, characters: int) -> AbstractContextManager[None]:
        return self._job.charge(characters)


class DocumentJobs:
    """All documents of a process.

    Args:
        translator: Translates a file.
        limits: What is kept.
        clock: Seconds, monotonic.
        pause: Waits so many seconds, letting others run.
        start: Runs a function beside the caller.
    """

    def __init__(
        self,
        translator: DocumentTranslator,
        limits: JobLimits,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
        start: Callable[[Callable[[], object]], object] = start_background,
    ) -> None:
        """Start without any; the folder is made when the first one comes."""
        self._translator = translator
        self._limits = limits
        self._clock = clock
        self._pause = pause
        self._start = start
        self._lock = native_lock()
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._running = 0
        self._is_sweeping = False
        self._scratch: ScratchFolder | None = None

    def submit(self, upload: BinaryIO, request: DocumentRequest, charge: Charge = lambda _: nullcontext()) -> Job:
        """Accept a document; it is translated whether or not its sender stays.

        Args:
            upload: The file.
            request: What is wanted of it.
            charge: Called with the characters it has before any is computed; may refuse.

        Raises:
            UnsupportedDocumentError: The extension is none of ours.
            TooLargeError: The file is over the limit, which the message names.
            UnprocessableError: No loaded model has these languages.
            OverloadedError: As many documents as may be are kept already.
            NotReadyError: The models are still loading.
        """
        find_format(request.name)
        self._translator.check_languages(request.source, request.target)
        self.sweep()
        job = self._add(request, charge)
        try:
            run_native(_save, upload, job.upload_path, self._limits.max_file_bytes)
        except BaseException:
            self._forget(job)
            raise
        with self._lock:
            self._waiting.append(job)
        self._start_waiting()
        self._start_sweeping()
        return job

    def find(self, job_id: str) -> Job:
        """Return a document.

        Raises:
            UnknownDocumentError: There is none of that id, or not any more.
        """
        self.sweep()
        job = self._jobs.get(job_id)
        if job is None:
            raise UnknownDocumentError("There is no such document. Results are kept for a limited time.")
        return job

    def result_of(self, job: Job) -> Path:
        """Return where a finished document lies.

        Raises:
            UnfinishedDocumentError: It is not finished yet.
            TandemError: Why there is no result.
        """
        if job.error is not None:
            raise job.error.with_traceback(None)
        if job.state is not JobState.DONE:
            raise UnfinishedDocumentError(f"The document is not ready yet ({job.percent} %). Ask again shortly.")
        return job.result_path

    def wait(self, job: Job, is_gone: Callable[[], bool]) -> Path:
        """Wait for a document; when the caller has gone nobody else knows of it, and it is cancelled.

        Raises:
            CancelledError: The caller has gone.
            TandemError: Why there is no result.
        """
        while True:
            try:
                job.ended.result(_LOOK_EVERY_S)
            except TimeoutError:
                if is_gone():
                    self.cancel(job)
                    raise CancelledError("The caller has hung up.") from None
                continue
            return self.result_of(job)

    def cancel(self, job: Job) -> None:
        """Forget a document; one that is being translated is computed no further."""
        job.is_cancelled = True
        with self._lock:
            is_waiting = job in self._waiting
            if is_waiting:
                self._waiting.remove(job)
        if is_waiting:
            self._end(job, CancelledError("The document was cancelled."))
        self._forget(job)

    def sweep(self) -> None:
        """Forget the documents whose time is up."""
        now_s = self._clock()
        for job in list(self._jobs.values()):
            if job.ended_s is not None and now_s - job.ended_s >= self._limits.ttl_s:
                self._forget(job)

    def seconds_left(self, job: Job) -> float:
        """Return how long a finished document is kept from now on."""
        ended_s = self._clock() if job.ended_s is None else job.ended_s
        return max(ended_s + self._limits.ttl_s - self._clock(), 0.0)

    def close(self) -> None:
        """Give up everything and delete all files."""
        for job in list(self._jobs.values()):
            self.cancel(job)
        if self._scratch is not None:
            self._scratch.remove()

    # -- one after another -------------------------------------------------------------------------------------------

    def _add(self, request: DocumentRequest, charge: Charge) -> Job:
        with self._lock:
            if len(self._jobs) >= self._limits.max_jobs:
                raise OverloadedError(
                    f"{self._limits.max_jobs} documents are kept already (MAX_JOBS). Delete one, or try again later."
                )
            if self._scratch is None:
                self._scratch = ScratchFolder(_PREFIX)
            job_id = secrets.token_hex(16)
            folder = self._scratch.path / job_id
            job = Job(job_id, secrets.token_hex(32).upper(), request, folder, charge)
            self._jobs[job_id] = job
        folder.mkdir(parents=True)
        return job

    def _start_waiting(self) -> None:
        with self._lock:
            if not self._waiting or self._running >= self._limits.max_running:
                return
            self._running += 1
            job = self._waiting.popleft()
        self._start(lambda: self._work(job))

    def _work(self, job: Job) -> None:
        try:
            self._translate(job)
        finally:
            with self._lock:
                self._running -= 1
            self._start_waiting()

    def _translate(self, job: Job) -> None:
        job.state = JobState.TRANSLATING
        try:
            with _told_errors(job):
                data = run_native(job.upload_path.read_bytes)
                result = self._translator.translate(data, job.request, _JobWatcher(job))
                run_native(job.result_path.write_bytes, result.data)
                job.result = TranslatedDocument(b"", result.source, result.target, result.characters)
        except TandemError as error:
            self._end(job, error)
        else:
            self._end(job, None)
        if job.is_cancelled:
            self._forget(job)

    def _end(self, job: Job, error: TandemError | None) -> None:
        job.error = error
        job.state = JobState.DONE if error is None else JobState.ERROR
        job.ended_s = self._clock()
        job.upload_path.unlink(missing_ok=True)
        job.ended.set_result(None)

    def _forget(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def _start_sweeping(self) -> None:
        with self._lock:
            if self._is_sweeping:
                return
            self._is_sweeping = True
        self._start(self._keep_sweeping)

    def _keep_sweeping(self) -> None:
        """Sweep now and then while there are documents."""
        while True:
            self._pause(min(_SWEEP_S, self._limits.ttl_s))
            self.sweep()
            with self._lock:
                if not self._jobs:
                    self._is_sweeping = False
                    return


@contextmanager
def _told_errors(job: Job) -> Iterator[None]:
    """Turn what nobody expected into an error that a caller can be told about; the log has the rest."""
    try:
        yield
    except TandemError:
        raise
    except Exception as error:
        if job.is_cancelled:
            raise CancelledError("The document was cancelled.") from None  # and its files are gone already
        stack = "".join(traceback.format_tb(error.__traceback__))
        LOGGER.error("a document raised %s\n%s", type(error).__name__, stack)  # noqa: TRY400 - its message may hold user text
        raise TandemError("The document could not be translated: something went wrong here.") from None


def _save(upload: BinaryIO, path: Path, max_bytes: int) -> None:
    size = 0
    with path.open("wb") as file:
        while block := upload.read(_COPY_BYTES):
            size += len(block)
            if size > max_bytes:
                raise TooLargeError(f"The file is over the limit of {max_bytes / (1 << 20):g} MiB (MAX_FILE_BYTES).")
            file.write(block)
    if not size:
        raise InvalidRequestError("The file is empty.")
