"""A package with built files, and registries that a transport in memory answers for."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import httpx

import fakes
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.maven import MavenInputs
from releasekit.ecosystems.maven.layout import ALGORITHMS
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from unit.maven.poms import gav, write

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Artifact, Package

T = TypeVar("T")
URL = "https://repo.example/releases"
LOGIN = {"RELEASEKIT_MAVEN_PASSWORD": "hunter2-password"}


class Server:
    """Holds what it is sent, by path; `answers` come first, each for one request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.answers: dict[tuple[str, str], list[httpx.Response | Exception]] = {}
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        self.requests.append(request)
        path = request.url.path
        waiting = self.answers.get((request.method, path), [])
        if waiting:
            answer = waiting.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if request.method == "PUT":
            self.files[path] = body
            return httpx.Response(201)
        held = self.files.get(path)
        return httpx.Response(404) if held is None else httpx.Response(200, content=held)

    def answer(self, method: str, path: str, *answers: httpx.Response | Exception) -> None:
        self.answers.setdefault((method, path), []).extend(answers)

    @property
    def puts(self) -> list[str]:
        return [request.url.path for request in self.requests if request.method == "PUT"]


class WebDav(Server):
    """With the collections of RFC 4918, of which the repository's own is there from the start.

    https://www.rfc-editor.org/rfc/rfc4918#section-9.3.1 and #section-9.7.1
    """

    def __init__(self, base: str = "/releases/") -> None:
        super().__init__()
        self.collections = {base}

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        above = f"{path.rstrip('/').rpartition('/')[0]}/"
        writes = request.method in {"PUT", "MKCOL"}
        if writes and above not in self.collections:
            self.requests.append(request)
            return httpx.Response(409)
        if request.method != "MKCOL" or self.answers.get(("MKCOL", path)):
            return await super().__call__(request)
        self.requests.append(request)
        there = path in self.collections
        self.collections.add(path)
        return httpx.Response(405 if there else 201)

    @property
    def made(self) -> list[str]:
        """What was asked for with MKCOL, in order."""
        return [request.url.path for request in self.requests if request.method == "MKCOL"]


def settings(root: Path, *, place: str = URL, **changes: object) -> Config:
    made = fakes.config(
        root.resolve(),
        registries=fakes.registries(maven=place),
        ecosystem_inputs=(MavenInputs(username="ci"),),
        **changes,
    )
    made.state_directory.mkdir(exist_ok=True)
    return made


@asynccontextmanager
async def services(
    server: Server, config: Config, environ: Mapping[str, str] = LOGIN
) -> AsyncIterator[Services]:
    taken = snapshot(environ)
    credentials = Credentials(taken, mask=lambda _: None)
    transport = httpx.MockTransport(server)
    async with (
        http_client(transport=transport) as http,
        Processes(environment=taken.environment, variables=fakes.TOOL_VARIABLES) as processes,
    ):
        yield fakes.make_services(config, http, processes, credentials)


def using(
    server: Server,
    root: Path,
    use: Callable[[Target, Package], Awaitable[T]],
    *,
    environ: Mapping[str, str] = LOGIN,
    **changes: object,
) -> T:
    """With the one package of the workspace, g:a 1.0; `place` is the registry."""
    config = settings(root, **changes)  # type: ignore[arg-type]

    async def main() -> T:
        async with services(server, config, environ) as given:
            found = await discovery(ECOSYSTEMS["maven"], config, given).discover(config.root)
            (package,) = found.workspace.packages
            return await use(found, package)

    return asyncio.run(main())


# What Maven Central asks of a POM.
DESCRIBED = (
    "<name>n</name><description>d</description><url>u</url><scm><url>s</url></scm>"
    "<licenses><license><name>l</name></license></licenses>"
    "<developers><developer><id>i</id></developer></developers>"
)


def workspace(root: Path, packaging: str = "jar") -> None:
    write(root / "pom.xml", gav("a") + f"<packaging>{packaging}</packaging>{DESCRIBED}")


def built(root: Path, *names: str) -> tuple[Artifact, ...]:
    """Where a build would have put them; the POM and the jar by default."""
    directory = root.resolve() / ".releasekit" / "dist" / "maven" / "g" / "a" / "1.0"
    directory.mkdir(parents=True, exist_ok=True)
    for name in names or ("a-1.0.pom", "a-1.0.jar"):
        (directory / name).write_bytes(f"the bytes of {name}".encode())
    names = names or ("a-1.0.pom", "a-1.0.jar")
    return tuple(digested(directory / name, *ALGORITHMS) for name in names)
