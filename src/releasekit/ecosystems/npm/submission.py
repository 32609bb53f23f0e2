"""The one document that publishes a version or stages it, and the request that brings it.

https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from releasekit.aio import uncancellable
from releasekit.ecosystems.npm import document
from releasekit.ecosystems.npm.tarball import read_tarball
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.server import UPLOAD_TIMEOUT
from releasekit.host.artifact_reader import open_artifact

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from releasekit.ecosystems.npm.tarball import Contained
    from releasekit.ecosystems.shared.server import Server
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package

Command = Literal["publish", "stage"]


async def contained_in(artifact: Artifact, package: Package) -> Contained:
    """Raises PackageError for what is no tarball of an npm package."""
    return await uncancellable(asyncio.to_thread(_contained, package, artifact))


async def request(
    server: Server,
    package: Package,
    artifact: Artifact,
    contained: Contained,
    *,
    command: Command,
    token: Secret,
    tag: str,
    access: str,
) -> httpx.Request:
    """For `Server.send`. `access` is what the user says; else the package itself does."""
    name = package.id.name
    entry = document.version_entry(
        package,
        contained,
        tarball=str(server.at(f"{name}/-/{name}-{package.version}.tgz")),
        digests=artifact.digests,
    )
    access = access or _access(contained.manifest)
    body = await uncancellable(
        asyncio.to_thread(_body, package, entry, artifact, tag=tag, access=access)
    )
    staged = command == "stage"
    return server.http.build_request(
        "POST" if staged else "PUT",
        server.at(f"-/stage/package/{escaped(name)}" if staged else escaped(name)),
        content=body,
        headers={
            "Authorization": f"Bearer {token.reveal()}",
            "Content-Type": "application/json",
            "Accept": "*/*",
            "npm-command": command,
        },
        timeout=UPLOAD_TIMEOUT,
    )


def escaped(name: str) -> str:
    """As it stands in a URL: one segment, `@` as it is."""
    return name.replace("/", "%2f")


def _contained(package: Package, artifact: Artifact) -> Contained:
    with open_artifact(artifact) as file, file.raw() as raw:
        return read_tarball(raw, f"{package}: {artifact.filename}")


def _body(
    package: Package, entry: Mapping[str, object], artifact: Artifact, *, tag: str, access: str
) -> bytes:
    attested = None
    if artifact.attestation is not None:
        from releasekit.provenance.bundle import read  # noqa: PLC0415 - only what is signed

        attested = read(artifact.attestation)
    with open_artifact(artifact) as file:
        return document.request_body(
            package, entry, file.read(), tag=tag, access=access, attested=attested
        )


def _access(manifest: Mapping[str, object]) -> str:
    access = table_in(manifest, "publishConfig").get("access")
    return access if access in {"public", "restricted"} else ""
