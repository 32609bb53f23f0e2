"""What goes over the wire between npm's clients and npmjs.com, and what a release is there."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Request:
    """`number` counts from 1; `target` is path and query as sent; header names are lower case."""

    number: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def parts(self) -> list[str]:
        """The segments of its path, the name of a package in one of them."""
        parts = [unquote(part) for part in urlsplit(self.target).path.strip("/").split("/")]
        if parts[0].startswith("@") and "/" not in parts[0]:
            parts[:2] = ["/".join(parts[:2])]
        return parts


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


@dataclass(kw_only=True)
class Release:
    """One version, staged or published. Whoever tampers with `tarball` changes what is served."""

    name: str
    version: str
    tag: str
    manifest: dict[str, Any]
    tarball: bytes = field(repr=False)
    access: str = "public"
    provenance: str = ""
    actor: str = "releaser"
    actor_type: str = "user"
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: Literal["validating", "staged", "approved", "published"] = "staged"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def shasum(self) -> str:
        shasum: str = self.manifest["dist"]["shasum"]
        return shasum

    def row(self) -> dict[str, str]:
        """As `npm stage list --json` shows it."""
        return {
            "id": self.id,
            "packageName": self.name,
            "version": self.version,
            "tag": self.tag,
            "createdAt": "2026-09-15T09:59:43.831Z",
            "actor": self.actor,
            "actorType": self.actor_type,
            "access": self.access,
            "shasum": self.shasum,
            "status": self.status,
        }


def pack(manifest: Mapping[str, object], files: Mapping[str, str] | None = None) -> bytes:
    """A tarball of npm's, the same one each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in {"package.json": json.dumps(manifest), **(files or {})}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue(), mtime=0)


def release_of(tarball: bytes, tag: str) -> Release:
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        file = archive.extractfile("package/package.json")
        assert file is not None
        manifest = json.load(file)
    manifest["dist"] = _dist(tarball)
    return Release(
        name=manifest["name"],
        version=manifest["version"],
        tag=tag,
        manifest=manifest,
        tarball=tarball,
    )


def parsed(name: str, body: bytes) -> Release | Answer:
    """What a document of publishing holds, or why it is none."""
    document: dict[str, Any] = json.loads(body)
    ((tag, version),) = document["dist-tags"].items()
    files = document["_attachments"]
    tarball = base64.b64decode(files[f"{name}-{version}.tgz"]["data"])
    manifest = document["versions"][version]
    if document["name"] != name or manifest["name"] != name or manifest["version"] != version:
        return error(400, "The document is of another package than its address")
    if {key: manifest["dist"].get(key) for key in _dist(tarball)} != _dist(tarball):
        return error(400, "The digests are of other bytes")
    return Release(
        name=name,
        version=version,
        tag=tag,
        manifest=manifest,
        tarball=tarball,
        access="private" if document.get("access") in {"private", "restricted"} else "public",
        provenance=files.get(f"{name}-{version}.sigstore", {}).get("data", ""),
    )


def _dist(tarball: bytes) -> dict[str, str]:
    sha512 = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    return {"integrity": f"sha512-{sha512}", "shasum": hashlib.sha1(tarball).hexdigest()}


def as_json(status: int, document: object, *headers: tuple[str, str]) -> Answer:
    return Answer(
        status, json.dumps(document).encode(), (("Content-Type", "application/json"), *headers)
    )


def error(status: int, words: str) -> Answer:
    return as_json(status, {"error": words})
