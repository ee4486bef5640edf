"""ZIP files from strangers: checked before anything is unpacked, rewritten with all other entries as they were.

Office and EPUB files are such archives. They are edited in place, entry by entry, with lxml: python-docx, openpyxl and
ebooklib each write only what they model, and footnotes, text boxes, charts, images or fonts would be lost on the way.
Those libraries make the samples of the tests and read the results there.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

from tandem.core.errors import TooLargeError
from tandem.documents.document import Document, SourceText
from tandem.documents.errors import BrokenDocumentError, EncryptedDocumentError

MAX_ENTRIES = 20_000
MAX_UNPACKED_BYTES = 256 << 20
MAX_PART_BYTES = 32 << 20  # of an entry that is read as XML, whose tree takes ten times as much
_SUSPICIOUS_RATIO, _SUSPICIOUS_BYTES = 200, 4 << 20
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """A ZIP file in memory.

    Args:
        data: The file.

    Raises:
        BrokenDocumentError: It is damaged, or built to deceive.
        EncryptedDocumentError: Its entries need a password.
        TooLargeError: It unpacks to more than is reasonable.
    """

    def __init__(self, data: bytes) -> None:
        """Check it, unpacking nothing."""
        with _reading():
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        infos = self._zip.infolist()
        _check_honesty(infos)
        _check_sizes(infos)
        self.names = [info.filename for info in infos]

    def read(self, name: str) -> bytes:
        """Unpack an entry that is to be parsed.

        Raises:
            BrokenDocumentError: There is none of that name, or it is damaged.
            TooLargeError: It is too large to be parsed.
        """
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise BrokenDocumentError("The file lacks a part that every such file has. Is it damaged?") from None
        if info.file_size > MAX_PART_BYTES:
            raise TooLargeError(f"A part of the file unpacks to more than {MAX_PART_BYTES >> 20} MiB. Split the file.")
        with _reading():
            return self._zip.read(info)

    def rewrite(self, replaced: Mapping[str, bytes]) -> bytes:
        """Return the archive with some entries replaced, in the order and with the compression they had.

        Raises:
            BrokenDocumentError: An entry is damaged.
        """
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as written, _reading():
            for info in self._zip.infolist():
                fresh = zipfile.ZipInfo(info.filename, info.date_time)
                fresh.compress_type, fresh.external_attr = info.compress_type, info.external_attr
                data = replaced.get(info.filename)
                written.writestr(fresh, self._zip.read(info) if data is None else data)
        return target.getvalue()


class ArchiveDocument:
    """A document that is an archive of documents.

    Args:
        archive: The file.
        parts: The entries that are translated, by name.
    """

    def __init__(self, archive: Archive, parts: Mapping[str, Document]) -> None:
        """Keep the parts."""
        self._archive = archive
        self._parts = parts

    @property
    def texts(self) -> list[SourceText]:
        """The texts of all parts, one part after another."""
        return [text for part in self._parts.values() for text in part.texts]

    def render(self, translations: Sequence[str], target: str) -> bytes:
        """Return the archive with all parts translated."""
        given = iter(translations)
        replaced = {name: part.render([next(given) for _ in part.texts], target) for name, part in self._parts.items()}
        return self._archive.rewrite(replaced)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError, RuntimeError):
        raise BrokenDocumentError("The file is damaged: its ZIP structure cannot be read.") from None


def _check_honesty(infos: Iterable[zipfile.ZipInfo]) -> None:
    ordered = sorted(infos, key=lambda info: info.header_offset)
    if any(info.flag_bits & _ENCRYPTED for info in ordered):
        raise EncryptedDocumentError("The file is protected by a password. Remove the protection and send it again.")
    if any(info.compress_type not in _METHODS for info in ordered):
        raise BrokenDocumentError("The file is packed in a way that no office program uses.")
    if len({info.filename for info in ordered}) < len(ordered):
        raise BrokenDocumentError("The file is damaged: it holds two parts of one name.")
    for before, after in pairwise(ordered):
        if before.header_offset + before.compress_size > after.header_offset:
            raise BrokenDocumentError("The file is damaged: its parts overlap.")


def _check_sizes(infos: Sequence[zipfile.ZipInfo]) -> None:
    if len(infos) > MAX_ENTRIES:
        raise TooLargeError(f"The file holds {len(infos)} parts, more than the {MAX_ENTRIES} that are accepted.")
    total = sum(info.file_size for info in infos)
    if total > MAX_UNPACKED_BYTES:
        raise TooLargeError(
            f"The file unpacks to {total >> 20} MiB, more than the {MAX_UNPACKED_BYTES >> 20} MiB that are accepted."
        )
    for info in infos:
        if info.file_size > _SUSPICIOUS_BYTES and info.file_size > _SUSPICIOUS_RATIO * info.compress_size:
            raise TooLargeError("The file unpacks to far more than its own size: it looks like a ZIP bomb.")
