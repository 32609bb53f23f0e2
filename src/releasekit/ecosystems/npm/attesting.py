"""What npm learns about where a tarball comes from, and when its registry takes that.

https://docs.npmjs.com/generating-provenance-statements and
https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.attested import Obstacle
from releasekit.ecosystems.npm.manifest import Hosted
from releasekit.text.escape import clip, redact_urls, visible

if TYPE_CHECKING:
    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.registry import NpmRegistry
    from releasekit.model import Artifact, Package
    from releasekit.provenance.job import Job

_MAX_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class NpmAttesting:
    """Implements `interface.Attesting`; without a `registry`, for a directory. `private` says that
    the user's own Sigstore instance signs.
    """

    found: Found
    registry: NpmRegistry | None = None
    private: bool = False

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:
        # What registries other than npmjs.com ask for is unknown.
        if self.registry is None or not self.registry.is_npmjs:
            return None
        if self.private:
            return Obstacle(
                condition="npm takes provenance of Sigstore's public instance only, and "
                "`trust-config` names another one",
                cure="Leave out `trust-config`, or set `attestations: off`.",
            )
        return (
            _find_job_obstacle(job)
            or self._find_access_obstacle(package, self.registry)
            or self._find_repository_obstacle(package, job)
        )

    def wish(self, package: Package) -> bool | None:
        """https://docs.npmjs.com/cli/using-npm/config#provenance"""
        wish = self.found.by_name[package.id.name].publish_config.get("provenance")
        return wish if isinstance(wish, bool) else None

    def statement(self, package: Package, artifact: Artifact, job: Job) -> bytes:
        from releasekit.provenance.statement import (  # noqa: PLC0415 - only where one signs
            Subject,
            slsa,
        )

        # As npm's clients expect it: https://github.com/npm/npm-package-arg (toPurl)
        name = f"pkg:npm/{package.id.name.replace('@', '%40')}@{package.version}"
        return slsa((Subject(name=name, digests={"sha512": artifact.digests["sha512"]}),), job)

    def _find_access_obstacle(self, package: Package, registry: NpmRegistry) -> Obstacle | None:
        """A package without a scope is always public, and so is one that everybody can see.

        npm asks the registry about others, and takes a new one for private:
        https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
        """
        said = self.found.by_name[package.id.name].publish_config.get("access")
        access = registry.access or (said if isinstance(said, str) else "")
        if access == "restricted":
            return Obstacle(
                condition="npm takes provenance of public packages only, and its access is "
                "`restricted`",
                cure="Set `npm-access: public`, or publishConfig.access in its package.json, where "
                "everybody may see it; or `attestations: off`.",
            )
        scoped = package.id.name.startswith("@")
        if access == "public" or not scoped or registry.is_shown_to_all(package.id):
            return None
        return Obstacle(
            condition="npm takes provenance of public packages only, and nothing says that it is "
            "public",
            cure='Set `npm-access: public`, or publishConfig.access to "public" in its '
            "package.json.",
        )

    def _find_repository_obstacle(self, package: Package, job: Job) -> Obstacle | None:
        url = self.found.by_name[package.id.name].repository
        hosted = Hosted.parse(url)
        # Capitals count, though not for GitHub: https://github.com/npm/documentation/pull/1123
        if hosted is not None and hosted.page == job.repository_url:
            return None
        shown = clip(visible(redact_urls(url)), _MAX_SHOWN)
        said = f"is {shown!r}, not this repository" if url else "is missing"
        return Obstacle(
            condition=f"`repository.url` in its package.json {said}",
            cure=f'Set it to "git+{job.repository_url}.git", which npm compares with where the job '
            "runs, capitals included.",
        )


def _find_job_obstacle(job: Job) -> Obstacle | None:
    if job.runner_environment != "github-hosted":
        return Obstacle(
            condition="npm takes provenance from GitHub-hosted runners only, and this job runs on "
            "another one",
            cure="Move the job that publishes to one of those, as `runs-on: ubuntu-latest` is.",
        )
    if job.visibility != "public":
        return Obstacle(
            condition="npm takes provenance from public repositories only, and this one is "
            f"{clip(visible(job.visibility), _MAX_SHOWN)}",
            cure="Publish from a public repository, or set `attestations: off`.",
        )
    return None
