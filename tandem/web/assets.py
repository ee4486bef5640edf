"""The page's static files: held in memory, compressed once, addressed by what they contain."""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from flask import Response, request

LANGUAGES = ("en", "zh")  # the columns of the table of words
_STRINGS = "strings.json"
_FOREVER = "public, max-age=31536000, immutable"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file.

    Attributes:
        body: As it is on disk.
        packed: The same, compressed with gzip.
        media_type: For `Content-Type`.
    """

    body: bytes
    packed: bytes
    media_type: str


class Assets:
    """All files of a folder; the table of words, strings.json, is given out as one file a language.

    Args:
        folder: Where they lie; read once.

    Attributes:
        version: Hash over all of them. It is part of their addresses, so that a browser may keep them for ever and
            modules that import each other by relative address come from the same version.
    """

    def __init__(self, folder: Path) -> None:
        """Read and compress them."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self._assets = {path.relative_to(folder).as_posix(): _load(path) for path in paths}
        self._strings = _split_languages(self._assets.pop(_STRINGS).body)
        for language, strings in self._strings.items():
            body = json.dumps(strings, ensure_ascii=False).encode()
            self._assets[f"strings.{language}.json"] = Asset(body, _compress(body), "application/json")
        digest = hashlib.sha256()
        for name, asset in self._assets.items():
            digest.update(name.encode() + b"\0" + asset.body + b"\0")
        self.version = digest.hexdigest()[:12]

    def respond(self, name: str) -> Response | None:
        """Return the response with a file; None when there is no such file."""
        asset = self._assets.get(name)
        if asset is None:
            return None
        response = render_compressed(asset.body, asset.packed, asset.media_type)
        response.headers["Cache-Control"] = _FOREVER
        response.headers["Content-Security-Policy"] = "default-src 'none'"
        return response

    def strings(self, language: str) -> dict[str, str]:
        """Return the page's words in a language.

        Args:
            language: "en" or "zh".
        """
        return self._strings[language]


def render_compressed(body: bytes, packed: bytes, media_type: str) -> Response:
    """Return the compressed body to whoever takes it, 304 to whoever has it."""
    takes_gzip = request.accept_encodings["gzip"] > 0
    response = Response(packed if takes_gzip else body, mimetype=media_type)
    if takes_gzip:
        response.headers["Content-Encoding"] = "gzip"
    response.vary.add("Accept-Encoding")
    response.add_etag()
    response.make_conditional(request)
    return response


def _load(path: Path) -> Asset:
    body = path.read_bytes()
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Asset(body, _compress(body), media_type)


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, 9, mtime=0)


def _split_languages(table: bytes) -> dict[str, dict[str, str]]:
    words: dict[str, list[str]] = json.loads(table)
    return {language: {key: texts[column] for key, texts in words.items()} for column, language in enumerate(LANGUAGES)}
