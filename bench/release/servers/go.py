"""A git remote over HTTP, by git's own http-backend, and a module proxy that shows its tags.

https://git-scm.com/docs/git-http-backend and https://go.dev/ref/mod#goproxy-protocol
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.release.servers.wire import MISSING, Answer, Request

if TYPE_CHECKING:
    import argparse

HOST: Final = "github.com/acme/mono"


def open_app(options: argparse.Namespace) -> Go:
    return Go(Path(options.directory), options.lag)


class Go:
    """`bare` is the repository, whose tags are versions."""

    def __init__(self, bare: Path, lag_s: float) -> None:
        self._bare, self._lag_s = bare, lag_s
        self._asked: dict[str, int] = {}
        self._reader: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    def index_latency_s(self, _request: Request) -> float | None:
        return None

    def package_of(self, request: Request) -> str:
        return "push" if request.method == "POST" and b"refs/tags/" in request.body else ""

    def published(self) -> dict[str, int]:
        """The tags, and how often the proxy was asked for each: it has none before it is."""
        packed = self._bare / "packed-refs"
        lines = packed.read_text().splitlines() if packed.exists() else []
        tags = {line.partition(" refs/tags/")[2] for line in lines if " refs/tags/" in line}
        loose = self._bare / "refs" / "tags"
        tags |= {str(it.relative_to(loose)) for it in loose.rglob("v*") if it.is_file()}
        return {tag.replace("/v", " "): self._asked.get(tag, 0) for tag in tags}

    async def answer(self, request: Request) -> Answer:
        if request.path.startswith("/mono.git/"):
            return await self._git(request)
        module, _, filename = request.path[1:].partition("/@v/")
        name = module.removeprefix(f"{HOST}/")
        version, _, form = filename.rpartition(".")
        if not self._shows(self._bare / "refs" / "tags" / name / version):
            return MISSING
        self._asked[f"{name}/{version}"] = self._asked.get(f"{name}/{version}", 0) + 1
        if form == "info":
            when = {"Version": version, "Time": "2026-01-01T00:00:00Z"}
            return Answer(body=json.dumps(when).encode())
        if form == "mod":
            return Answer(body=await self._object(f"{name}/{version}:{name}/go.mod"))
        return Answer(body=await self._zip(name, version), kind="application/zip")

    def _shows(self, tag: Path) -> bool:
        try:
            return time.time() >= tag.stat().st_mtime + self._lag_s
        except FileNotFoundError:
            return False

    async def _zip(self, name: str, version: str) -> bytes:
        """The names in it are those of https://go.dev/ref/mod#zip-files."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as module:
            tree = await self._object(f"{name}/{version}:{name}")
            while tree:
                head, _, rest = tree.partition(b"\0")
                oid, tree = rest[:20].hex(), rest[20:]
                entry = head.decode().partition(" ")[2]
                module.writestr(f"{HOST}/{name}@{version}/{entry}", await self._object(oid))
        return stream.getvalue()

    async def _object(self, name: str) -> bytes:
        """By one git for all of them. https://git-scm.com/docs/git-cat-file#_batch_output"""
        async with self._turn:
            if self._reader is None:
                self._reader = await asyncio.create_subprocess_exec(
                    *("git", "-c", "safe.directory=*", "cat-file", "--batch"),
                    cwd=self._bare,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
            asked, answered = self._reader.stdin, self._reader.stdout
            assert asked is not None
            assert answered is not None
            asked.write(f"{name}\n".encode())
            size = int((await answered.readline()).split()[2])
            return (await answered.readexactly(size + 1))[:-1]

    async def _git(self, request: Request) -> Answer:
        process = await asyncio.create_subprocess_exec(
            *("git", "http-backend"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self._bare.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
                "REMOTE_USER": "bench",
                "REQUEST_METHOD": request.method,
                "PATH_INFO": request.path,
                "QUERY_STRING": request.query,
                "CONTENT_TYPE": request.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(request.body)),
                "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            },
        )
        out, _ = await process.communicate(request.body)
        head, _, body = out.partition(b"\r\n\r\n")
        pairs = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        fields = {name.lower(): value for name, value in pairs}
        status = int(fields.pop("status", "200")[:3])
        kind = fields.pop("content-type", "text/plain")
        return Answer(status, body, kind, tuple(fields.items()))
