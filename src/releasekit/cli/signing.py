"""Who signs in this run, and what is signed about the release as a whole."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from releasekit.attested import Obstacle
from releasekit.errors import PackageError
from releasekit.http.identity import IdTokens
from releasekit.plan.provenance import SENT, with_provenance
from releasekit.provenance.conditions import NO_JOB, obstacle_here, signing_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.aio import Group
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Artifact, Plan
    from releasekit.provenance.instance import Instance
    from releasekit.provenance.job import Job
    from releasekit.provenance.signer import Signer
    from releasekit.provenance.trust import TrustedRoot
    from releasekit.release.attesting import Signing


async def with_signing(
    plan: Plan,
    group: Group,
    config: Config,
    services: Services,
    targets: Mapping[str, Target],
) -> tuple[Plan, Signing | None]:
    """`plan` with what is going to be signed, and what signs it for as long as `group` is open.

    Raises PlanError where attestations are required that cannot be made, and Transient, Denied or
    Rejected where GitHub does not say who this job is.
    """
    found = await _signing(plan, group, config, services)
    job = found if isinstance(found, Obstacle) else found.job
    made = with_provenance(plan, config, targets, job)
    return made, None if isinstance(found, Obstacle) else found


async def _signing(
    plan: Plan, group: Group, config: Config, services: Services
) -> JobSigning | Obstacle:
    # What an earlier run has published may still lack its part of the release statement.
    publishing = config.mode == "publish" and not config.dry_run
    wanted = any(each.action in SENT or (publishing and each.artifacts) for each in plan.packages)
    if config.attestations == "off" or not wanted:
        return NO_JOB
    tokens = IdTokens(services.credentials, services.http)
    if obstacle := obstacle_here(services.environment, tokens):
        return obstacle
    from releasekit.provenance.instance import instance_at  # noqa: PLC0415 - only where one signs
    from releasekit.provenance.signer import Signer  # noqa: PLC0415

    instance = instance_at(config.trust_config)
    server = services.environment.get("GITHUB_SERVER_URL", "https://github.com")
    signer = await group.enter(
        Signer(instance, tokens, services.http, credentials=services.credentials, server=server)
    )
    job = await signing_job(signer, public=config.trust_config is None)
    return job if isinstance(job, Obstacle) else JobSigning(job, signer, instance)


class JobSigning:
    """Implements `attesting.Signing`, for a job that has said who it is."""

    def __init__(self, job: Job, signer: Signer, instance: Instance) -> None:
        self.job = job
        self.log_url = signer.log_url
        self.sign = signer.sign
        self._instance = instance
        self._trust: TrustedRoot | None = None

    def signed(self, artifact: Artifact) -> bool:
        from releasekit.provenance.bundle import read  # noqa: PLC0415 - only where one resumes
        from releasekit.provenance.checking import is_ours  # noqa: PLC0415
        from releasekit.provenance.trust import trust_of  # noqa: PLC0415

        if artifact.attestation is None:
            return False
        self._trust = self._trust or trust_of(self._instance.trusted_root)
        with contextlib.suppress(PackageError):
            return is_ours(read(artifact.attestation), artifact, self.job, self._trust)
        return False
