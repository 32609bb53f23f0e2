"""Whose files a change touches: the deepest package directory around a file owns it."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.errors import ConfigError, did_you_mean
from releasekit.problems import Problem
from releasekit.text.globs import Glob, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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


# How the directory of what is compiled into a package is called in that. What is in a package
# further down is not compiled with it.
COMPILED: Final = "../."


class Places:
    """Where packages have their files, by paths relative to `root`: the deepest package directory
    around a file owns it, and `elsewhere` are files and directories of which a package has more,
    each with what it is called there. `ends` are directories that may be of packages too.
    """

    def __init__(
        self,
        packages: Iterable[Package],
        root: Path,
        elsewhere: Mapping[str, Sequence[tuple[PackageId, str]]] | None = None,
        ends: Collection[str] = frozenset(),
    ) -> None:
        self._elsewhere, self._ends = elsewhere or {}, ends
        self.reaches_above = any(each.startswith("../") for each in self._elsewhere)
        self._directories: defaultdict[str, set[PackageId]] = defaultdict(set)
        for each in packages:
            self._directories[name_place(each.directory, root)].add(each.id)

    def locate(self, path: str) -> list[tuple[PackageId, str]]:
        """The packages that have a file or directory, and what it is called in each."""
        above = (each for each in _list_above(path) if each in self._directories)
        directory = next(above, "")
        inside = path.removeprefix(f"{directory}/")
        owners = () if path.startswith("../") else self._directories.get(directory, ())
        found = [(each, inside) for each in sorted(owners)]
        for place in (path, *_list_above(path)) if self._elsewhere else ():
            rest = path[len(place) :] if place else f"/{path}"
            for each, name in self._elsewhere.get(place, ()):
                if name != COMPILED or not self.is_apart(path, place):
                    found.append((each, f"{name}{rest}"))
        return found

    def is_apart(self, path: str, place: str) -> bool:
        """Whether a package below the place, which is around the path, has it."""
        return any(
            len(each) > len(place) and (each in self._directories or each in self._ends)
            for each in _list_above(path)
        )


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
        places: Places | None = None,
    ) -> None:
        """`packages` are all of the workspace, or, where they are a part of them, `paths` may name
        others. `packs` says of a package and a path, as `places` have it, whether what is published
        of it has that file, or is made of it; `ignore` and `paths` are options. Raises ConfigError.
        """
        self._packs = packs
        self._below = name_place(root, top)
        self._known: dict[str, frozenset[PackageId]] = {}
        self._places = places or Places(packages, root)
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


def _list_above(path: str) -> Iterator[str]:
    """The directories around it; "" is the root, which is not around what lies above it."""
    is_above = path.startswith("../")
    while path and path != "..":
        path = path.rpartition("/")[0]
        if path or not is_above:
            yield path


def name_place(directory: Path, top: Path) -> str:
    place = directory.relative_to(top).as_posix()
    return "" if place == "." else place
