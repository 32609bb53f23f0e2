"""A cargo registry with the rules of crates.io, as a double: no real server installs in minutes.

Its client in these tests is cargo itself, for publishing as for building from it. Rules:
https://github.com/rust-lang/crates.io/blob/main/src/controllers/krate/publish.rs and
https://doc.rust-lang.org/cargo/reference/registries.html
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import re
import struct
import subprocess
import tarfile
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from harness.http_server import Handler, serving
from integration.servers import recorded
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from integration.recorder import Recorder

TOKEN: Final = "cio_correct-horse-battery"
ID_TOKEN: Final = "header.payload.signature"
_DOWNLOAD: Final = re.compile(r"/api/v1/crates/([^/]+)/([^/]+)/download")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class RefusedError(Exception):
    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


@dataclass
class Bucket:
    """`tokens` of a burst, and from the first refusal on another one every `interval_s`. Before
    that none: whether there is a refusal is not to depend on how busy the machine is.
    """

    tokens: int
    interval_s: float
    refilled_s: float = float("inf")

    def take(self, words: str) -> None:
        while time.time() >= self.refilled_s + self.interval_s:
            self.refilled_s += self.interval_s
            self.tokens += 1
        if self.tokens < 1:
            self.refilled_s = min(self.refilled_s, time.time())
            # Whole seconds, as HTTP has them, and never too early.
            when = formatdate(int(self.refilled_s + self.interval_s) + 1, usegmt=True)
            raise RefusedError(429, f"{words}. Please try again after {when}", Retry_After=when)
        self.tokens -= 1


@dataclass
class Crates:
    """What the registry holds. `index_lag_s` is how long a new version stays out of the index;
    `private` shows nothing to those without a token. A `strict` one takes nothing that needs what
    it does not have; of the registries there are, crates.io alone is.
    """

    index_lag_s: float = 0.0
    private: bool = False
    strict: bool = True
    git_index: Path | None = None  # a bare repository, where each version is a commit
    legacy_status: bool = False  # errors with status 200, as crates.io used to have them
    new_crates: Bucket = field(default_factory=lambda: Bucket(10_000, 1.0))
    new_versions: Bucket = field(default_factory=lambda: Bucket(10_000, 1.0))
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    id_tokens: Collection[str] = (ID_TOKEN,)
    used_tokens: set[str] = field(default_factory=set)
    trusting_only: set[str] = field(default_factory=set)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    lines: dict[str, list[tuple[float, dict[str, Any]]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    # With a git index: the first two are certain to begin from the same commit.
    together: Iterator[threading.Barrier] = field(
        default_factory=lambda: itertools.repeat(threading.Barrier(2), 2)
    )

    def hold(self, name: str, version: str) -> None:
        """An empty library, as if somebody had published it before."""
        manifest = f'package = {{ name = "{name}", version = "{version}", edition = "2021" }}\n'
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for path, text in (("Cargo.toml", manifest), ("src/lib.rs", "")):
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        crate = stream.getvalue()
        self.files[f"{name}-{version}.crate"] = crate
        document = {"name": name, "vers": version, "deps": [], "features": {}}
        line = _index_line(document, hashlib.sha256(crate).hexdigest())
        self.lines.setdefault(_canonical(name), []).append((0.0, line))

    def publish(self, body: bytes) -> None:
        document, crate = _taken_apart(body)
        name, version = document["name"], document["vers"]
        if self.git_index is not None:
            self._push(self.git_index, name, json.dumps(document).encode())
        with self.lock:
            self._check(document, crate)
            known = _canonical(name) in self.lines
            if known:
                self.new_versions.take("You have published too many updates to existing crates")
            else:
                self.new_crates.take("You have published too many new crates")
            filename = f"{name}-{version}.crate"
            self.requests[filename] = document
            self.files[filename] = crate
            line = _index_line(document, hashlib.sha256(crate).hexdigest())
            self.lines.setdefault(_canonical(name), []).append(
                (time.monotonic() + self.index_lag_s, line)
            )

    def _push(self, repository: Path, name: str, line: bytes) -> None:
        """As registries do that keep their index in git: whoever comes second is turned away."""

        def run(*arguments: str, content: bytes = b"") -> str:
            done = subprocess.run(
                ["git", *arguments], cwd=repository, input=content, capture_output=True, check=False
            )
            if done.returncode:
                raise RefusedError(500, f"could not commit: {done.stderr.decode().strip()}")
            return done.stdout.decode().strip()

        head = run("rev-parse", "refs/heads/master")
        with self.lock:
            barrier = next(self.together, None)
        if barrier is not None:
            barrier.wait(PATIENCE_S)
        blob = run("hash-object", "-w", "--stdin", content=line)
        entries = run("ls-tree", head).splitlines()
        tree = run(
            "mktree", content="\n".join([*entries, f"100644 blob {blob}\t{name}\n"]).encode()
        )
        identity = ["-c", "user.name=R", "-c", "user.email=r@example.org"]
        commit = run(*identity, "commit-tree", tree, "-p", head, "-m", name)
        run("update-ref", "refs/heads/master", commit, head)

    def _check(self, document: dict[str, Any], crate: bytes) -> None:
        name, version = document["name"], document["vers"]
        _check_metadata(document)
        for _, line in self.lines.get(_canonical(name), []):
            if line["name"] != name:
                raise RefusedError(400, f"crate was previously named `{line['name']}`")
            if line["vers"].partition("+")[0] == version.partition("+")[0]:
                raise RefusedError(400, f"crate version `{line['vers']}` is already uploaded")
        for dependency in document["deps"]:
            if dependency["version_req"] == "*":
                raise RefusedError(400, "wildcard (`*`) dependency constraints are not allowed")
            absent = (
                not dependency.get("registry") and _canonical(dependency["name"]) not in self.lines
            )
            if self.strict and absent:
                raise RefusedError(400, f"no known crate named `{dependency['name']}`")
        with tarfile.open(fileobj=io.BytesIO(crate), mode="r:gz") as archive:
            for member in archive:
                if member.name.partition("/")[0] != f"{name}-{version}" or not member.isfile():
                    raise RefusedError(400, f"invalid path found: {member.name}")

    def index(self, path: str) -> bytes | None:
        name = path.rpartition("/")[2]
        with self.lock:
            lines = [
                line
                for since_s, line in self.lines.get(_canonical(name), [])
                if line["name"].lower() == name and time.monotonic() >= since_s
            ]
        if not lines or path != _index_path(name):
            return None
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@dataclass(frozen=True, kw_only=True)
class CrateServer:
    """What a user would be told about the server; the URL leads through `recorder`."""

    index_url: str
    crates: Crates
    recorder: Recorder

    def cargo_config(self, home: Path, *, replace: bool = True) -> None:
        """Make it crates.io, for a cargo with this CARGO_HOME; or else a registry named `local`."""
        home.mkdir(parents=True, exist_ok=True)
        write_config(home, f"sparse+{self.index_url}", replace=replace)
        (home / "credentials.toml").write_text(f'[registries.local]\ntoken = "{TOKEN}"\n')


def write_config(home: Path, index: str, *, replace: bool) -> None:
    home.mkdir(parents=True, exist_ok=True)
    text = f'[registries.local]\nindex = "{index}"\n'
    # https://doc.rust-lang.org/cargo/reference/source-replacement.html
    if replace:
        text += '[source.crates-io]\nreplace-with = "local"\n'
    text += '[registry]\nglobal-credential-providers = ["cargo:token"]\n'
    (home / "config.toml").write_text(text)


@contextlib.contextmanager
def crate_server(crates: Crates | None = None) -> Iterator[CrateServer]:
    held = crates or Crates()
    with serving(_Handler, crates=held) as origin, recorded(origin) as seen:
        yield CrateServer(index_url=f"{seen.url}/index/", crates=held, recorder=seen)


class _Handler(Handler):
    crates: Crates

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_PUT(self) -> None:
        self._answered(self._put)

    def do_POST(self) -> None:
        self._answered(self._mint)

    def do_DELETE(self) -> None:
        self._answered(self._revoke)

    def _answered(self, act: Any) -> None:
        self._body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self._send(200, act())
        except RefusedError as refusal:
            status = 200 if self.crates.legacy_status else refusal.status
            self._send(status, {"errors": [{"detail": str(refusal)}]}, **refusal.headers)

    def _get(self) -> object:
        if self.crates.private:
            self._authenticate(401)
        if self.path == "/index/config.json":
            # The address the client came by: it leads through the recorder.
            origin = f"http://{self.headers['Host']}"
            config: dict[str, object] = {"dl": f"{origin}/api/v1/crates", "api": origin}
            return {**config, "auth-required": True} if self.crates.private else config
        url = urlsplit(self.path)
        if url.path == "/api/v1/crates":
            named = parse_qs(url.query).get("ids[]", [])
            only = self.crates.trusting_only
            return {"crates": [{"id": each, "trustpub_only": each in only} for each in named]}
        if found := _DOWNLOAD.fullmatch(self.path):
            data = self.crates.files.get(f"{found[1]}-{found[2]}.crate")
        else:
            data = self.crates.index(self.path.removeprefix("/index/"))
        if data is None:
            raise RefusedError(404, HTTPStatus.NOT_FOUND.phrase)
        return data

    def _put(self) -> object:
        self._authenticate(403)
        if self.path != "/api/v1/crates/new":
            raise RefusedError(404, HTTPStatus.NOT_FOUND.phrase)
        self.crates.publish(self._body)
        return {"warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}}

    def _mint(self) -> object:
        given = json.loads(self._body).get("jwt")
        if given not in self.crates.id_tokens:
            raise RefusedError(400, "Invalid JWT")
        if given in self.crates.used_tokens:
            raise RefusedError(400, "JWT has already been used")
        self.crates.used_tokens.add(given)
        token = f"cio_tp_{len(self.crates.tokens)}"
        self.crates.tokens.add(token)
        return {"token": token}

    def _revoke(self) -> object:
        self.crates.tokens.discard(self.headers["Authorization"].removeprefix("Bearer "))
        return b""

    def _authenticate(self, status: int) -> None:
        if self.headers.get("Authorization") not in self.crates.tokens:
            raise RefusedError(status, "authentication failed", WWW_Authenticate="Cargo login_url")

    def _send(self, status: int, answer: object, **headers: str) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        more = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.send(status, [("Content-Type", "application/json"), *more], data)


def _taken_apart(body: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        (size,) = struct.unpack_from("<I", body)
        document = json.loads(body[4 : 4 + size])
        (length,) = struct.unpack_from("<I", body, 4 + size)
        crate = body[8 + size :]
    except (struct.error, ValueError) as error:
        raise RefusedError(400, f"invalid upload request: {error}") from error
    if len(crate) != length:
        raise RefusedError(400, f"invalid upload request: {len(crate)} bytes instead of {length}")
    return document, crate


def _check_metadata(document: dict[str, Any]) -> None:
    if not _PLAIN.fullmatch(document["name"]):
        raise RefusedError(400, f"invalid character in crate name: `{document['name']}`")
    licensed = document.get("license") or document.get("license_file")
    missing = [] if document.get("description") else ["description"]
    missing += [] if licensed else ["license"]
    if missing:
        words = f"missing or empty metadata fields: {', '.join(missing)}. Please see"
        raise RefusedError(400, f"{words} https://doc.rust-lang.org/cargo/reference")


def _index_line(document: dict[str, Any], checksum: str) -> dict[str, Any]:
    """https://doc.rust-lang.org/cargo/reference/registry-web-api.html#publish says what becomes
    what.
    """
    features = document["features"]
    new = {k: v for k, v in features.items() if any(it[:4] == "dep:" or "?/" in it for it in v)}
    line = {
        "name": document["name"],
        "vers": document["vers"],
        "deps": [_index_dependency(it) for it in document["deps"]],
        "cksum": checksum,
        "features": {k: v for k, v in features.items() if k not in new},
        "yanked": False,
        "links": document.get("links"),
        "rust_version": document.get("rust_version"),
    }
    return {**line, "features2": new, "v": 2} if new else line


def _index_dependency(dependency: dict[str, Any]) -> dict[str, Any]:
    line = {**dependency, "req": dependency["version_req"]}
    del line["version_req"]
    if alias := line.pop("explicit_name_in_toml", None):
        line |= {"name": alias, "package": dependency["name"]}
    return line


def _canonical(name: str) -> str:
    return name.lower().replace("-", "_")


def _index_path(name: str) -> str:
    if len(name) < 3:
        return f"{len(name)}/{name}"
    return f"3/{name[0]}/{name}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}/{name}"
