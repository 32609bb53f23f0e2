"""A double of the Central Portal's API, with the repository that its releases appear in.

https://central.sonatype.org/publish/publish-portal-api/
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

from harness.http_server import Handler, serving
from integration.servers import PASSWORD, USERNAME, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.recorder import Recorder

_API: Final = "/api/v1/publisher/"


@dataclass
class Deployed:
    """Its state changes each time somebody asks for it, not by a clock."""

    name: str
    files: dict[str, bytes]
    automatic: bool
    state: str = "PENDING"
    errors: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class PortalServer:
    """`deployments` by id, as they came; `files` is what the repository shows."""

    deployments: dict[str, Deployed] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    url: str = ""
    repository: str = ""
    recorder: Recorder | None = None
    signatures: bool = True

    @property
    def environment(self) -> dict[str, str]:
        return {"RELEASEKIT_MAVEN_USERNAME": USERNAME, "RELEASEKIT_MAVEN_PASSWORD": PASSWORD}

    def take(self, name: str, data: bytes, *, automatic: bool) -> str:
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            files = {each: bundle.read(each) for each in bundle.namelist()}
        identifier = str(uuid.uuid4())
        self.deployments[identifier] = Deployed(name, files, automatic)
        return identifier

    def look(self, identifier: str) -> Deployed:
        """Each look finds it one step further."""
        found = self.deployments[identifier]
        match found.state:
            case "PENDING":
                found.state = "VALIDATING"
            case "VALIDATING":
                found.errors = self.faults(found)
                found.state = "FAILED" if found.errors else "VALIDATED"
            case "VALIDATED" if found.automatic:
                self.publish(identifier)
            case "PUBLISHING":
                self.files |= found.files
                found.state = "PUBLISHED"
            case _:
                pass
        return found

    def publish(self, identifier: str) -> bool:
        """What is not VALIDATED cannot be published, and is not by anybody who keeps to that."""
        assert self.deployments[identifier].state == "VALIDATED"
        self.deployments[identifier].state = "PUBLISHING"
        return True

    def go_on(self) -> None:
        """Publishing comes to its end also where nobody asks the portal about it: its files appear
        in four parts, each when somebody reads from the repository.
        """
        for identifier, found in list(self.deployments.items()):
            if found.state == "PUBLISHING":
                part = len(found.files) // 4 + 1
                hidden = [name for name in found.files if name not in self.files]
                self.files |= {name: found.files[name] for name in hidden[:part]}
                if not hidden[part:]:
                    self.look(identifier)

    def drop(self, identifier: str) -> bool:
        allowed = self.deployments[identifier].state in {"VALIDATED", "FAILED"}
        if allowed:
            del self.deployments[identifier]
        return allowed

    def faults(self, deployed: Deployed) -> dict[str, list[str]]:
        """As the portal checks them: checksums, signatures, no version that is there already."""
        errors: dict[str, list[str]] = {}
        there = {PurePosixPath(name).parent for name in self.files}
        for name, data in deployed.files.items():
            if name.endswith((".md5", ".sha1", ".sha256", ".sha512", ".asc")):
                continue
            for algorithm in ("md5", "sha1"):
                page = deployed.files.get(f"{name}.{algorithm}", b"").decode()
                if page != hashlib.new(algorithm, data).hexdigest():
                    errors.setdefault(name, []).append(f"Invalid '{algorithm}' checksum")
            if self.signatures and f"{name}.asc" not in deployed.files:
                errors.setdefault(name, []).append("Missing signature")
            for identifier, other in self.deployments.items():
                busy = other.state not in {"FAILED", "PUBLISHED"}
                if other is not deployed and busy and name in other.files:
                    words = f"is currently being published in another deployment ({identifier})"
                    errors.setdefault(name, []).append(f"Component with coordinate {words}")
            if PurePosixPath(name).parent in there:
                errors.setdefault(name, []).append("Component already exists")
        return errors


class _Handler(Handler):
    portal: PortalServer

    def do_GET(self) -> None:
        path = unquote(self.path)
        if path.startswith(f"{_API}published?"):
            if self._known():
                self.send(200, body=b'{"published": false}')
        else:
            self._file(self.portal.files.get(path.removeprefix("/maven2/")))
            self.portal.go_on()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        if not self._known():
            return
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        what = parts.path.removeprefix(_API)
        self.portal.requests.append(f"{self.command} {what.partition('/')[0]}")
        if what == "upload":
            automatic = query["publishingType"] == "AUTOMATIC"
            taken = self.portal.take(query["name"], self._bundle(body), automatic=automatic)
            self.send(201, body=taken.encode())
        elif what == "status" and query["id"] in self.portal.deployments:
            found = self.portal.look(query["id"])
            answer = {
                "deploymentName": found.name,
                "deploymentState": found.state,
                "errors": found.errors,
            }
            self.send(200, body=json.dumps(answer).encode())
        elif what.startswith("deployment/") and what[11:] in self.portal.deployments:
            act = self.portal.drop if self.command == "DELETE" else self.portal.publish
            self.send(204 if act(what[11:]) else 400)
        else:
            self.send(404)

    do_DELETE = do_POST

    def _known(self) -> bool:
        pair = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        known = self.headers.get("Authorization") == f"Bearer {pair}"
        if not known:
            self.send(401, body=b"who are you?")
        return known

    def _file(self, data: bytes | None) -> None:
        self.send(404 if data is None else 200, body=data or b"")

    def _bundle(self, body: bytes) -> bytes:
        boundary = self.headers["Content-Type"].partition("boundary=")[2].encode()
        head, _, rest = body.partition(b"\r\n\r\n")
        assert head.startswith(b"--" + boundary)
        assert b'name="bundle"' in head
        data, _, end = rest.rpartition(b"\r\n--" + boundary)
        assert end.strip() == b"--"
        return data


@contextlib.contextmanager
def portal_server() -> Iterator[PortalServer]:
    portal = PortalServer()
    with serving(_Handler, portal=portal) as origin, recorded(origin) as seen:
        portal.url, portal.repository = seen.url, f"{seen.url}/maven2/"
        portal.recorder = seen
        yield portal
