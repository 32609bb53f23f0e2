"""Releases that wait at the portal (USER_MANAGED): checked, and published by a person.

https://central.sonatype.org/publish/publish-portal-api/#uploading-a-deployment-bundle
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.ecosystems.maven.portal import release_digest
from releasekit.errors import Denied
from releasekit.model import Staged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.maven.portal import Portal
    from releasekit.model import Artifact, Package, PackageId


@dataclass(frozen=True, slots=True)
class PortalStaging:
    """Implements `interface.Staging`. Whoever may upload may publish as well, so that nothing is
    ever staged for want of that: `auto` publishes.
    """

    portal: Portal
    mode: StageMode

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        """All of it is one deployment, with one id."""
        begun = await self.portal.begun(release, automatic=False)
        waits, _ = await self.portal.settled(begun, "VALIDATED")
        return {package.id: self._at(waits.id) for package in release}

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        """One that is being published counts as staged, until it is visible."""
        digest = release_digest({package: artifacts})
        known = self.portal.record.of_package(str(package.id), digest)
        if known is None:
            # The portal tells nothing of a version; only the state directory knows the id.
            raise Denied(f"{package}: no deployment of {self.portal.url} is on record for it")
        status = await self.portal.deployments.status(known.id)
        if status is None or status.state == "FAILED":
            return None
        return self._at(known.id)

    def _at(self, identifier: str) -> Staged:
        return Staged(id=identifier, url=self.portal.deployments.page)
