"""Whose files a change touches: the deepest package directory around a file owns it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from releasekit.errors import ConfigError, did_you_mean
from releasekit.problems import Problem
from releasekit.text.globs import Glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Package, PackageId

    Packs = Callable[[PackageId, str], bool]

# What the users of a package do not notice, by its path below the directory of the package.
_IGNORED: Final = re.compile(
    r"(?:.*/)?(?:\.github|__tests__|benches|benchmarks|docs?|examples?|tests?)/.*"
    r"|(?:.*/)?(?:changelog|changes|history)(?:\.[a-z]+)?"
    r"|(?:.*/)?(?:cargo\.lock|go\.sum|package-lock\.json|pnpm-lock\.yaml|uv\.lock|yarn\.lock)",
    re.IGNORECASE | re.DOTALL,
)
_NOBODY: Final[frozenset[PackageId]] = frozenset()


@dataclass(frozen=True, slots=True)
class Owners:
    """Paths are as git has them, relative to the top of the repository; `below` is where the root
    lies there, empty for the top itself. `packs` says of a package and a path in its directory
    whether what is published of it has that file, or is made of it.
    """

    directories: Mapping[str, frozenset[PackageId]]
    below: str
    packs: Packs
    ignored: Sequence[Glob]
    further: Sequence[tuple[Glob, PackageId]]
    _known: dict[str, frozenset[PackageId]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        packages: Iterable[Package],
        top: Path,
        root: Path,
        *,
        packs: Packs,
        ignore: Iterable[str],
        paths: Mapping[str, Iterable[str]],
    ) -> Self:
        """`packages` are all of the workspace; `ignore` and `paths` are options. Raises
        ConfigError.
        """
        directories: dict[str, frozenset[PackageId]] = {}
        names: dict[str, set[PackageId]] = {}
        for each in packages:
            place = _name_place(each.directory, top)
            directories[place] = directories.get(place, _NOBODY) | {each.id}
            for name in (str(each.id), each.id.name):
                names.setdefault(name, set()).add(each.id)
        further: list[tuple[Glob, PackageId]] = []
        for name, patterns in paths.items():
            if len(meant := names.get(name, set())) != 1:
                said = (
                    "is the name of several packages"
                    if meant
                    else f"is no package here{did_you_mean(name, names)}"
                )
                raise ConfigError(
                    f"releasekit.toml: [version] paths: {name!r} {said}",
                    hint="Write a name with its ecosystem, like pypi:acme-core.",
                    problem=Problem.NOTHING_MATCHES,
                )
            where = f"releasekit.toml: [version] paths of {name}"
            (package,) = meant
            further += [(Glob.parse(each, where=where), package) for each in patterns]
        where = "releasekit.toml: [version] ignore"
        ignored = [
            Glob.parse(each.removeprefix("!"), where=where, negated=each.startswith("!"))
            for each in ignore
        ]
        return cls(directories, _name_place(root, top), packs, ignored, further)

    def find_touched(self, path: str) -> frozenset[PackageId]:
        """The packages that are released for a change of this file."""
        if path not in self._known:
            self._known[path] = self._find_touched(path)
        return self._known[path]

    def find_owners(self, path: str) -> frozenset[PackageId]:
        """The packages of the deepest directory around the file, whatever file it is."""
        return self.directories.get(self._find_directory(path), _NOBODY)

    def _find_directory(self, path: str) -> str:
        place = path
        while place:
            place = place.rpartition("/")[0]
            if place in self.directories:
                return place
        return ""

    def _find_touched(self, path: str) -> frozenset[PackageId]:
        if self.below and not path.startswith(f"{self.below}/"):
            return _NOBODY
        directory = self._find_directory(path)
        inside = path.removeprefix(f"{directory}/" if directory else "")
        parts = PurePosixPath(path.removeprefix(f"{self.below}/" if self.below else "")).parts
        owners = self.directories.get(directory, _NOBODY)
        said = [glob.negated for glob in self.ignored if glob.matches(parts)]
        if said:  # the last one counts
            owners = owners if said[-1] else _NOBODY
        elif _IGNORED.fullmatch(inside):
            owners = _NOBODY
        else:
            owners = frozenset(each for each in owners if self.packs(each, inside))
        return owners | {package for glob, package in self.further if glob.matches(parts)}


def _name_place(directory: Path, top: Path) -> str:
    place = directory.relative_to(top).as_posix()
    return "" if place == "." else place
