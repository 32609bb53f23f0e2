"""What a run would publish to, without the run; and files of it, signed."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, cast

import fakes
from javascript import Passing
from provenance import signing
from releasekit.attested import Attestation
from releasekit.ecosystems import ECOSYSTEMS, folders
from releasekit.fields import replace
from releasekit.host.ci import CI
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.provenance.job import Job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    import httpx

    from provenance.sigstore_double import Sigstore
    from releasekit.ecosystems.interface import Target
    from releasekit.host.process import Processes
    from releasekit.model import Artifact, Package


@contextlib.asynccontextmanager
async def opened(
    ecosystem: str,
    root: Path,
    place: str,
    environment: Mapping[str, str],
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    **changes: object,
) -> AsyncIterator[Target]:
    """What is found below `root` of an ecosystem, and where it goes, by `place`."""
    taken = snapshot(environment)
    values = {
        "registries": fakes.registries(**{ecosystem: place}) if place else {},
        "max_retries": 0,
        "retry_base_delay": 0.0,
        **changes,
    }
    config = fakes.config(root, **values)
    async with http_client(transport=transport) as http:
        credentials = Credentials(taken, mask=lambda _: None)
        processes = cast("Processes", Passing())
        services = fakes.make_services(config, http, processes, credentials)
        yield await folders.discovery(ECOSYSTEMS[ecosystem], config, services).discover(root)


async def attested(
    sigstore: Sigstore, target: Target, package: Package, *artifacts: Artifact
) -> list[Artifact]:
    """The files, each with what its registry wants attested of it."""
    statements = [wanted(sigstore, target, package, artifact) for artifact in artifacts]
    async with signing.signer(sigstore) as signer:
        return [
            holding(artifact, (await signer.sign(statement)).text)
            for artifact, statement in zip(artifacts, statements, strict=True)
        ]


def wanted(sigstore: Sigstore, target: Target, package: Package, artifact: Artifact) -> bytes:
    """The statement about a file."""
    assert target.attesting is not None
    return target.attesting.statement(package, artifact, job(sigstore))


def holding(artifact: Artifact, data: bytes) -> Artifact:
    """The file with any bytes as its bundle."""
    path = artifact.path.with_name(f"{artifact.filename}.sigstore.json")
    path.write_bytes(data)
    attestation = Attestation(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        log_index=0,
        log_url="https://rekor.example",
    )
    return replace(artifact, attestation=attestation)


def job(sigstore: Sigstore) -> Job:
    """As Sigstore would know it from now on."""
    environment = sigstore.environment
    return Job.from_token(
        sigstore.issuer.token("x"), server=CI.of(environment).server, environment=environment
    )
