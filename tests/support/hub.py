"""A stand-in for the two model hubs: serves a folder in both wire formats, and can break off a download."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Serves the files of one model under any id.

    Attributes:
        url: Where it listens.
        requests: What was asked: method, path, Range header.
        break_after_bytes: The next download of a file larger than this ends there, once; None for never.
    """

    def __init__(self, folder: Path) -> None:
        self.requests: list[tuple[str, str, str | None]] = []
        self.break_after_bytes: int | None = None
        self._folder = folder
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.answer(self)

            do_HEAD = do_GET
            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        self.requests.append((handler.command, handler.path, handler.headers.get("Range")))
        path, query = unquote(parts.path), parse_qs(parts.query)
        if re.fullmatch(r"/api/models/[^/]+/[^/]+(/revision/[^/]+)?", path):
            files = [{"rfilename": name} for name in self._names()]
            self._send_json(handler, {"id": "org/name", "sha": COMMIT, "siblings": files})
        elif re.fullmatch(r"/api/models/[^/]+/[^/]+/tree/[^/]+", path):
            self._send_json(handler, self._tree())
        elif found := re.fullmatch(r"/[^/]+/[^/]+/resolve/[^/]+/(.+)", path):
            self._send_file(handler, found[1])
        elif re.fullmatch(r"/api/v1/models/[^/]+/[^/]+/repo/files", path):
            self._send_json(handler, {"Code": 200, "Success": True, "Data": {"Files": self._modelscope_files()}})
        elif re.fullmatch(r"/api/v1/models/[^/]+/[^/]+/repo", path) and "FilePath" in query:
            self._send_file(handler, query["FilePath"][0])
        elif re.fullmatch(r"/api/v1/models/[^/]+/[^/]+/revisions", path):
            revisions = {"RevisionMap": {"Branches": [{"Revision": "master"}], "Tags": []}}
            self._send_json(handler, {"Code": 200, "Success": True, "Data": revisions})
        elif found := re.fullmatch(r"/models/[^/]+/[^/]+/resolve/[^/]+/(.+)", path):
            self._send_file(handler, found[1])
        else:
            handler.send_response(404)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

    def _names(self) -> list[str]:
        return sorted(str(path.relative_to(self._folder)) for path in self._folder.rglob("*") if path.is_file())

    def _tree(self) -> list[dict[str, object]]:
        return [
            {
                "type": "file", "path": name, "size": (self._folder / name).stat().st_size,
                "oid": hashlib.sha1((self._folder / name).read_bytes()).hexdigest(),
            }
            for name in self._names()
        ]  # fmt: skip

    def _modelscope_files(self) -> list[dict[str, object]]:
        return [
            {
                "Path": name, "Name": Path(name).name, "Type": "blob", "Size": (self._folder / name).stat().st_size,
                "Sha256": hashlib.sha256((self._folder / name).read_bytes()).hexdigest(), "Revision": COMMIT,
                "CommittedDate": 1700000000,
            }
            for name in self._names()
        ]  # fmt: skip

    def _send_json(self, handler: BaseHTTPRequestHandler, value: object) -> None:
        data = json.dumps(value).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _send_file(self, handler: BaseHTTPRequestHandler, name: str) -> None:
        data = (self._folder / name).read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range") or "")
        start = int(wanted[1]) if wanted else 0
        end = min(int(wanted[2]) + 1, len(data)) if wanted and wanted[2] else len(data)
        handler.send_response(206 if wanted else 200)
        handler.send_header("Content-Length", str(end - start))
        handler.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        handler.send_header("X-Repo-Commit", COMMIT)
        handler.send_header("Accept-Ranges", "bytes")
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        handler.end_headers()
        if handler.command == "HEAD":
            return
        limit = self.break_after_bytes
        if limit is not None and end - start > limit:
            self.break_after_bytes = None
            handler.wfile.write(data[start : start + limit])
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        handler.wfile.write(data[start:end])
