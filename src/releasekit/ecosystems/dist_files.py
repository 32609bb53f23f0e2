"""Package files below the directories of `dist`: which they are, and the checksums beside them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import ConfigError
from releasekit.host import durable
from releasekit.host.files import read_text
from releasekit.host.folder import Folder
from releasekit.problems import Problem
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.config.values import Dist

MAX_FILES: Final = 20_000
_MUCH: Final = "Keep everything else than this release out of it."
_MAX_SUMS_BYTES: Final = 4 * 1024 * 1024
# Signatures, attestations and checksums that tools put beside what they make. Whatever a registry
# takes of these is made again when the files go there.
# https://docs.pypi.org/attestations/publish/v1/, https://maven.apache.org/resolver/about-checksums.html
_ASIDE: Final = re.compile(
    r".*\.(?:asc|sig|sigstore|sigstore\.json|attestation|intoto\.jsonl|md5|sha1|sha512)"
    r"|maven-metadata.*\.xml"
)
_SUMS: Final = re.compile(r"sha256sums?(?:\.txt)?|.*\.sha256", re.IGNORECASE)
# As sha256sum writes it, or the digest alone.
# https://www.gnu.org/software/coreutils/manual/html_node/md5sum-invocation.html
_SUM: Final = re.compile(r"(?P<digest>[0-9A-Fa-f]{64})(?:[ \t]+\*?(?:\./)?(?P<name>.+))?")


class DistFile(Struct, frozen=True):
    """`owner` is what its directory is for: an ecosystem, ECOSYSTEM:NAME, or anything. It is meant
    to have the digest `sha256`, where one stands beside it.
    """

    path: Path
    ecosystem: str
    owner: str
    sha256: str = ""


def collect_files(
    dist: Sequence[Dist], ecosystems: Mapping[str, EcosystemDeclaration]
) -> list[DistFile]:
    """Every package file, sorted by path; blocks.

    Raises ConfigError for a directory without files, a link that leads out of it, and a file of
    which no ecosystem has any, since somebody expects it to be published.
    """
    found: dict[tuple[Path, str], DistFile] = {}
    for place in dist:
        paths = sorted(below(place))
        kept = [path for path in paths if not _ASIDE.fullmatch(path.name)]
        checksums = [path for path in kept if _SUMS.fullmatch(path.name)]
        kept = [path for path in kept if not _SUMS.fullmatch(path.name)]
        if not kept:
            raise dist_error(
                f"{place.label}: there is no package file below {place.path}",
                "Was the artifact downloaded there? Leave `dist` out to build everything.",
            )
        sums = _read_checksums(checksums)
        for path in kept:
            ecosystem = _find_ecosystem(path, place, ecosystems)
            file = DistFile(path, ecosystem, place.owner, sums.get(path, ""))
            found[path, place.owner] = file
    return [found[key] for key in sorted(found)]


def below(place: Dist, most: int = 0) -> Iterator[Path]:
    """Its files at any depth, links and hidden names left out; raises ConfigError, and where there
    are to be so many at `most`, for any link.
    """
    count, limit = 0, most or MAX_FILES
    pending = [place.path]
    while pending:
        directory = pending.pop()
        try:
            with Folder.reached(directory) as folder:
                directories, others = folder.listed()
        except OSError as error:
            raise dist_error(f"{place.label}: {directory}: {error.strerror}") from error
        if len(directory.parts) - len(place.path.parts) > durable.MAX_DEPTH:
            raise dist_error(f"{place.label}: {clip(str(directory), 200)} is too deep in it")
        pending += [directory / name for name in directories if name[0] != "."]
        for path in (directory / name for name in others if name[0] != "."):
            count += 1
            if count > limit:
                raise dist_error(f"{place.label}: there are more than {limit} files in it", _MUCH)
            if not path.is_symlink():
                yield path
                continue
            # What a link inside leads to is there under its own name too.
            try:
                led = path.resolve()
            except RuntimeError as error:  # before Python 3.13
                raise dist_error(
                    f"{path} is a symbolic link that leads to itself; remove it"
                ) from error
            out = "" if led.is_relative_to(place.path) else f" that leads out of {place.path}"
            if out or most:
                raise dist_error(
                    f"{path} is a symbolic link{out}",
                    "Copy the file there: only what lies in the directory is published.",
                )


def _find_ecosystem(path: Path, place: Dist, ecosystems: Mapping[str, EcosystemDeclaration]) -> str:
    wanted = place.owner.partition(":")[0]
    for name, ecosystem in ecosystems.items():
        if path.name.endswith(ecosystem.suffixes) and wanted in {"", name}:
            return name
    among = [ecosystems[wanted]] if wanted else ecosystems.values()
    suffixes = ", ".join(f"*{suffix}" for each in among for suffix in each.suffixes)
    whose = f" of {wanted}" if wanted else ""
    raise dist_error(
        f"{path} is not a package file{whose}: "
        f"these are named {suffixes or 'by tags, not by files'}",
        f"Keep everything else out of {place.path}.",
    )


def _read_checksums(files: Sequence[Path]) -> dict[Path, str]:
    """What these files say of others beside them, by path."""
    found: dict[Path, str] = {}
    for path in files:
        lines = read_text(path, max_bytes=_MAX_SUMS_BYTES).splitlines()
        for number, line in enumerate(lines, start=1):
            match = _SUM.fullmatch(line.strip())
            if match is None:
                if line.strip() and not line.startswith("#"):
                    raise dist_error(
                        f"{path}: line {number} is not a sha256 and a filename",
                        "Write it with `sha256sum FILE… > SHA256SUMS`.",
                    )
                continue
            name = match["name"] or path.name.removesuffix(".sha256")
            digest = match["digest"].lower()
            if found.setdefault(path.parent / name, digest) != digest:
                raise dist_error(f"{path}: {name} has another sha256 in a file beside it")
    return found


def refuse_other_bytes(file: DistFile, sha256: str) -> None:
    """Raises ConfigError where the file is not what a checksum beside it says."""
    if file.sha256 and file.sha256 != sha256:
        raise dist_error(
            f"{file.path} has sha256:{sha256}, and the checksums beside it say "
            f"sha256:{file.sha256}",
            "It was damaged or replaced on the way: download it again, or build it again.",
        )


def dist_error(message: str, hint: str = "") -> ConfigError:
    return ConfigError(message, hint=hint, problem=Problem.DIST)
