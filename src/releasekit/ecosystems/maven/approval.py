"""Approving or rejecting deployments that wait at the Central Portal. Each holds all packages of a
release. The portal asks for no code: its token belongs to a person.

https://central.sonatype.org/publish/publish-portal-api/
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import TYPE_CHECKING, Final, Never

from releasekit.ecosystems.approval import Contents, Waiting
from releasekit.ecosystems.maven import layout, versions
from releasekit.ecosystems.maven.portal import MAX_BYTES, is_deployment_id, open_portal
from releasekit.ecosystems.shared.archives import member_names
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.ecosystems.shared.documents import known_digest
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES
from releasekit.errors import DigestMismatch, Rejected, UnderReview
from releasekit.host import durable
from releasekit.http.client import one_line
from releasekit.problems import Problem
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.approval import Approval
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven import Options
    from releasekit.ecosystems.maven.portal import Deployments, DeploymentStatus
    from releasekit.ecosystems.maven.repository import RepositoryReader
    from releasekit.errors import CodeWanted
    from releasekit.model import Artifact, Package, Result

# https://github.com/apache/maven/blob/maven-3.9.9/maven-model-builder/src/main/java/org/apache/maven/model/validation/DefaultModelValidator.java
_NAME: Final = re.compile(r"[\w.\-]+:[\w.\-]+", re.ASCII)
_VERSION: Final = re.compile(r"""[^\\/:"<>|?*\[\](){},\s]+""")
# The most that is read beyond the recorded size, for the digest of a file that took its place.
_SLACK_BYTES: Final = 64 * 1024


def approval(config: Config, options: Options, services: Services) -> Approval:
    """Raises ConfigError for an address that cannot be used."""
    return PortalApproval(*open_portal(config, options, services))


class PortalApproval:
    """Implements `approval.Approval`."""

    def __init__(self, deployments: Deployments, reader: RepositoryReader) -> None:
        self._deployments = deployments
        self.url = self._deployments.url
        self.check_credentials = self._deployments.login.check
        self._reader = reader
        # The versions whose files are as recorded, by deployment. One that holds others, too, is
        # not approved: the portal would publish all of it.
        self._same: dict[str, set[tuple[str, str]]] = {}

    async def waiting(self, recorded: Result) -> Waiting | None:
        """None for a deployment that is gone, or being published."""
        package = _require_coordinates(recorded.package)
        identifier = recorded.staged.id if recorded.staged is not None else ""
        if not is_deployment_id(identifier):
            raise Rejected(
                f"{package}: {identifier[:60]!r} is not the id of a deployment",
                hint="Take results.json as the run that staged the release has written it.",
                problem=Problem.CANNOT_APPROVE,
            )
        status = await self._deployments.status(identifier)
        if status is None or status.state in {"PUBLISHING", "PUBLISHED"}:
            return None
        if status.state == "FAILED":
            raise self._make_failure(identifier, status)
        held = status.components
        if held and (package.id.name, package.version) not in held:
            raise Rejected(
                f"{package}: deployment {identifier} holds {_list_components(held)} instead",
                problem=Problem.CANNOT_APPROVE,
            )
        return Waiting(id=identifier, name=package.id.name, version=package.version)

    async def files(self, recorded: Result, waiting: Waiting, into: Path) -> Sequence[Artifact]:
        """The files that the deployment has."""
        package = _require_coordinates(recorded.package)
        found = []
        for artifact in recorded.artifacts:
            path = layout.path_for(package, artifact.filename)
            response = await self._deployments.server.read(
                self._deployments.address_of(waiting.id, str(path)),
                self._deployments.header,
                max_bytes=min(artifact.size, MAX_BYTES) + _SLACK_BYTES,
            )
            if response.status_code == 404:
                continue
            what = f"{package}: {artifact.filename} in deployment {waiting.id}"
            data = self._deployments.server.explain(response, what).content
            found.append(await asyncio.to_thread(_save, data, into / artifact.filename))
        if [each.sha256 for each in found] == [each.sha256 for each in recorded.artifacts]:
            self._same.setdefault(waiting.id, set()).add((package.id.name, package.version))
        return found

    async def is_visible(self, recorded: Result, into: Path) -> bool:  # noqa: ARG002 (kept nowhere)
        package = _require_coordinates(recorded.package)
        for artifact in recorded.artifacts:
            theirs = await self._read_published_digest(package, artifact)
            if not theirs:
                return False
            if theirs != artifact.sha256:
                raise DigestMismatch(
                    f"{package}: the repository has {artifact.filename} with sha256 {theirs}, and "
                    f"{artifact.sha256} was staged",
                    hint="Somebody else published this version. Bump it.",
                )
        return True

    async def last_published(self, recorded: Result, into: Path) -> Contents | None:
        package = _require_coordinates(recorded.package)
        page = await self._reader.get(package, layout.artifact_directory(package) / layout.METADATA)
        try:
            listed = layout.list_versions(page) if page is not None else ()
        except ValueError:
            return None
        lower = [
            each
            for each in listed
            if _VERSION.fullmatch(each)
            and not versions.is_snapshot(each)
            and versions.compare(each, package.version) < 0
        ]
        if not lower:
            return None
        version = versions.sort_versions(lower)[-1]
        there = layout.artifact_directory(package) / version
        paths = []
        for rest in _find_main_endings(recorded):
            name = f"{layout.group_and_artifact(package)[1]}-{version}{rest}"
            data = await self._reader.get(package, there / name, max_bytes=MAX_FILE_BYTES)
            if data is not None:
                await asyncio.to_thread(_save, data, into / name)
                paths.append(into / name)
        return await asyncio.to_thread(_read_contents, package, version, paths)

    def contents(self, recorded: Result, artifacts: Sequence[Artifact]) -> Contents:
        """Of the POM and the main artifact, which users get."""
        names = {
            f"{layout.prefix(recorded.package)}{rest}" for rest in _find_main_endings(recorded)
        }
        paths = [artifact.path for artifact in artifacts if artifact.filename in names]
        return _read_contents(recorded.package, recorded.package.version, paths)

    async def approve(self, waiting: Waiting, code: str) -> None:  # noqa: ARG002 (there are none)
        """Publish a deployment, with all its packages, unless that has begun."""
        status = await self._deployments.status(waiting.id)
        if status is None:
            raise Rejected(
                f"deployment {waiting.id} is not there any more: it was dropped",
                problem=Problem.CANNOT_APPROVE,
            )
        if status.state == "FAILED":
            raise self._make_failure(waiting.id, status)
        self._require_checked(waiting, status)
        if status.state in {"PUBLISHING", "PUBLISHED"}:
            return
        unseen = status.components - self._same.get(waiting.id, set())
        if unseen:
            raise Rejected(
                f"deployment {waiting.id} also holds {_list_components(unseen)}, which is not what "
                "was staged: nothing of it was published",
                hint=f"Drop it on {self._deployments.page}, or with {spell('reject')}, and "
                "publish the release again.",
                problem=Problem.CANNOT_APPROVE,
            )
        await self._deployments.publish(waiting.id)

    async def reject(self, waiting: Waiting, code: str) -> None:  # noqa: ARG002 (there are none)
        status = await self._deployments.status(waiting.id)
        if status is None:
            return
        if status.state in {"PUBLISHING", "PUBLISHED"}:
            raise Rejected(
                f"deployment {waiting.id} is {status.state.lower()}: it cannot be taken back",
                hint="What is on Maven Central stays there. Publish a version without the fault.",
                problem=Problem.CANNOT_APPROVE,
            )
        if status.state != "FAILED":
            self._require_checked(waiting, status)
        await self._deployments.drop(waiting.id)

    async def confirmed(self, wanted: CodeWanted) -> Never:
        """The portal asks for no code."""
        raise wanted

    def _make_failure(self, identifier: str, status: DeploymentStatus) -> Rejected:
        return Rejected(
            f"deployment {identifier} has failed: {status.words or 'the portal gives no reason'}",
            hint=f"Nothing can come of it. {self._deployments.page} tells more.",
            problem=Problem.CANNOT_APPROVE,
        )

    def _require_checked(self, waiting: Waiting, status: DeploymentStatus) -> None:
        if status.state in {"PENDING", "VALIDATING"}:
            raise UnderReview(f"deployment {waiting.id}: the portal is still checking it")

    async def _read_published_digest(self, package: Package, artifact: Artifact) -> str:
        """The sha256 of a file in the repository; empty where it is not there."""
        path = layout.path_for(package, artifact.filename)
        page = await self._reader.get(package, path.with_name(f"{path.name}.sha256"))
        word = (page or b"")[:100].split()[:1]
        digest = known_digest("sha256", word[0].decode("ascii", "replace")) if word else ""
        if digest:
            return digest.partition(":")[2]
        data = await self._reader.get(package, path, max_bytes=artifact.size + _SLACK_BYTES)
        return "" if data is None else hashlib.sha256(data).hexdigest()


def _require_coordinates(package: Package) -> Package:
    """Coordinates that can go into addresses; raises Rejected for others."""
    if not _NAME.fullmatch(package.id.name) or not _VERSION.fullmatch(package.version):
        raise Rejected(
            f"{one_line(str(package), 200)}: not a group:artifact and a version of Maven",
            problem=Problem.CANNOT_APPROVE,
        )
    return package


def _find_main_endings(recorded: Result) -> Iterator[str]:
    """The endings of the POM and the main artifact, without attached files and signatures."""
    prefix = layout.prefix(recorded.package)
    for artifact in recorded.artifacts:
        rest = artifact.filename.removeprefix(prefix)
        if rest.startswith(".") and not rest.endswith((".asc", ".module")):
            yield rest


def _save(data: bytes, path: Path) -> Artifact:
    durable.replace(path, data)
    return digested(path, "sha256")


def _read_contents(package: Package, version: str, paths: Sequence[Path]) -> Contents:
    artifact = layout.group_and_artifact(package)[1]
    names: set[str] = set()
    for path in paths:
        names.add(f"{artifact}{path.name.removeprefix(f'{artifact}-{version}')}")
        with durable.reading(path) as file:
            names.update(member_names(file))
    size = sum(path.stat().st_size for path in paths)
    return Contents(version=version, size=size, names=frozenset(names))


def _list_components(components: Iterable[tuple[str, str]]) -> str:
    return one_line(", ".join(sorted(f"{name} {version}" for name, version in components)), 200)
