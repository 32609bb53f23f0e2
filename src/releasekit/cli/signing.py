"""Who signs in this run, and what is signed about the release as a whole."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from releasekit.attested import RELEASE_STATEMENT, Obstacle, ReleaseStatement
from releasekit.config.inputs import FORGE_TOKEN
from releasekit.errors import PackageError
from releasekit.http.client import retry
from releasekit.http.identity import open_tokens
from releasekit.model import SENT
from releasekit.plan.provenance import with_provenance
from releasekit.provenance.conditions import NO_JOB, obstacle_here, signing_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.aio import Group
    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Artifact, Plan
    from releasekit.provenance.job import Job
    from releasekit.provenance.signer import Signer
    from releasekit.release.release import ReleaseRun
    from releasekit.state.seals import Seal

# Of the release statement, which may lie where builds can write.
_SEALS: Final = "provenance.seals"


async def plan_signing(
    plan: Plan,
    group: Group,
    config: PlanConfig,
    services: Services,
    targets: Mapping[str, Target],
) -> tuple[Plan, JobSigning | None]:
    """`plan` with what is going to be signed, and what signs it for as long as `group` is open.

    Raises PlanError where attestations are required that cannot be made, and Transient where the CI
    gives no answer.
    """
    uploading = config.is_uploading
    # What an earlier run has published may still lack its part of the release statement.
    wanted = any(each.action in SENT or (uploading and each.artifacts) for each in plan.packages)
    found: JobSigning | Obstacle = NO_JOB
    if wanted and config.attestations != "off":
        found = await _open_signing(group, config.trust_config, services)
    job = found if isinstance(found, Obstacle) else found.job
    made = with_provenance(plan, config.attestations, targets, job, uploading=uploading)
    return made, None if isinstance(found, Obstacle) else found


async def _open_signing(
    group: Group, trust_config: Path | None, services: Services
) -> JobSigning | Obstacle:
    tokens = open_tokens(services.ci, services.credentials, services.http)
    public = trust_config is None
    if obstacle := obstacle_here(services.ci, tokens, public=public):
        return obstacle
    from releasekit.provenance.instance import instance_at  # noqa: PLC0415 - only where one signs
    from releasekit.provenance.signer import Signer  # noqa: PLC0415

    signer = await group.enter(
        Signer(
            instance_at(trust_config),
            tokens,
            services.http,
            credentials=services.credentials,
            server=services.ci.server,
        )
    )
    job = await retry(partial(signing_job, signer, public=public), services.retries)
    return job if isinstance(job, Obstacle) else JobSigning(job, signer, services)


class JobSigning:
    """Implements `attesting.Signing`, for a job that has said who it is."""

    def __init__(self, job: Job, signer: Signer, services: Services) -> None:
        self.job = job
        self.log_url = signer.log_url
        self.sign = signer.sign
        self._services = services

    def signed(self, artifact: Artifact) -> bool:
        from releasekit.provenance.bundle import read  # noqa: PLC0415 - only where one resumes
        from releasekit.provenance.certificate import is_ours  # noqa: PLC0415

        if (attestation := artifact.attestation) is None:
            return False
        with contextlib.suppress(PackageError):
            bundle = read(attestation)
            # Where a person is sent to look follows from these two, which are not signed.
            told = attestation.log_url, attestation.log_index
            is_there = told == (self.log_url, bundle.log_index)
            return is_there and is_ours(bundle, artifact, self.job)
        return False

    async def statement(
        self, release: ReleaseRun, directory: Path, *, state_directory: Path, seal: Seal
    ) -> ReleaseStatement | None:
        """The release statement, in `directory`, sealed in the state directory; None where there is
        no file to tell of. A run that is stopped does not wait for it.
        """
        artifacts = await release.built()
        if not artifacts:
            return None
        path, seals = directory / RELEASE_STATEMENT, state_directory / _SEALS
        telling = asyncio.ensure_future(self._told(artifacts, path, seals, seal))
        stopping = asyncio.ensure_future(release.stopped.wait())
        try:
            await asyncio.wait({telling, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return telling.result() if telling.done() else None
        finally:
            telling.cancel()
            stopping.cancel()
            await asyncio.wait((telling, stopping))

    async def _told(
        self, artifacts: Sequence[Artifact], path: Path, seals: Path, seal: Seal
    ) -> ReleaseStatement:
        # Only where something is signed.
        from releasekit.http.github import GitHub  # noqa: PLC0415
        from releasekit.provenance.release_statement import (  # noqa: PLC0415
            send_to_github,
            sign_release,
        )

        services = self._services
        try:
            made, bundles = await sign_release(
                artifacts,
                self.job,
                self,
                path,
                seals=seals,
                seal=partial(seal.of_bytes, b"release statement, 1"),
            )
        except PackageError as error:
            note = f"The release statement is not signed: {error}. {error.hint}"
            return ReleaseStatement(path=path, subjects=0, attestations=(), note=note)
        if self.job.kind != "github":  # it is a file of the release
            return made
        github = GitHub(
            http=services.http,
            api=services.ci.api,
            token=services.credentials.get(FORGE_TOKEN.variable),
            redact=services.credentials.redact,
        )
        return await send_to_github(made, bundles, self.job, github)
