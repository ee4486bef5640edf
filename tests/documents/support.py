"""A translator for structure tests: the real text layer around a model that shouts; and files made by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from tandem.core.errors import TandemError
from tandem.documents.document import Document, ReadOptions, translate_document
from tandem.documents.formats import read_document
from tandem.services.computing import Times
from tandem.services.patience import Patience
from tandem.services.requests import TranslatedSegment, TranslateRequest, TranslateResult
from tandem.text.detection import Detection
from tests.text.fakes import run, shout


def shouted(texts: Sequence[str], format: str) -> list[str]:
    """Return English texts in capitals; marks, tags and placeholders stay."""
    return [run(text, shout, "en", "zh", format=format).text for text in texts]


def read(data: bytes, name: str, **options: object) -> Document:
    """Take a file apart."""
    return read_document(data, name, ReadOptions(**options))  # type: ignore[arg-type]


def translate(data: bytes | str, name: str, target: str = "zh", **options: object) -> bytes:
    """Translate a whole file by shouting."""
    data = data.encode() if isinstance(data, str) else data
    return translate_document(read(data, name, **options), shouted, target)


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the entries of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def pack(entries: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of entries."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return target.getvalue()


def altered(data: bytes, name: str, old: bytes, new: bytes) -> bytes:
    """Return an archive with a replacement in one of its entries."""
    entries = unpack(data)
    assert old in entries[name]
    return pack(entries | {name: entries[name].replace(old, new)})


@dataclass
class ShoutingService:
    """Stands where the translation service stands; says what happened.

    Attributes:
        requests: Every request, in order.
        patiences: Of the requests.
        refusals: Raised by the next calls, one after another.
        asked_s: Called before every segment; may cancel, advance a clock, raise.
    """

    requests: list[TranslateRequest] = field(default_factory=list)
    patiences: list[Patience] = field(default_factory=list)
    refusals: list[TandemError] = field(default_factory=list)
    before_segment: object = None
    directions: list[tuple[str, str]] = field(default_factory=lambda: [("zh", "en"), ("en", "zh")])

    def stream(
        self, request: TranslateRequest, patience: Patience
    ) -> Generator[TranslatedSegment, None, TranslateResult]:
        self.requests.append(request)
        self.patiences.append(patience)
        if self.refusals:
            raise self.refusals.pop(0)
        translations = []
        for item, text in enumerate(request.texts):
            if callable(self.before_segment):
                self.before_segment()
            translations += shouted([text], request.format)
            yield TranslatedSegment(item, item, text, translations[-1], (0, len(text)), (0, 0), score=0.0)
        detections = tuple(Detection(request.source, 1.0, request.source) for _ in request.texts)
        return TranslateResult(tuple(translations), detections, request.target, (), Times())
