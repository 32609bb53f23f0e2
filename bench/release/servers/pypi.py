"""A package index. https://docs.pypi.org/api/upload/ and
https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

from bench.release.servers.lagging import Lagging
from bench.release.servers.wire import MISSING, Answer, Request

if TYPE_CHECKING:
    import argparse

_FILE: Final = re.compile(rb'filename="([^"]+)"')
_NAME: Final = re.compile(rb'name="name"\r\n(?:[^\r]+\r\n)*\r\n([^\r]+)')
_VERSION: Final = re.compile(rb'name="version"\r\n(?:[^\r]+\r\n)*\r\n([^\r]+)')


def open_app(options: argparse.Namespace) -> Pypi:
    return Pypi(options.lag)


class Pypi:
    def __init__(self, lag_s: float) -> None:
        self._files: Lagging[tuple[str, str, int]] = Lagging(lag_s)
        self._sent: dict[str, int] = {}

    def index_latency_s(self, _request: Request) -> float | None:
        return None

    def package_of(self, request: Request) -> str:
        found = _NAME.search(request.body) if request.method == "POST" else None
        return _normal(found[1].decode()) if found else ""

    def published(self) -> dict[str, int]:
        return self._sent

    async def answer(self, request: Request) -> Answer:
        if request.method == "POST":
            return self._post(request)
        parts = request.path.strip("/").split("/")
        if parts[0] != "simple" or len(parts) != 2 or not (files := self._files.shown(parts[1])):
            return MISSING
        page = {
            "meta": {"api-version": "1.1"},
            "name": parts[1],
            "files": [
                {"filename": f, "url": f"/files/{f}", "hashes": {"sha256": digest}, "size": size}
                for f, digest, size in files
            ],
            "versions": ["1.0.0"],
        }
        return Answer(body=json.dumps(page).encode(), kind="application/vnd.pypi.simple.v1+json")

    def _post(self, request: Request) -> Answer:
        """Nothing is decoded but what an index needs: the file is the last part, or near it."""
        name, filename = self.package_of(request), _FILE.search(request.body)
        version = _VERSION.search(request.body)
        if not name or filename is None or version is None:
            return Answer(400, b"no file")
        boundary = request.headers["content-type"].partition("boundary=")[2].strip('"').encode()
        start = request.body.index(b"\r\n\r\n", filename.end()) + 4
        content = request.body[start : request.body.index(b"\r\n--" + boundary, start)]
        digest = hashlib.sha256(content).hexdigest()
        if digest.encode() not in request.body:
            return Answer(400, b"sha256_digest")
        key = f"{name} {version[1].decode()}"
        self._sent[key] = self._sent.get(key, 0) + 1
        self._files.add(name, (filename[1].decode(), digest, len(content)))
        return Answer(200, b"", "text/plain")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
