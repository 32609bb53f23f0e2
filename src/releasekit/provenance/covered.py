"""Files held against the attestations about them."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.host import durable
from releasekit.provenance.checking import Verified, check, is_called, require_signer
from releasekit.provenance.trust import NotVerified

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.trust import TrustedRoot

ALGORITHMS: Final = ("sha256", "sha512")
_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Signers:
    """Who is believed: jobs of one repository and, where these say so, of one workflow, ref and
    event.
    """

    trust: TrustedRoot
    repository: str
    workflow: str = ""
    ref: str = ""
    event: str = ""

    def verified(self, bundle: Bundle) -> Verified:
        """Raises NotVerified."""
        verified = check(bundle, self.trust)
        require_signer(verified, self.repository, self.workflow, ref=self.ref, event=self.event)
        return verified


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one file: `verified` is None where `reason` says why it is not."""

    name: str
    sha256: str = ""
    verified: Verified | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """What is said about several files: `sound` is to be believed, and each of `broken` not, for a
    reason.
    """

    sound: tuple[Verified, ...] = ()
    broken: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    """`name` may have directories in it. `bundles` lie beside it, and `broken` says what is wrong
    with something there. `sums` are what files of checksums say, by their names.
    """

    name: str
    digests: Mapping[str, str]
    bundles: tuple[Bundle, ...] = ()
    broken: str = ""
    sums: Mapping[str, str] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        return self.name.rpartition("/")[2]


def outcome(file: File, signers: Signers, release: Release) -> Outcome:
    """What is beside the file has to be sound, each of it, and about the file; what is about the
    whole release counts where nothing is beside it.
    """
    sha256 = file.digests["sha256"]
    try:
        return Outcome(file.name, sha256, _verified(file, signers, release))
    except NotVerified as error:
        return Outcome(file.name, sha256, reason=str(error))


def _verified(file: File, signers: Signers, release: Release) -> Verified:
    if file.broken:
        raise NotVerified(file.broken)
    for where, sha256 in file.sums.items():
        if sha256 != file.digests["sha256"]:
            raise NotVerified(f"its sha256 is {file.digests['sha256']}, and {where} says {sha256}")
    beside = [signers.verified(each) for each in file.bundles]
    for each in beside:
        if not each.covers(file.filename, file.digests):
            raise NotVerified(_other(each, file, its_own=True) or _foreign(each))
    about = [*beside, *(each for each in release.sound if each.covers(file.filename, file.digests))]
    if about:
        return about[0]
    if release.broken:
        raise NotVerified(f"{release.broken[0].name}: {release.broken[0].reason}")
    if not release.sound:
        raise NotVerified("there is no attestation about it")
    others = filter(None, (_other(each, file) for each in release.sound))
    raise NotVerified(next(others, "") or _foreign(*release.sound))


def _other(verified: Verified, file: File, *, its_own: bool = False) -> str:
    """Whether something else was signed under its name; what is kept for this file alone,
    `its_own`, may call it by the URL of its package.
    """
    for subject in verified.subjects:
        by_package = its_own and subject.name.startswith("pkg:")
        if not (by_package or is_called(subject, file.filename)):
            continue
        known = [name for name in ALGORITHMS if subject.digests.get(name)]
        if not known:
            return "what is signed has none of its digests by SHA-256 or SHA-512"
        for name in known:
            if (signed := subject.digests[name]) != file.digests[name]:
                return f"its {name} is {file.digests[name]}, and {signed[:128]} was signed"
    return ""


def _foreign(*about: Verified) -> str:
    subjects = [subject for each in about for subject in each.subjects]
    more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
    return f"what was signed is {subjects[0].name[:200]}{more}, not this file"


def resolved(path: Path) -> Path:
    """Without links; blocks. Raises OSError, for a loop of links too."""
    try:
        return path.resolve()
    except RuntimeError as error:  # before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def digests_of(path: Path) -> dict[str, str]:
    """Blocks; raises OSError."""
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in ALGORITHMS}
    with durable.reading(resolved(path)) as file:
        while piece := file.read(_PIECE_BYTES):
            for each in hashes.values():
                each.update(piece)
    return {name: each.hexdigest() for name, each in hashes.items()}


def unnamed(release: Release, files: Iterable[File]) -> int:
    """How many subjects of the release are not among these files."""
    digests = {digest for file in files for digest in file.digests.values()}
    subjects = [subject for each in release.sound for subject in each.subjects]
    return sum(not digests & set(subject.digests.values()) for subject in subjects)
