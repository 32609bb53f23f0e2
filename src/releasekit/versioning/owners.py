"""Whose files a change touches: the deepest package directory around a file owns it."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from releasekit.errors import ConfigError, did_you_mean
from releasekit.problems import Problem
from releasekit.text.globs import Glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Package, PackageId

    Packs = Callable[[PackageId, str], bool]


def index_names(packages: Iterable[PackageId]) -> dict[str, list[PackageId]]:
    """By their names with their ecosystems and without; several packages may have one."""
    found: dict[str, list[PackageId]] = {}
    for each in packages:
        for name in (str(each), each.name):
            found.setdefault(name, []).append(each)
    return found


class Places:
    """Where packages have their files, by paths relative to `root`: the deepest package directory
    around a file owns it, and `elsewhere` are files and directories of which a package has more,
    each with what it is called there.
    """

    def __init__(
        self,
        packages: Iterable[Package],
        root: Path,
        elsewhere: Mapping[str, Sequence[tuple[PackageId, str]]] | None = None,
    ) -> None:
        self._elsewhere = elsewhere or {}
        self._directories: defaultdict[str, set[PackageId]] = defaultdict(set)
        for each in packages:
            self._directories[name_place(each.directory, root)].add(each.id)

    def locate(self, path: str) -> list[tuple[PackageId, str]]:
        """The packages that have a file or directory, and what it is called in each."""
        directory = path.rpartition("/")[0]
        while directory and directory not in self._directories:
            directory = directory.rpartition("/")[0]
        inside = path.removeprefix(f"{directory}/")
        owners = () if path.startswith("../") else self._directories.get(directory, ())
        found = [(each, inside) for each in sorted(owners)]
        place = path if self._elsewhere else ""
        while place:
            rest = path.removeprefix(place)
            found += [(each, f"{name}{rest}") for each, name in self._elsewhere.get(place, ())]
            place = place.rpartition("/")[0]
        return found


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
        is_part: bool = False,
        elsewhere: Mapping[str, Sequence[tuple[PackageId, str]]] | None = None,
    ) -> None:
        """`packages` are all of the workspace, or, where they are a part of them, `paths` may name
        others. `packs` says of a package and a path, as `Places` has it by `elsewhere`, whether
        what is published of it has that file, or is made of it; `ignore` and `paths` are options.
        Raises ConfigError.
        """
        self._packs = packs
        self._below = name_place(root, top)
        self._known: dict[str, frozenset[PackageId]] = {}
        self._places = Places(packages, root, elsewhere)
        self._takes_from_above = any(each.startswith("../") for each in elsewhere or ())
        where = "releasekit.toml: [version] ignore"
        self._ignored = [
            Glob.parse(each.removeprefix("!"), where=where, negated=each.startswith("!"))
            for each in ignore
        ]
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

    def find_touched(self, path: str) -> frozenset[PackageId]:
        """The packages that are released for a change of this file."""
        if path not in self._known:
            self._known[path] = self._find_touched(path)
        return self._known[path]

    def _find_touched(self, path: str) -> frozenset[PackageId]:
        is_above = bool(self._below) and not path.startswith(f"{self._below}/")
        if is_above and not self._takes_from_above:
            return frozenset()
        path = posixpath.relpath(path, self._below) if self._below else path
        parts = PurePosixPath(path).parts
        said = [glob.negated for glob in self._ignored if glob.matches(parts)]
        owners = {
            package
            for package, name in self._places.locate(path)
            # The last one counts.
            if (said[-1] if said else self._packs(package, name))
        }
        further = () if is_above else self._further
        return frozenset(owners) | {package for glob, package in further if glob.matches(parts)}


def name_place(directory: Path, top: Path) -> str:
    place = directory.relative_to(top).as_posix()
    return "" if place == "." else place
