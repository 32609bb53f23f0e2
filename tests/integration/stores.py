"""Doubles of services that steps publish to, as far as their documentation tells what they answer:
the MCP Registry, Open VSX, JSR and nuget.org.
"""

from __future__ import annotations

import contextlib
import email.parser
import email.policy
import io
import json
import re
import tarfile
import threading
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from harness.http_server import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Answer = tuple[int, Any]
TOKEN: Final = "token-of-a-store"


@dataclass
class Store:
    """`published` is what users see, by name and version; `pushed` counts what was sent."""

    published: dict[tuple[str, str], Any] = field(default_factory=dict)
    pushed: int = 0

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        raise NotImplementedError


@dataclass
class McpRegistry(Store):
    """https://github.com/modelcontextprotocol/registry/tree/main/docs/reference/api

    `proves` says whose token one of the job is, and for which audience; empty for none.
    """

    proves: Callable[[str], str] = lambda token: ""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = urlsplit(target).path
        looked_up = re.fullmatch(r"/v0\.1/servers/([^/]+)/versions/([^/]+)", path)
        if method == "GET" and looked_up:
            found = self.published.get((unquote(looked_up[1]), unquote(looked_up[2])))
            return (200, {"server": found}) if found else (404, {"error": "Server not found"})
        if method != "POST" or headers.get("content-type") != "application/json":
            return 415, {"error": "no such page"}
        document = json.loads(body)
        if path == "/v0.1/auth/github-oidc":
            if self.proves(document["oidc_token"]) != "https://registry.modelcontextprotocol.io":
                return 401, {"error": "Token exchange failed"}
            return 200, {"registry_token": TOKEN, "expires_at": 2000000000}
        if path != "/v0.1/publish":
            return 404, {"error": "no such page"}
        self.pushed += 1
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"error": "Invalid or expired Registry JWT token"}
        release = document["name"], document["version"]
        if release in self.published:
            return 400, {"error": "Failed to publish server: invalid version"}
        self.published[release] = document
        return 200, {"server": document}


@dataclass
class OpenVsx(Store):
    """https://open-vsx.org/swagger-ui/index.html"""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        url = urlsplit(target)
        if method == "GET":
            _, api, namespace, name, version = url.path.split("/")
            found = self.published.get((f"{namespace}.{name}", version))
            if api != "api" or found is None:
                return 404, {"error": f"Extension not found: {namespace}.{name} {version}"}
            return 200, found
        if (method, url.path) != ("POST", "/api/-/publish"):
            return 404, {"error": "no such page"}
        self.pushed += 1
        if parse_qs(url.query) != {"token": [TOKEN]}:
            return 400, {"error": "Invalid access token."}
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            manifest = json.loads(archive.read("extension/package.json"))
        name, version = f"{manifest['publisher']}.{manifest['name']}", manifest["version"]
        if (name, version) in self.published:
            return 400, {"error": f"Extension {name} {version} is already published."}
        about = {"namespace": manifest["publisher"], "name": manifest["name"], "version": version}
        self.published[name, version] = {**about, "targetPlatform": "universal"}
        return 201, self.published[name, version]


@dataclass
class Jsr(Store):
    """https://jsr.io/docs/api, and what deno asks of https://api.jsr.io/.well-known/openapi"""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = urlsplit(target).path
        if meta := re.fullmatch(r"/(@[^/]+/[^/]+)/([^/]+)_meta\.json", path):
            found = self.published.get((meta[1], meta[2]))
            return (200, found) if found else (404, {})
        asked = re.fullmatch(r"/api/scopes/([^/]+)/packages/([^/]+)(?:/versions/([^/]+))?", path)
        if asked is None:
            return 404, {"code": "notFound", "message": "no such page"}
        name, version = f"@{asked[1]}/{asked[2]}", asked[3]
        if version is None:
            return 200, {"scope": asked[1], "name": asked[2]}
        if method == "GET":
            found = self.published.get((name, version))
            missing = {"code": "packageVersionNotFound", "message": "not found"}
            return (200, {"version": version}) if found else (404, missing)
        self.pushed += 1
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"code": "unauthorized", "message": "not allowed"}
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
            files = {f"/{each.name.lstrip('./')}": {"size": each.size} for each in archive}
        self.published[name, version] = {"manifest": files, "exports": {".": "./mod.ts"}}
        return 200, {"id": "1", "status": "success", "error": None}


@dataclass
class NuGet(Store):
    """https://learn.microsoft.com/nuget/api/package-publish-resource,
    https://learn.microsoft.com/nuget/api/nuget-protocols and
    https://learn.microsoft.com/nuget/api/package-base-address-resource

    What is pushed is shown only when it was asked for `hidden` times.
    """

    hidden: int = 0
    waiting: dict[tuple[str, str], Any] = field(default_factory=dict)

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = urlsplit(target).path
        asked = re.fullmatch(r"/v3-flatcontainer/([a-z.]+)/([^/]+)/\1\.nuspec", path)
        if method == "GET" and asked:
            release = asked[1], asked[2]
            if release in self.waiting:
                self.hidden -= 1
                if self.hidden < 0:
                    self.published[release] = self.waiting.pop(release)
            return (200, {}) if release in self.published else (404, {})
        if (method, path) != ("PUT", "/api/v2/package"):
            return 404, {}
        self.pushed += 1
        if headers.get("x-nuget-apikey") != TOKEN:
            return 403, {}
        if headers.get("x-nuget-protocol-version") != "4.1.0":
            return 400, {}
        head = f"Content-Type: {headers['content-type']}\n\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        package = next(form.iter_parts()).get_payload(decode=True)
        if not isinstance(package, bytes):
            return 400, {}
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(".nuspec"))
            about = archive.read(name).decode()
        found = re.search(r"<id>(.+)</id><version>(.+)</version>", about)
        if found is None:
            return 400, {}
        release = found[1].lower(), found[2].lower()
        if release in self.waiting or release in self.published:
            return 409, {}
        self.waiting[release] = about
        return 201, {}


class _Handler(Handler):
    store: Store
    turn: threading.Lock

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self._read_chunks() if "transfer-encoding" in headers else None
        if body is None:
            body = self.rfile.read(int(headers.get("content-length", 0)))
        with self.turn:
            status, document = self.store.answer(self.command, self.path, headers, body)
        content = json.dumps(document).encode()
        self.send(status, [("Content-Type", "application/json")], content)

    do_POST = do_PUT = do_GET

    def _read_chunks(self) -> bytes:
        """https://www.rfc-editor.org/rfc/rfc9112#section-7.1"""
        content = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content


@contextlib.contextmanager
def serving_store(store: Store) -> Iterator[str]:
    """On loopback. Yields the origin."""
    with serving(_Handler, checked=True, store=store, turn=threading.Lock()) as origin:
        yield origin
