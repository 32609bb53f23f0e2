"""Whether anything can be signed here at all: what kind of job this is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.attested import Obstacle
from releasekit.errors import Rejected
from releasekit.http.identity import GITHUB, GITLAB, SIGSTORE, describe_places, is_known

if TYPE_CHECKING:
    from releasekit.host.ci import CI
    from releasekit.http.identity import IdTokens
    from releasekit.provenance.job import Job
    from releasekit.provenance.signer import Signer

NO_JOB: Final = Obstacle(
    condition="this is not a job of GitHub Actions or GitLab CI/CD, which would have an identity "
    "to sign with",
    cure="Publish from one.",
)
# Sigstore knows more, but no registry here takes anything of their jobs.
_ISSUERS: Final = (GITHUB, GITLAB)


def obstacle_here(ci: CI, tokens: IdTokens, *, public: bool) -> Obstacle | None:
    """What keeps this process from asking who it is; None where it may ask. `public` says that
    Sigstore's public instance is to know it.
    """
    if ci.kind == "other":
        return NO_JOB
    if ci.kind == "gitea" and (obstacle := tokens.find_obstacle(SIGSTORE)):
        return obstacle  # whichever instance is asked
    if public and not is_known(tokens.find_issuer((SIGSTORE,)), _ISSUERS):
        return Obstacle(
            condition=f"Sigstore's public instance knows jobs of {describe_places(_ISSUERS)}, and "
            f"this is {ci.host}",
            cure="Name an instance that knows it with `trust-config`, or set `attestations: off`.",
        )
    return tokens.find_obstacle(SIGSTORE)


async def signing_job(signer: Signer, *, public: bool) -> Job | Obstacle:
    """The job that `signer` signs for, or why it must not. `public` says that anybody can read what
    the log has.

    Raises Transient where the CI gives no answer.
    """
    try:
        job = await signer.job()
    except Rejected as error:  # Denied is one
        return Obstacle(
            condition=f"the CI does not say who this job is: {error}",
            cure="Correct that, or set `attestations: off`.",
        )
    if not public:
        return job
    if job.visibility != "public":
        return Obstacle(
            condition=f"{job.repository} is {job.visibility or 'not public'}, and the public log "
            "would show its name, its commits and its workflow",
            cure="Name a private instance with `trust-config`, or set `attestations: off`.",
        )
    return job
