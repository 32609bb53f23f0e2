"""Who has signed, as the authority has written it into the certificate.

https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from cryptography import x509

from releasekit.provenance.refused import NotVerified

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARC: Final = "1.3.6.1.4.1.57264.1."
_UTF8_STRING: Final = 0x0C


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
    def of(cls, certificate: x509.Certificate) -> Self:
        """Raises NotVerified for a certificate of anything but a job of a workflow."""
        found = {
            each.oid.dotted_string.removeprefix(_ARC): _text(each.value.value)
            for each in certificate.extensions
            if each.oid.dotted_string.startswith(_ARC)
            and isinstance(each.value, x509.UnrecognizedExtension)
        }
        return cls(
            issuer=_claim(found, "8", "issuer of its identity"),
            repository=_claim(found, "12", "repository"),
            commit=_claim(found, "13", "commit"),
            ref=found.get("14", ""),
            workflow_uri=_claim(found, "18", "workflow"),
            run_url=found.get("21", ""),
        )

    @property
    def workflow(self) -> str:
        """The path of the file, like .github/workflows/release.yml."""
        path, _, _ = self.workflow_uri.removeprefix(f"{self.repository}/").partition("@")
        return path


def _claim(found: Mapping[str, str], number: str, name: str) -> str:
    text = found.get(number, "")
    if not text:
        raise NotVerified(f"its certificate names no {name}: it is not that of a workflow's job")
    return text


def _text(der: bytes) -> str:
    """Of a UTF8String; empty for anything else, as the older extensions are."""
    if len(der) < 2 or der[0] != _UTF8_STRING:
        return ""
    size, start = der[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[2:start], "big")
    if len(der) != start + size:
        return ""
    return der[start:].decode("utf-8", "replace")
