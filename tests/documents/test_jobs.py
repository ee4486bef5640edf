"""Documents as jobs: states, percentage, cancelling, expiry, limits."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tandem.core.errors import CancelledError, InvalidRequestError, OverloadedError, TandemError, TooLargeError
from tandem.documents.errors import BrokenDocumentError, UnsupportedDocumentError
from tandem.services.document_jobs import (
    DocumentJobs,
    JobLimits,
    JobState,
    UnfinishedDocumentError,
    UnknownDocumentError,
)
from tandem.services.documents import DocumentRequest, DocumentTranslator
from tests.documents.support import ShoutingService
from tests.support.clock import FakeClock
from tests.support.waiting import eventually

_TEXT = json.dumps([f"some words x{number}" for number in range(4)]).encode()


class _Stage:
    """Jobs whose work is started by hand."""

    def __init__(self, **limits: Any) -> None:
        self.service = ShoutingService()
        self.clock = FakeClock()
        self.waiting: list[Callable[[], object]] = []
        translator = DocumentTranslator(lambda: self.service, 30.0)  # type: ignore[arg-type, return-value]
        self.jobs = DocumentJobs(
            translator,
            JobLimits(**{"max_file_bytes": 1 << 20, "max_jobs": 5, "ttl_s": 60.0, **limits}),
            self.clock,
            pause=lambda _: None,
            start=self.waiting.append,
        )
        self.jobs._is_sweeping = True  # the tests sweep by hand

    def submit(self, data: bytes = _TEXT, name: str = "a.json") -> Any:
        return self.jobs.submit(io.BytesIO(data), DocumentRequest(name, "en", "zh"))

    def work(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture
def stage() -> Any:
    """Jobs that are closed at the end."""
    made = _Stage()
    yield made
    made.jobs.close()


def test_a_document_goes_from_queued_to_done(stage: _Stage) -> None:
    seen: list[tuple[JobState, int]] = []
    job = stage.submit()
    assert (job.state, job.percent) == (JobState.QUEUED, 0)
    stage.service.before_segment = lambda: seen.append((job.state, job.percent))
    stage.work()
    assert (job.state, job.percent) == (JobState.DONE, 100)
    assert [percent for _, percent in seen] == [0, 25, 50, 75]
    assert {state for state, _ in seen} == {JobState.TRANSLATING}
    assert json.loads(stage.jobs.result_of(job).read_bytes())[3] == "SOME WORDS x3"
    assert job.result_name == "a.zh.json"


def test_the_uploaded_file_is_deleted_when_it_is_translated(stage: _Stage) -> None:
    job = stage.submit()
    assert job.upload_path.exists()
    stage.work()
    assert not job.upload_path.exists()


def test_a_result_that_is_not_there_yet_says_so(stage: _Stage) -> None:
    with pytest.raises(UnfinishedDocumentError, match="0 %"):
        stage.jobs.result_of(stage.submit())


def test_a_broken_file_becomes_an_error_with_its_reason(stage: _Stage) -> None:
    job = stage.submit(b"[1,")
    stage.work()
    assert job.state is JobState.ERROR
    with pytest.raises(BrokenDocumentError, match="not valid JSON"):
        stage.jobs.result_of(job)


def test_what_nobody_expected_becomes_an_error_without_words_of_the_file(stage: _Stage) -> None:
    def fail() -> None:
        raise ZeroDivisionError("secret words")

    stage.service.before_segment = fail
    job = stage.submit()
    stage.work()
    assert type(job.error) is TandemError
    assert "secret" not in str(job.error)


def test_what_cannot_be_translated_is_refused_at_once(stage: _Stage) -> None:
    with pytest.raises(UnsupportedDocumentError):
        stage.submit(name="a.pdf")
    with pytest.raises(InvalidRequestError, match="empty"):
        stage.submit(b"")
    with pytest.raises(TooLargeError, match="limit of 1 MiB"):
        stage.submit(b"x" * (1 << 20) + b"x")
    assert not stage.jobs._jobs


def test_at_most_so_many_documents_are_kept_and_translated_at_a_time() -> None:
    stage = _Stage(max_jobs=3, max_running=2)
    for _ in range(3):
        stage.submit()
    assert len(stage.waiting) == 2
    with pytest.raises(OverloadedError, match="MAX_JOBS"):
        stage.submit()
    stage.waiting.pop(0)()
    assert len(stage.waiting) == 2
    stage.work()
    stage.jobs.close()


def test_a_waiting_document_that_is_cancelled_is_never_begun(stage: _Stage) -> None:
    jobs = [stage.submit() for _ in range(3)]
    stage.jobs.cancel(jobs[2])
    stage.work()
    assert len(stage.service.requests) == 2
    with pytest.raises(UnknownDocumentError):
        stage.jobs.find(jobs[2].id)


def test_a_document_that_is_cancelled_midway_is_computed_no_further(stage: _Stage) -> None:
    job = stage.submit(json.dumps([f"some words x{number}" for number in range(200)]).encode())
    stage.service.before_segment = lambda: stage.jobs.cancel(job)
    stage.work()
    assert len(stage.service.requests) == 1
    assert not job.folder.exists()
    with pytest.raises(UnknownDocumentError):
        stage.jobs.find(job.id)


def test_a_result_expires_with_its_file(stage: _Stage) -> None:
    job = stage.submit()
    stage.work()
    stage.clock.advance(59)
    assert stage.jobs.seconds_left(stage.jobs.find(job.id)) == 1
    stage.clock.advance(1)
    with pytest.raises(UnknownDocumentError):
        stage.jobs.find(job.id)
    assert not job.folder.exists()


def test_a_document_that_is_still_translated_never_expires(stage: _Stage) -> None:
    job = stage.submit()
    stage.clock.advance(10_000)
    assert stage.jobs.find(job.id) is job


def test_whoever_waits_gets_the_result_or_its_error(stage: _Stage) -> None:
    good, bad = stage.submit(), stage.submit(b"[1,")
    stage.work()
    assert stage.jobs.wait(good, lambda: False) == good.result_path
    with pytest.raises(BrokenDocumentError):
        stage.jobs.wait(bad, lambda: False)


def test_a_document_whose_waiter_has_gone_is_cancelled(stage: _Stage) -> None:
    job = stage.submit()
    with pytest.raises(CancelledError):
        stage.jobs.wait(job, lambda: True)
    assert job.is_cancelled


def test_only_the_right_key_opens_a_document(stage: _Stage) -> None:
    job = stage.submit()
    assert job.is_opened_by(job.key)
    assert not job.is_opened_by("")
    assert not job.is_opened_by(f"{job.key}Ä")


def test_closing_deletes_all_files(stage: _Stage) -> None:
    job = stage.submit()
    stage.jobs.close()
    assert not job.folder.parent.exists()


def test_jobs_run_beside_the_caller_and_are_swept_by_themselves() -> None:
    clock = FakeClock()
    gate, swept = threading.Event(), threading.Event()
    service = ShoutingService(before_segment=lambda: gate.wait(10))
    translator = DocumentTranslator(lambda: service, 30.0)  # type: ignore[arg-type, return-value]
    jobs = DocumentJobs(translator, JobLimits(1 << 20, 5, 60.0), clock, pause=lambda _: swept.wait(10))
    job = jobs.submit(io.BytesIO(_TEXT), DocumentRequest("a.json", "en", "zh"))
    eventually(lambda: job.state is JobState.TRANSLATING)
    gate.set()
    eventually(lambda: job.state is JobState.DONE)
    clock.advance(61)
    swept.set()
    eventually(lambda: not job.folder.exists())
    jobs.close()
