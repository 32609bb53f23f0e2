"""What a .crate says of itself: its normalised manifest and its readme; and crates that were
packaged elsewhere.
"""

from __future__ import annotations

import asyncio
import re
from typing import IO, TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.ecosystems.cargo.discover import ECOSYSTEM
from releasekit.ecosystems.cargo.requirements import Requirement
from releasekit.ecosystems.interface import Contained
from releasekit.ecosystems.shared.archives import Member, opened_archive
from releasekit.ecosystems.shared.artifacts import copied
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import PackageError
from releasekit.model import Dependency, PackageId
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml
from releasekit.text.semver import BUILD, NUMBER, PRE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import Package


MAX_FILE_BYTES: Final = 16 * 1024 * 1024
# https://github.com/rust-lang/crates.io/blob/main/src/config/server.rs (max_unpack_size: 512 MB)
MAX_UNPACKED_BYTES: Final = 1024 * 1024 * 1024
_NAME: Final = re.compile(
    r"(?P<name>[\w-]+?)"
    rf"-(?P<version>{NUMBER}\.{NUMBER}\.{NUMBER}(?:-{PRE})?(?:\+{BUILD})?)\.crate"
)
_TABLES: Final = ("dependencies", "build-dependencies", "dev-dependencies")


class CrateFile(Struct, frozen=True):
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
    text = None
    try:
        manifest = _read_manifest(file, name, version)
        if readme := text_in(manifest["package"], "readme"):
            file.seek(0)
            with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
                path = f"{name}-{version}/{readme}"
                text = next((_read_member(each) for each in members if each.name == path), None)
    except (ValueError, RecursionError) as error:
        raise PackageError(
            f"cargo:{name} {version}: {filename(name, version)} is not its package: {error}",
            problem=Problem.NOT_A_PACKAGE,
        ) from error
    return CrateFile(manifest, None if text is None else text.decode("utf-8", "replace"))


def find_differences(ours: IO[bytes], theirs: IO[bytes]) -> list[str]:
    """The files in which two .crates of a package differ, sorted. Raises ValueError; blocks."""
    digests = []
    for file in (ours, theirs):
        with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
            digests.append({member.name.partition("/")[2]: member.sha256() for member in members})
    return sorted({name for name, _ in digests[0].items() ^ digests[1].items()})


def _read_manifest(file: IO[bytes], name: str, version: str) -> Mapping[str, Any]:
    """The last one in it, as unpacking leaves it. Raises ValueError for that of another package."""
    found, path = None, f"{name}-{version}/Cargo.toml"
    with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
        for member in members:
            if member.name == path:
                found = _read_member(member)
    if found is None:
        raise ValueError(f"there is no {path} in it")
    manifest = parse_toml(found.decode())
    package = table_in(manifest, "package")
    if (package.get("name"), package.get("version")) != (name, version):
        raise ValueError("its Cargo.toml is another package's")
    return manifest


def _read_member(member: Member) -> bytes:
    if member.size > MAX_FILE_BYTES:
        raise ValueError(f"{member.name} is larger than {MAX_FILE_BYTES} bytes")
    return member.read(MAX_FILE_BYTES)


class PrebuiltCrates:
    """Implements `interface.Prebuilt`: a release is one crate. `packages` are the sources' own."""

    # The only digest in cargo's indexes.
    algorithms = ("sha256",)

    def __init__(self, packages: Sequence[Package]) -> None:
        self._packages = packages

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise PackageError(
                f"{path}: a crate is named NAME-VERSION.crate", problem=Problem.NOT_A_PACKAGE
            )
        name, version = match["name"], match["version"]
        try:
            manifest = read_crate(file, name, version).manifest
        except PackageError as error:
            raise PackageError(f"{path}: {error}", problem=Problem.NOT_A_PACKAGE) from error
        return Contained(
            name=name, version=version, dependencies=tuple(self._find_dependencies(name, manifest))
        )

    def admits(self, requirement: str, version: str) -> bool:
        return Requirement.parse(requirement).matches(version)

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {
            package.id: await asyncio.to_thread(
                copied, package.prebuilt, into(package), *self.algorithms
            )
            for package in packages
        }

    def _find_dependencies(self, name: str, manifest: Mapping[str, Any]) -> Iterator[Dependency]:
        """Those that its sources have in the workspace, too: a .crate has no paths, so its manifest
        may mean a crate from elsewhere of the same name.
        """
        edges = {
            edge.on.name
            for package in self._packages
            if package.id.name == name
            for edge in package.dependencies
        }
        for tables in (manifest, *table_in(manifest, "target").values()):
            for table in _TABLES:
                for key, value in table_in(tables, table).items():
                    entry = {"version": value} if isinstance(value, str) else value
                    if (on := str(entry.get("package", key))) in edges:
                        requirement = str(entry.get("version", "*"))
                        yield Dependency(on=PackageId(ECOSYSTEM, on), requirement=requirement)
