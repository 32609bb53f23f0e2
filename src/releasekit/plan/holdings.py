"""Which packages hold a file, in whatever way it comes in: the one answer for warnings, for
versions, and for what has to be checked out.

A package has the files below its directory that are in no package further down. It also has what a
symbolic link there leads to, and what its manifests take from elsewhere. Of all these, its
ecosystem says which go into what is published (`Composition.make_filter`).
"""

from __future__ import annotations

import os
import posixpath
import re
from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.ecosystems.shared.packed import is_irrelevant
from releasekit.errors import CommandFailed, ConfigError, PathError
from releasekit.host.files import read_file, repository_of
from releasekit.model import MAX_MANIFEST_BYTES, DependencyKind
from releasekit.plan.places import COMPILED, Places, name_place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId

# How a file is called in a package that takes it, or a directory above it, from elsewhere.
_OUTSIDE: Final = ".."
# As many as Linux follows. https://man7.org/linux/man-pages/man7/path_resolution.7.html
_MOST_LINKS: Final = 40
# Directories with links to one another may stand for any number of paths, of any length.
_MOST_PLACES: Final = 100_000
_MOST_CHARACTERS: Final = 20_000_000
# Of a directory, before it is known to hold nothing of a package.
_MOST_COMPARED: Final = 1_000
_LINK, _SUBMODULE = "120000", "160000"
_UNTRACKED: Final = "?"
_LISTING: Final = ("git", "ls-files", "--stage", "-t", "-z")
# A path that leads out of the directory of a manifest, wherever that has it: as the crate of
# maturin's `manifest-path`, of `wasm-pack build`, or of a dependency.
_WAY_OUT: Final = re.compile(rb"(?<![\w.])\.\.(?![\w.])(?:/[\w.@+-]{1,255}){0,64}")
_COMPILED_IN: Final = frozenset(
    {DependencyKind.RUNTIME, DependencyKind.INDIRECT, DependencyKind.OPTIONAL}
)


class Tree(Struct, frozen=True, kw_only=True):
    """What git has below a root, by sorted names relative to it, with the files of submodules that
    are checked out. `missing` are the other submodules, and `sparse` files that a sparse checkout
    leaves out. Among `files`, those submodules end with a slash: nothing is known of theirs.
    `untracked` are what git neither has nor ignores, None where that is not known.
    """

    files: Sequence[str] = ()
    links: Sequence[str] = ()
    submodules: frozenset[str] = frozenset()
    missing: Sequence[str] = ()
    sparse: Sequence[str] = ()
    untracked: Sequence[str] | None = None


NO_TREE: Final = Tree()


async def read_tree(root: Path, processes: Processes) -> Tree:
    """Empty where that is too much to be read, or outside of git."""
    if repository_of(root) is None:
        return NO_TREE
    untracked = None
    try:
        try:
            listed = await _list_entries(root, processes, "--others", "--exclude-standard")
            untracked = [name for name, _, tag in listed if tag == _UNTRACKED]
            listed = [each for each in listed if each[2] != _UNTRACKED]
        except CommandFailed:  # the files that nobody has told git to ignore may be too many
            listed = await _list_entries(root, processes)
        submodules, missing = _find_submodules(listed, root)
        if submodules - missing:
            # Those of a submodule too.
            inner = await _list_entries(root, processes, "--recurse-submodules")
            kept = tuple(f"{each}/" for each in missing)
            listed += [each for each in inner if not each[0].startswith(kept)]
            submodules, missing = _find_submodules(listed, root)
    except CommandFailed:
        return NO_TREE
    files = {name for name, mode, _ in listed if mode != _SUBMODULE}
    return Tree(
        files=sorted(files | {f"{name}/" for name in missing}),
        links=sorted({name for name, mode, _ in listed if mode == _LINK}),
        submodules=submodules,
        missing=sorted(missing),
        sparse=sorted({name for name, _, tag in listed if tag == "S"}),
        untracked=untracked,
    )


def _find_submodules(
    listed: Iterable[tuple[str, str, str]], root: Path
) -> tuple[frozenset[str], frozenset[str]]:
    """All of them, and those that are not checked out."""
    found = frozenset(name for name, mode, _ in listed if mode == _SUBMODULE)
    return found, frozenset(name for name in found if _is_empty(root / name))


async def _list_entries(
    root: Path, processes: Processes, *options: str
) -> list[tuple[str, str, str]]:
    """The name, the mode, and the tag of each; "S" is that of a file left out on purpose.

    https://git-scm.com/docs/git-ls-files#_output
    """
    listed = await processes.run([*_LISTING, *options], cwd=root, timeout_s=60.0)
    return listed.stdout.parse_rows(_parse_entry, end="\0")


def _parse_entry(line: str) -> tuple[str, str, str]:
    if line.startswith(f"{_UNTRACKED} "):
        return line[2:], "", _UNTRACKED
    facts, _, name = line.partition("\t")
    tag, mode, _, _ = facts.split(" ")
    return name, mode, tag


async def list_uncommitted_above(
    holdings: Holdings, root: Path, processes: Processes
) -> Sequence[str]:
    """Of what packages take from above the root, the files of the commit that differ from it."""
    top = repository_of(root)
    if top is None or top == root:
        return []
    places = sorted(place for place in holdings.elsewhere if place.startswith("../"))
    if not places:
        return []
    command = ("git", "--literal-pathspecs", "diff", "HEAD", "--no-ext-diff", "--name-only")
    try:
        listed = await processes.run(
            [*command, "--no-renames", "-z", "--", *places], cwd=root, timeout_s=60.0
        )
    except CommandFailed:
        return []
    below = name_place(root, top)
    return [posixpath.relpath(name, below) for name in listed.stdout.split("\0") if name]


def _is_empty(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except OSError:
        return True


class Holdings:
    """Paths are relative to `root`, also of what lies above it in the repository. Of packages that
    are not `asked` for, only what lies below their directories is known.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        root: Path,
        tree: Tree,
        asked: Iterable[Package],
    ) -> None:
        self.tree = tree
        self._compositions = {name: each.composition for name, each in targets.items()}
        self._root = root
        self._asked = list(asked)
        found = [each for target in targets.values() for each in target.workspace.packages]
        self._by_id = {each.id: each for each in (*self._asked, *found)}
        self._counts: dict[PackageId, Callable[[str], bool]] = {}
        self._links = frozenset(tree.links)
        top = repository_of(root)
        # How far up the repository goes on.
        self._above = len(root.relative_to(top).parts) if top else 0

    def list_own(self, package: Package) -> Sequence[str]:
        """What git has below its directory, relative to that."""
        place = self.find_place(package)
        return [name.removeprefix(f"{place}/") for name in _below(place, self.tree.files)]

    def find_place(self, package: Package) -> str:
        return name_place(package.directory, self._root)

    def list_places(self, package: Package) -> list[str]:
        """All files and directories that it may have something of."""
        return [self.find_place(package), *self._taken.get(package.id, ())]

    def list_holders(self, path: str) -> Iterator[PackageId]:
        """The packages that are published with this file, or made of it."""
        for package, name in self.locate(path):
            if self.holds(package, name):
                yield package

    def locate(self, path: str) -> list[tuple[PackageId, str]]:
        """As `Places`, in whose words a submodule is a directory."""
        located = self.places.locate(path)
        if path not in self.tree.submodules:
            return located
        return [(package, f"{name}/") for package, name in located]

    def holds(self, package: PackageId, name: str) -> bool:
        """Whether this file of it, as `locate` calls it, is published, or makes what is."""
        if name == _OUTSIDE or name.startswith(f"{_OUTSIDE}/"):
            # Of a directory that the manifest names.
            below = name.removeprefix(COMPILED).removeprefix(_OUTSIDE).removeprefix("/")
            return not is_irrelevant(below)
        if package not in self._counts:
            found, composition = self._by_id[package], self._compositions[package.ecosystem]
            self._counts[package] = composition.make_filter(found, self.list_own(found))
        return self._counts[package](name)

    def holds_below(self, package: PackageId, place: str, name: str) -> bool:
        """Whether it holds what is at a place, or what a link there leads to, by the first files of
        a directory.
        """
        there = self._resolve(place)[0] or place
        below = _below(there, self.tree.files)[:_MOST_COMPARED]
        names = [f"{name}{each.removeprefix(there)}" for each in below] or [name]
        return any(self.holds(package, each) for each in names)

    def list_holders_below(self, directory: str) -> set[PackageId]:
        """The packages that may have files of a directory of which nothing more is known."""
        inside = f"{directory}/"
        found = {
            package
            for package, name in self.places.locate(directory)
            if self.holds(package, f"{name}/")
        }
        for place, holders in self.elsewhere.items():
            if place.startswith(inside):
                found |= {package for package, name in holders if self.holds(package, name)}
        return found

    def find_contained(self, package: PackageId) -> set[PackageId]:
        """What may be in that which is built of it, by where it lies and by what manifests name: a
        package, and what that needs at run time, that is in its directory, or is taken in by it, or
        is named by a path in a manifest there. Blocks.
        """
        whole = self._by_id[package]
        pending = [
            *self._find_named(whole),
            *self._taken_whole.get(package, ()),
            *(it.id for it in self._by_id.values() if it.directory.is_relative_to(whole.directory)),
        ]
        seen = {package}
        while pending:
            inside = self._by_id.get(pending.pop())
            if inside and inside.id not in seen:
                seen.add(inside.id)
                pending += [need.on for need in inside.needs if need.kind in _COMPILED_IN]
        return seen

    @cached_property
    def _taken_whole(self) -> Mapping[PackageId, Sequence[PackageId]]:
        """The packages whose manifests each holds."""
        found: defaultdict[PackageId, list[PackageId]] = defaultdict(list)
        for each in self._by_id.values():
            for holder, _ in self.locate(name_place(each.manifest, self._root)):
                found[holder].append(each.id)
        return found

    @cached_property
    def _of_place(self) -> Mapping[str, Collection[PackageId]]:
        """The packages by their directories and their manifests."""
        found: defaultdict[str, set[PackageId]] = defaultdict(set)
        for each in self._by_id.values():
            for known in (each.directory, each.manifest):
                found[str(known)].add(each.id)
        return found

    def _find_named(self, package: Package) -> set[PackageId]:
        """The packages that the manifests in its directory name by a path to or into theirs. A path
        into a directory that is around both, as that of a licence, is about neither.
        """
        places = self._of_place
        around = set(map(str, (package.directory, *package.directory.parents)))
        names = {each.manifest.name for each in self._by_id.values()}
        below = (name for name in self.list_own(package) if posixpath.basename(name) in names)
        found: set[PackageId] = set()
        for manifest in {package.manifest, *(package.directory / name for name in below)}:
            try:
                data = read_file(manifest, max_bytes=MAX_MANIFEST_BYTES)
            except ConfigError:  # of a package that is none of this workspace
                continue
            # A POM may have any encoding; in most of them, without zeros, such a path is ASCII.
            ways = {found[0] for found in _WAY_OUT.finditer(data.replace(b"\0", b""))}
            for way in ways:
                place = os.path.normpath(manifest.parent / way.decode())
                found.update(places.get(place, ()))
                while place not in around:
                    found.update(places.get(place, ()))
                    place = posixpath.dirname(place)
        return found

    @cached_property
    def places(self) -> Places:
        return Places(self._by_id.values(), self._root, self.elsewhere, self._ends)

    @cached_property
    def _compiled(self) -> Mapping[PackageId, Collection[Path]]:
        return {
            each.id: self._compositions[each.id.ecosystem].list_compiled(each)
            for each in self._asked
        }

    @cached_property
    def _ends(self) -> frozenset[str]:
        """The directories of manifests like those of what is compiled in, in a workspace or not."""
        ends = tuple({f"/{each.name}" for listed in self._compiled.values() for each in listed})
        return frozenset(
            posixpath.dirname(name) for name in self.tree.files if ends and name.endswith(ends)
        )

    @cached_property
    def _bare(self) -> Places:
        return Places(self._by_id.values(), self._root, ends=self._ends)

    @cached_property
    def _taken(self) -> Mapping[PackageId, Sequence[str]]:
        found: defaultdict[PackageId, list[str]] = defaultdict(list)
        for place, holders in self.elsewhere.items():
            for package in {each for each, _ in holders}:
                found[package].append(place)
        return found

    @cached_property
    def elsewhere(self) -> Mapping[str, Sequence[tuple[PackageId, str]]]:
        """What lies outside of directories of packages, or in others', and how it is called in
        those that take it in.
        """
        found: defaultdict[str, list[tuple[PackageId, str]]] = defaultdict(list)
        reached: set[tuple[str, PackageId]] = set()
        # What is named there is listed when its turn comes: all at once may be more than memory.
        pending = [self._list_outside(), self._list_compiled(), self._list_linked()]
        characters = 0
        while pending:
            path, holder, name = next(pending[-1], ("", None, ""))
            if holder is None:
                pending.pop()
                continue
            place, hops = self._resolve(path)
            if place is None:
                continue
            # Each link on the way decides what comes in.
            named = [*hops, place]
            characters += sum(len(each) + len(name) for each in named)
            if len(reached) > _MOST_PLACES or characters > _MOST_CHARACTERS:
                raise PathError(
                    f"{self._root}: the symbolic links of {holder} lead to more paths than "
                    "ReleaseKit follows",
                    hint="Remove links between directories that contain links to each other.",
                )
            for each in named:
                found[each].append((holder, name))
            if (place, holder) not in reached:
                reached.add((place, holder))
                pending.append(self._list_further(place, holder, name))
        return found

    def _list_further(
        self, place: str, holder: PackageId, name: str
    ) -> Iterator[tuple[str, PackageId, str]]:
        """What the links below a place that a package takes in lead to."""
        for link in _below(place, self.tree.links):
            if name == COMPILED and self._bare.is_apart(link, place):
                continue
            rest = link.removeprefix(f"{place}/")
            yield from ((it, holder, f"{name}/{rest}") for it in self._follow(link))

    def _list_outside(self) -> Iterator[tuple[str, PackageId, str]]:
        """What manifests take in."""
        for package in self._asked:
            for path in self._compositions[package.id.ecosystem].list_outside(package):
                # Whoever takes in what is around it, does not mean all of that.
                if not package.directory.is_relative_to(os.path.normpath(path)):
                    place = os.path.relpath(path, self._root)
                    yield place, package.id, _OUTSIDE

    def _list_compiled(self) -> Iterator[tuple[str, PackageId, str]]:
        for package in self._asked:
            for manifest in self._compiled[package.id]:
                if manifest.parent != package.directory:
                    place = os.path.relpath(manifest.parent, self._root)
                    yield "" if place == "." else place, package.id, COMPILED

    def _list_linked(self) -> Iterator[tuple[str, PackageId, str]]:
        """What the links below the directories of packages lead to."""
        asked = {each.id: each for each in self._asked}
        follows: dict[PackageId, bool] = {}
        for link in self.tree.links:
            for package, name in self._bare.locate(link):
                if package not in asked:
                    continue
                if package not in follows:
                    composition, found = self._compositions[package.ecosystem], asked[package]
                    follows[package] = composition.follows_links(found, self.list_own(found))
                if follows[package]:
                    yield from ((place, package, name) for place in self._follow(link))

    def _follow(self, link: str) -> Iterator[str]:
        """Where it leads, if that is below the root and not around the link itself."""
        try:
            target = os.readlink(self._root / link)  # noqa: PTH115 (Path would normalise it)
        except OSError:
            return
        place = posixpath.normpath(posixpath.join(posixpath.dirname(link), target))
        if place != "." and not f"{link}/".startswith(f"{place}/"):
            yield place

    def _resolve(self, path: str) -> tuple[str | None, list[str]]:
        """Without links on the way, and these; None where it leaves the repository, is around the
        root, or leads in a circle. Of what lies above the root, links are not known.
        """
        hops: list[str] = []
        for _ in range(_MOST_LINKS):
            if path.startswith("../"):
                path = os.path.relpath(self._root / path, self._root)
            ups, parts = 0, path.split("/")
            while parts[ups:] and parts[ups] == _OUTSIDE:
                ups += 1
            if path.startswith("/") or path == "." or ups == len(parts) or ups > self._above:
                break
            if ups:
                return path, hops
            ends = [at for at, letter in enumerate(path) if letter == "/"]
            link = next((it for end in (*ends, len(path)) if (it := path[:end]) in self._links), "")
            if not link:
                return path, hops
            followed = next(self._follow(link), None)
            if followed is None:
                break
            hops.append(link)
            path = posixpath.normpath(f"{followed}{path[len(link) :]}")
        return None, hops


def _below(place: str, names: Sequence[str]) -> Sequence[str]:
    """Those of sorted names that lie below a directory; all of them where it is the root."""
    if not place:
        return names
    first, last = (bisect_left(names, f"{place}{after}") for after in "/0")  # "0" follows "/"
    return names[first:last]
