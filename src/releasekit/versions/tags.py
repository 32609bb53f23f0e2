"""Whose tags there are: which package and version the name of each means, and where HEAD has it."""

from __future__ import annotations

import re
from collections import defaultdict
from heapq import merge
from itertools import product, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, field

from releasekit.fields import replace
from releasekit.git.tag_forms import (
    OWN_TAGS,
    SHARED_TAGS,
    is_version_of_another,
    list_like_names,
    list_names,
)
from releasekit.model import PackageId
from releasekit.text.numbering import numbering_of
from releasekit.versions.history import read_changes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.text.version_order import VersionKey
    from releasekit.versions.candidates import Candidate
    from releasekit.versions.history import MainLine

# A package, an ecosystem, or those whose version stands in one place, by a name of no package.
_Holder = PackageId | str

_MOST_SHOWN: Final = 3
_VERSION: Final = re.compile(r"[0-9]+[._][0-9]+")
_MAJOR: Final = re.compile(r"v[0-9]+")
_COMPLETED: Final = frozenset({"go.mod", "go.sum"})


class VersionTag(NamedTuple):
    """Sorts by its version. Its name is that of one package alone if it `is_own`."""

    order: VersionKey
    is_own: bool
    version: str
    name: str
    commit: str
    is_stable: bool


class LinePlace(NamedTuple):
    """Where a commit in the history of HEAD is: how many of the line are younger, and `beside`, the
    commit itself, where it is none of the line.
    """

    younger: int
    beside: str = ""


class Tags(Struct, frozen=True):
    """By who may have them, the highest first; `holders` are what each package belongs to, itself
    first. Nobody has those that are `unclaimed`, with a version in them. `places` are those of the
    commits that HEAD has.
    """

    listed: Mapping[_Holder, Sequence[VersionTag]]
    holders: Mapping[PackageId, Sequence[_Holder]]
    unclaimed: Sequence[str] = ()
    places: Mapping[str, LinePlace] = field(default_factory=dict)

    def list_own(self, package: PackageId) -> Iterator[VersionTag]:
        """Those that name the package alone, the highest first."""
        return (tag for tag in self.listed.get(package, ()) if tag.is_own)

    def list_above(self, package: PackageId, own: VersionTag | None = None) -> Iterator[VersionTag]:
        """Those that may be of the package, the highest first, as far as its `own`."""
        found = merge(*(self.listed.get(it, ()) for it in self.holders[package]), reverse=True)
        return takewhile(lambda tag: own is None or tag > own, found)


async def read_tags(
    candidates: Sequence[Candidate], packages: Iterable[Package], line: MainLine, root: Path
) -> Tags:
    known = await line.git.list_tags()
    names = _Names(root, line.git.top)
    for each in candidates:
        names.add(each.package, each.tag, each.shared)
    tags = names.sort(known)
    if tags.unclaimed:
        ids = {each.id for each in candidates}
        others = [each for each in packages if each.id not in ids]
        left = {name: known[name] for name in tags.unclaimed}
        listed = list_own_tags(others, root, line.git.top, left)
        read = {name for own in listed.values() for name in own.values()}
        tags = replace(tags, unclaimed=[name for name in tags.unclaimed if name not in read])
    reached = {tag.commit for listed in tags.listed.values() for tag in listed}
    return replace(tags, places=await _find_places(reached, line))


def list_own_tags(
    packages: Iterable[Package], root: Path, top: Path, tags: Mapping[str, str]
) -> dict[PackageId, dict[str, str]]:
    """The tags that are of one package alone, by its versions, the highest first."""
    names = _Names(root, top)
    for each in packages:
        names.add(each)
    found = names.sort(tags)
    return {
        holder: {each.version: each.name for each in found.list_own(holder)}
        for holder in found.listed
        if not isinstance(holder, str)
    }


class _Names:
    """Who is meant by what stands before and behind a version in a tag, and whether by name."""

    def __init__(self, root: Path, top: Path) -> None:
        self._root, self._top = root, top
        self._holders: dict[PackageId, list[_Holder]] = {}
        self._meant: defaultdict[tuple[str, str], dict[_Holder, bool]] = defaultdict(dict)

    def add(self, package: Package, template: str = "\0", shared: PackageId | None = None) -> None:
        """As a `Candidate` has them."""
        group = [shared] if shared else []
        self._holders[package.id] = [package.id, *group, package.id.ecosystem]
        if package.id.ecosystem == "go":
            # Nothing else names a Go module. https://go.dev/ref/mod#vcs-version
            place = package.directory.relative_to(self._top)
            if _MAJOR.fullmatch(place.name) and package.id.name.endswith(f"/{place.name}"):
                place = place.parent
            self._meant[(place / "v").as_posix(), ""][package.id] = True
            return
        prefix, _, suffix = template.partition("\0")
        names = [
            (f"{name}{joint}", "") for name in list_names(package, self._root) for joint in OWN_TAGS
        ]
        if suffix or prefix not in SHARED_TAGS:
            names.append((prefix, suffix))
        for prefix in SHARED_TAGS:
            self._meant[prefix, ""][package.id.ecosystem] = False
        alike = list_like_names(package)
        alike += [package.directory.name] if package.directory != self._root else []
        for name, joint in product(alike, OWN_TAGS):
            self._meant[f"{name}{joint}", ""].setdefault(package.id, False)
        # The tag of a reactor has the name of its parent.
        for holder, ends in product(group, names):
            self._meant[ends][holder] = False
        for ends in names:
            self._meant[ends][package.id] = True

    def sort(self, tags: Mapping[str, str]) -> Tags:
        """`tags` are names, with their commits."""
        suffixes = {"", *(suffix for _, suffix in self._meant)}
        found: defaultdict[_Holder, list[VersionTag]] = defaultdict(list)
        unclaimed = []
        for name, commit in tags.items():
            read = [
                each
                for digit, suffix in product(re.finditer(r"[0-9]", name), suffixes)
                for each in self._read(name, commit, digit.start(), suffix)
            ]
            for holder, tag in read:
                found[holder].append(tag)
            if not read and _VERSION.search(name):
                unclaimed.append(name)
        for listed in found.values():
            listed.sort(reverse=True)
        return Tags(found, self._holders, unclaimed)

    def _read(
        self, name: str, commit: str, at: int, suffix: str
    ) -> Iterator[tuple[_Holder, VersionTag]]:
        """Those that the tag may be of, where its version begins at this character."""
        text = name[at:]
        those = self._meant.get((name[:at], suffix), {}) if text.endswith(suffix) else {}
        is_of_one = sum(those.values()) == 1 and not any(isinstance(it, str) for it in those)
        for holder, is_named in those.items():
            ecosystem = holder if isinstance(holder, str) else holder.ecosystem
            if version := canonicalize(ecosystem, text.removesuffix(suffix)):
                is_own = is_named and (is_of_one or ecosystem == "go")
                numbering = numbering_of(ecosystem)
                is_stable = not numbering.read(version).is_prerelease
                order = numbering.order(version)
                yield holder, VersionTag(order, is_own, version, name, commit, is_stable)


async def _find_places(wanted: Collection[str], line: MainLine) -> dict[str, LinePlace]:
    """Of these commits that HEAD has, or that publishing has made on one of them."""
    found = {each: LinePlace(line.indexes[each]) for each in wanted if each in line.indexes}
    others = sorted(set(wanted) - found.keys())
    if not others:
        return found
    parents = await line.git.list_parents("--topo-order", line.git.head, "--")
    # The newest commit of the line that each leads to.
    indexes: dict[str, int] = {}
    for commit, above in reversed(parents.items()):
        reached = [indexes[each] for each in above if each in indexes]
        indexes[commit] = line.indexes.get(commit, min(reached, default=len(line.commits)))
    # Publishing makes the tag of a Go module on a commit of its own, which completes these files.
    aside = await read_changes(line.git, [each for each in others if each not in parents])
    completed = {
        each.commit: each.parents[0]
        for each in aside
        if each.parents
        and each.files
        and {path.rpartition("/")[2] for path in each.files} <= _COMPLETED
    }
    for each in others:
        at = completed.get(each, each)
        if at in indexes:
            found[each] = LinePlace(indexes[at], "" if at in line.indexes else at)
    return found


def find_alike(package: PackageId, tags: Sequence[str]) -> Sequence[str]:
    """Some of them, and only those that have the name of the package in them, if any do."""
    last = re.split(r"[/:]", package.name)[-1].casefold()
    own = [each for each in tags if last in each.casefold()]
    return (own or tags)[-_MOST_SHOWN:]


def canonicalize(ecosystem: str, text: str) -> str:
    """Its canonical spelling, without Go's `v`; empty for what is no version."""
    if is_version_of_another(text):
        return ""
    try:
        return numbering_of(ecosystem).check(text).removeprefix("v")
    except ValueError:
        return ""
