"""Maven Central by its portal: one bundle for a whole release, checked and then published.

https://central.sonatype.org/publish/publish-portal-api/ and
https://central.sonatype.org/publish/publish-portal-upload/
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import zipfile
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Final

from releasekit.aio import growing_pauses, uncancellable
from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.maven.access import ANSWERS, Reader
from releasekit.ecosystems.maven.deployment_record import Deployment, DeploymentRecord
from releasekit.ecosystems.maven.deployments import Deployments
from releasekit.ecosystems.shared.server import Server
from releasekit.errors import PackageError, Rejected
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.client import one_line
from releasekit.http.origins import require_safe
from releasekit.model import Action
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import PurePosixPath

    from releasekit.config.config import Config
    from releasekit.config.values import Url
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven import Options
    from releasekit.ecosystems.maven.deployments import State, Status
    from releasekit.model import Artifact, Package, PlannedPackage

CENTRAL: Final = "https://central.sonatype.com"
REPOSITORY: Final = "https://repo1.maven.org/maven2/"
_LONGEST_PAUSE_S: Final = 10.0
# Those that the portal wants of each file, and none of its signature: each is one file more of
# those that an organisation has. https://central.sonatype.org/publish/requirements/ and
# https://central.sonatype.org/publish/reducing-publishing-usage/
CHECKSUMS: Final = ("md5", "sha1")
# About so many, as a mean of three months, since October 2026.
# https://central.sonatype.org/publish/maven-central-publishing-limits/
FILES_IN_A_MONTH: Final = 1_000
# POM, jar, sources and documentation; each with its signature and checksums.
# https://central.sonatype.org/publish/requirements/
_FILES: Final = 4
_ENTRIES: Final = 2 + len(CHECKSUMS)


class Portal:
    """Implements `interface.Registry` and `interface.Deployment`."""

    def __init__(
        self,
        registry: Url,
        options: Options,
        *,
        config: Config,
        services: Services,
        first_pause_s: float = 0.25,
    ) -> None:
        self.deployments = Deployments(registry, config=config, services=services)
        self.url = self.deployments.url
        self.check_credentials = self.deployments.login.check
        self.record = DeploymentRecord(config.state_directory, self.url)
        self._automatic = options.publishing == "automatic"
        self._state = config.state_directory
        self._first_pause_s = first_pause_s
        where = require_safe(
            options.repository or REPOSITORY,
            name="[maven] repository",
            insecure=config.insecure_hosts,
        )
        # It is public, and the credentials are not for it.
        repository = Server(where, ANSWERS, config, services)
        reader = Reader(repository, None, config.state_directory)
        self.lookup, self.is_new = reader.lookup, reader.is_new

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """What a release takes of the files that Maven Central counts."""
        sent = [each.package for each in packages if each.action in {Action.PUBLISH, Action.UPLOAD}]
        files = sum(1 if each.packaging == "pom" else _FILES for each in sent)
        if not sent or self.url.rstrip("/") != CENTRAL:
            return ""
        return (
            f"Maven Central counts files: {_ENTRIES * files} or more of the {FILES_IN_A_MONTH:,} "
            "that an organisation has in a month, as a mean of three, are of this release"
        )

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        await self.deploy({package: artifacts})

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """Upload one bundle, have it checked, publish it; a later call continues an unfinished one.

        Unless publishing is automatic, nothing is published before all of it has been checked, and
        then by one request: a bundle whose answer was lost stays unpublished and does no harm.
        """
        begun = await self.begun(release, automatic=self._automatic)
        enough: tuple[State, ...] = () if begun.automatic else ("VALIDATED",)
        found, state = await self.settled(begun, *enough)
        if state == "VALIDATED":
            await self.deployments.publish(found.id)
            await self.settled(found)

    async def begun(
        self, release: Mapping[Package, Sequence[Artifact]], *, automatic: bool
    ) -> Deployment:
        """The deployment that an earlier call has made of this release, or one that is being
        published with more than it, whose files appear one after the other; or else a new one.
        """
        digest = release_digest(release)
        packages = {
            str(package.id): release_digest({package: artifacts})
            for package, artifacts in release.items()
        }
        known = self.record.of_release(digest) or self.record.around(packages)
        if known is not None:
            status = await self.deployments.status(known.id)
            state = "FAILED" if status is None else status.state
            # One that only waits would publish more than was asked for.
            if state in {"PUBLISHING", "PUBLISHED"} or (
                known.release == digest and state != "FAILED"
            ):
                return known
        names = ", ".join(sorted(str(package.id) for package in release))
        # A file without a name: what runs on of a build could change one between here and there.
        with durable.unnamed(self._state) as file:
            await uncancellable(asyncio.to_thread(write_bundle, file, release))
            file.seek(0)
            identifier = await self.deployments.upload(
                file,
                _name(digest),
                automatic=automatic,
                what=f"the deployment of {one_line(names, 200)}",
            )
        made = Deployment(
            id=identifier,
            release=digest,
            automatic=automatic,
            packages=packages,
        )
        self.record.add(made)
        return made

    async def settled(self, made: Deployment, *enough: State) -> tuple[Deployment, State]:
        """Once it is being published, or is in one of these states; or, instead of it, the one that
        has had the same files before.

        Raises Rejected with the portal's own words; nothing can come of it then, and it is dropped.
        """
        pauses = growing_pauses(self._first_pause_s, _LONGEST_PAUSE_S)
        asked = made
        while True:
            status = await self.deployments.status(asked.id)
            if status is None or status.state == "FAILED":
                twin = await self._twin(made, status) if asked is made else None
                # What is left behind does no harm.
                with contextlib.suppress(PackageError):
                    await self.deployments.drop(asked.id)
                if twin is None:
                    raise self._refused(status)
                asked = twin
                self.record.add(twin)
            elif status.state in {"PUBLISHING", "PUBLISHED", *enough}:
                return asked, status.state
            else:
                await asyncio.sleep(next(pauses))

    async def _twin(self, failed: Deployment, status: Status | None) -> Deployment | None:
        """Of the same files, where the answer to their upload was lost, or the record of it."""
        if status is None or len(status.elsewhere) != 1:
            return None
        (identifier,) = status.elsewhere
        there = await self.deployments.status(identifier)
        if there is None or there.state == "FAILED" or there.name != _name(failed.release):
            return None
        return replace(failed, id=identifier)

    def _refused(self, status: Status | None) -> Rejected:
        hint = (
            "Central wants sources, javadoc and signatures: [maven] sources, javadoc and sign = "
            "true. https://central.sonatype.org/publish/requirements/"
        )
        if status is not None and status.elsewhere:
            hint = (
                "That deployment has other files of this version: publish it, or drop it "
                f"({self.deployments.page}), and run this again."
            )
        words = status.words if status is not None else ""
        return Rejected(
            f"{self.url} refused the release: {words or 'it gives no reason'}", hint=hint
        )


def _name(release: str) -> str:
    """By which a deployment is known at the portal, the same for the same files."""
    return f"releasekit-{release[:16]}"


# https://central.sonatype.org/publish/publish-portal-api/#uploading-a-deployment-bundle
MAX_BYTES: Final = 1024**3
# The same release makes the same bundle: the earliest time a zip can tell.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_CHUNK: Final = 1024 * 1024


def release_digest(release: Mapping[Package, Sequence[Artifact]]) -> str:
    """What tells one release from another, whoever bundles it."""
    lines = [f"{artifact.sha256}  {path}\n" for path, artifact in _files(release)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_bundle(into: IO[bytes], release: Mapping[Package, Sequence[Artifact]]) -> None:
    """Put the release with its checksums into a new zip; raises PackageError when it is too large,
    or a file is not what was built. Blocks.
    """
    size = sum(artifact.size for _, artifact in _files(release))
    if size > MAX_BYTES:
        raise PackageError(
            f"maven: the release has {size} bytes, and a bundle takes {MAX_BYTES}",
            hint="Publish it in parts, with `packages`.",
            problem=Problem.REFUSED,
        )
    # Jars are compressed as they are.
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as bundle:
        for location, artifact in _files(release):
            with open_artifact(artifact) as file, bundle.open(_entry(location), "w") as entry:
                while chunk := file.read(_CHUNK):
                    entry.write(chunk)
            for algorithm in CHECKSUMS if layout.has_checksums(location.name) else ():
                beside = location.with_name(f"{location.name}.{algorithm}")
                bundle.writestr(_entry(beside), artifact.digests[algorithm])


def _files(
    release: Mapping[Package, Sequence[Artifact]],
) -> Iterator[tuple[PurePosixPath, Artifact]]:
    for package in sorted(release, key=lambda package: package.id):
        for artifact in sorted(release[package], key=lambda artifact: artifact.filename):
            yield layout.path_for(package, artifact.filename), artifact


def _entry(path: PurePosixPath) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(str(path), _EPOCH)
