"""Files through the translation service: languages, chunks, progress, priority, cancellation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tandem.core.errors import CancelledError, NotReadyError, OverloadedError, UnprocessableError
from tandem.core.types import Priority
from tandem.services.documents import DocumentRequest, DocumentTranslator, translated_name
from tests.documents.support import ShoutingService


class _Watcher:
    """Notes what it hears, and may cancel."""

    def __init__(self, cancel_after: int = 10**9) -> None:
        self.heard: list[tuple[int, int]] = []
        self.charged: list[int] = []
        self._cancel_after = cancel_after

    def is_cancelled(self) -> bool:
        return len(self.heard) > self._cancel_after

    def note_progress(self, done: int, total: int) -> None:
        self.heard.append((done, total))

    @contextmanager
    def charge(self, characters: int) -> Iterator[None]:
        self.charged.append(characters)
        yield


def _translator(service: ShoutingService, pauses: list[float] | None = None) -> DocumentTranslator:
    waits: list[float] = [] if pauses is None else pauses
    return DocumentTranslator(lambda: service, 30.0, waits.append)  # type: ignore[arg-type, return-value]


def _json(count: int) -> bytes:
    return json.dumps([f"these are the words of number x{number}" for number in range(count)]).encode()


def _translate(service: ShoutingService, data: bytes, watcher: Any = None, **request: str) -> Any:
    return _translator(service).translate(data, DocumentRequest("a.json", **request), watcher)


def test_a_large_file_goes_in_chunks_as_bulk_work() -> None:
    service = ShoutingService()
    result = _translate(service, _json(150), target="zh")
    assert [len(request.texts) for request in service.requests] == [64, 64, 22]
    assert {patience.priority for patience in service.patiences} == {Priority.BULK}
    assert json.loads(result.data)[149] == "THESE ARE THE WORDS OF NUMBER x149"


def test_progress_rises_to_the_whole() -> None:
    watcher = _Watcher()
    result = _translate(ShoutingService(), _json(100), watcher, target="zh")
    done = [done for done, _ in watcher.heard]
    assert done == sorted(done)
    assert watcher.heard[0][0] == 0
    assert watcher.heard[-1] == (result.characters, result.characters)
    assert len(set(done)) > 90


def test_equal_texts_are_translated_once() -> None:
    service = ShoutingService()
    result = _translate(service, json.dumps(["some words"] * 50).encode(), target="zh")
    assert service.requests[0].texts == ("some words",)
    assert json.loads(result.data) == ["SOME WORDS"] * 50


def test_the_language_is_found_out_for_the_whole_file() -> None:
    service = ShoutingService()
    data = json.dumps(["请打开文件。", "OK", "谢谢"], ensure_ascii=False).encode()
    result = _translate(service, data)
    assert (result.source, result.target) == ("zh", "en")
    assert [(request.source, request.texts) for request in service.requests] == [("zh", ("请打开文件。", "谢谢"))]
    assert json.loads(result.data)[1] == "OK"


def test_what_is_in_the_target_language_already_stays() -> None:
    service = ShoutingService()
    result = _translate(service, json.dumps(["these are words", "中文"]).encode(), target="en-GB")
    assert [request.texts for request in service.requests] == [("中文",)]
    assert result.target == "en"


def test_tags_do_not_count_as_words_of_a_language() -> None:
    service = ShoutingService()
    _translator(service).translate(
        "<p>你好<b class='a b c'>世界</b></p>".encode(), DocumentRequest("a.html", target="en")
    )
    assert service.requests[0].source == "zh"


def test_languages_that_no_model_has_are_refused_beforehand() -> None:
    translator = _translator(ShoutingService(directions=[("zh", "en")]))
    translator.check_languages("auto", "")
    translator.check_languages("ZH", "EN-US")
    for source, target in (("en", "zh"), ("auto", "zh"), ("zh", "fr"), ("xx", "en")):
        with pytest.raises(UnprocessableError):
            translator.check_languages(source, target)


def test_a_full_waiting_room_is_tried_again() -> None:
    pauses: list[float] = []
    service = ShoutingService(refusals=[OverloadedError("full"), OverloadedError("full")])
    result = _translator(service, pauses).translate(_json(1), DocumentRequest("a.json", target="zh"))
    assert b"WORDS" in result.data
    assert len(pauses) == 2


def test_other_errors_end_it() -> None:
    with pytest.raises(NotReadyError):
        _translate(ShoutingService(refusals=[NotReadyError("stopping")]), _json(1), target="zh")


def test_a_cancelled_document_is_computed_no_further() -> None:
    service = ShoutingService()
    with pytest.raises(CancelledError):
        _translate(service, _json(200), _Watcher(cancel_after=70), target="zh")
    assert len(service.requests) == 2


def test_characters_are_charged_before_anything_is_computed() -> None:
    class Refusing(_Watcher):
        def charge(self, characters: int) -> Any:
            super().charge(characters)
            raise UnprocessableError("too many")

    service = ShoutingService()
    with pytest.raises(UnprocessableError):
        _translate(service, _json(3), Refusing(), target="zh")
    assert not service.requests


def test_the_name_of_a_result_has_its_language() -> None:
    assert translated_name("a report.v2.docx", "en") == "a report.v2.en.docx"
