"""Enough of each registry's protocol for a whole release, told honestly."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote

from hostile.wire import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostile.wire import Request

_ABSENT: Final = Reply(404, b"not here", "text/plain")
_SIMPLE: Final = "application/vnd.pypi.simple.v1+json"


class Spoken(Protocol):
    """One protocol: what an honest server answers, and which requests are uploads."""

    def answer(self, request: Request, origin: str) -> Reply: ...

    def uploads(self, request: Request) -> bool: ...

    def plain(self, request: Request) -> Reply:
        """What it shows of a package that has another version than ours."""


def digest(data: bytes, algorithm: str = "sha256") -> str:
    return hashlib.new(algorithm, data).hexdigest()


@dataclass
class PyPI:
    files: dict[str, bytes] = field(default_factory=dict)

    def uploads(self, request: Request) -> bool:
        return request.method == "POST"

    def answer(self, request: Request, origin: str) -> Reply:
        if self.uploads(request):
            name, data = _part(request, b"content")
            self.files[name] = data
            return Reply(200, b"OK", "text/plain")
        project = request.path.rstrip("/").rpartition("/")[2].replace("-", "_")
        listed = {name: data for name, data in self.files.items() if name.startswith(f"{project}-")}
        return Reply(body=page_of(listed), kind=_SIMPLE) if listed else _ABSENT

    def plain(self, request: Request) -> Reply:
        project = request.path.rstrip("/").rpartition("/")[2]
        return Reply(body=page_of({f"{project}-0.9.0.tar.gz": b""}), kind=_SIMPLE)


def page_of(files: Mapping[str, bytes]) -> bytes:
    """A project's page of the simple index."""
    rows = [
        {"filename": name, "url": name, "hashes": {"sha256": digest(data)}}
        for name, data in files.items()
    ]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "x", "files": rows}).encode()


@dataclass
class Npm:
    packuments: dict[str, dict[str, Any]] = field(default_factory=dict)

    def uploads(self, request: Request) -> bool:
        return request.method == "PUT"

    def answer(self, request: Request, origin: str) -> Reply:
        name, _, version = unquote(request.path).lstrip("/").removeprefix("@acme/").partition("/")
        if self.uploads(request):
            document = json.loads(request.body)
            document.pop("_attachments")
            self.packuments[name] = document
            return Reply(201, b'{"ok":true}')
        if (known := self.packuments.get(name)) is None:
            return Reply(404, b'{"error":"not found"}')
        shown = known["versions"].get(version) if version else known
        return Reply(body=json.dumps(shown).encode()) if shown else Reply(404, b"{}")

    def plain(self, request: Request) -> Reply:
        name = unquote(request.path).lstrip("/").removesuffix("/1.0.0")
        dist = {"integrity": sri(b""), "shasum": digest(b"", "sha1")}
        versions = {"0.9.0": {"name": name, "version": "0.9.0", "dist": dist}}
        document = {"name": name, "dist-tags": {"latest": "0.9.0"}, "versions": versions}
        return Reply(body=json.dumps(document).encode())


@dataclass
class Cargo:
    lines: dict[str, bytes] = field(default_factory=dict)

    def uploads(self, request: Request) -> bool:
        return request.method == "PUT"

    def answer(self, request: Request, origin: str) -> Reply:
        if self.uploads(request):
            size = int.from_bytes(request.body[:4], "little")
            about = json.loads(request.body[4 : 4 + size])
            crate = request.body[8 + size :]
            self.lines[about["name"]] = crate_line(about["name"], about["vers"], crate).encode()
            return Reply(body=b'{"warnings":{}}')
        if request.path.endswith("/config.json"):
            config = {"dl": f"{origin}/dl", "api": origin}
            return Reply(body=json.dumps(config).encode())
        line_of = self.lines.get(request.path.rpartition("/")[2])
        return _ABSENT if line_of is None else Reply(body=line_of + b"\n", kind="text/plain")

    def plain(self, request: Request) -> Reply:
        name = request.path.rpartition("/")[2]
        return Reply(body=crate_line(name, "0.9.0", b"").encode() + b"\n", kind="text/plain")


def crate_line(name: str, version: str, crate: bytes) -> str:
    line = {"name": name, "vers": version, "deps": [], "features": {}, "yanked": False}
    return json.dumps({**line, "cksum": digest(crate)})


@dataclass
class Go:
    """What a proxy makes of tags that git has: it knows all that could be asked for."""

    modules: Mapping[str, Mapping[str, bytes]]

    def uploads(self, request: Request) -> bool:
        return False

    def answer(self, request: Request, origin: str) -> Reply:
        module, _, filename = request.path.lstrip("/").partition("/@v/")
        files = self.modules.get(module)
        if files is None:
            return _ABSENT
        version, _, kind = filename.rpartition(".")
        if kind == "info":
            return Reply(body=json.dumps({"Version": version}).encode())
        if kind == "mod":
            return Reply(body=files["go.mod"], kind="text/plain")
        return Reply(body=module_zip(f"{module}@{version}", files), kind="application/zip")

    def plain(self, request: Request) -> Reply:
        return _ABSENT


def module_zip(top: str, files: Mapping[str, bytes]) -> bytes:
    """https://go.dev/ref/mod#zip-path-size-constraints"""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{top}/{name}", content)
    return data.getvalue()


@dataclass
class Maven:
    files: dict[str, bytes] = field(default_factory=dict)

    def uploads(self, request: Request) -> bool:
        return request.method == "PUT"

    def answer(self, request: Request, origin: str) -> Reply:
        if self.uploads(request):
            self.files[request.path] = request.body
            return Reply(201)
        found = self.files.get(request.path)
        if found is None:
            return Reply(404, b"" if request.method == "HEAD" else b"not here", "text/plain")
        kind = "text/xml" if request.path.endswith("xml") else "text/plain"
        return Reply(body=b"" if request.method == "HEAD" else found, kind=kind)

    def plain(self, request: Request) -> Reply:
        return Reply(body=digest(b"", "sha1").encode(), kind="text/plain")


@dataclass
class Portal:
    """It publishes at once, to the repository below /repo/."""

    repository: Maven = field(default_factory=Maven)

    def uploads(self, request: Request) -> bool:
        return request.path.endswith("/upload")

    def answer(self, request: Request, origin: str) -> Reply:
        if self.uploads(request):
            _, bundle = _part(request, b"bundle")
            with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
                for name in archive.namelist():
                    self.repository.files[f"/repo/{name}"] = archive.read(name)
            return Reply(201, b"28570f16-da32-4c14-bd2e-c1acc0782365", "text/plain")
        if request.path.endswith("/status"):
            return Reply(body=b'{"deploymentState": "PUBLISHED"}')
        if request.path.startswith("/repo/"):
            return self.repository.answer(request, origin)
        return Reply(204)

    def plain(self, request: Request) -> Reply:
        return self.repository.plain(request)


def _part(request: Request, field_name: bytes) -> tuple[str, bytes]:
    """File name and content of one part of a form."""
    boundary = request.header("Content-Type").partition("boundary=")[2].encode()
    for part in request.body.split(b"--" + boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="' + field_name + b'"' in head and (
            named := re.search(rb'filename="(.*?)"', head)
        ):
            return named[1].decode(), content.removesuffix(b"\r\n")
    raise ValueError(f"no {field_name!r} in the form")


def sri(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
