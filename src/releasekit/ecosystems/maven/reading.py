"""What a Maven repository holds, asked file by file: there is no listing that all of them have."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.maven.answers import ANSWERS
from releasekit.ecosystems.shared.server import Server
from releasekit.errors import Transient
from releasekit.model import Published
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path, PurePosixPath

    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven.login import Login
    from releasekit.model import Package

_ABSENT = frozenset({404, 410})


class Reader:
    """`url` is the root of the repository."""

    def __init__(self, url: httpx.URL, login: Login, *, config: Config, services: Services) -> None:
        self._server = Server(url, ANSWERS, config, services)
        self._login = login
        self._state = config.state_directory

    async def lookup(self, package: Package) -> Published | None:
        """The files of a release by their checksums: the POM, the main artifact, and whatever else
        was built here; where nothing was, sources and documentation.
        """
        pom = layout.pom(package)
        needed = (pom, *layout.mains(package))
        others = self._ours(package) or layout.usual(package)
        names = dict.fromkeys((*needed, *others))
        digests = dict(zip(names, await self._checksums(package, names), strict=True))
        sure = [name for name in names if digests[name] or self._certain(package, name, needed)]
        files = {name: digest for name in sure if (digest := digests[name])}
        unsure = [name for name in sure if name not in files]
        hashes = dict(zip(unsure, await self._hashes(package, unsure), strict=True))
        if hashes.get(pom) == self._own(package, pom):
            # A POM of ours without its checksums: the upload that brought it never ended.
            hashes.pop(pom, None)
        files |= {name: digest for name, digest in hashes.items() if digest}
        if not files:
            return None
        complete = layout.is_complete(package, files)
        return Published(
            files=files, complete=complete, url=f"{self.url_of(layout.directory(package))}/"
        )

    async def held(self, package: Package, names: Iterable[str]) -> dict[str, str]:
        """Those of the files that are there, with a digest, whether or not checksums are."""
        wanted = list(names)
        found = dict(zip(wanted, await self._checksums(package, wanted), strict=True))
        unsure = [name for name in wanted if not found[name]]
        found |= dict(zip(unsure, await self._hashes(package, unsure), strict=True))
        return {name: digest for name, digest in found.items() if digest}

    async def get(self, package: Package, path: PurePosixPath) -> bytes | None:
        """A file's bytes; None when it is surely absent. Raises Transient, Denied, Rejected."""
        url = self.url_of(path)
        response = await self._server.read(url, self._headers())
        if response.status_code in _ABSENT:
            return None
        what = f"{package.id} {package.version}: {url}"
        return self._server.explain(response, what).content

    def url_of(self, path: PurePosixPath) -> httpx.URL:
        return self._server.at(str(path))

    async def _checksums(self, package: Package, names: Iterable[str]) -> list[str]:
        return await gather_all(self._checksum(package, name) for name in names)

    async def _hashes(self, package: Package, names: Iterable[str]) -> list[str]:
        return await gather_all(self._hash(package, name) for name in names)

    async def _checksum(self, package: Package, name: str) -> str:
        """By the file that lies beside it; empty where there is none."""
        page = await self.get(package, layout.directory(package) / f"{name}.sha1")
        try:
            return f"sha1:{layout.digest(page)}" if page is not None else ""
        except ValueError as error:
            raise Transient(
                f"{package.id} {package.version}: {name}.sha1 on {self._server.url} is {error}"
            ) from error

    async def _hash(self, package: Package, name: str) -> str:
        data = await self.get(package, layout.directory(package) / name)
        return f"sha256:{hashlib.sha256(data).hexdigest()}" if data is not None else ""

    def _certain(self, package: Package, name: str, needed: Iterable[str]) -> bool:
        """Whether it is worth asking for a file that has no checksum."""
        return name in needed or self._own(package, name) != ""

    def _ours(self, package: Package) -> list[str]:
        """What was built of it here, by this run or an earlier one."""
        try:
            return sorted(path.name for path in self._home(package).iterdir())
        except FileNotFoundError:
            return []

    def _own(self, package: Package, name: str) -> str:
        try:
            return f"sha256:{hashlib.sha256((self._home(package) / name).read_bytes()).hexdigest()}"
        except FileNotFoundError:
            return ""

    def _home(self, package: Package) -> Path:
        return built_directory(package, self._state)

    def _headers(self) -> dict[str, str]:
        # The repository may be private too. What was cached on the way would hide what is there.
        return {**self._login.header(), "Cache-Control": "no-cache, max-age=0"}
