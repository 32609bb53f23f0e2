"""An npm registry. https://github.com/npm/registry/blob/main/docs/REGISTRY-API.md"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from bench.release.servers.lagging import Lagging
from bench.release.servers.wire import MISSING, Answer, Request

if TYPE_CHECKING:
    import argparse


def open_app(options: argparse.Namespace) -> Npm:
    return Npm(options.lag)


class Npm:
    def __init__(self, lag_s: float) -> None:
        self._documents: Lagging[dict[str, Any]] = Lagging(lag_s)
        self._sent: dict[str, int] = {}

    def index_latency_s(self, _request: Request) -> float | None:
        return None

    def package_of(self, request: Request) -> str:
        is_upload = request.method == "PUT" and not request.path.startswith("/-/")
        return request.path[1:] if is_upload else ""

    def published(self) -> dict[str, int]:
        return self._sent

    async def answer(self, request: Request) -> Answer:
        if request.method == "PUT":
            return self._put(request) if self.package_of(request) else Answer(body=b"{}")
        match request.path.split("/")[1:]:
            case ["-", "whoami"]:
                return Answer(body=b'{"username":"bench"}')
            case ["-", "npm", "v1", "user"]:
                return Answer(body=b'{"name":"bench","email":"bench@example.org","tfa":false}')
            case ["-", "package", *name, "dist-tags"]:
                document = self._packument("/".join(name))
                return _json(document["dist-tags"]) if document else MISSING
            case ["-", *_]:
                return MISSING
            case [scope, name, *rest] if scope.startswith("@"):
                return self._get(f"{scope}/{name}", rest, request)
            case [name, *rest]:
                return self._get(name, rest, request)
            case _:
                return MISSING

    def _get(self, name: str, rest: list[str], request: Request) -> Answer:
        document = self._packument(name)
        if document is None:
            return MISSING
        if rest[:1] == ["-"]:  # a tarball, which pnpm asks for when it waits for a package
            version = rest[-1].removesuffix(".tgz").removeprefix(f"{name.rpartition('/')[2]}-")
            return Answer() if version in document["versions"] else MISSING
        if rest:
            known = document["versions"] | {
                tag: document["versions"][version] for tag, version in document["dist-tags"].items()
            }
            return _json(known[rest[0]]) if rest[0] in known else MISSING
        body = json.dumps(document).encode()
        etag = f'"{hashlib.md5(body).hexdigest()}"'  # of no use to anybody but a cache
        if request.headers.get("if-none-match") == etag:
            return Answer(304, headers=(("ETag", etag),))
        short = "vnd.npm.install-v1" in request.headers.get("accept", "")
        kind = "application/vnd.npm.install-v1+json" if short else "application/json"
        return Answer(body=body, kind=kind, headers=(("ETag", etag),))

    def _packument(self, name: str) -> dict[str, Any] | None:
        shown = self._documents.shown(name)
        if not shown:
            return None
        return {
            "_id": name,
            "name": name,
            "dist-tags": {tag: v for each in shown for tag, v in each["dist-tags"].items()},
            "versions": {v: entry for each in shown for v, entry in each["versions"].items()},
            "time": {},
        }

    def _put(self, request: Request) -> Answer:
        document = json.loads(request.body)
        name = document["name"]
        (version,) = document["versions"]
        if f"{name} {version}" in self._sent:
            words = "You cannot publish over the previously published versions."
            return Answer(403, json.dumps({"error": words}).encode())
        (attachment,) = document["_attachments"].values()
        data = b64decode(attachment["data"])
        entry = document["versions"][version]
        if hashlib.sha1(data).hexdigest() != entry["dist"]["shasum"]:
            return Answer(400, b'{"error":"shasum"}')
        self._sent[f"{name} {version}"] = 1
        self._documents.add(
            name, {"dist-tags": document["dist-tags"], "versions": document["versions"]}
        )
        return Answer(201, b'{"ok":true,"success":true}')


def _json(value: object) -> Answer:
    return Answer(body=json.dumps(value).encode())
