"""Maven Central by its portal: one bundle for a whole release, checked and then published.

https://central.sonatype.org/publish/publish-portal-api/ and
https://central.sonatype.org/publish/publish-portal-upload/
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import zipfile
from typing import IO, TYPE_CHECKING, Final, Literal

import httpx

from releasekit.aio import growing_pauses, uncancellable
from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.maven.access import ANSWERS, Reader, login_for
from releasekit.ecosystems.shared.server import Server
from releasekit.errors import PackageError, Rejected, Transient
from releasekit.host import contents, durable
from releasekit.http.client import one_line
from releasekit.http.origins import require_safe
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import PurePosixPath

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven import Options
    from releasekit.model import Artifact, Package

CENTRAL: Final = "https://central.sonatype.com"
REPOSITORY: Final = "https://repo1.maven.org/maven2/"
# Where the state directory keeps the deployment of an unfinished run.
RECORD: Final = "maven-deployment.json"
_MAX_RECORD: Final = 64 * 1024
_LONGEST_PAUSE_S: Final = 10.0
_UPLOAD_TIMEOUT: Final = httpx.Timeout(60.0, connect=15.0, read=600.0, pool=None)

State = Literal["PENDING", "VALIDATING", "VALIDATED", "PUBLISHING", "PUBLISHED", "FAILED"]


class Portal:
    """Implements `interface.Registry` and `interface.Deployment`."""

    def __init__(
        self,
        url: str,
        options: Options,
        *,
        config: Config,
        services: Services,
        first_pause_s: float = 0.25,
    ) -> None:
        self._server = Server(require_safe(url, name="maven-registry"), ANSWERS, config, services)
        self.url = str(self._server.url)
        self._automatic = options.publishing == "automatic"
        self._login = login_for(config, services.credentials, url)
        self.check_credentials = self._login.check
        self._redact = services.credentials.redact
        self._state = config.state_directory
        self._first_pause_s = first_pause_s
        where = require_safe(options.repository or REPOSITORY, name="[maven] repository")
        # It is public, and the credentials are not for it.
        repository = Server(where, ANSWERS, config, services)
        self.lookup = Reader(repository, None, config.state_directory).lookup

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        await self.deploy({package: artifacts})

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """Upload one bundle, have it checked, publish it; a later call continues an unfinished one.

        Unless publishing is automatic, nothing is published before all of it has been checked, and
        then by one request: a bundle whose answer was lost stays unpublished and does no harm.
        """
        wanted = release_digest(release)
        known = self._recorded(wanted)
        if known and await self._status(known) in {"FAILED", None}:
            known = ""
        identifier = known or await self._upload(release, wanted)
        pauses, asked = growing_pauses(self._first_pause_s, _LONGEST_PAUSE_S), False
        while True:
            state = await self._status(identifier)
            if state in {"PUBLISHING", "PUBLISHED"}:
                return
            if state in {"FAILED", None}:
                raise await self._refused(identifier)
            if state == "VALIDATED" and not self._automatic and not asked:
                await self._publish(identifier)
                asked = True
            else:
                await asyncio.sleep(next(pauses))

    async def _upload(self, release: Mapping[Package, Sequence[Artifact]], digest: str) -> str:
        # A file without a name: what runs on of a build could change one between here and there.
        with tempfile.TemporaryFile(dir=self._state) as file:
            await uncancellable(asyncio.to_thread(write_bundle, file, release))
            file.seek(0)
            request = self._server.http.build_request(
                "POST",
                self._endpoint("upload"),
                params={
                    "name": f"releasekit-{digest[:16]}",
                    "publishingType": "AUTOMATIC" if self._automatic else "USER_MANAGED",
                },
                files={"bundle": ("bundle.zip", file, "application/octet-stream")},
                headers=self._login.header("Bearer"),
                timeout=_UPLOAD_TIMEOUT,
            )
            response = await self._server.send(request)
        names = ", ".join(sorted(str(package.id) for package in release))
        what = f"the deployment of {one_line(names, 200)}"
        if not self._server.accept(response, what):
            raise Rejected(f"{what}: HTTP {response.status_code}")
        identifier = response.content[:1000].decode("utf-8", "replace").strip()
        if not identifier or len(identifier) > 100 or not identifier.isprintable():
            raise Transient(f"{what}: {self.url} gave it no usable id", ambiguous=True)
        self._record(digest, identifier)
        return identifier

    async def _publish(self, identifier: str) -> None:
        response = await self._send("POST", identifier)
        self._server.explain(response, f"publishing deployment {identifier}", reading=False)

    async def _send(self, method: str, identifier: str) -> httpx.Response:
        request = self._server.http.build_request(
            method, self._endpoint(f"deployment/{identifier}"), headers=self._login.header("Bearer")
        )
        return await self._server.send(request)

    async def _status(self, identifier: str) -> State | None:
        """None for a deployment the portal does not know."""
        answer = await self._ask(identifier)
        state = answer.get("deploymentState") if answer else None
        match state:
            case "PENDING" | "VALIDATING" | "VALIDATED" | "PUBLISHING" | "PUBLISHED" | "FAILED":
                return state
            case None:
                return None
            case _:
                shown = one_line(str(state), 100)
                raise Transient(f"{self.url}: deployment {identifier} is in state {shown!r}")

    async def _ask(self, identifier: str) -> dict[str, object] | None:
        url = self._endpoint("status").copy_with(params={"id": identifier})
        response = await self._server.read(url, self._login.header("Bearer"), method="POST")
        if response.status_code == 404:
            return None
        return await self._server.document(response, f"deployment {identifier}")

    async def _refused(self, identifier: str) -> Rejected:
        """With the portal's own words; the deployment is deleted, as nothing can come of it."""
        answer = await self._ask(identifier) or {}
        errors = answer.get("errors")
        found = errors.items() if isinstance(errors, dict) else ()
        words = "; ".join(
            f"{purl}: {', '.join(map(str, said)) if isinstance(said, list) else said}"
            for purl, said in found
        )
        await self._send("DELETE", identifier)
        return Rejected(
            f"{self.url} refused the release: "
            f"{one_line(self._redact(words), 600) or 'it gives no reason'}",
            hint="Central wants sources, javadoc and signatures: [maven] sources, javadoc and "
            "sign = true. https://central.sonatype.org/publish/requirements/",
        )

    def _endpoint(self, path: str) -> httpx.URL:
        return self._server.at(f"api/v1/publisher/{path}")

    def _recorded(self, digest: str) -> str:
        """The deployment an earlier call made of this release; empty when there is none."""
        try:
            record = parse_json(durable.read_file(self._state / RECORD, max_bytes=_MAX_RECORD))
        except (OSError, ValueError):
            return ""
        if not isinstance(record, dict):
            return ""
        ours = (record.get("portal"), record.get("release")) == (self.url, digest)
        return str(record.get("deployment") or "") if ours else ""

    def _record(self, digest: str, identifier: str) -> None:
        record = {"portal": self.url, "release": digest, "deployment": identifier}
        durable.replace(self._state / RECORD, json.dumps(record).encode() + b"\n")


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
        )
    # Jars are compressed as they are.
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as bundle:
        for location, artifact in _files(release):
            with contents.opened(artifact) as file, bundle.open(_entry(location), "w") as entry:
                while chunk := file.read(_CHUNK):
                    entry.write(chunk)
            for algorithm in layout.ALGORITHMS:
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
