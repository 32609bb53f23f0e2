"""What everybody sees of a package, looked at as a maintainer who is about to add to it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import httpx

from releasekit.ecosystems.approval import Contents
from releasekit.ecosystems.npm.registry import ABBREVIATED, NpmRegistry
from releasekit.ecosystems.npm.tarball import read_tarball
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES
from releasekit.errors import DigestMismatch, Transient
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.origins import same_origin
from releasekit.problems import Problem
from releasekit.text.json_text import entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.shared.login import Login
    from releasekit.model import Artifact, Package, Result

# sha1 and sha512 are what npm shows of a published version.
ALGORITHMS: Final = ("sha256", "sha512", "sha1")
# They run on the machine of whoever installs it.
# https://docs.npmjs.com/cli/v11/using-npm/scripts#npm-install
INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")
# What npm may show of a package of which nothing but staged versions exist.
PLACEHOLDER: Final = "0.0.0-stage"


class PublicVersions(NpmRegistry):
    """A part of `approval.Approval`."""

    def __init__(self, config: Config, services: Services, login: Login) -> None:
        super().__init__(config, services)
        self._login = login

    async def is_visible(self, recorded: Result, into: Path) -> bool:
        package = recorded.package
        found = await self.lookup(package)
        if found is None:
            return False
        (shown,) = found.files.values()
        algorithm, _, theirs = shown.partition(":")
        (artifact,) = recorded.artifacts
        ours = artifact.digests.get(algorithm)
        if ours is None:
            # Of files that were never here, sha256 alone is on record, which npm does not show.
            dists = await self._dists(package)
            fetched = await self._fetched(package, package.version, dists, into)
            algorithm, ours, theirs = "sha256", artifact.sha256, fetched.sha256
        if ours != theirs:
            raise DigestMismatch(
                f"{package}: {self.url} shows {algorithm}:{theirs}, and {algorithm}:{ours} was "
                "built",
                hint="Somebody else published this version. Bump it, and release it again.",
            )
        return True

    async def _seen_first(self, package: Package) -> object:
        """Nothing is planned here, and one version is asked for over and over."""
        return await self._seen(package)

    async def last_published(self, recorded: Result, into: Path) -> Contents | None:
        package = recorded.package
        dists = await self._dists(package)
        before = await asyncio.to_thread(_before, package.version, dists)
        if not before:
            return None
        artifact = await self._fetched(package, before, dists, into)
        return await asyncio.to_thread(contents_of, before, artifact, f"{package.id} {before}")

    async def _dists(self, package: Package) -> Mapping[str, Mapping[str, Any]]:
        """By version, what says where its tarball is; empty when there is no such package."""
        response = await self._read(package, headers=ABBREVIATED)
        if response.status_code == httpx.codes.NOT_FOUND:
            return {}
        what = f"{package}: {response.request.url}"
        self.server.explain(response, what)
        try:
            return await asyncio.to_thread(_dists_in, response.content)
        except ValueError as error:
            raise Transient(
                f"{what}: not a packument ({error})", problem=Problem.STRANGE_ANSWER
            ) from error

    async def _fetched(
        self, package: Package, version: str, dists: Mapping[str, Mapping[str, Any]], into: Path
    ) -> Artifact:
        token = self._login.for_reading()
        headers = {"Authorization": f"Bearer {token.reveal()}"} if token else {}
        name = package.id.name
        url = self.server.at(f"{name}/-/{name.rpartition('/')[2]}-{version}.tgz")
        with contextlib.suppress(httpx.InvalidURL):
            told = httpx.URL(text_in(dists.get(version, {}), "tarball"))
            url = told if same_origin(told, self.server.url) else url
        return await self.server.fetch(
            url,
            headers,
            into / "published.tgz",
            max_bytes=MAX_FILE_BYTES,
            algorithms=ALGORITHMS,
        )


def contents_of(version: str, artifact: Artifact, what: str) -> Contents:
    """Blocks; raises PackageError for what is no tarball of npm's."""
    with open_artifact(artifact) as file, file.raw() as raw:
        found = read_tarball(raw, what)
    scripts = table_in(found.manifest, "scripts")
    return Contents(
        version=version,
        size=artifact.size,
        names=found.names,
        scripts={name: str(scripts[name]) for name in INSTALL_SCRIPTS if scripts.get(name)},
    )


def _dists_in(page: bytes) -> dict[str, Mapping[str, Any]]:
    return {
        name: table_in(value, "dist")
        for _, name, value in entries(page, {"versions"})
        if name is not None
    }


def _before(version: str, known: Iterable[str]) -> str:
    """The greatest one below `version`: before a release no prerelease, if there is a release."""
    ours = Version.parse(version)
    below = []
    for text in known:
        with contextlib.suppress(ValueError):
            if text != PLACEHOLDER and (parsed := Version.parse(text)) < ours:
                below.append((not parsed.pre or bool(ours.pre), parsed, text))
    return max(below, default=(False, ours, ""))[2]
