"""A cargo registry. https://doc.rust-lang.org/cargo/reference/registry-web-api.html and
https://doc.rust-lang.org/cargo/reference/registry-index.html
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from bench.release.servers.lagging import Lagging
from bench.release.servers.wire import MISSING, Answer, Request

if TYPE_CHECKING:
    import argparse

_UPLOAD = "/api/v1/crates/new"


def open_app(options: argparse.Namespace) -> Cargo:
    return Cargo(options.lag, options.index_latency)


class Cargo:
    def __init__(self, lag_s: float, index_latency_s: float | None) -> None:
        self._lines: Lagging[bytes] = Lagging(lag_s)
        self._files: dict[str, bytes] = {}
        self._sent: dict[str, int] = {}
        self._index_latency_s = index_latency_s

    def index_latency_s(self, request: Request) -> float | None:
        return self._index_latency_s if request.path.startswith("/index/") else None

    def package_of(self, request: Request) -> str:
        if (request.method, request.path) != ("PUT", _UPLOAD):
            return ""
        name: str = _document(request.body)["name"]
        return name

    def published(self) -> dict[str, int]:
        return self._sent

    async def answer(self, request: Request) -> Answer:
        if request.method == "PUT":
            return self._put(request)
        if request.path == "/index/config.json":
            origin = f"http://{request.headers['host']}"
            config = {"dl": f"{origin}/api/v1/crates", "api": origin}
            return Answer(body=json.dumps(config).encode())
        if request.path.startswith("/api/v1/crates/"):
            name, version, *_ = request.path.removeprefix("/api/v1/crates/").split("/")
            crate = self._files.get(f"{name} {version}")
            return MISSING if crate is None else Answer(body=crate, kind="application/gzip")
        lines = self._lines.shown(request.path.rpartition("/")[2])
        if not lines:
            return MISSING
        body = b"".join(lines)
        etag = f'"{hashlib.md5(body).hexdigest()}"'  # of no use to anybody but a cache
        if request.headers.get("if-none-match") == etag:
            return Answer(304, headers=(("ETag", etag),))
        return Answer(body=body, kind="text/plain", headers=(("ETag", etag),))

    def _put(self, request: Request) -> Answer:
        document = _document(request.body)
        at = 4 + int.from_bytes(request.body[:4], "little")
        crate = request.body[at + 4 :]
        key = f"{document['name']} {document['vers']}"
        if key in self._sent:
            words = f"crate version `{document['vers']}` is already uploaded"
            return Answer(400, json.dumps({"errors": [{"detail": words}]}).encode())
        self._files[key] = crate
        self._sent[key] = 1
        line = {
            "name": document["name"],
            "vers": document["vers"],
            "deps": [_dependency(it) for it in document["deps"]],
            "cksum": hashlib.sha256(crate).hexdigest(),
            "features": document["features"],
            "yanked": False,
        }
        self._lines.add(document["name"], json.dumps(line).encode() + b"\n")
        return Answer(body=b'{"warnings":{"invalid_categories":[],"invalid_badges":[],"other":[]}}')


def _document(body: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(body[4 : 4 + int.from_bytes(body[:4], "little")])
    return document


def _dependency(dependency: dict[str, Any]) -> dict[str, Any]:
    line = {**dependency, "req": dependency["version_req"]}
    del line["version_req"]
    return line
