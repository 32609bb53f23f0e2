"""Files held against the attestations about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.host import durable
from releasekit.provenance.checking import Verified, check, require_signer
from releasekit.provenance.refused import NotVerified

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.trust import TrustedRoot

ALGORITHMS: Final = ("sha256", "sha512")
_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Signers:
    """Who is believed: jobs of one repository and, where `workflow` says so, of one workflow."""

    trust: TrustedRoot
    repository: str
    workflow: str = ""

    def verified(self, bundle: Bundle) -> Verified:
        """Raises NotVerified."""
        verified = check(bundle, self.trust)
        require_signer(verified, self.repository, self.workflow)
        return verified


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one file: `verified` is None where `reason` says why it is not."""

    name: str
    sha256: str = ""
    verified: Verified | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """`names` are those by which a statement may call it, the first of which is shown."""

    names: tuple[str, ...]
    digests: Mapping[str, str]
    bundles: tuple[Bundle, ...] = ()
    broken: str = ""
    sums: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.names[0]


def outcome(file: File, signers: Signers, release: Sequence[Verified] = ()) -> Outcome:
    """What is beside the file has to be sound, each of it, and about the file; what is about the
    whole release counts where nothing is beside it.
    """
    sha256 = file.digests["sha256"]
    try:
        return Outcome(file.name, sha256, _verified(file, signers, release))
    except NotVerified as error:
        return Outcome(file.name, sha256, reason=str(error))


def _verified(file: File, signers: Signers, release: Sequence[Verified]) -> Verified:
    if file.broken:
        raise NotVerified(file.broken)
    for where, sha256 in file.sums.items():
        if sha256 != file.digests["sha256"]:
            raise NotVerified(f"its sha256 is {file.digests['sha256']}, and {where} says {sha256}")
    beside = [signers.verified(each) for each in file.bundles]
    for each in beside:
        if not _is_about(each, file):
            raise NotVerified(_other(each, file))
    about = [*beside, *(each for each in release if _is_about(each, file))]
    if about:
        return about[0]
    for each in release:
        if file.names[0] in {subject.name for subject in each.subjects}:
            raise NotVerified(_other(each, file))
    if release:
        raise NotVerified("the release statement does not name it")
    raise NotVerified("there is no attestation about it")


def _is_about(verified: Verified, file: File) -> bool:
    return any(verified.covers(name, file.digests) for name in file.names)


def _other(verified: Verified, file: File) -> str:
    """Why a statement that should be about it is not."""
    for subject in verified.subjects:
        if subject.name in file.names:
            for name, digest in subject.digests.items():
                if file.digests.get(name, digest) != digest:
                    return f"its {name} is {file.digests[name]}, and {digest} was signed"
    signed = verified.subjects[0].name[:200]
    more = f" and {len(verified.subjects) - 1} more" if len(verified.subjects) > 1 else ""
    return f"its attestation is about {signed}{more}, with other digests or another name"


def digests_of(path: Path) -> dict[str, str]:
    """Blocks; raises OSError."""
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in ALGORITHMS}
    with durable.reading(path.resolve()) as file:
        while piece := file.read(_PIECE_BYTES):
            for each in hashes.values():
                each.update(piece)
    return {name: each.hexdigest() for name, each in hashes.items()}


def unnamed(release: Iterable[Verified], files: Iterable[File]) -> int:
    """How many subjects of the release are not among these files."""
    known = [set(file.digests.values()) for file in files]
    digests = set().union(*known)
    subjects = [subject for each in release for subject in each.subjects]
    return sum(not digests & set(subject.digests.values()) for subject in subjects)
