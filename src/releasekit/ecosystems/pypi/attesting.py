"""What PyPI is told about where a file comes from, and from whom it takes that.

https://docs.pypi.org/attestations/producing-attestations/ and
https://packaging.python.org/en/latest/specifications/index-hosted-attestations/
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.attested import Obstacle
from releasekit.ecosystems.pypi.distribution import form_of

if TYPE_CHECKING:
    from releasekit.ecosystems.pypi.distribution import Form
    from releasekit.ecosystems.pypi.registry import PackageIndex
    from releasekit.host.contents import Contents
    from releasekit.model import Artifact, Package
    from releasekit.provenance.job import Job


@dataclass(frozen=True, slots=True)
class IndexAttesting:
    """Implements `interface.Attesting`; without an `index`, for a directory. `private` says that a
    Sigstore instance of the user's own signs.
    """

    index: PackageIndex | None = None
    private: bool = False

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:  # noqa: ARG002 (as all)
        # What others than PyPI ask for, nobody knows.
        if self.index is None or not self.index.is_pypi:
            return None
        if self.private:
            return Obstacle(
                condition="PyPI takes attestations of Sigstore's public instance only, and "
                "`trust-config` names another one",
                cure="Leave out `trust-config`, or set `attestations: off`.",
            )
        if not self.index.is_trusting:
            return Obstacle(
                condition="PyPI takes attestations with trusted publishing only, and this run "
                "does not use it",
                cure="Register this workflow as the project's trusted publisher, and leave out "
                "`pypi-token`: https://docs.pypi.org/trusted-publishers/adding-a-publisher/",
            )
        if job.is_reusable:
            return Obstacle(
                condition="PyPI takes no attestations from a reusable workflow",
                cure=f"Move the job that publishes into {job.workflow_name}, which calls it, and "
                "register that one as the trusted publisher.",
            )
        return None

    def wish(self, package: Package) -> bool | None:  # noqa: ARG002 (no manifest says anything)
        return None

    def statement(self, package: Package, artifact: Artifact, job: Job) -> bytes:  # noqa: ARG002
        """About the name that it is uploaded under, which PyPI compares as it reads file names:
        https://github.com/pypi/warehouse/issues/18128
        """
        from releasekit.provenance.statement import Subject, publish  # noqa: PLC0415 - likewise

        return publish(Subject(name=artifact.filename, digests={"sha256": artifact.sha256}))


def attested_form_of(contents: Contents) -> Form:
    """`form_of`, with the attestation of the file if there is one."""
    form = form_of(contents)
    attestation = contents.artifact.attestation
    if attestation is not None:
        from releasekit.provenance.bundle import read  # noqa: PLC0415 - only what is signed

        form["attestations"] = json.dumps([read(attestation).pep740()])
    return form
