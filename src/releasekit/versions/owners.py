"""Whose files a change touches: the deepest package directory around a file owns it."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.errors import ConfigError, did_you_mean
from releasekit.plan.places import name_place
from releasekit.problems import Problem
from releasekit.text.globs import Glob, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Package, PackageId
    from releasekit.plan.places import Places

    Packs = Callable[[PackageId, str], bool]


def index_names(packages: Iterable[PackageId]) -> dict[str, list[PackageId]]:
    """By their names with their ecosystems and without; several packages may have one."""
    found: dict[str, list[PackageId]] = {}
    for each in packages:
        for name in (str(each), each.name):
            found.setdefault(name, []).append(each)
    return found


class Touched(Struct, frozen=True):
    """The packages that are released for a change, and those of them of which it changes the
    manifest alone.
    """

    packages: frozenset[PackageId]
    by_manifest: frozenset[PackageId]


class Owners:
    """Paths are as git has them, relative to the top of the repository."""

    def __init__(
        self,
        packages: Sequence[Package],
        top: Path,
        root: Path,
        *,
        packs: Packs,
        ignore: Iterable[str],
        paths: Mapping[str, Iterable[str]],
        places: Places,
        is_part: bool = False,
    ) -> None:
        """`packages` are all of the workspace, or, where they are a part of them, `paths` may name
        others. `packs` says of a package and a path, as `places` have it, whether what is published
        of it has that file, or is made of it; `ignore` and `paths` are options. Raises ConfigError.
        """
        self._packs = packs
        self._below = name_place(root, top)
        self._known: dict[str, frozenset[PackageId]] = {}
        self._places = places
        self._manifests = {
            each.manifest.relative_to(top).as_posix(): each.id
            for each in packages
            if each.manifest.is_relative_to(top)
        }
        where = "releasekit.toml: [version] ignore"
        self._ignored = [Glob.parse(each, where=where, signed=True) for each in ignore]
        self._further: list[tuple[Glob, PackageId]] = []
        names = index_names(each.id for each in packages)
        for name, patterns in paths.items():
            meant = names.get(name, [])
            if is_part and not meant:
                continue
            if len(meant) != 1:
                near = did_you_mean(name, names)
                fault = "is the name of several packages" if meant else f"is no package here{near}"
                raise ConfigError(
                    f"releasekit.toml: [version] paths: {name!r} {fault}",
                    hint="Write a name with its ecosystem, like pypi:acme-core.",
                    problem=Problem.NOTHING_MATCHES,
                )
            where = f"releasekit.toml: [version] paths of {name}"
            self._further += [(Glob.parse(each, where=where), meant[0]) for each in patterns]

    def find_all_touched(self, paths: Iterable[str]) -> Touched:
        """By a change of these files."""
        touched: defaultdict[PackageId, set[str]] = defaultdict(set)
        for path in paths:
            for name in self.find_touched(path):
                touched[name].add(path)
        by_manifest = (
            name
            for name, found in touched.items()
            if len(found) == 1 and self._manifests.get(*found) == name
        )
        return Touched(frozenset(touched), frozenset(by_manifest))

    def find_touched(self, path: str) -> frozenset[PackageId]:
        """The packages that are released for a change of this file."""
        if path not in self._known:
            self._known[path] = self._find_touched(path)
        return self._known[path]

    def _find_touched(self, path: str) -> frozenset[PackageId]:
        is_above = bool(self._below) and not path.startswith(f"{self._below}/")
        if is_above and not self._places.reaches_above:
            return frozenset()
        path = posixpath.relpath(path, self._below) if self._below else path
        parts = PurePosixPath(path).parts
        is_ignored = decide(self._ignored, parts)
        owners = {
            package
            for package, name in self._places.locate(path)
            if (self._packs(package, name) if is_ignored is None else not is_ignored)
        }
        further = () if is_above else self._further
        return frozenset(owners) | {package for glob, package in further if glob.matches(parts)}
