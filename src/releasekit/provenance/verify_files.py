"""Files held against the attestations about them; `verifier` says which of these are sound."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from msgspec import Struct, field
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)

from releasekit.attested import ATTACHED_STATEMENT, RELEASE_STATEMENT
from releasekit.errors import ConfigError, PathError
from releasekit.host import durable
from releasekit.host.ci import PULL_REQUEST_EVENTS
from releasekit.host.files import read_text
from releasekit.host.forges import SERVER
from releasekit.problems import Problem
from releasekit.provenance.bundle import MEDIA_TYPE, Bundle
from releasekit.provenance.certificate import Claims, NotVerified
from releasekit.provenance.statement import (
    ABOUT_ORIGIN,
    PAYLOAD_TYPE,
    PUBLISH,
    Subject,
    canonical,
)
from releasekit.text.json_text import count_values, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import httpx


ALGORITHMS: Final = ("sha256", "sha512")
_PIECE_BYTES: Final = 1024 * 1024


class Verified(Struct, frozen=True, kw_only=True):
    """What a bundle says, and who says so; the log has it as entry `log_index`."""

    claims: Claims
    subjects: tuple[Subject, ...]
    log_index: int

    def covers(self, filename: str, digests: Mapping[str, str]) -> bool:
        """Whether a file of this name, with these digests, is one of the subjects."""
        return any(each.covers(filename, digests) for each in self.subjects)


class Signers(Struct, frozen=True):
    """Who is believed: jobs of one `repository` (OWNER/NAME at github.com, or the page of one at a
    GitLab) and, where these say so, of one workflow (the name of its file, or of GitLab the path),
    ref and event. `check` says which job has signed a bundle, and raises NotVerified for one that
    is not sound.
    """

    check: Callable[[Bundle], Claims]
    repository: str
    workflow: str = ""
    ref: str = ""
    event: str = ""

    @property
    def is_at_github(self) -> bool:
        return "://" not in self.repository

    @property
    def page(self) -> str:
        return f"{SERVER}/{self.repository}" if self.is_at_github else self.repository

    def verify(self, bundle: Bundle) -> Verified:
        """Raises NotVerified."""
        claims = self.check(bundle)
        if bundle.predicate_type not in ABOUT_ORIGIN:
            raise NotVerified(
                f"what is signed is {bundle.predicate_type[:200]}, which does not say where a file "
                "comes from"
            )
        self._require(claims)
        return Verified(claims=claims, subjects=bundle.subjects, log_index=bundle.log_index)

    def _require(self, claims: Claims) -> None:
        """The jobs of a pull request count only where their ref or their event is named."""
        # Names that differ in capitals alone are one repository.
        if claims.repository.lower() != self.page.lower():
            signed_in = claims.repository.removeprefix(f"{SERVER}/")
            raise NotVerified(f"it was signed in {signed_in}, not in {self.repository}")
        folder = ".github/workflows/" if self.is_at_github else ""
        if self.workflow and claims.workflow != f"{folder}{self.workflow}":
            raise NotVerified(
                f"it was signed by the workflow {claims.workflow}, not by {self.workflow}"
            )
        if self.ref and claims.ref != self.ref:
            raise NotVerified(
                f"it was signed at {claims.ref} (event {claims.event}), not at {self.ref}"
            )
        if self.event and claims.event != self.event:
            raise NotVerified(f"it was signed by the event {claims.event}, not by {self.event}")
        if claims.event not in PULL_REQUEST_EVENTS or self.event:
            return
        # The ref of pull_request_target is the branch that the pull request wants to be merged
        # into, which a push to that branch has too; that of a merge request, in the certificate,
        # is the branch's name, which may be a fork's.
        shared = claims.event == "pull_request_target" or not self.is_at_github
        if shared or not self.ref:
            write = f"--event {claims.event}" if shared else f"--ref {claims.ref}"
            raise NotVerified(
                f"it was signed for a pull request, by the event {claims.event} at {claims.ref}; "
                f"write {write} if that is meant"
            )


class FileVerdict(Struct, frozen=True):
    """`verified` is None where `reason` says why the file is not."""

    name: str
    sha256: str = ""
    verified: Verified | None = None
    reason: str = ""


class ReleaseStatements(Struct, frozen=True):
    """The statements about several files: `sound` ones are to be believed, `broken` ones are not,
    each for a reason.
    """

    sound: tuple[Verified, ...] = ()
    broken: tuple[FileVerdict, ...] = ()


class LocalFile(Struct, frozen=True):
    """A file to verify. `name` may have directories in it. `bundles` lie beside it, and `broken`
    says what is wrong with something there. `sums` are what files of checksums say, by their names.
    """

    name: str
    digests: Mapping[str, str]
    bundles: tuple[Bundle, ...] = ()
    broken: str = ""
    sums: Mapping[str, str] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        return self.name.rpartition("/")[2]


def verify_file(file: LocalFile, signers: Signers, release: ReleaseStatements) -> FileVerdict:
    """Everything beside the file has to be sound and about the file. Statements about the whole
    release count if nothing is beside it.
    """
    sha256 = file.digests["sha256"]
    try:
        return FileVerdict(file.name, sha256, _verify(file, signers, release))
    except NotVerified as error:
        return FileVerdict(file.name, sha256, reason=str(error))


def _verify(file: LocalFile, signers: Signers, release: ReleaseStatements) -> Verified:
    if file.broken:
        raise NotVerified(file.broken)
    for where, sha256 in file.sums.items():
        if sha256 != file.digests["sha256"]:
            raise NotVerified(f"its sha256 is {file.digests['sha256']}, and {where} says {sha256}")
    beside = [signers.verify(each) for each in file.bundles]
    for each in beside:
        if not each.covers(file.filename, file.digests):
            raise NotVerified(_explain_mismatch(each, file, its_own=True) or _explain_foreign(each))
    about = [*beside, *(each for each in release.sound if each.covers(file.filename, file.digests))]
    if about:
        return about[0]
    if release.broken:
        raise NotVerified(f"{release.broken[0].name}: {release.broken[0].reason}")
    if not release.sound:
        raise NotVerified("there is no attestation about it")
    others = filter(None, (_explain_mismatch(each, file) for each in release.sound))
    raise NotVerified(next(others, "") or _explain_foreign(*release.sound))


def _explain_mismatch(verified: Verified, file: LocalFile, *, its_own: bool = False) -> str:
    """Whether something else was signed under its name; what is kept for this file alone,
    `its_own`, may call it by the URL of its package.
    """
    for subject in verified.subjects:
        by_package = its_own and subject.name.startswith("pkg:")
        if not (by_package or subject.is_called(file.filename)):
            continue
        known = [name for name in ALGORITHMS if subject.digests.get(name)]
        if not known:
            return "what is signed has none of its digests by SHA-256 or SHA-512"
        for name in known:
            if (signed := subject.digests[name]) != file.digests[name]:
                return f"its {name} is {file.digests[name]}, and {signed[:128]} was signed"
    return ""


def _explain_foreign(*about: Verified) -> str:
    subjects = [subject for each in about for subject in each.subjects]
    more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
    return f"what was signed is {subjects[0].name[:200]}{more}, not this file"


def resolve_links(path: Path) -> Path:
    """Without links; blocks. Raises OSError, for a loop of links too."""
    try:
        return path.resolve()
    except RuntimeError as error:  # before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def compute_digests(path: Path) -> dict[str, str]:
    """Blocks; raises OSError."""
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in ALGORITHMS}
    with durable.reading(resolve_links(path)) as file:
        while piece := file.read(_PIECE_BYTES):
            for each in hashes.values():
                each.update(piece)
    return {name: each.hexdigest() for name, each in hashes.items()}


def count_unnamed(release: ReleaseStatements, files: Iterable[LocalFile]) -> int:
    """Count the subjects of the release that are not among these files."""
    digests = {digest for file in files for digest in file.digests.values()}
    subjects = [subject for each in release.sound for subject in each.subjects]
    return sum(not digests & set(subject.digests.values()) for subject in subjects)


# A release of 20,000 files has twenty statements; each of them takes half a megabyte.
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_BUNDLES: Final = 1_000
# There may be empty ones.
_MAX_LINES: Final = 10 * MAX_BUNDLES
# In all that is signed, and in what is around it. A thousand statements about one file each have
# 200,000, twenty about a thousand files 120,000.
MAX_VALUES: Final = 500_000


def parse_bundles(data: bytes) -> list[Bundle]:
    """All that `data` holds, unchecked. Raises ValueError that says what is wrong with it."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES} bytes")
    found: list[Bundle] = []
    values = 0
    for document in _parse_documents(data):
        for each in _find_bundles(document):
            if len(found) == MAX_BUNDLES:
                raise ValueError(f"has more than {MAX_BUNDLES} attestations")
            text = canonical(each)
            found.append(_parse_bundle(text))
            values += count_values(text) + count_values(found[-1].payload)
            if values > MAX_VALUES:
                raise ValueError(f"has more than {MAX_VALUES} values in its attestations")
    if not found:
        raise ValueError("has no attestation in it")
    # Such as what is in a file, which `gh attestation download` gets too.
    return [each for each in found if each.predicate_type in ABOUT_ORIGIN] or found


def _parse_bundle(text: bytes) -> Bundle:
    try:
        return Bundle.parse(text)
    except ValueError as error:
        raise ValueError(f"holds an attestation that cannot be read: {error}") from error


def _parse_documents(data: bytes) -> Iterator[Any]:
    """One, or one a line, of which the first that is wrong is the last that is read."""
    try:
        whole = parse_json(data, max_bytes=None, max_values=MAX_VALUES)
    except ValueError as error:
        whole = error
    if not isinstance(whole, ValueError):
        yield whole
        return
    if data.count(b"\n") > _MAX_LINES:
        raise ValueError(f"is not JSON ({whole}), and has more than {_MAX_LINES} lines")
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(lines) < 2 or not lines[0].rstrip().endswith(b"}"):
        raise ValueError(f"is not JSON: {whole}")
    for line in lines:
        try:
            yield parse_json(line, max_bytes=None, max_values=MAX_VALUES)
        except ValueError as error:
            raise ValueError(f"has a line that is not JSON: {error}") from error


def _find_bundles(document: Any) -> Iterator[Any]:
    match document:
        case {"verificationMaterial": _}:
            yield document
        case {"verification_material": _}:
            yield _convert_pep740(document)
        case {"attestation_bundles": [*groups]}:
            # https://docs.pypi.org/api/integrity/
            for each in groups:
                yield from _find_bundles(each)
        case {"attestations": [*attestations]}:
            for each in attestations:
                yield from _find_bundles(each)
        case {"predicateType": kind, "bundle": bundle}:
            # npm itself signs, with its own key, that it has published the package.
            # https://github.com/npm/attestation/tree/main/specs/publish/v0.1
            if kind in ABOUT_ORIGIN - {PUBLISH}:
                yield bundle
        case _:
            raise ValueError("is neither a bundle of Sigstore nor a provenance object")


def _convert_pep740(attestation: Any) -> dict[str, Any]:
    """https://peps.python.org/pep-0740/#attestation-objects"""
    match attestation:
        case {
            "version": 1,
            "verification_material": {
                "certificate": certificate,
                "transparency_entries": entries,
            },
            "envelope": {"statement": statement, "signature": signature},
        }:
            return {
                "mediaType": MEDIA_TYPE,
                "verificationMaterial": {
                    "certificate": {"rawBytes": certificate},
                    "tlogEntries": entries,
                },
                "dsseEnvelope": {
                    "payload": statement,
                    "payloadType": PAYLOAD_TYPE,
                    "signatures": [{"sig": signature}],
                },
            }
        case _:
            raise ValueError("has an attestation that is not of PEP 740's version 1")


# https://docs.pypi.org/api/integrity/
_INDEXES: Final = {
    "files.pythonhosted.org": "https://pypi.org",
    "test-files.pythonhosted.org": "https://test.pypi.org",
}
_PYTHON: Final = (".whl", ".tar.gz", ".zip")
# Where npm's registry has the file of a package, and where a `dir:` of ours has it:
# /@acme/core/-/core-1.0.0.tgz and /-/@acme/core/acme-core-1.0.0.tgz.
_TARBALLS: Final = (
    re.compile(
        r"(?P<base>.*?)/(?:@(?P<scope>[^/@]+)/)?(?P<name>[^/@]+)/-/(?P=name)-(?P<version>[^/]+)\.tgz"
    ),
    re.compile(
        r"(?P<base>.*?)/-/@(?P<scope>[^/@]+)/(?P<name>[^/@]+)/(?P=scope)-(?P=name)-(?P<version>[^/]+)\.tgz"
    ),
    re.compile(r"(?P<base>.*?)/-/(?P<scope>)(?P<name>[^/@]+)/(?P=name)-(?P<version>[^/]+)\.tgz"),
)


class AttestationAddress(Struct, frozen=True):
    """Where the attestations about a file are."""

    attestations: httpx.URL
    accept: str = "application/json"


def find_filename(url: httpx.URL) -> str:
    """Raises ConfigError for the URL of a directory."""
    if name := url.path.rpartition("/")[2]:
        return name
    bare = url.copy_with(query=None, fragment=None)
    raise ConfigError(
        f"{bare}: is not the address of a file; write that of one", problem=Problem.ADDRESS
    )


def find_attestations(url: httpx.URL) -> AttestationAddress:
    """Raises ConfigError for the URL of anything but a file of a Python package or of npm's."""
    path, filename = url.path, find_filename(url)
    bare = url.copy_with(query=None, fragment=None)
    if not path.isprintable():
        raise ConfigError(
            f"{bare}: has a control character in it; write the address of a file",
            problem=Problem.ADDRESS,
        )
    for match in filter(None, (each.fullmatch(path) for each in _TARBALLS)):
        base, name, version = (quote(match[part]) for part in ("base", "name", "version"))
        scoped = f"@{quote(match['scope'])}%2f{name}" if match["scope"] else name
        asked = f"{base}/-/npm/v1/attestations/{scoped}@{version}"
        return AttestationAddress(bare.copy_with(raw_path=asked.encode()))
    if not filename.endswith(_PYTHON):
        raise ConfigError(
            f"{bare}: is not the address of a wheel, a source distribution or an npm tarball, "
            "which have attestations of their own; name those of the release with --bundle",
            problem=Problem.ADDRESS,
        )
    if (index := _INDEXES.get(url.host)) is None:
        # https://peps.python.org/pep-0740/#index-changes
        return AttestationAddress(bare.copy_with(path=f"{path}.provenance"))
    name, version = _parse_project(filename, bare)
    asked = f"/integrity/{name}/{version}/{filename}/provenance"
    of_index = bare.copy_with(host=index.partition("//")[2], path=asked)
    return AttestationAddress(of_index, "application/vnd.pypi.integrity.v1+json")


def find_listed(path: Path) -> Path | None:
    """Where a `dir:` of npm packages has what is said about the tarball at `path`; None of a file
    that does not lie as it would in one.
    """
    for match in filter(None, (each.fullmatch(path.absolute().as_posix()) for each in _TARBALLS)):
        name = f"@{match['scope']}/{match['name']}" if match["scope"] else match["name"]
        return Path(match["base"], "-/npm/v1/attestations", f"{name}@{match['version']}")
    return None


def _parse_project(filename: str, url: httpx.URL) -> tuple[str, str]:
    try:
        if filename.endswith(".whl"):
            name, wheel_version, _, _ = parse_wheel_filename(filename)
            return name, str(wheel_version)
        name, version = parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename) as error:
        raise ConfigError(
            f"{url}: {error}; write the address of a file of PyPI", problem=Problem.ADDRESS
        ) from error
    else:
        return name, str(version)


# Behind the name of a file.
SUFFIXES: Final = (
    ".sigstore.json",
    ".sigstore",
    ".publish.attestation",
    ".slsa.attestation",
    ".provenance",
)
MAX_FILES: Final = 20_000
_SUMS: Final = re.compile(r"(?:sha256sums?|checksums?)(?:\.txt)?", re.IGNORECASE)
# https://www.gnu.org/software/coreutils/manual/html_node/md5sum-invocation.html
_SUM: Final = re.compile(r"(?P<digest>[0-9A-Fa-f]{64})[ \t]+\*?(?:\./)?(?P<name>.+)")
# In the form that BSD has for several kinds, which releases have.
# https://www.gnu.org/software/coreutils/manual/html_node/cksum-general-options.html
_TAGGED_SUM: Final = re.compile(r"(?P<kind>[A-Z0-9]+) \((?P<name>.+)\) = (?P<digest>[0-9a-f]+)")
_MAX_SUMS_BYTES: Final = 4 * 1024 * 1024


class LocalFolder(Struct, frozen=True):
    """`paths` are the files to verify, `statements` those with release statements, at any depth.
    `sums` maps the name of each file of checksums to what it says: a name, or a path relative to
    `root`, to SHA-256; `there` has all such names and paths.
    """

    root: Path
    paths: tuple[Path, ...]
    statements: tuple[Path, ...]
    sums: Mapping[str, Mapping[str, str]]
    there: frozenset[str]

    @classmethod
    def read(cls, root: Path) -> LocalFolder:
        """Blocks. Raises ConfigError for one without files, and for what cannot be read."""
        everything = sorted(_list_below(root))
        statements = tuple(
            path
            for path in everything
            if path.name == RELEASE_STATEMENT or path.name.endswith(ATTACHED_STATEMENT)
        )
        sums = [path for path in everything if path.parent == root and _SUMS.fullmatch(path.name)]
        # What has such a name, and lies beside no file, is looked at like any other.
        plain = [path for path in everything if not path.name.endswith(SUFFIXES)]
        about = {path.with_name(path.name + suffix) for path in plain for suffix in SUFFIXES}
        aside = {*statements, *sums, *about}
        kept = tuple(path for path in everything if path not in aside)
        if not kept:
            raise PathError(f"{root}: there is no file in it; write the path of what to verify")
        there = frozenset(
            name for path in everything for name in (path.name, path.relative_to(root).as_posix())
        )
        return cls(root, kept, statements, {path.name: _read_sums(path) for path in sums}, there)

    def list_files(self, *, alone: bool = False) -> Iterator[LocalFile]:
        """Each with what lies beside it, unless it is to be looked at `alone`."""
        said = defaultdict[str, dict[str, str]](dict)
        for where, sums in self.sums.items():
            for name, digest in sums.items():
                said[name][where] = digest
        for path in self.paths:
            relative = path.relative_to(self.root).as_posix()
            sums = {**said[path.name], **said[relative]}
            yield read_file_at(path, relative, alone=alone, sums=sums)

    def list_missing(self) -> Iterator[tuple[str, str]]:
        """Name and reason, of the files that checksums name and that are not there."""
        for where, sums in self.sums.items():
            for name in sorted(sums.keys() - self.there):
                yield name, f"it is not there, and {where} names it"


def read_file_at(
    path: Path,
    name: str,
    *,
    alone: bool = False,
    sums: Mapping[str, str] | None = None,
) -> LocalFile:
    """Blocks. Raises ConfigError for one that cannot be read."""
    bundles: list[Bundle] = []
    broken = ""
    places = [] if alone else [path.with_name(path.name + suffix) for suffix in SUFFIXES]
    listed = None if alone else find_listed(path)
    for place in [*places, listed] if listed else places:
        try:
            bundles += read_bundles(place)
        except FileNotFoundError:
            continue
        except ValueError as error:
            broken = broken or f"{place.name} {error}"
    try:
        digests = compute_digests(path)
    except OSError as error:
        raise PathError(f"{path}: {error.strerror}; write the path of a file") from error
    return LocalFile(name, digests, tuple(bundles), broken, sums or {})


def read_bundles(path: Path) -> list[Bundle]:
    """Blocks. Raises FileNotFoundError, and ValueError for what holds none."""
    try:
        data = durable.read_file(resolve_links(path), max_bytes=MAX_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
        raise ValueError(f"cannot be read: {error.strerror}") from error
    return parse_bundles(data)


def _list_below(root: Path) -> Iterator[Path]:
    """Its files at any depth. A link counts as what it leads to, but not into directories."""
    count = 0
    pending = [root]
    while pending:
        directory = pending.pop()
        try:
            entries = list(directory.iterdir())
        except OSError as error:
            raise PathError(f"{directory}: {error.strerror}; it has to be readable") from error
        for path in entries:
            count += 1
            if count > MAX_FILES:
                raise PathError(f"{root}: has more than {MAX_FILES} files; write the path of less")
            if path.is_dir() and not path.is_symlink():
                pending.append(path)
            else:
                yield path


def _read_sums(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    text = read_text(path, max_bytes=_MAX_SUMS_BYTES)
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _SUM.fullmatch(line.strip()):
            found[match["name"]] = match["digest"].lower()
        elif match := _TAGGED_SUM.fullmatch(line.strip()):
            if match["kind"] == "SHA256":
                found[match["name"]] = match["digest"]
        elif line.strip() and not line.startswith("#"):
            raise PathError(
                f"{path}: line {number} is not a sha256 and a filename; write it with "
                "`sha256sum FILE…`"
            )
    return found
