"""Maven Central by its portal: one bundle for a whole release, which the portal checks, and which
it, this run or a person then publishes.

https://central.sonatype.org/publish/publish-portal-api/ and
https://central.sonatype.org/publish/publish-portal-upload/
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import zipfile
from typing import IO, TYPE_CHECKING, Final, Literal

import httpx
from msgspec import Struct, field
from msgspec.structs import asdict

from releasekit.aio import growing_pauses, uncancellable
from releasekit.ecosystems.maven import CENTRAL, MavenInputs, layout
from releasekit.ecosystems.maven.repository import ANSWERS, RepositoryReader, make_login
from releasekit.ecosystems.preflight import RightsFound
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.server import RegistryClient
from releasekit.errors import Denied, PackageError, Rejected, Transient
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.origins import require_safe
from releasekit.model import SENT, PackageWarning, Staged, WarningName
from releasekit.problems import Problem
from releasekit.report.text import size
from releasekit.text.escape import one_line
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path, PurePosixPath

    from releasekit.config.config import PlanConfig
    from releasekit.config.values import StageMode, Url
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage


REPOSITORY: Final = "https://repo1.maven.org/maven2/"
_LONGEST_PAUSE_S: Final = 10.0
# The portal wants these of each file, and none of a signature. Each counts as one of the files
# that an organisation may publish. https://central.sonatype.org/publish/requirements/ and
# https://central.sonatype.org/publish/reducing-publishing-usage/
CHECKSUMS: Final = ("md5", "sha1")
# What an organisation publishes in a month, as a mean of three, since October 2026. The rest of it
# is shown to people only: no endpoint of the portal's API tells it.
# https://central.sonatype.org/publish/maven-central-publishing-limits/ and, for the figures that
# accounts see, https://github.com/ZUGFeRD/mustangproject/issues/1157 (November 2026)
FILES_IN_A_MONTH: Final = 1_000
BYTES_IN_A_MONTH: Final = 80 * 1000**2
RELEASES_IN_A_MONTH: Final = 7
_MONTHS: Final = 3
_USAGE: Final = f"{CENTRAL}/publishing/usage"
# POM, jar, sources and documentation; each with its signature and checksums.
# https://central.sonatype.org/publish/requirements/
_FILES: Final = 4
_ENTRIES: Final = 2 + len(CHECKSUMS)
# https://central.sonatype.org/publish/publish-portal-api/#uploading-a-deployment-bundle
MAX_BYTES: Final = 1024**3
# The earliest time of a zip, so that the same release makes the same bundle.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_CHUNK: Final = 1024 * 1024
RECORD_NAME: Final = "maven-deployment.json"
_MAX_RECORD_BYTES: Final = 1024 * 1024
# Releases that wait, and those that were published meanwhile.
_KEPT: Final = 8
_UPLOAD_TIMEOUT: Final = httpx.Timeout(60.0, connect=15.0, read=600.0, pool=None)
# UUIDs; as a part of an address they cannot lead elsewhere.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
# Undocumented words of the portal, as users quote them: "Component with coordinate 'g:a:1.0' is
# currently being published in another deployment (ID)".
_ELSEWHERE: Final = re.compile(r"in another deployment \(([A-Za-z0-9_-]{1,100})\)")

_GENERATE: Final = (
    "Generate one at https://central.sonatype.com/account, and give both of its parts as "
    "`maven-username` and RELEASEKIT_MAVEN_PASSWORD (input `maven-password`)."
)

State = Literal["PENDING", "VALIDATING", "VALIDATED", "PUBLISHING", "PUBLISHED", "FAILED"]


class DeploymentStatus(Struct, frozen=True, kw_only=True):
    """`words` are the portal's errors, and `elsewhere` the ids of the deployments that already have
    the same versions.
    """

    state: State
    name: str = ""
    words: str = ""
    elsewhere: frozenset[str] = frozenset()


class Deployments:
    """The portal answers for the deployments of the account whose credentials it gets."""

    def __init__(self, registry: Url, username: str, services: Services) -> None:
        url = require_safe(registry.text, name="maven-registry", insecure=services.insecure)
        self.server = RegistryClient(url, ANSWERS, services)
        self.url = str(self.server.url)
        self.login = make_login(username, services.credentials, registry)
        self._redact = services.credentials.redact

    async def check_token(self, package: Package) -> None:
        """Raises Denied for a user token that the portal does not know; nothing without one.
        https://central.sonatype.org/publish/publish-portal-api/
        """
        if not self.header:
            return
        group, _, artifact = package.id.name.partition(":")
        query = {"namespace": group, "name": artifact, "version": package.version}
        response = await self.server.read(
            self._endpoint("published").copy_with(params=query), self.header
        )
        if response.status_code == 401:
            raise Denied(f"{self.url} does not know the user token", hint=_GENERATE)

    @property
    def page(self) -> str:
        """The page where a person sees, publishes and drops deployments."""
        return str(self.server.at("publishing/deployments"))

    async def upload(self, bundle: IO[bytes], name: str, *, automatic: bool, what: str) -> str:
        """The id of the new deployment, after one attempt."""
        request = self.server.http.build_request(
            "POST",
            self._endpoint("upload"),
            params={"name": name, "publishingType": "AUTOMATIC" if automatic else "USER_MANAGED"},
            files={"bundle": ("bundle.zip", bundle, "application/octet-stream")},
            headers=self.header,
            timeout=_UPLOAD_TIMEOUT,
        )
        response = await self.server.send_once(request)
        if not self.server.accept(response, what):
            raise Rejected(f"{what}: HTTP {response.status_code}")
        identifier = response.content[:1000].decode("utf-8", "replace").strip()
        if not _is_id(identifier):
            raise Transient(
                f"{what}: {self.url} gave it no usable id",
                ambiguous=True,
                problem=Problem.STRANGE_ANSWER,
            )
        return identifier

    async def status(self, identifier: str) -> DeploymentStatus | None:
        """None for a deployment that the account does not have."""
        url = self._endpoint("status").copy_with(params={"id": identifier})
        response = await self.server.read(url, self.header, method="POST")
        if response.status_code == 404:
            return None
        answer = await self.server.document(response, f"deployment {identifier}")
        state = answer.get("deploymentState")
        match state:
            case None:
                return None
            case "PENDING" | "VALIDATING" | "VALIDATED" | "PUBLISHING" | "PUBLISHED" | "FAILED":
                said = _join_errors(answer.get("errors"))
                return DeploymentStatus(
                    state=state,
                    name=str(answer.get("deploymentName")),
                    words=one_line(self._redact(said), 600),
                    elsewhere=frozenset(_ELSEWHERE.findall(said)),
                )
            case _:
                shown = one_line(str(state), 100)
                raise Transient(
                    f"{self.url}: deployment {identifier} is in state {shown!r}",
                    problem=Problem.STRANGE_ANSWER,
                )

    async def publish(self, identifier: str) -> None:
        """Ask once for the publication of a deployment that is VALIDATED."""
        response = await self._send("POST", identifier)
        self.server.check(response, f"publishing deployment {identifier}", reading=False)

    async def drop(self, identifier: str) -> None:
        """Ask once to drop a deployment that is FAILED; one that is left behind does no harm."""
        with contextlib.suppress(PackageError):
            await self._send("DELETE", identifier)

    @property
    def header(self) -> dict[str, str]:
        return self.login.header("Bearer")

    async def _send(self, method: str, identifier: str) -> httpx.Response:
        request = self.server.http.build_request(
            method, self._endpoint(f"deployment/{identifier}"), headers=self.header
        )
        return await self.server.send_once(request)

    def _endpoint(self, path: str) -> httpx.URL:
        return self.server.at(f"api/v1/publisher/{path}")


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _join_errors(errors: object) -> str:
    found = errors.items() if isinstance(errors, dict) else ()
    return "; ".join(
        f"{purl}: {', '.join(map(str, said)) if isinstance(said, list) else said}"
        for purl, said in found
    )


class RecordedDeployment(Struct, frozen=True, kw_only=True):
    """`release` is the digest of all files, and `packages` are the digests of the files of each
    package, by its id. The portal publishes `automatic` ones without a request.
    """

    id: str
    release: str
    automatic: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)


class DeploymentRecord(Struct, frozen=True):
    """The deployments of the portal at the URL `portal`, in the state directory: the portal finds a
    deployment by its id alone, and does not tell which one a release has.
    """

    directory: Path
    portal: str

    def find_last(
        self, is_wanted: Callable[[RecordedDeployment], bool]
    ) -> RecordedDeployment | None:
        return next(filter(is_wanted, reversed(self._read())), None)

    def add(self, deployment: RecordedDeployment) -> None:
        kept = map(asdict, [*self._read(), deployment][-_KEPT:])
        rows = [{"deployment": each.pop("id"), **each} for each in kept]
        record = {"portal": self.portal, "deployments": rows}
        durable.replace(self.directory / RECORD_NAME, json.dumps(record).encode() + b"\n")

    def _read(self) -> list[RecordedDeployment]:
        """Empty for a file that is not a record, and for the record of another portal."""
        path = self.directory / RECORD_NAME
        try:
            record = parse_json(durable.read_file(path, max_bytes=_MAX_RECORD_BYTES))
        except (OSError, ValueError):
            return []
        if not isinstance(record, dict) or record.get("portal") != self.portal:
            return []
        # The record of an earlier version is that of one deployment.
        rows = record.get("deployments", [record]) or []
        found = []
        for row in rows:
            identifier = str(row.get("deployment") or "") if isinstance(row, dict) else ""
            if _is_id(identifier):
                deployment = RecordedDeployment(
                    id=identifier,
                    release=str(row.get("release")),
                    automatic=row.get("automatic") is True,
                    packages=table_in(row, "packages"),
                )
                found.append(deployment)
        return found


class Portal:
    """Implements `interface.Registry` and `interface.Deployment`. The repository where its releases
    become visible gets none of its credentials.
    """

    whole = True

    def __init__(
        self,
        config: PlanConfig,
        options: MavenOptions,
        services: Services,
        *,
        first_pause_s: float = 0.25,
    ) -> None:
        registry = config.registry_url("maven", default=CENTRAL)
        self.deployments = Deployments(registry, config.own(MavenInputs).username, services)
        self.url = self.deployments.url
        self.check_credentials = self.deployments.login.check
        self._state = config.state_directory
        self.record = DeploymentRecord(self._state, self.url)
        self._automatic = options.publishing == "automatic"
        self._first_pause_s = first_pause_s
        where = require_safe(
            options.repository or REPOSITORY, name="[maven] repository", insecure=services.insecure
        )
        reader = RepositoryReader(RegistryClient(where, ANSWERS, services), None, self._state)
        self.lookup, self.is_new = reader.lookup, reader.is_new

    async def find_rights(
        self,
        packages: Sequence[Package],
        *,
        proving: bool,  # noqa: ARG002
    ) -> RightsFound:
        """Whether the portal knows the user token. Whose namespaces these are it checks, as all
        else, before it publishes anything.
        """
        return await RightsFound.of_attempt(self.deployments.check_token(packages[0]), packages)

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """How much of what Maven Central counts a release takes."""
        if not (files := self._count_files(packages)):
            return ""
        return (
            f"Maven Central takes {RELEASES_IN_A_MONTH} releases, {FILES_IN_A_MONTH:,} files and "
            f"{size(BYTES_IN_A_MONTH)} of an organisation in a month, as a mean of three: this is "
            f"one release, with {files:,} or more files. How much is left: {_USAGE}"
        )

    def find_excess(self, packages: Sequence[PlannedPackage]) -> Mapping[PackageId, PackageWarning]:
        """All of a release that alone is more than Maven Central takes in the months it counts."""
        files, most = self._count_files(packages), _MONTHS * FILES_IN_A_MONTH
        if files <= most:
            return {}
        message = (
            f"this release has {files:,} files, and Maven Central takes {most:,} of an "
            f"organisation in {_MONTHS} months: ask for more first, "
            "https://central.sonatype.org/publish/maven-central-publishing-limits/"
        )
        warning = PackageWarning(name=WarningName.OVER_LIMIT, message=message)
        return {each.package.id: warning for each in packages if each.action in SENT}

    def _count_files(self, packages: Sequence[PlannedPackage]) -> int:
        """Those that Maven Central counts of a release, at least; 0 for any other server."""
        if self.url.rstrip("/") != CENTRAL:
            return 0
        sent = [each.package for each in packages if each.action in SENT]
        return _ENTRIES * sum(1 if each.packaging == "pom" else _FILES for each in sent)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        await self.deploy({package: artifacts})

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """Upload one bundle, await its checks, publish it; a later call continues an earlier one.

        Unless publishing is automatic, one request publishes all of it after the checks: a bundle
        whose answer was lost stays unpublished and does no harm.
        """
        begun = await self.begin(release, automatic=self._automatic)
        enough: tuple[State, ...] = () if begun.automatic else ("VALIDATED",)
        found, state = await self.wait_for(begun, *enough)
        if state == "VALIDATED":
            await self.deployments.publish(found.id)
            await self.wait_for(found)

    async def begin(
        self, release: Mapping[Package, Sequence[Artifact]], *, automatic: bool
    ) -> RecordedDeployment:
        """The deployment that an earlier call made of this release; or one that holds more and is
        being published, since its files appear one after the other; else a new one.
        """
        digest = digest_release(release)
        packages = {str(each.id): digest_release({each: release[each]}) for each in release}
        known = self.record.find_last(lambda each: each.release == digest) or self.record.find_last(
            lambda each: packages.items() <= each.packages.items()
        )
        if known is not None:
            status = await self.deployments.status(known.id)
            state = "FAILED" if status is None else status.state
            # A larger one that only waits would publish more than this release.
            if state in {"PUBLISHING", "PUBLISHED"} or (
                known.release == digest and state != "FAILED"
            ):
                return known
        names = ", ".join(sorted(str(package.id) for package in release))
        # A file without a name: a process that a build left behind cannot change it.
        with durable.unnamed(self._state) as file:
            await uncancellable(asyncio.to_thread(write_bundle, file, release))
            file.seek(0)
            identifier = await self.deployments.upload(
                file,
                _name_deployment(digest),
                automatic=automatic,
                what=f"the deployment of {one_line(names, 200)}",
            )
        made = RecordedDeployment(
            id=identifier, release=digest, automatic=automatic, packages=packages
        )
        self.record.add(made)
        return made

    async def wait_for(
        self, made: RecordedDeployment, *enough: State
    ) -> tuple[RecordedDeployment, State]:
        """Until the portal publishes `made`, or it is in one of the states; an older deployment
        with the same files takes its place.

        Raises Rejected with the portal's words, after dropping the deployment.
        """
        pauses = growing_pauses(self._first_pause_s, _LONGEST_PAUSE_S)
        asked = made
        while True:
            status = await self.deployments.status(asked.id)
            if status is None or status.state == "FAILED":
                twin = await self._find_twin(made, status) if asked is made else None
                await self.deployments.drop(asked.id)
                if twin is None:
                    raise self._make_rejection(status)
                asked = twin
                self.record.add(twin)
            elif status.state in {"PUBLISHING", "PUBLISHED", *enough}:
                return asked, status.state
            else:
                await asyncio.sleep(next(pauses))

    async def _find_twin(
        self, failed: RecordedDeployment, status: DeploymentStatus | None
    ) -> RecordedDeployment | None:
        """The deployment of the same files whose upload lost its answer, or its record."""
        if status is None or len(status.elsewhere) != 1:
            return None
        (identifier,) = status.elsewhere
        twin, name = await self.deployments.status(identifier), _name_deployment(failed.release)
        if twin is None or twin.state == "FAILED" or twin.name != name:
            return None
        return replace(failed, id=identifier)

    def _make_rejection(self, status: DeploymentStatus | None) -> Rejected:
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


def _name_deployment(release: str) -> str:
    """The name of a deployment at the portal, the same for the same files."""
    return f"releasekit-{release[:16]}"


def digest_release(release: Mapping[Package, Sequence[Artifact]]) -> str:
    """The digest of the paths and bytes of all files."""
    lines = [f"{artifact.sha256}  {path}\n" for path, artifact in _sort_files(release)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_bundle(into: IO[bytes], release: Mapping[Package, Sequence[Artifact]]) -> None:
    """Put the release with its checksums into a new zip; raises PackageError if it is too large, or
    a file is not as it was built. Blocks.
    """
    size = sum(artifact.size for _, artifact in _sort_files(release))
    if size > MAX_BYTES:
        raise PackageError(
            f"maven: the release has {size} bytes, and a bundle takes {MAX_BYTES}",
            hint="Publish it in parts, with `packages`.",
            problem=Problem.REFUSED,
        )
    # Jars are compressed already.
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as bundle:
        for location, artifact in _sort_files(release):
            with (
                open_artifact(artifact) as file,
                bundle.open(_make_zip_entry(location), "w") as entry,
            ):
                while chunk := file.read(_CHUNK):
                    entry.write(chunk)
            for algorithm in CHECKSUMS if layout.has_checksums(location.name) else ():
                beside = location.with_name(f"{location.name}.{algorithm}")
                bundle.writestr(_make_zip_entry(beside), artifact.digests[algorithm])


def _sort_files(
    release: Mapping[Package, Sequence[Artifact]],
) -> Iterator[tuple[PurePosixPath, Artifact]]:
    for package in sorted(release, key=lambda package: package.id):
        for artifact in sorted(release[package], key=lambda artifact: artifact.filename):
            yield layout.path_for(package, artifact.filename), artifact


def _make_zip_entry(path: PurePosixPath) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(str(path), _EPOCH)


class PortalStaging(Struct, frozen=True):
    """Implements `interface.Staging`: a release that was checked (USER_MANAGED) waits for a person.

    Every user who may upload may also publish, so that `auto` publishes.
    https://central.sonatype.org/publish/publish-portal-api/#uploading-a-deployment-bundle
    """

    portal: Portal
    mode: StageMode

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        """The whole release is one deployment, with one id."""
        begun = await self.portal.begin(release, automatic=False)
        waits, _ = await self.portal.wait_for(begun, "VALIDATED")
        return {package.id: self._at(waits.id) for package in release}

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        """A deployment that is being published counts as staged until it is visible."""
        digest = digest_release({package: artifacts})
        known = self.portal.record.find_last(
            lambda each: each.packages.get(str(package.id)) == digest
        )
        if known is None:
            # The portal finds no deployment by a version; only the state directory has the id.
            raise Denied(f"{package}: no deployment of {self.portal.url} is on record for it")
        status = await self.portal.deployments.status(known.id)
        if status is None or status.state == "FAILED":
            return None
        return self._at(known.id)

    def _at(self, identifier: str) -> Staged:
        return Staged(id=identifier, url=self.portal.deployments.page)
