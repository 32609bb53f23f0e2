"""Which packages have changed since the version that is published, as git has both.

One process compares all that packages are made of, and a second one names the files in directories
that differ; nothing is built for it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from releasekit.errors import CommandFailed
from releasekit.git.commits import parse_id, parse_ref_name
from releasekit.git.tag_forms import OWN_TAGS, SHARED_TAGS, list_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from releasekit.host.process import Processes
    from releasekit.model import Package

_JOINTS: Final = frozenset(joint for joint in OWN_TAGS if len(joint) == 1)
_NOTES: Final = re.compile(r"(?:copying|licen[cs]e|notice|readme)(?:\..*)?", re.IGNORECASE)


class Revision(Struct, frozen=True):
    """A state of the sources, as git and as a reader know it."""

    id: str
    shown: str

    @classmethod
    def of_commit(cls, commit: str) -> Revision:
        return cls(commit, f"commit {commit[:12]}")

    @classmethod
    def of_tag(cls, tag: str) -> Revision:
        return cls(f"refs/tags/{tag}", f"tag {tag}")


# A file or directory by its path below the root, and the state that its changes count from.
Since = tuple[str, Revision]


async def tags_of(root: Path, processes: Processes, *which: str) -> frozenset[str]:
    """All there are, or those `which` git means; none outside of git, and in a checkout without
    them.
    """
    try:
        listed = await processes.run(
            ["git", "for-each-ref", "--format=%(refname)", *which, "refs/tags"],
            cwd=root,
            timeout_s=60.0,
        )
    except CommandFailed:
        return frozenset()
    return frozenset(
        each.removeprefix("refs/tags/") for each in listed.stdout.parse_rows(parse_ref_name)
    )


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
    since: Iterable[Since], root: Path, processes: Processes
) -> dict[Since, tuple[str, ...]]:
    """The files at or below each place that the commit checked out and the revision have
    differently, by names relative to `root`, as places are; "" is `root` itself.

    A place is missing where nothing has changed, or one of the two does not have it.
    """
    asked = [each for each in dict.fromkeys(since) if "\n" not in each[0]]
    objects = [f"{revision}:./{place}" for place, then in asked for revision in (then.id, "HEAD")]
    try:
        found = await _find_objects(objects, root, processes)
        differing = {
            each: (before, after)
            for each, before, after in zip(asked, found[::2], found[1::2], strict=True)
            if before and after and before.id != after.id
        }
        trees = {
            each: (before.id, after.id)
            for each, (before, after) in differing.items()
            if before.kind == after.kind == "tree"
        }
        names = await _differences({*trees.values()}, root, processes)
    except CommandFailed:
        return {}
    return {
        each: tuple(f"{each[0]}/{name}".removeprefix("/") for name in names.get(trees[each], ()))
        if each in trees
        else (each[0],)
        for each in differing
    }


class _Object(NamedTuple):
    id: str
    kind: str


async def _find_objects(
    objects: Sequence[str], root: Path, processes: Processes
) -> list[_Object | None]:
    """Each file and each directory, None for what is missing or neither, in the same order."""
    if not objects:
        return []
    completed = await processes.run(
        ["git", "cat-file", "--batch-check=%(objectname) %(objecttype)"],
        cwd=root,
        timeout_s=60.0,
        stdin="".join(f"{each}\n" for each in objects),
    )
    found = completed.stdout.parse_rows(_parse_object)
    # It says of each what it is, or that it is missing.
    completed.stdout.parse(lambda _: list(zip(objects, found, strict=True)))
    return found


def _parse_object(line: str) -> _Object | None:
    *name, kind = line.split(" ")
    if kind in {"tree", "blob"}:
        return _Object(parse_id(" ".join(name)), kind)
    if kind not in {"missing", "submodule", "commit", "tag", "ambiguous"}:
        raise ValueError("not the kind of an object")
    return None


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

    def parse(told: str) -> dict[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], list[str]] = {}
        pair = ("", "")
        for line in told.splitlines():
            before, _, after = line.partition(" ")
            if (before, after) in pairs:
                pair = (before, after)
                found[pair] = []
            else:
                found[pair].append(line)
        return {pair: tuple(names) for pair, names in found.items()}

    return completed.stdout.parse(parse)


def compiled(names: Iterable[str], package: Package) -> list[str]:
    """Those of the files of a package that a build of another one makes something of."""
    return [name for name in names if name != package.manifest.name and not _NOTES.fullmatch(name)]
