"""Who has signed, as the authority has written it into the certificate.

https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from releasekit.provenance.certificate import said_of_job
from releasekit.provenance.refused import NotVerified

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The job that signed: `workflow_uri` is the file of its workflow with the ref, which may be
    elsewhere than the file that has the steps; `repository` is a URL.
    """

    issuer: str
    repository: str
    commit: str
    ref: str
    workflow_uri: str
    run_url: str

    @classmethod
    def of(cls, certificate: bytes) -> Self:
        """Raises NotVerified for a certificate (DER) of anything but a job of a workflow."""
        said = said_of_job(certificate)
        return cls(
            issuer=_claim(said, 8, "issuer of its identity"),
            repository=_claim(said, 12, "repository"),
            commit=_claim(said, 13, "commit"),
            ref=said.get(14, ""),
            workflow_uri=_claim(said, 18, "workflow"),
            run_url=said.get(21, ""),
        )

    @property
    def workflow(self) -> str:
        """The path of the file, like .github/workflows/release.yml."""
        path, _, _ = self.workflow_uri.removeprefix(f"{self.repository}/").partition("@")
        return path


def _claim(said: Mapping[int, str], number: int, name: str) -> str:
    text = said.get(number, "")
    if not text:
        raise NotVerified(f"its certificate names no {name}: it is not that of a workflow's job")
    return text
