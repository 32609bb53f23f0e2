"""Files on this machine, and what lies beside them: attestations, release statements, checksums."""

from __future__ import annotations

import errno
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.attested import RELEASE_STATEMENT
from releasekit.errors import PathError
from releasekit.host import durable
from releasekit.host.files import read_text
from releasekit.provenance.addresses import listed_at
from releasekit.provenance.covered import File, digests_of, resolved
from releasekit.provenance.forms import MAX_BYTES, bundles_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.provenance.bundle import Bundle

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
_MAX_SUMS_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Folder:
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
    def at(cls, root: Path) -> Folder:
        """Blocks. Raises ConfigError for one without files, and for what cannot be read."""
        everything = sorted(_below(root))
        statements = tuple(path for path in everything if path.name == RELEASE_STATEMENT)
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

    def files(self, *, alone: bool = False) -> Iterator[File]:
        """Each with what lies beside it, unless it is to be looked at `alone`."""
        said = defaultdict[str, dict[str, str]](dict)
        for where, sums in self.sums.items():
            for name, digest in sums.items():
                said[name][where] = digest
        for path in self.paths:
            relative = path.relative_to(self.root).as_posix()
            sums = {**said[path.name], **said[relative]}
            yield file_at(path, relative, alone=alone, sums=sums)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Name and reason, of the files that checksums name and that are not there."""
        for where, sums in self.sums.items():
            for name in sorted(sums.keys() - self.there):
                yield name, f"it is not there, and {where} names it"


def file_at(
    path: Path,
    name: str,
    *,
    alone: bool = False,
    sums: Mapping[str, str] | None = None,
) -> File:
    """Blocks. Raises ConfigError for one that cannot be read."""
    bundles: list[Bundle] = []
    broken = ""
    places = [] if alone else [path.with_name(path.name + suffix) for suffix in SUFFIXES]
    listed = None if alone else listed_at(path)
    for place in [*places, listed] if listed else places:
        try:
            bundles += bundles_in(place)
        except FileNotFoundError:
            continue
        except ValueError as error:
            broken = broken or f"{place.name} {error}"
    try:
        digests = digests_of(path)
    except OSError as error:
        raise PathError(f"{path}: {error.strerror}; write the path of a file") from error
    return File(name, digests, tuple(bundles), broken, sums or {})


def bundles_in(path: Path) -> list[Bundle]:
    """Blocks. Raises FileNotFoundError, and ValueError for what holds none."""
    try:
        data = durable.read_file(resolved(path), max_bytes=MAX_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
        raise ValueError(f"cannot be read: {error.strerror}") from error
    return bundles_of(data)


def _below(root: Path) -> Iterator[Path]:
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
        elif line.strip() and not line.startswith("#"):
            raise PathError(
                f"{path}: line {number} is not a sha256 and a filename; write it with "
                "`sha256sum FILE…`"
            )
    return found
