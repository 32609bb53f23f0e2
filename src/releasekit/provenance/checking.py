"""Whether an attestation is to be believed: signed with a certificate that a trusted authority has
issued to a job of a workflow, while it was valid, and entered into a trusted log. Takes no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from releasekit.host.origin import PULL_REQUEST_EVENTS
from releasekit.provenance.claims import Claims
from releasekit.provenance.issued import check_issued
from releasekit.provenance.keys import is_signed_by
from releasekit.provenance.logged import Entry, check_logged
from releasekit.provenance.statement import ABOUT_ORIGIN, pae
from releasekit.provenance.trust import NotVerified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Artifact
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.job import Job
    from releasekit.provenance.statement import Subject
    from releasekit.provenance.trust import TrustedRoot

_UNREADABLE: Final = (
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    UnsupportedAlgorithm,
)
_OF_NPM: Final = "pkg:npm/"
# Of whom each identity of a job at github.com comes.
ISSUER: Final = "https://token.actions.githubusercontent.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a bundle says, and who says so; the log has it as entry `log_index`."""

    claims: Claims
    predicate_type: str
    subjects: tuple[Subject, ...]
    log_index: int
    log_url: str
    integrated_s: int

    def covers(self, filename: str, digests: Mapping[str, str]) -> bool:
        """Whether a file of this name, with these digests, is one of the subjects."""
        return any(covers(each, filename, digests) for each in self.subjects)


def covers(subject: Subject, filename: str, digests: Mapping[str, str]) -> bool:
    """Whether it is that file."""
    known = subject.digests.keys() & digests.keys()
    same = bool(known) and all(subject.digests[name] == digests[name] for name in known)
    return same and is_called(subject, filename)


def is_called(subject: Subject, filename: str) -> bool:
    """What is about a release may name the directory too, to tell files of one name apart."""
    if subject.name.startswith(_OF_NPM):
        return filename in _tarballs(subject.name)
    return subject.name == filename or subject.name.endswith(f"/{filename}")


def _tarballs(package_url: str) -> tuple[str, str]:
    """What the package is called as a file, by npm's registry and by `npm pack`."""
    package, _, version = unquote(package_url.removeprefix(_OF_NPM)).rpartition("@")
    packed = package.removeprefix("@").replace("/", "-")
    return f"{package.rpartition('/')[2]}-{version}.tgz", f"{packed}-{version}.tgz"


def check(bundle: Bundle, trust: TrustedRoot) -> Verified:
    """Raises NotVerified with the first thing that is wrong."""
    try:
        return _checked(bundle, trust)
    except NotVerified:
        raise
    except (ValueError, *_UNREADABLE) as error:
        raise NotVerified(f"its bundle cannot be read: {error}") from error


def _checked(bundle: Bundle, trust: TrustedRoot) -> Verified:
    entry = Entry.of(bundle.entry)
    certificate = x509.load_der_x509_certificate(bundle.certificate)
    _check_signature(bundle, certificate, entry)
    check_issued(certificate, entry.moment, trust)
    log = check_logged(entry, trust)
    if bundle.predicate_type not in ABOUT_ORIGIN:
        raise NotVerified(
            f"what is signed is {bundle.predicate_type[:200]}, which does not say where a file "
            "comes from"
        )
    return Verified(
        claims=Claims.of(bundle.certificate),
        predicate_type=bundle.predicate_type,
        subjects=bundle.subjects,
        log_index=entry.index,
        log_url=log.url,
        integrated_s=entry.integrated_s,
    )


def _check_signature(bundle: Bundle, certificate: x509.Certificate, entry: Entry) -> None:
    """By the certificate's key, over the statement; and the log's entry is about these three."""
    others = entry.others_than(bundle.payload, bundle.signature, bundle.certificate)
    if not is_signed_by(certificate.public_key(), bundle.signature, pae(bundle.payload)):
        if len(others) == 1:
            raise NotVerified(f"its {others[0]} was changed after the log took the entry")
        raise NotVerified("its signature is not one of the certificate's key over the statement")
    if others:
        raise NotVerified(f"its log entry is about another {' and '.join(others)}")


def is_ours(bundle: Bundle, artifact: Artifact, job: Job, trust: TrustedRoot) -> bool:
    """Whether it can be used again: sound, about this very file, by this job's workflow.
    Of several files, no registry takes it.
    """
    try:
        verified = check(bundle, trust)
    except NotVerified:
        return False
    return (
        len(verified.subjects) == 1
        and verified.covers(artifact.filename, artifact.digests)
        and verified.claims.is_of(job)
    )


def require_signer(
    verified: Verified, repository: str, workflow: str = "", *, ref: str = "", event: str = ""
) -> None:
    """Raises NotVerified unless a job at github.com signed, of `repository` (OWNER/NAME) and, where
    they are named, of that workflow (the name of its file), ref and event. The jobs of a pull
    request count only where their ref or their event is named.
    """
    claims = verified.claims
    if claims.issuer != ISSUER:
        raise NotVerified(f"its signer has its identity from {claims.issuer}, not from {ISSUER}")
    # GitHub keeps no two names that differ in capitals alone, and lets nobody write others.
    if claims.repository.lower() != f"https://github.com/{repository.lower()}":
        signed_in = claims.repository.removeprefix("https://github.com/")
        raise NotVerified(f"it was signed in {signed_in}, not in {repository}")
    if workflow and claims.workflow != f".github/workflows/{workflow}":
        raise NotVerified(f"it was signed by the workflow {claims.workflow}, not by {workflow}")
    if ref and claims.ref != ref:
        raise NotVerified(f"it was signed at {claims.ref} (event {claims.event}), not at {ref}")
    if event and claims.event != event:
        raise NotVerified(f"it was signed by the event {claims.event}, not by {event}")
    if claims.event not in PULL_REQUEST_EVENTS or event:
        return
    # The ref of pull_request_target is the branch that the pull request wants to be merged into,
    # which a push to that branch has too.
    shared = claims.event == "pull_request_target"
    if shared or not ref:
        write = f"--event {claims.event}" if shared else f"--ref {claims.ref}"
        raise NotVerified(
            f"it was signed for a pull request, by the event {claims.event} at {claims.ref}; "
            f"write {write} if that is meant"
        )
