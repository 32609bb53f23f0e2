"""Which version of each package was released last, by the tags that lead to HEAD, and up to which
commit changes went into the decision on it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.errors import PlanError
from releasekit.git.versions import find_first_commits, find_versions
from releasekit.problems import Problem
from releasekit.versioning.history import read_changed_files
from releasekit.versioning.messages import find_base
from releasekit.versioning.numbering import numbering_of
from releasekit.versioning.tag_forms import (
    OWN_TAGS,
    SHARED_TAGS,
    is_version_of_another,
    list_names,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.git.commits import Commits
    from releasekit.git.versions import VersionAt
    from releasekit.model import Package, PackageId
    from releasekit.versioning.history import Line
    from releasekit.versioning.owners import Owners

    # Of packages without a tag, those whose version is on its registry, or may be there.
    FindPublished = Callable[[Sequence[Package]], Awaitable[Collection[PackageId]]]

# So many tags that name no package are compared with the manifests of their commits.
_MOST_SHARED: Final = 100
_TRAILER: Final = "^ReleaseKit-Base: [0-9a-f]{40}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """`version` is canonical, and empty before the first release. Its changes are those of the
    first `base` commits of the line; those from `tagged` on were in the released version already.
    `commit` is the one that `base` begins behind, empty for the whole history. `taken` are all
    versions that have a tag, each with its commit. A `guessed` one has no tag.
    """

    version: str
    base: int
    tagged: int
    commit: str
    taken: Mapping[str, str] = field(default_factory=dict)
    guessed: bool = False


class _Tag(NamedTuple):
    version: str
    name: str
    commit: str


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
    tags = await commits.list_tags()
    own, shared = _sort_tags(versions, root, tags, templates)
    below = await _find_positions(
        {tag.commit for found in (own, shared) for each in found.values() for tag in each},
        commits,
        line,
    )
    last: dict[Package, _Tag] = {}
    for package in versions:
        numbering = numbering_of(package.id.ecosystem)
        for found in (own, shared):
            found[package] = sorted(
                found[package], key=lambda tag: (numbering.order(tag.version), tag), reverse=True
            )
        stable = (
            tag
            for tag in own[package]
            if tag.commit in below and not numbering.is_prerelease(tag.version)
        )
        if (tag := next(stable, None)) is not None:
            last[package] = tag
    unsure = {
        package: [
            tag
            for tag in shared[package]
            if tag.commit in below
            and not numbering_of(package.id.ecosystem).is_prerelease(tag.version)
        ]
        for package in versions
        if package not in last
    }
    last |= await _find_shared(unsure, versions, commits)
    untagged = [package for package in versions if package not in last]
    if untagged and await commits.is_shallow():
        raise PlanError(
            f"the clone is shallow, and without its history nobody knows what has changed since "
            f"the last release of {untagged[0].id}",
            hint="Fetch all of it: `fetch-depth: 0` below `with` of actions/checkout, or "
            "`git fetch --unshallow --tags`.",
            problem=Problem.SHALLOW_HISTORY,
        )
    bases = await _find_bases(last, own, below, commits, line, owners)
    releases = {}
    for package, tag in last.items():
        tagged = below[tag.commit]
        base = max(bases.get(package.id, tagged), tagged)
        known = own[package] if tag in own[package] else shared[package]
        releases[package.id] = Release(
            version=tag.version,
            base=base,
            tagged=tagged,
            commit=line.commits[base] if base < len(line.commits) else "",
            taken={each.version: each.commit for each in known},
        )
    return releases | await _guess(untagged, versions, commits, line, find_published)


def _sort_tags(
    packages: Iterable[Package],
    root: Path,
    tags: Mapping[str, str],
    templates: Mapping[PackageId, str],
) -> tuple[dict[Package, list[_Tag]], dict[Package, list[_Tag]]]:
    """Those of versions of each package that name it alone, and those that name several or none."""
    prefixes: dict[tuple[str, str], set[Package]] = defaultdict(set)
    own: dict[Package, list[_Tag]] = {}
    shared: dict[Package, list[_Tag]] = {}
    for package in packages:
        own[package], shared[package] = [], []
        prefix, _, suffix = templates.get(package.id, "\0").partition("\0")
        names = [(f"{name}{joint}", "") for name in list_names(package, root) for joint in OWN_TAGS]
        if package.id.ecosystem == "go":
            # What the go command reads, and nothing else. https://go.dev/ref/mod#vcs-version
            place = package.directory.relative_to(root).as_posix()
            names = [("v" if place == "." else f"{place}/v", "")]
        elif prefix or suffix:
            names.append((prefix, suffix))
        for name in names:
            prefixes[name].add(package)
    everybody = set(own)
    beginnings = {prefix for prefix, _ in prefixes}
    suffixes = {suffix for _, suffix in prefixes}
    for tag, commit in tags.items():
        for at in (found.start() for found in re.finditer(r"[0-9]", tag)):
            prefix = tag[:at]
            if prefix not in beginnings and prefix not in SHARED_TAGS:
                continue
            for suffix in suffixes:
                if not tag.endswith(suffix):
                    continue
                holders = prefixes.get((prefix, suffix), set())
                if not suffix and prefix in SHARED_TAGS:
                    go = {each for each in holders if each.id.ecosystem == "go"}
                    _add(own, go, tag[at:], tag, commit)
                    _add(shared, everybody - go, tag[at:], tag, commit)
                    continue
                version = tag[at : len(tag) - len(suffix)]
                places = {holder.directory for holder in holders}
                _add(own if len(places) == 1 else shared, holders, version, tag, commit)
    return own, shared


def _add(
    into: Mapping[Package, list[_Tag]],
    packages: Iterable[Package],
    text: str,
    tag: str,
    commit: str,
) -> None:
    spelled: dict[str, str] = {}
    for package in packages:
        ecosystem = package.id.ecosystem
        if ecosystem not in spelled:
            spelled[ecosystem] = canonical(ecosystem, text)
        if version := spelled[ecosystem]:
            into[package].append(_Tag(version, tag, commit))


def canonical(ecosystem: str, text: str) -> str:
    """Its canonical spelling, without Go's `v`; empty for what is no version."""
    if is_version_of_another(text):
        return ""
    try:
        return numbering_of(ecosystem).check(text).removeprefix("v")
    except ValueError:
        return ""


async def _find_positions(wanted: Collection[str], commits: Commits, line: Line) -> dict[str, int]:
    """For each of these commits that HEAD has, or whose first parent it has, how many commits of
    the line are younger.
    """
    found = {each: line.indexes[each] for each in wanted if each in line.indexes}
    others = sorted(set(wanted) - found.keys())
    if not others:
        return found
    told = await commits.run_git(
        "log",
        "--no-walk",
        "--format=%H %P",
        "--stdin",
        stdin="".join(f"{each}\n" for each in others),
    )
    parents = {row[0]: row[1:2] for row in map(str.split, told.splitlines()) if row}
    reachable = frozenset((await commits.run_git("rev-list", "HEAD")).split())
    for each in others:
        # Go's tags, and others that are made after a release, may be on a commit beside the line.
        at = each if each in reachable else next(iter(parents.get(each, ())), "")
        if at in line.indexes:
            found[each] = line.indexes[at]
        elif at in reachable:
            count = await commits.run_git(
                "rev-list", "--count", "--first-parent", "HEAD", f"^{at}", "--"
            )
            found[each] = int(count)
    return found


async def _find_shared(
    unsure: Mapping[Package, Sequence[_Tag]],
    versions: Mapping[Package, VersionAt],
    commits: Commits,
) -> dict[Package, _Tag]:
    """The highest tag of each package at whose commit its manifests had that version."""
    found: dict[Package, _Tag] = {}
    for at in range(_MOST_SHARED):
        asked = {
            package: tags[at]
            for package, tags in unsure.items()
            if package not in found and at < len(tags)
        }
        if not asked:
            break
        had = await find_versions(
            {package: (versions[package], tag.commit) for package, tag in asked.items()}, commits
        )
        # Of what tells no version, as one that comes from the tag, it is enough to be there.
        silent = {
            package: commits.name_object(tag.commit, package.manifest)
            for package, tag in asked.items()
            if not had[package.id]
        }
        there = await commits.read_blobs(silent.values())
        found |= {
            package: tag
            for package, tag in asked.items()
            if canonical(package.id.ecosystem, had[package.id]) == tag.version
            or (package in silent and there[silent[package]] is not None)
        }
    return found


async def _find_bases(
    last: Mapping[Package, _Tag],
    own: Mapping[Package, Sequence[_Tag]],
    below: Mapping[str, int],
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
    # Each commit of the line that has one, or merges one.
    writing: dict[int, int] = {}
    for index, commit in enumerate(line.commits):
        for each in (commit, *line.parents[commit][1:2]):
            base = line.indexes.get(bases.get(each, ""), -1)
            if base > index:
                writing.setdefault(index, base)
    files = await read_changed_files(commits, [line.commits[index] for index in writing])
    written: dict[PackageId, list[int]] = defaultdict(list)
    for index in sorted(writing):
        for path in files.get(line.commits[index], ()):
            for owner in owners.find_owners(path):
                if index not in written[owner][-1:]:
                    written[owner].append(index)
    found = {}
    for package, tag in last.items():
        tagged = below[tag.commit]
        earlier = min(
            (below[each.commit] for each in own[package] if below.get(each.commit, -1) > tagged),
            default=len(line.commits),
        )
        wrote = next((each for each in written[package.id] if tagged <= each < earlier), None)
        if wrote is not None:
            found[package.id] = writing[wrote]
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
