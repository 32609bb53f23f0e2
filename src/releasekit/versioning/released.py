"""Which version of each package was released last, by the tags that lead to HEAD, and up to which
commit changes went into the decision on it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.git.versions import find_first_commits, find_versions_at
from releasekit.versioning.history import make_shallow_error, read_changes
from releasekit.versioning.messages import find_base
from releasekit.versioning.numbering import numbering_of
from releasekit.versioning.tag_forms import (
    OWN_TAGS,
    SHARED_TAGS,
    is_version_of_another,
    list_names,
)

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Mapping,
        Sequence,
    )
    from pathlib import Path

    from releasekit.git.commits import Commits
    from releasekit.git.versions import VersionAt
    from releasekit.model import Package, PackageId
    from releasekit.versioning.history import Line
    from releasekit.versioning.order import VersionKey
    from releasekit.versioning.owners import Owners

    # Of packages without a tag, those whose version is on its registry, or may be there.
    FindPublished = Callable[[Sequence[Package]], Awaitable[Collection[PackageId]]]

# So many tags that do not name one package alone are compared with the manifests of their commits.
_MOST_COMPARED: Final = 32
_COMPLETED: Final = frozenset({"go.mod", "go.sum"})
_TRAILER: Final = "^ReleaseKit-Base: [0-9a-f]{40}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """`version` is canonical, and empty before the first release. Its changes are those of the
    first `base` commits of the line; those from `tagged` on were in the released version already,
    and so was what `beside` has, the commit of a tag on a branch that was merged since. `commit` is
    the one that `base` begins behind, empty for the whole history. `taken` are all versions that
    have a tag, each with its commit. A `guessed` one has no tag.
    """

    version: str
    base: int
    tagged: int
    commit: str
    beside: str = ""
    taken: Mapping[str, str] = field(default_factory=dict)
    guessed: bool = False


class _Tag(NamedTuple):
    """Sorts by its version."""

    order: VersionKey
    version: str
    name: str
    commit: str
    is_stable: bool


@dataclass(frozen=True, slots=True)
class _Tags:
    """The highest first: those that name a package `alone`, those that name `several`, and those
    that name none, by ecosystem.
    """

    alone: dict[PackageId, list[_Tag]]
    several: dict[PackageId, list[_Tag]]
    unnamed: dict[str, list[_Tag]]

    def list_shared(self, package: PackageId) -> list[_Tag]:
        # Nothing else names a Go module. https://go.dev/ref/mod#vcs-version
        unnamed = self.unnamed[package.ecosystem] if package.ecosystem != "go" else []
        several = self.several[package]
        return sorted([*several, *unnamed], reverse=True) if several else unnamed

    def list_commits(self) -> set[str]:
        found = (self.alone, self.several, self.unnamed)
        return {tag.commit for each in found for tags in each.values() for tag in tags}


class _Place(NamedTuple):
    """Of a commit in the history of HEAD: how many of the line are younger, and itself if it is
    none of the line.
    """

    younger: int
    beside: str = ""


async def find_releases(
    versions: Mapping[Package, VersionAt],
    commits: Commits,
    root: Path,
    line: Line,
    owners: Owners,
    templates: Mapping[PackageId, str],
    find_published: FindPublished,
) -> dict[PackageId, Release]:
    """Of each package; `versions` says how its manifests are read at another commit, `templates`
    what its tags are called, with NUL in the place of the version.

    Raises CommandFailed, and PlanError where the history that is here does not reach back.
    """
    tags = _sort_tags(versions, root, await commits.list_tags(), templates)
    places = await _find_places(tags.list_commits(), commits, line)
    last: dict[PackageId, _Tag] = {}
    for package, found in tags.alone.items():
        stable = (tag for tag in found if tag.is_stable and tag.commit in places)
        if (tag := next(stable, None)) is not None:
            last[package] = tag
    last |= await _find_agreeing(versions, last, tags, places, commits)
    untagged = [package for package in versions if package.id not in last]
    if untagged and line.is_shallow:
        raise make_shallow_error()
    bases = await _find_bases(last, tags, places, commits, line, owners)
    releases = {}
    for package, tag in last.items():
        place = places[tag.commit]
        base = bases.get(package, place.younger)
        releases[package] = Release(
            version=tag.version,
            base=base,
            tagged=place.younger,
            commit=line.commits[base] if base < len(line.commits) else "",
            beside=place.beside,
            taken=_list_taken(tag, tags.alone[package], tags.list_shared(package), places),
        )
    return releases | await _guess(untagged, versions, commits, line, find_published)


def _sort_tags(
    packages: Iterable[Package],
    root: Path,
    tags: Mapping[str, str],
    templates: Mapping[PackageId, str],
) -> _Tags:
    found = _Tags({}, {}, {})
    holders: defaultdict[str, defaultdict[str, set[PackageId]]]
    holders = defaultdict(lambda: defaultdict(set))  # by what stands before and behind a version
    for prefix in SHARED_TAGS:
        holders[prefix][""] = set()
    for package in packages:
        found.alone[package.id], found.several[package.id] = [], []
        found.unnamed[package.id.ecosystem] = []
        prefix, _, suffix = templates.get(package.id, "\0").partition("\0")
        names = [(f"{name}{joint}", "") for name in list_names(package, root) for joint in OWN_TAGS]
        if package.id.ecosystem == "go":
            place = package.directory.relative_to(root).as_posix()
            names = [("v" if place == "." else f"{place}/v", "")]
        elif prefix or suffix:
            names.append((prefix, suffix))
        for prefix, suffix in names:
            holders[prefix][suffix].add(package.id)
    for name, commit in tags.items():
        for digit in re.finditer(r"[0-9]", name):
            prefix = name[: digit.start()]
            rest = name[digit.start() :]
            for suffix, named in holders[prefix].items() if prefix in holders else ():
                if rest.endswith(suffix):
                    text = rest.removesuffix(suffix)
                    is_bare = prefix in SHARED_TAGS and not suffix
                    _add(found, named, text, name, commit, is_bare=is_bare)
    for each in (found.alone, found.several, found.unnamed):
        for listed in each.values():
            listed.sort(reverse=True)
    return found


def _add(
    found: _Tags, named: Collection[PackageId], text: str, name: str, commit: str, *, is_bare: bool
) -> None:
    """`is_bare` is a tag without any name: what its packages are called decides nothing."""
    read = {ecosystem: _read_tag(ecosystem, text, name, commit) for ecosystem in found.unnamed}
    for ecosystem, tag in read.items():
        if tag is not None and is_bare:
            found.unnamed[ecosystem].append(tag)
    for package in named:
        tag = read[package.ecosystem]
        if tag is not None and package.ecosystem == "go":
            found.alone[package].append(tag)
        elif tag is not None and not is_bare:
            (found.alone if len(named) == 1 else found.several)[package].append(tag)


def _read_tag(ecosystem: str, text: str, name: str, commit: str) -> _Tag | None:
    if not (version := canonical(ecosystem, text)):
        return None
    numbering = numbering_of(ecosystem)
    is_stable = not numbering.is_prerelease(version)
    return _Tag(numbering.order(version), version, name, commit, is_stable)


def canonical(ecosystem: str, text: str) -> str:
    """Its canonical spelling, without Go's `v`; empty for what is no version."""
    if is_version_of_another(text):
        return ""
    try:
        return numbering_of(ecosystem).check(text).removeprefix("v")
    except ValueError:
        return ""


async def _find_places(wanted: Collection[str], commits: Commits, line: Line) -> dict[str, _Place]:
    """Of these commits that HEAD has, or that publishing has made on one of them."""
    found = {each: _Place(line.indexes[each]) for each in wanted if each in line.indexes}
    others = sorted(set(wanted) - found.keys())
    if not others:
        return found
    parents = await commits.list_parents("--topo-order", "HEAD", "--")
    # The newest commit of the line that each leads to.
    indexes: dict[str, int] = {}
    for commit, above in reversed(parents.items()):
        reached = [indexes[each] for each in above if each in indexes]
        indexes[commit] = line.indexes.get(commit, min(reached, default=len(line.commits)))
    # Publishing makes the tag of a Go module on a commit of its own, which completes these files.
    aside = await read_changes(commits, [each for each in others if each not in parents])
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
            found[each] = _Place(indexes[at], "" if at in line.indexes else at)
    return found


async def _find_agreeing(
    versions: Mapping[Package, VersionAt],
    last: Mapping[PackageId, _Tag],
    tags: _Tags,
    places: Mapping[str, _Place],
    commits: Commits,
) -> dict[PackageId, _Tag]:
    """Of tags that may be of others, the highest of each package at whose commit its manifests had
    that version, if it is higher than its `last` one.
    """
    unsure: dict[Package, list[_Tag]] = {}
    for package in versions:
        own, listed = last.get(package.id), unsure.setdefault(package, [])
        for tag in tags.list_shared(package.id):
            if len(listed) == _MOST_COMPARED or (own is not None and tag.order <= own.order):
                break
            if tag.is_stable and tag.commit in places:
                listed.append(tag)
    found: dict[PackageId, _Tag] = {}
    # Nearly always it is the first one.
    for asked in (slice(1), slice(1, None)):
        pairs = [
            (package, tag)
            for package, listed in unsure.items()
            if package.id not in found
            for tag in listed[asked]
        ]
        had = await find_versions_at(
            [(package, versions[package], tag.commit) for package, tag in pairs], commits
        )
        # Of what tells no version, as one that comes from the tag, it is enough to be there.
        silent = {
            (package.id, tag): commits.name_object(tag.commit, package.manifest)
            for package, tag in pairs
            if not had[package.id, tag.commit] and package.id not in last
        }
        there = await commits.read_blobs(silent.values())
        for package, tag in pairs:
            said = canonical(package.id.ecosystem, had[package.id, tag.commit])
            is_same = said and numbering_of(package.id.ecosystem).order(said) == tag.order
            if is_same or there.get(silent.get((package.id, tag), "")) is not None:
                found.setdefault(package.id, tag)
    return found


def _list_taken(
    last: _Tag, alone: Sequence[_Tag], shared: Iterable[_Tag], places: Mapping[str, _Place]
) -> dict[str, str]:
    """Of those that may be of others, the higher ones that no manifest in the history of HEAD could
    speak for: lower versions are never decided.
    """
    known = [*alone, last]
    if last not in alone:
        for tag in shared:
            if tag.order <= last.order:
                break
            if tag.commit not in places or not tag.is_stable:
                known.append(tag)
    return {tag.version: tag.commit for tag in known}


async def _find_bases(
    last: Mapping[PackageId, _Tag],
    tags: _Tags,
    places: Mapping[str, _Place],
    commits: Commits,
    line: Line,
    owners: Owners,
) -> dict[PackageId, int]:
    """Where the decision on a released version was made on an earlier commit than the one that is
    tagged, by the trailer of the commit that wrote it.
    """
    told = await commits.run_git(
        *("log", "-z", "-E", f"--grep={_TRAILER}", "--format=%H%x00%B", "HEAD", "--")
    )
    fields = told.split("\0")
    bases = {
        commit.strip("\n"): find_base(message)
        for commit, message in zip(fields[::2], fields[1::2], strict=False)
    }
    if not any(bases.values()):
        return {}
    # Each commit of the line that has one, or merges one. What a shallow clone lacks may be a base.
    lacking = len(line.commits) if line.is_shallow else 0
    writing: dict[int, int] = {}
    for index, commit in enumerate(line.commits):
        for each in (commit, *line.parents[commit][1:2]):
            base = line.indexes.get(bases[each], lacking) if bases.get(each) else 0
            if base > index:
                writing.setdefault(index, base)
    written: dict[PackageId, list[int]] = defaultdict(list)
    changes = await read_changes(commits, [line.commits[index] for index in sorted(writing)])
    for change in changes:
        for owner in {owner for path in change.files for owner in owners.find_owners(path)}:
            written[owner].append(line.indexes[change.commit])
    found = {}
    for package, tag in last.items():
        tagged = places[tag.commit].younger
        wrote = next((each for each in written[package] if tagged <= each), None)
        if wrote is None:
            continue
        # What the release before it had is no change of this one, whatever a message says.
        earlier = min(
            (
                places[each.commit].younger
                for each in [*tags.alone[package], *tags.list_shared(package)]
                if each.is_stable and each.commit in places
                if each.order < tag.order and places[each.commit].younger > tagged
            ),
            default=len(line.commits),
        )
        if wrote < earlier:
            found[package] = min(writing[wrote], earlier)
            if found[package] == len(line.commits):
                raise make_shallow_error()
    return found


async def _guess(
    untagged: Sequence[Package],
    versions: Mapping[Package, VersionAt],
    commits: Commits,
    line: Line,
    find_published: FindPublished,
) -> dict[PackageId, Release]:
    """A version without a tag was released if its registry has it; its changes are those since the
    commit that wrote it.
    """
    if not untagged:
        return {}
    first = await find_first_commits({each: versions[each] for each in untagged}, commits)
    published = await find_published(untagged)
    found = {}
    for package in untagged:
        index = line.indexes.get(first[package.id], 0)
        is_there = package.id in published
        base = index if is_there else min(index + 1, len(line.commits))
        found[package.id] = Release(
            version=canonical(package.id.ecosystem, package.version) if is_there else "",
            base=base,
            tagged=base,
            commit=line.commits[base] if base < len(line.commits) else "",
            guessed=True,
        )
    return found
