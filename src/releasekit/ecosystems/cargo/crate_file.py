"""What a .crate says of itself: its normalised manifest and its readme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from releasekit.ecosystems.shared.archives import Member, opened_archive
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import PackageError
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
# https://github.com/rust-lang/crates.io/blob/main/src/config/server.rs (max_unpack_size: 512 MB)
MAX_UNPACKED_BYTES: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CrateFile:
    """`manifest` is the normalised Cargo.toml; `readme` its text, None when there is none."""

    manifest: Mapping[str, Any]
    readme: str | None

    @property
    def package(self) -> Mapping[str, Any]:
        return table_in(self.manifest, "package")


def filename(name: str, version: str) -> str:
    return f"{name}-{version}.crate"


def read_crate(file: IO[bytes], name: str, version: str) -> CrateFile:
    """Raises PackageError for anything but the .crate of this package."""
    root = f"{name}-{version}"
    try:
        manifest = parse_toml(_manifest(file, f"{root}/Cargo.toml").decode())
        readme = text_in(_checked(manifest, name, version), "readme")
        text = _readme(file, f"{root}/{readme}") if readme else None
    except (ValueError, RecursionError) as error:
        raise PackageError(
            f"cargo:{name} {version}: {filename(name, version)} is not its package: {error}",
            problem=Problem.NOT_A_PACKAGE,
        ) from error
    return CrateFile(manifest, None if text is None else text.decode("utf-8", "replace"))


def differing(ours: IO[bytes], theirs: IO[bytes]) -> list[str]:
    """The files in which two .crates of a package differ, sorted. Raises ValueError; blocks."""
    digests = []
    for file in (ours, theirs):
        with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
            digests.append({member.name.partition("/")[2]: member.sha256() for member in members})
    return sorted({name for name, _ in digests[0].items() ^ digests[1].items()})


def _checked(manifest: Mapping[str, Any], name: str, version: str) -> Mapping[str, Any]:
    package = table_in(manifest, "package")
    if (package.get("name"), package.get("version")) != (name, version):
        raise ValueError("its Cargo.toml is another package's")
    return package


def _manifest(file: IO[bytes], path: str) -> bytes:
    """The last one of that name, as it would be unpacked; the whole archive is looked at."""
    found = None
    with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
        for member in members:
            if member.name == path:
                found = _content(member)
    if found is None:
        raise ValueError(f"there is no {path} in it")
    return found


def _readme(file: IO[bytes], path: str) -> bytes | None:
    file.seek(0)
    with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
        return next((_content(member) for member in members if member.name == path), None)


def _content(member: Member) -> bytes:
    if member.size > MAX_FILE_BYTES:
        raise ValueError(f"{member.name} is larger than {MAX_FILE_BYTES} bytes")
    return member.read(MAX_FILE_BYTES)
