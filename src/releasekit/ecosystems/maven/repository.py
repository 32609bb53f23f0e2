"""A Maven repository: files and their checksums go in by PUT, and come out by GET.

https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import PROOF, layout, metadata
from releasekit.ecosystems.maven.access import ANSWERS, Reader, login_for
from releasekit.ecosystems.maven.collections import make_collections
from releasekit.ecosystems.shared.answers import all_stored
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.ecosystems.shared.server import UPLOAD_TIMEOUT, Server
from releasekit.errors import Rejected, Transient
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.origins import require_safe
from releasekit.http.remedies import PASSING
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
    from pathlib import PurePosixPath

    import httpx

    from releasekit.config.config import Config
    from releasekit.config.values import Url
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven import Options
    from releasekit.host.artifact_reader import ArtifactReader
    from releasekit.model import Artifact, Package, PackageId, Published

# https://nginx.org/en/docs/http/ngx_http_dav_module.html#create_full_put_path
_NO_DIRECTORY: Final = (
    "nginx answers so where a directory is missing: set `create_full_put_path on;` there. "
)
_ANSWERS: Final = replace(
    ANSWERS, by_status={**ANSWERS.by_status, 500: f"{_NO_DIRECTORY}Else: {PASSING}"}
)
_CHUNK: Final = 1024 * 1024


class Repository:
    """Implements `interface.Registry`."""

    def __init__(
        self, registry: Url, options: Options, *, config: Config, services: Services
    ) -> None:
        url = require_safe(registry.text, name="maven-registry", insecure=config.insecure_hosts)
        self._server = Server(url, _ANSWERS, config, services)
        self.url = str(self._server.url)
        self._login = login_for(config, services.credentials, registry)
        self.check_credentials = self._login.check
        self._reader = Reader(self._server, self._login, config.state_directory)
        self.is_new = self._reader.is_new
        self._checksums = options.checksums
        self._looks_first = not options.immutable
        # A package takes one upload slot and has many files: with as many requests as slots there
        # are never more than `concurrency` uploads under way.
        self._slots = asyncio.Semaphore(config.concurrency)
        # What this run has written into its maven-metadata.xml.
        self._listed: set[PackageId] = set()

    async def lookup(self, package: Package) -> Published | None:
        """As the reader's; whether the metadata lists the version is asked, too: servers that make
        checksums themselves prove nothing by those of the POM.
        """
        found = await self._reader.lookup(package)
        if found is None or not found.complete or package.id in self._listed:
            return found
        page = await self._reader.get(package, layout.artifact_directory(package) / layout.METADATA)
        with contextlib.suppress(ValueError):
            if page and package.version in await asyncio.to_thread(metadata.listed_versions, page):
                return found
        return replace(found, lacks=f"{layout.METADATA} does not list it")

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """The POM is the last of the files to be sent, and its checksums come last of all, after
        the metadata: they prove that the rest is there, wherever an upload was interrupted.

        What is there already is not sent again, because a plain file server would replace it; and
        beside other bytes, nothing is sent at all, or no POM where only the server looks first.
        """
        held: Mapping[str, str] = {}
        if self._looks_first:
            held = await self._reader.held(package, [artifact.filename for artifact in artifacts])
        for artifact in artifacts:
            self._refuse_others(package, artifact, held.get(artifact.filename))
        new = [artifact for artifact in artifacts if artifact.filename not in held]
        name = layout.pom_name(package)
        await all_stored(self._store(package, each) for each in new if each.filename != name)
        beside = [
            self._put_checksums(package, layout.path_for(package, each.filename), each.digests)
            for each in artifacts
            if each.filename != name and layout.has_checksums(each.filename)
        ]
        pom = next((artifact for artifact in artifacts if artifact.filename == name), None)
        if pom is None:
            await all_stored(beside)
            return
        listed = _Listed(layout.artifact_directory(package) / layout.METADATA)
        storing = [self._store(package, pom)] if pom in new else []
        await all_stored([*beside, *storing, self._read(package, listed)])
        await self._list(package, listed)
        await self._put_checksums(package, layout.path_for(package, name), pom.digests)

    def _refuse_others(self, package: Package, artifact: Artifact, held: str | None) -> None:
        """`held` is the digest of what is there under its name."""
        algorithm, _, digest = (held or "").partition(":")
        if held and artifact.digests.get(algorithm) != digest:
            raise Rejected(f"{package}: {self.url} holds {artifact.filename} with {held}")

    async def _store(self, package: Package, artifact: Artifact) -> None:
        """Raises Rejected where other bytes came meanwhile."""
        name = artifact.filename
        with open_artifact(artifact) as file:
            stored = await self._put(package, layout.path_for(package, name), file)
        if not stored:
            held = await self._reader.held(package, [name])
            if name not in held:
                raise Transient(
                    f"{package}: {self.url} says that it has {name}, and does not show it",
                    ambiguous=True,
                )
            self._refuse_others(package, artifact, held[name])

    async def _read(self, package: Package, listed: _Listed) -> None:
        listed.page = await self._reader.get(package, listed.path)

    async def _list(self, package: Package, listed: _Listed) -> None:
        """Merge this version into the artifact's maven-metadata.xml."""
        try:
            # In a thread, because the page lists every version there has ever been.
            page = await asyncio.to_thread(
                metadata.merged_page, listed.page, package, now=datetime.now(UTC)
            )
        except ValueError as error:
            raise Rejected(
                f"{package}: {self.url}{listed.path} is no metadata of Maven ({error})",
                hint="Repair or delete that file: releases have to be added to it.",
                problem=Problem.STRANGE_ANSWER,
            ) from error
        # Even if it names the version already: the run that wrote it may have got no further.
        shown = page or listed.page or b""
        sums = digests(io.BytesIO(shown), *self._checksums)
        # At once: whichever came first, they would not match until the other is there.
        storing = [] if page is None else [self._put(package, listed.path, page, replace=True)]
        await all_stored([*storing, self._put_checksums(package, listed.path, sums)])
        self._listed.add(package.id)

    async def _put_checksums(
        self, package: Package, path: PurePosixPath, digests: Mapping[str, str]
    ) -> None:
        """sha1 comes last, to prove that the others are there; Maven and Gradle look for it first.

        https://maven.apache.org/resolver/about-checksums.html
        """

        def put(name: str) -> Coroutine[None, None, bool]:
            page = digests[name].encode()
            return self._put(package, path.with_name(f"{path.name}.{name}"), page, replace=True)

        await all_stored(put(name) for name in self._checksums if name != PROOF)
        await put(PROOF)

    async def _put(
        self,
        package: Package,
        path: PurePosixPath,
        body: ArtifactReader | bytes,
        *,
        replace: bool = False,
    ) -> bool:
        """Whether this request stored it."""
        what = f"{package}: {path.name}"
        make_request = partial(self._request, path, body, replace=replace)
        async with self._slots:
            response = await self._server.send_paced(make_request)
            if response.status_code == HTTPStatus.CONFLICT and await self._reader.is_absent(path):
                # Nothing is in the way of it: a WebDAV server wants its directory first.
                # https://www.rfc-editor.org/rfc/rfc4918#section-9.7.1
                if await make_collections(
                    self._server, path.parent, headers=self._login.header(), what=what
                ):
                    response = await self._server.send_paced(make_request)
                if response.status_code == HTTPStatus.CONFLICT:
                    words = self._server.words(response)
                    raise Transient(f"{what}: HTTP 409 {words}", ambiguous=True)
        return self._server.accept(response, what)

    def _request(
        self, path: PurePosixPath, body: ArtifactReader | bytes, *, replace: bool
    ) -> httpx.Request:
        size = len(body) if isinstance(body, bytes) else body.artifact.size
        return self._server.http.build_request(
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


async def _chunks(file: ArtifactReader) -> AsyncIterator[bytes]:
    file.seek(0)
    while chunk := await asyncio.to_thread(file.read, _CHUNK):
        yield chunk


@dataclass(slots=True)
class _Listed:
    """The metadata of an artifact, as it was read last."""

    path: PurePosixPath
    page: bytes | None = None
