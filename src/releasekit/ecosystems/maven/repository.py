"""A Maven repository: files and their checksums go in by PUT, and come out by GET.

https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import layout, metadata
from releasekit.ecosystems.maven.answers import ANSWERS
from releasekit.ecosystems.maven.reading import Reader
from releasekit.ecosystems.shared.answers import all_stored
from releasekit.ecosystems.shared.server import UPLOAD_TIMEOUT, Server
from releasekit.errors import Rejected
from releasekit.host import contents
from releasekit.http.origins import require_safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
    from pathlib import PurePosixPath

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven.login import Login
    from releasekit.host.contents import Contents
    from releasekit.model import Artifact, Package

_CHUNK: Final = 1024 * 1024


class Repository:
    """Implements `interface.Registry`."""

    def __init__(self, url: str, login: Login, *, config: Config, services: Services) -> None:
        self._url = require_safe(url, name="maven-registry")
        self.url = str(self._url)
        self._login = login
        self.check_credentials = login.check
        self._server = Server(self._url, ANSWERS, config, services)
        self._reader = Reader(self._url, login, config=config, services=services)
        self.lookup = self._reader.lookup
        # A package takes one upload slot and has many files: with as many requests as slots there
        # are never more than `concurrency` uploads under way.
        self._slots = asyncio.Semaphore(config.concurrency)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """The POM goes last of the files, and its checksums last of all, after the metadata: so
        they say that everything is there, however often and wherever this is interrupted.

        What is there already is not sent again, as a mere file server would replace it.
        """
        held = await self._reader.held(package, [artifact.filename for artifact in artifacts])
        sending = _Sending(package, held)
        pom = layout.pom(package)
        await all_stored(
            self._store_with_checksums(sending, artifact)
            for artifact in artifacts
            if artifact.filename != pom
        )
        for artifact in artifacts:
            if artifact.filename == pom and await self._store(sending, artifact):
                await self._list(sending)
                await self._put_checksums(
                    sending, layout.directory(package) / pom, artifact.digests
                )

    async def _store_with_checksums(self, sending: _Sending, artifact: Artifact) -> None:
        if await self._store(sending, artifact):
            path = layout.directory(sending.package) / artifact.filename
            await self._put_checksums(sending, path, artifact.digests)

    async def _store(self, sending: _Sending, artifact: Artifact) -> bool:
        """Whether the repository holds these very bytes now, as far as is known."""
        digest = sending.held.get(artifact.filename)
        if digest is not None:
            algorithm, _, value = digest.partition(":")
            return artifact.digests.get(algorithm) == value
        path = layout.path_for(sending.package, artifact.filename)
        with contents.opened(artifact) as file:
            return await self._put(sending, path, file)

    async def _list(self, sending: _Sending) -> None:
        """Merge this version into the artifact's maven-metadata.xml."""
        path = layout.home(sending.package) / layout.METADATA
        known = await self._reader.get(sending.package, path)
        try:
            # Beside the loop: it holds every version there ever was.
            page = await asyncio.to_thread(
                metadata.merged, known, sending.package, now=datetime.now(UTC)
            )
        except ValueError as error:
            raise Rejected(
                f"{sending.what}: {self._url}{path} is no metadata of Maven ({error})",
                hint="Repair or delete that file: releases have to be added to it.",
            ) from error
        if page is not None:
            await self._put(sending, path, page, replace=True)
        # Also when it names the version already: whoever wrote it may have come no further.
        page = page or known or b""
        digests = {name: layout.checksum(page, name).decode() for name in layout.ALGORITHMS}
        await self._put_checksums(sending, path, digests)

    async def _put_checksums(
        self, sending: _Sending, path: PurePosixPath, digests: Mapping[str, str]
    ) -> None:
        def put(name: str) -> Coroutine[None, None, bool]:
            page = digests[name].encode()
            return self._put(sending, path.with_name(f"{path.name}.{name}"), page, replace=True)

        *others, last = layout.ALGORITHMS
        await all_stored(put(name) for name in others)
        await put(last)

    async def _put(
        self,
        sending: _Sending,
        path: PurePosixPath,
        body: Contents | bytes,
        *,
        replace: bool = False,
    ) -> bool:
        size = len(body) if isinstance(body, bytes) else body.artifact.size
        request = self._server.http.build_request(
            "PUT",
            self._server.at(str(path)),
            content=body if isinstance(body, bytes) else _chunks(body),
            headers={
                **self._login.header(),
                **({} if replace else {"If-None-Match": "*"}),
                "Content-Length": str(size),
                "Content-Type": "application/octet-stream",
            },
            timeout=UPLOAD_TIMEOUT,
        )
        async with self._slots:
            response = await self._server.send(request)
        return self._server.accept(response, f"{sending.what}: {path.name}")


@dataclass(frozen=True, slots=True)
class _Sending:
    """One upload; `held` are the files that were there when it began, with their digests."""

    package: Package
    held: Mapping[str, str] = field(default_factory=dict)

    @property
    def what(self) -> str:
        return f"{self.package.id} {self.package.version}"


async def _chunks(file: Contents) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, _CHUNK):
        yield chunk
