"""Which packages have changed since the version that is published, as git has both.

One process compares the directories of all packages, and a second one names the files in those that
differ; nothing is built for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.errors import CommandFailed
from releasekit.versioning.tag_forms import OWN_TAGS, SHARED_TAGS, list_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from releasekit.host.process import Processes
    from releasekit.model import Package

_JOINTS: Final = frozenset(joint for joint in OWN_TAGS if len(joint) == 1)
_NOTES: Final = re.compile(r"(?:copying|licen[cs]e|notice|readme)(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Revision:
    """A state of the sources, as git and as a reader know it."""

    id: str
    shown: str

    @classmethod
    def of_commit(cls, commit: str) -> Revision:
        return cls(commit, f"commit {commit[:12]}")

    @classmethod
    def of_tag(cls, tag: str) -> Revision:
        return cls(f"refs/tags/{tag}", f"tag {tag}")


# A package, and the state that its changes count from.
Since = tuple["Package", Revision]


async def tags_of(root: Path, processes: Processes, *which: str) -> frozenset[str]:
    """All there are, or those `which` git means; none outside of git, and in a checkout without
    them.
    """
    try:
        listed = await processes.run(
            ["git", "for-each-ref", "--format=%(refname:strip=2)", *which, "refs/tags"],
            cwd=root,
            timeout_s=60.0,
        )
    except CommandFailed:
        return frozenset()
    return frozenset(listed.stdout.split("\n")) - {""}


def version_tags(
    packages: Iterable[Package], root: Path, tags: Collection[str]
) -> dict[Package, Revision]:
    """The tag of each version that has one. A name that packages of several directories have tells
    of none of them; a tag that names no package counts where no tag names this one.
    """
    names = {package: list_names(package, root) for package in packages}
    places = {(name, each.directory) for each, known in names.items() for name in known}
    holders = Counter(name for name, _ in places)
    # All that a name and a joint may be: there may be many packages, and many more tags.
    beginnings = {
        tag[:end] for tag in tags for end in range(1, len(tag) + 1) if tag[end - 1] in _JOINTS
    }
    found = {}
    for package, known in names.items():
        version = package.version.removeprefix("v")
        own = [f"{name}{joint}" for name in known if holders[name] == 1 for joint in OWN_TAGS]
        named = any(f"{name}{joint}" in beginnings for name in known for joint in _JOINTS)
        possible = own if named else [*own, *SHARED_TAGS]
        tag = next((each for before in possible if (each := f"{before}{version}") in tags), None)
        if tag is not None:
            found[package] = Revision.of_tag(tag)
    return found


async def changes(
    since: Iterable[Since], everything: Iterable[Package], root: Path, processes: Processes
) -> dict[Since, tuple[str, ...]]:
    """The files below the directory of each package that the commit checked out and the revision
    have differently, relative to it. Those of packages further down, of `everything`, do not count.

    A package is missing where nothing has changed, or the repository does not hold the revision.
    """
    asked = {each: f"./{each[0].directory.relative_to(root).as_posix()}" for each in since}
    asked = {each: place for each, place in asked.items() if "\n" not in place}
    objects = [
        f"{revision}:{place}"
        for (_, then), place in asked.items()
        for revision in (then.id, "HEAD")
    ]
    try:
        trees = await _trees(objects, root, processes)
        pairs = {each: (trees[2 * index], trees[2 * index + 1]) for index, each in enumerate(asked)}
        differing = {
            each: pair for each, pair in pairs.items() if all(pair) and len(set(pair)) == 2
        }
        names = await _differences(set(differing.values()), root, processes)
    except CommandFailed:
        return {}
    directories = [package.directory for package in everything]
    found = {}
    for each, pair in differing.items():
        if own := outside_others(names.get(pair, ()), each[0].directory, directories):
            found[each] = own
    return found


def outside_others(
    names: Iterable[str], directory: Path, directories: Iterable[Path]
) -> tuple[str, ...]:
    """Those of `names`, relative to `directory`, that are not in one of `directories` below it."""
    inner = tuple(
        f"{other.relative_to(directory).as_posix()}/"
        for other in directories
        if other != directory and other.is_relative_to(directory)
    )
    return tuple(name for name in names if not name.startswith(inner))


async def tracked_files(root: Path, processes: Processes) -> list[str]:
    """What the commit checked out has below `root`, by names relative to it, sorted. Nothing where
    that is too much to be read.
    """
    try:
        listed = await processes.run(
            ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"], cwd=root, timeout_s=60.0
        )
    except CommandFailed:
        return []
    return sorted(listed.stdout.split("\0"))


async def _trees(objects: Sequence[str], root: Path, processes: Processes) -> list[str]:
    """The id of each tree, empty for what is missing, in the same order."""
    if not objects:
        return []
    completed = await processes.run(
        ["git", "cat-file", "--batch-check=%(objectname) %(objecttype)"],
        cwd=root,
        timeout_s=60.0,
        stdin="".join(f"{each}\n" for each in objects),
    )
    lines = completed.stdout.splitlines()
    return [line.partition(" ")[0] if line.endswith(" tree") else "" for line in lines]


async def _differences(
    pairs: Collection[tuple[str, str]], root: Path, processes: Processes
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The files that differ between the two trees of each pair.

    https://git-scm.com/docs/git-diff-tree (--stdin)
    """
    if not pairs:
        return {}
    completed = await processes.run(
        ["git", "-c", "core.quotePath=false", "diff-tree", "-r", "--name-only", "--stdin"],
        cwd=root,
        timeout_s=60.0,
        stdin="".join(f"{before} {after}\n" for before, after in sorted(pairs)),
    )
    found: dict[tuple[str, str], list[str]] = {}
    names: list[str] = []
    for line in completed.stdout.splitlines():
        before, _, after = line.partition(" ")
        if (before, after) in pairs:
            names = found.setdefault((before, after), [])
        else:
            names.append(line)
    return {pair: tuple(names) for pair, names in found.items()}


def compiled(names: Iterable[str], package: Package) -> list[str]:
    """Those of the files of a package that a build of another one makes something of."""
    return [name for name in names if name != package.manifest.name and not _NOTES.fullmatch(name)]


def below(directory: Path, root: Path, tracked: Sequence[str]) -> Sequence[str]:
    """Those of the files below `root`, sorted, that `directory` has, relative to it."""
    place = directory.relative_to(root).as_posix()
    if place == ".":
        return tracked
    first, last = (bisect_left(tracked, f"{place}{after}") for after in "/0")  # "0" follows "/"
    return [name.removeprefix(f"{place}/") for name in tracked[first:last]]
