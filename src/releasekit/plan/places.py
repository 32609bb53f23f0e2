"""Which package has a file: the deepest package directory around it owns it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Package, PackageId

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
