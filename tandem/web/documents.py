"""Documents: our own jobs, LibreTranslate's /translate_file, DeepL's /v2/document."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any, BinaryIO, Literal, cast

from flask import Blueprint, Response, request, send_file, url_for
from pydantic import BaseModel, BeforeValidator, Field

from tandem.core.errors import NotReadyError
from tandem.documents.document import ReadOptions
from tandem.documents.errors import UnsupportedDocumentError
from tandem.documents.formats import find_format, supported_extensions
from tandem.services.document_jobs import DocumentJobs, Job, JobLimits, JobState, UnknownDocumentError
from tandem.services.documents import DocumentRequest, DocumentTranslator
from tandem.services.keys import charged
from tandem.web.bodies import BodyT, parse_body, read_body
from tandem.web.callers import watch_caller
from tandem.web.errors import FieldError
from tandem.web.faces import DEEPL, LIBRETRANSLATE
from tandem.web.libretranslate import FILE_FORMATS
from tandem.web.operations import ANY, FORM, JSON, MULTIPART, Operation, documented
from tandem.web.runtime import Runtime
from tandem.web.schemas import Body, Language, OptionalLanguage
from tandem.web.work import permit, render_answer

_FAILURES = (404, 409, 413, 415, 422, 500, 504)  # of a result: not there, or the document's own error

File = Annotated[str, Field(min_length=1, max_length=255, json_schema_extra={"format": "binary"})]


def _split_names(value: object) -> object:
    """Return the names in a list, or in one field between commas."""
    values = value if isinstance(value, list) else [value]
    return [name.strip() for part in values for name in str(part).split(",") if name.strip()]


class DocumentBody(Body):
    """Form of POST /documents.

    Attributes:
        file: The file; its name's extension tells the format.
        source: Language of the file.
        target: Language wanted; what the source is translated into by default.
        columns: Of a table: names, or numbers from 1, of the columns to translate; all by default.
        header: Whether a table's first row holds names, which stay.
    """

    file: File
    source: OptionalLanguage = "auto"
    target: OptionalLanguage = ""
    columns: Annotated[list[str], BeforeValidator(_split_names)] = Field(default_factory=list, max_length=1000)
    header: bool = True


class LibreTranslateFileBody(Body):
    """Form of LibreTranslate's POST /translate_file."""

    file: File
    source: OptionalLanguage = "auto"
    target: Language
    api_key: str | None = None


class DeepLDocumentBody(Body):
    """Form of DeepL's POST /v2/document; formality and the like are accepted and change nothing."""

    file: File
    target_lang: Language
    source_lang: OptionalLanguage = ""
    filename: str = Field("", max_length=255)
    output_format: str = Field("", max_length=20)
    glossary_id: str | None = None


class DeepLKeyBody(Body):
    """Body of DeepL's POST /v2/document/ID and /v2/document/ID/result."""

    document_key: str = Field(max_length=200)


class JobAnswer(BaseModel):
    """Where a document stands; source, target and characters are there when it is done, error when it failed."""

    id: str
    name: str
    status: JobState
    percent: int
    source: str | None = None
    target: str | None = None
    characters: int | None = None
    error: str | None = None
    code: str | None = None
    expires_in_s: int | None = None


class CancelAnswer(BaseModel):
    """Answer of DELETE /documents/ID."""

    id: str
    status: Literal["cancelled"] = "cancelled"


class LibreTranslateFileAnswer(BaseModel):
    """Answer of LibreTranslate's POST /translate_file."""

    translatedFileUrl: str  # noqa: N815 - the product's own spelling


class DeepLHandle(BaseModel):
    """Answer of DeepL's POST /v2/document."""

    document_id: str
    document_key: str


class DeepLStatus(BaseModel):
    """Answer of DeepL's POST /v2/document/ID."""

    document_id: str
    status: JobState
    billed_characters: int | None = None
    error_message: str | None = None


def build_documents(runtime: Runtime) -> Blueprint:
    """Return the blueprint of all routes that take or give files, with the jobs behind them."""
    documents = Blueprint("documents", __name__)
    jobs = build_jobs(runtime)
    documents.record(lambda state: state.app.extensions.update({FILE_FORMATS: supported_extensions()}))
    _add_job_routes(documents, runtime, jobs)
    _add_libretranslate_routes(documents, runtime, jobs)
    _add_deepl_routes(documents, runtime, jobs)
    return documents


def build_jobs(runtime: Runtime) -> DocumentJobs:
    """Return the jobs of a process."""
    settings = runtime.settings
    translator = DocumentTranslator(lambda: runtime.services.translation, settings.request_timeout_s)
    return DocumentJobs(translator, JobLimits(settings.max_file_bytes, settings.max_jobs, settings.job_ttl_s))


def _add_job_routes(documents: Blueprint, runtime: Runtime, jobs: DocumentJobs) -> None:
    @documents.post("/documents")
    @documented(Operation(answer=JobAnswer, body=DocumentBody, takes=(MULTIPART,), errors=(422,)))
    def post_document() -> Response:
        """Accept a file for translation; ask for it under the id that comes back."""
        body, upload = _read_form(DocumentBody)
        options = ReadOptions(tuple(body.columns), body.header)
        wanted = DocumentRequest(body.file, body.source or "auto", body.target, options)
        return render_answer(_render_job(jobs.submit(upload, wanted, _charge(runtime)), jobs))

    @documents.get("/documents/<job_id>")
    @documented(Operation(answer=JobAnswer, errors=(404,)))
    def get_document(job_id: str) -> Response:
        """Say how far a document is."""
        return render_answer(_render_job(jobs.find(job_id), jobs))

    @documents.get("/documents/<job_id>/result")
    @documented(Operation(gives=(ANY,), errors=_FAILURES))
    def get_result(job_id: str) -> Response:
        """Give a translated file."""
        return _send(runtime, jobs, jobs.find(job_id))

    @documents.delete("/documents/<job_id>")
    @documented(Operation(answer=CancelAnswer, errors=(404,)))
    def delete_document(job_id: str) -> Response:
        """Cancel a document, or forget its result."""
        jobs.cancel(jobs.find(job_id))
        return render_answer(CancelAnswer(id=job_id))


def _add_libretranslate_routes(documents: Blueprint, runtime: Runtime, jobs: DocumentJobs) -> None:
    @documents.post("/translate_file")
    @documented(
        Operation(
            answer=LibreTranslateFileAnswer,
            body=LibreTranslateFileBody,
            face=LIBRETRANSLATE,
            takes=(MULTIPART,),
            errors=(422,),
        )
    )
    def post_file() -> Response:
        """Translate a file, and say where the translation is."""
        body, upload = _read_form(LibreTranslateFileBody)
        wanted = DocumentRequest(body.file, body.source or "auto", body.target)
        job = jobs.submit(upload, wanted, _charge(runtime))
        jobs.wait(job, watch_caller(request.environ))
        address = url_for("documents.get_file", name=f"{job.id}.{job.result_name}", _external=True)
        return render_answer(LibreTranslateFileAnswer(translatedFileUrl=address), runtime.services.engine_name)

    @documents.get("/download_file/<name>")
    @documented(Operation(gives=(ANY,), errors=_FAILURES))
    def get_file(name: str) -> Response:
        """Give a translated file; its address is known only to whoever had it translated."""
        return _send(runtime, jobs, jobs.find(name.partition(".")[0]))


def _add_deepl_routes(documents: Blueprint, runtime: Runtime, jobs: DocumentJobs) -> None:
    @documents.post("/v2/document")
    @documented(Operation(answer=DeepLHandle, body=DeepLDocumentBody, face=DEEPL, takes=(MULTIPART,), errors=(422,)))
    def post_deepl_document() -> Response:
        """Accept a file for translation."""
        body, upload = _read_form(DeepLDocumentBody)
        name = body.filename or body.file
        _check_deepl_options(body, name)
        wanted = DocumentRequest(name, body.source_lang or "auto", body.target_lang)
        job = jobs.submit(upload, wanted, _charge(runtime))
        return render_answer(DeepLHandle(document_id=job.id, document_key=job.key))

    @documents.post("/v2/document/<job_id>")
    @documented(Operation(answer=DeepLStatus, body=DeepLKeyBody, face=DEEPL, takes=(JSON, FORM), errors=(404,)))
    def post_deepl_status(job_id: str) -> Response:
        """Say how far a document is."""
        return render_answer(_render_deepl_job(_find_deepl_job(jobs, job_id)))

    @documents.post("/v2/document/<job_id>/result")
    @documented(Operation(gives=(ANY,), body=DeepLKeyBody, face=DEEPL, takes=(JSON, FORM), errors=_FAILURES))
    def post_deepl_result(job_id: str) -> Response:
        """Give a translated file."""
        job = _find_deepl_job(jobs, job_id)
        if not job.ended.done():
            raise NotReadyError("The document is not translated yet. Ask for its status first.")
        return _send(runtime, jobs, job)


def _read_form(schema: type[BodyT]) -> tuple[BodyT, BinaryIO]:
    """Return the fields of a form and the file in it.

    Raises:
        UnsupportedDocumentError: It is no form with a file.
        FieldError: Fields are missing or wrong.
    """
    if request.mimetype != MULTIPART:
        raise UnsupportedDocumentError('Send the file as a form (multipart/form-data) in the field "file".')
    fields: dict[str, Any] = {
        name: values if len(values) > 1 else values[0] for name, values in request.form.lists() if name != "file"
    }
    upload = request.files.get("file")
    if upload is None or not upload.filename:
        raise FieldError('file: the form has no file; send one in the field "file".', "file")
    return parse_body(schema, {**fields, "file": upload.filename}), cast(BinaryIO, upload.stream)


def _check_deepl_options(body: DeepLDocumentBody, name: str) -> None:
    if body.glossary_id:
        raise FieldError("glossary_id: no glossaries are kept here; leave it out.", "glossary_id")
    if body.output_format and body.output_format.lower() != name.rpartition(".")[2].lower():
        raise FieldError("output_format: a file comes back in its own format only.", "output_format")


def _find_deepl_job(jobs: DocumentJobs, job_id: str) -> Job:
    key = parse_body(DeepLKeyBody, read_body(request)).document_key
    job = jobs.find(job_id)
    if not job.is_opened_by(key):
        raise UnknownDocumentError("There is no such document, or its key is another.")
    return job


def _charge(runtime: Runtime) -> Callable[[int], AbstractContextManager[None]]:
    """Return what charges the current request's key, long after the request has ended."""
    held = permit()

    def charge(characters: int) -> AbstractContextManager[None]:
        runtime.metrics.characters.labels("documents").inc(characters)
        return charged(held, characters)

    return charge


def _render_job(job: Job, jobs: DocumentJobs) -> JobAnswer:
    answer = JobAnswer(id=job.id, name=job.request.name, status=job.state, percent=job.percent)
    if job.result is not None:
        answer.name = job.result_name
        answer.source, answer.target = job.result.source, job.result.target
        answer.characters = job.result.characters
    if job.error is not None:
        answer.error, answer.code = str(job.error), job.error.code
    if job.ended.done():
        answer.expires_in_s = round(jobs.seconds_left(job))
    return answer


def _render_deepl_job(job: Job) -> DeepLStatus:
    answer = DeepLStatus(document_id=job.id, status=job.state)
    if job.result is not None:
        answer.billed_characters = job.result.characters
    if job.error is not None:
        answer.error_message = str(job.error)
    return answer


def _send(runtime: Runtime, jobs: DocumentJobs, job: Job) -> Response:
    path = jobs.result_of(job)
    media_type = find_format(job.request.name).media_type
    response = send_file(path, media_type, as_attachment=True, download_name=job.result_name, max_age=0)
    response.headers["Content-Type"] = media_type  # without a charset: the file has its own
    response.headers["X-Translation-Engine"] = runtime.services.engine_name
    return response
