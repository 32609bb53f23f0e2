"""Which version of each package was released last, by the tags that lead to HEAD, and up to which
commit changes went into the decision on it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import islice, product, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.git.versions import find_first_commits, find_versions
from releasekit.versioning.history import make_shallow_error, read_changes
from releasekit.versioning.numbering import numbering_of
from releasekit.versioning.release_branch import read_bases
from releasekit.versioning.tag_forms import (
    OWN_TAGS,
    SHARED_TAGS,
    is_version_of_another,
    list_like_names,
    list_names,
)

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from pathlib import Path

    from releasekit.git.commits import Commits
    from releasekit.git.versions import Read, VersionAt
    from releasekit.model import Package, PackageId
    from releasekit.versioning.history import Line
    from releasekit.versioning.order import VersionKey

    # A package, an ecosystem, or those whose version stands in one place, by a name of no package.
    _Holder = PackageId | str
    # Whether a registry has the version of each package; None where it does not say.
    FindPublished = Callable[[Sequence[Package]], Awaitable[Mapping[PackageId, bool | None]]]

# So many tags that do not name one package alone are compared with the manifests of their commits.
_MOST_COMPARED: Final = 32
_MOST_SHOWN: Final = 3
_VERSION: Final = re.compile(r"[0-9]+[._][0-9]+")
_MAJOR: Final = re.compile(r"v[0-9]+")
_COMPLETED: Final = frozenset({"go.mod", "go.sum"})
# In place of a version: the manifest is there and says none, as where the version is the tag's. So
# does 0.0.0-development, https://semantic-release.gitbook.io/semantic-release/support/faq
UNSAID: Final = "unsaid"
_NEVER_RELEASED: Final = re.compile(r"v?0\.0\.0[-.+]?[A-Za-z].*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """`version` is canonical, and empty before the first release. Its changes are those of the
    first `base` commits of the line; those from `tagged` on were in the released version already,
    and so was what `beside` has, the commit of a tag on a branch that was merged since. `taken` are
    versions that have a tag, among them all higher ones, each with its commit. A `guessed` one has
    no tag. What the first `fresh` commits of the line have is in no prerelease yet; -1 where one is
    written that no commit has. `prerelease` is the highest one of a package that had nothing else.
    `unread` are tags that may be of one that seems new.
    """

    version: str
    base: int
    tagged: int
    beside: str = ""
    taken: Mapping[str, str] = field(default_factory=dict)
    guessed: bool = False
    fresh: int = 0
    prerelease: str = ""
    unread: Sequence[str] = ()


class _Tag(NamedTuple):
    """Sorts by its version. Its name is that of one package alone if it `is_own`."""

    order: VersionKey
    is_own: bool
    version: str
    name: str
    commit: str
    is_stable: bool


@dataclass(frozen=True, slots=True)
class _Tags:
    """By who may have them, the highest first; `holders` are what each package belongs to, itself
    first. Nobody has those that are `unread`, with a version in them.
    """

    listed: defaultdict[_Holder, list[_Tag]]
    holders: Mapping[PackageId, Sequence[_Holder]]
    unread: Sequence[str] = ()

    def list_above(self, package: PackageId, own: _Tag | None = None) -> Iterator[_Tag]:
        """Those that may be of the package, the highest first, as far as its `own`."""
        found = merge(*(self.listed[each] for each in self.holders[package]), reverse=True)
        return takewhile(lambda tag: own is None or tag > own, found)


class _Place(NamedTuple):
    """Of a commit in the history of HEAD: how many of the line are younger, and itself if it is
    none of the line.
    """

    younger: int
    beside: str = ""


async def find_releases(
    versions: Mapping[Package, VersionAt],
    everything: Iterable[Package],
    commits: Commits,
    root: Path,
    line: Line,
    templates: Mapping[PackageId, str],
    find_published: FindPublished,
    labels: Mapping[PackageId, str],
    together: Iterable[Collection[PackageId]],
) -> dict[PackageId, Release]:
    """Of each package, whose tags are none of the others among `everything` that lies here.
    `versions` says how its manifests are read at another commit, `templates`
    what its tags are called, with NUL in the place of the version. `labels` are those of packages
    whose next version is a prerelease, and `together` the packages whose version stands in one
    place.

    Raises CommandFailed, and PlanError where the history that is here does not reach back.
    """
    known = await commits.list_tags()
    tags = _sort_tags(versions, root, commits.top, known, templates, together)
    if tags.unread:
        others = [each for each in everything if each not in versions]
        left = {name: known[name] for name in tags.unread}
        listed = list_own_tags(others, root, commits.top, left)
        read = {name for own in listed.values() for name in own.values()}
        tags = replace(tags, unread=[name for name in tags.unread if name not in read])
    reached = {tag.commit for listed in tags.listed.values() for tag in listed}
    places = await _find_places(reached, commits, line)
    last = await _find_last(versions, tags, places, commits)
    untagged = [package for package in versions if package.id not in last]
    if untagged and line.is_shallow:
        raise make_shallow_error()
    bases = await _find_bases(last, tags, places, commits, line)
    releases = {}
    for package, tag in last.items():
        place = places[tag.commit]
        # Of tags that may be of others, those that no manifest in the history of HEAD speaks for.
        above = tags.listed[package] if tag.is_own else tags.list_above(package, tag)
        taken = {
            each.version: each.commit
            for each in above
            if each.is_own or not (tag.is_own or (each.is_stable and each.commit in places))
        }
        releases[package] = Release(
            version=tag.version,
            base=bases.get(package, place.younger),
            tagged=place.younger,
            beside=place.beside,
            taken=taken,
        )
    # Of others, what is published was not tagged: a run died, or tags are not made any more.
    pending = [each for each in versions if each.id in last and _is_pending(each, last[each.id])]
    first: Mapping[PackageId, str] = {}
    if untagged or pending:
        asked = {it: versions[it] for it in (*untagged, *pending)}
        first = await find_first_commits(asked, commits)
    unsure = [*untagged, *(each for each in pending if first[each.id])]
    published = await find_published(unsure) if unsure else {}
    candidates = await _find_last(
        {each: versions[each] for each in untagged}, tags, places, commits, is_stable=False
    )
    begun = await _find_beginnings(
        {
            each: versions[each]
            for each in untagged
            if _is_candidate(each.id.ecosystem, each.version)
            or (each.id in candidates and published[each.id] is False)
        },
        tags,
        places,
        commits,
        line,
    )
    for each in unsure:
        index = line.indexes.get(first[each.id], 0)
        own = releases.get(each.id)
        prereleases = {
            it.version: it.commit for it in tags.listed[each.id] if it.is_own and not it.is_stable
        }
        taken = dict(own.taken) if own else prereleases
        # Without an answer, a version that never had a tag counts as released: to take it for
        # unpublished would leave a change without a version.
        is_there = bool(published[each.id]) if own else published[each.id] is not False
        if own and not is_there:
            continue
        base = index if is_there else min(index + 1, len(line.commits))
        version = _canonicalize(each.id.ecosystem, each.version) if is_there else ""
        guessed, prerelease = version not in taken, ""
        if each.id in begun:
            base, candidate = begun[each.id], candidates.get(each.id)
            order = numbering_of(each.id.ecosystem).order(version) if version else None
            if order and (candidate is None or candidate.order < order):
                prerelease = version
                taken[version] = first[each.id]
            elif candidate:
                prerelease, guessed = candidate.version, False
                taken.setdefault(candidate.version, candidate.commit)
            version = ""
        releases[each.id] = Release(
            version=version,
            base=base,
            # No stable version had anything.
            tagged=base if version else len(line.commits),
            taken=taken,
            guessed=guessed,
            prerelease=prerelease,
            unread=() if version or prerelease else _find_alike(each.id, tags.unread),
        )
    releases = {
        package: replace(
            each, fresh=each.base if each.version or each.prerelease else len(line.commits)
        )
        for package, each in releases.items()
    }
    if labels:
        wanted = {each: at for each, at in versions.items() if each.id in labels}
        await _add_prereleases(releases, wanted, labels, tags, places, commits, line)
    return releases


def list_own_tags(
    packages: Iterable[Package], root: Path, top: Path, tags: Mapping[str, str]
) -> dict[PackageId, dict[str, str]]:
    """The tags that are of one package alone, by its versions, the highest first."""
    listed = _sort_tags(packages, root, top, tags, {}, ()).listed
    return {
        holder: {each.version: each.name for each in found if each.is_own}
        for holder, found in listed.items()
        if not isinstance(holder, str)
    }


async def _find_beginnings(
    versions: Mapping[Package, VersionAt],
    tags: _Tags,
    places: Mapping[str, _Place],
    commits: Commits,
    line: Line,
) -> dict[PackageId, int]:
    """How many commits of the line have what came since these packages were made prereleases of:
    from the commit that wrote the first one, or after the first that has a tag.
    """
    first = await find_first_commits(
        {each: _join_prereleases(at) for each, at in versions.items()}, commits
    )
    found = {}
    for package in versions:
        tagged = (
            places[tag.commit].younger
            for tag in tags.listed[package.id]
            if tag.is_own and not tag.is_stable and tag.commit in places
        )
        wrote = line.indexes.get(first[package.id], 0)
        found[package.id] = min(max(wrote + 1, *tagged, 1), len(line.commits))
    return found


def _join_prereleases(version_at: VersionAt) -> VersionAt:
    """As if all of them were the version of today."""

    def read_version(package: Package, read: Read) -> str:
        said = version_at(package, read)
        return package.version if _is_candidate(package.id.ecosystem, said) else said

    return read_version


def _is_candidate(ecosystem: str, text: str) -> bool:
    """Whether it is a prerelease, and does not only hold the place of a version."""
    version = _canonicalize(ecosystem, text)
    parts = numbering_of(ecosystem).read(version) if version else None
    return parts is not None and parts.is_prerelease and not parts.is_placeholder


async def _add_prereleases(
    releases: dict[PackageId, Release],
    versions: Mapping[Package, VersionAt],
    labels: Mapping[PackageId, str],
    tags: _Tags,
    places: Mapping[str, _Place],
    commits: Commits,
    line: Line,
) -> None:
    """What of each of these packages is in no prerelease yet: what came after the highest one that
    has a tag, or is written with its label.
    """
    last = await _find_last(versions, tags, places, commits, is_stable=False)
    found = dict(places)
    pending: dict[Package, _Tag] = {}
    for package in versions:
        written = _canonicalize(package.id.ecosystem, package.version)
        tag = last.get(package.id)
        numbering = numbering_of(package.id.ecosystem)
        stable = numbering.stable(written) if written else ""
        if stable and numbering.find_number(written, labels[package.id], stable) >= 0:
            order = numbering.order(written)
            if tag is None or tag.order < order:
                pending[package] = _Tag(order, True, written, "", "", False)
    first = await find_first_commits({it: versions[it] for it in pending}, commits)
    for package, tag in pending.items():
        commit = first[package.id]
        if commit in line.indexes:
            last[package.id] = tag._replace(commit=commit)
            found[commit] = _Place(line.indexes[commit])
        elif not commit:
            last.pop(package.id, None)
            releases[package.id] = replace(releases[package.id], fresh=-1)
    bases = await _find_bases(last, tags, found, commits, line)
    for name, tag in last.items():
        release = releases[name]
        if not release.version or tag.order > numbering_of(name.ecosystem).order(release.version):
            fresh = bases.get(name, found[tag.commit].younger)
            releases[name] = replace(release, fresh=min(release.base, fresh))


def _is_pending(package: Package, last: _Tag) -> bool:
    """Whether a higher version is written than the last one with a tag. The tag of a Go module is
    what publishes it.
    """
    written = _canonicalize(package.id.ecosystem, package.version)
    if not written or package.id.ecosystem == "go":
        return False
    numbering = numbering_of(package.id.ecosystem)
    return numbering.order(written) > last.order and not numbering.read(written).is_prerelease


def _sort_tags(
    packages: Iterable[Package],
    root: Path,
    top: Path,
    tags: Mapping[str, str],
    templates: Mapping[PackageId, str],
    together: Iterable[Collection[PackageId]],
) -> _Tags:
    groups = {
        package: replace(package, name=f"\0{number}")
        for number, each in enumerate(together)
        for package in each
    }
    holders: dict[PackageId, list[_Holder]] = {}
    # Who is meant by what stands before and behind a version, and whether by name.
    meant: defaultdict[tuple[str, str], dict[_Holder, bool]] = defaultdict(dict)
    for package in packages:
        group = [groups[package.id]] if package.id in groups else []
        holders[package.id] = [package.id, *group, package.id.ecosystem]
        prefix, _, suffix = templates.get(package.id, "\0").partition("\0")
        names = [(f"{name}{joint}", "") for name in list_names(package, root) for joint in OWN_TAGS]
        if package.id.ecosystem == "go":
            # Nothing else names a Go module. https://go.dev/ref/mod#vcs-version
            place = package.directory.relative_to(top)
            if _MAJOR.fullmatch(place.name) and package.id.name.endswith(f"/{place.name}"):
                place = place.parent
            names = [((place / "v").as_posix(), "")]
        else:
            if suffix or prefix not in SHARED_TAGS:
                names.append((prefix, suffix))
            for prefix in SHARED_TAGS:
                meant[prefix, ""][package.id.ecosystem] = False
            alike = list_like_names(package)
            alike += [package.directory.name] if package.directory != root else []
            for name, joint in product(alike, OWN_TAGS):
                meant[f"{name}{joint}", ""].setdefault(package.id, False)
            # The tag of a reactor has the name of its parent.
            for ends in names if group else ():
                meant[ends][group[0]] = False
        for ends in names:
            meant[ends][package.id] = True
    suffixes = {"", *(suffix for _, suffix in meant)}
    found: defaultdict[_Holder, list[_Tag]] = defaultdict(list)
    unread = []
    for name, commit in tags.items():
        is_read = False
        for digit, suffix in product(re.finditer(r"[0-9]", name), suffixes):
            prefix, text = name[: digit.start()], name[digit.start() :]
            those = meant.get((prefix, suffix), {}) if text.endswith(suffix) else {}
            is_of_one = sum(those.values()) == 1 and not any(isinstance(it, str) for it in those)
            for holder, is_named in those.items():
                ecosystem = holder if isinstance(holder, str) else holder.ecosystem
                is_own = is_named and (is_of_one or ecosystem == "go")
                if version := _canonicalize(ecosystem, text.removesuffix(suffix)):
                    is_read = True
                    numbering = numbering_of(ecosystem)
                    is_stable = not numbering.read(version).is_prerelease
                    order = numbering.order(version)
                    found[holder].append(_Tag(order, is_own, version, name, commit, is_stable))
        if not is_read and _VERSION.search(name):
            unread.append(name)
    for listed in found.values():
        listed.sort(reverse=True)
    return _Tags(found, holders, unread)


def _find_alike(package: PackageId, tags: Sequence[str]) -> Sequence[str]:
    """Some of them, and only those that have the name of the package in them, if any do."""
    last = re.split(r"[/:]", package.name)[-1].casefold()
    own = [each for each in tags if last in each.casefold()]
    return (own or tags)[-_MOST_SHOWN:]


def _canonicalize(ecosystem: str, text: str) -> str:
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
    parents = await commits.list_parents("--topo-order", commits.head, "--")
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


async def _find_last(
    versions: Mapping[Package, VersionAt],
    tags: _Tags,
    places: Mapping[str, _Place],
    commits: Commits,
    *,
    is_stable: bool = True,
) -> dict[PackageId, _Tag]:
    """The highest tag of each package in the history of HEAD that is stable, or is not. Of those
    that may be of others, one at whose commit its manifests had that version.
    """
    reached = _Tags(defaultdict(list), tags.holders)
    for holder, listed in tags.listed.items():
        reached.listed[holder] = [
            tag for tag in listed if tag.is_stable is is_stable and tag.commit in places
        ]
    own: dict[PackageId, _Tag] = {}
    unsure: dict[Package, list[_Tag]] = {}
    for package in versions:
        last = next((tag for tag in reached.listed[package.id] if tag.is_own), None)
        higher = reached.list_above(package.id, last)
        if last:
            own[package.id] = last
            if written := _canonicalize(package.id.ecosystem, package.version):
                # It may have begun again below a version that it shared with others.
                order = numbering_of(package.id.ecosystem).order(written)
                age = places[last.commit].younger
                higher = (
                    tag for tag in higher if tag.order <= order or places[tag.commit].younger <= age
                )
        unsure[package] = list(islice(higher, _MOST_COMPARED))
    reading = {
        package: name_unsaid(versions[package]) for package, listed in unsure.items() if listed
    }
    head = commits.head
    today = await find_versions([(package, at, head) for package, at in reading.items()], commits)
    found: dict[PackageId, _Tag] = {}
    # Nearly always it is the first one.
    for part in (slice(1), slice(1, None)):
        pairs = [
            (package, tag)
            for package, listed in unsure.items()
            if package.id not in found
            for tag in listed[part]
        ]
        asked = [(package, reading[package], tag.commit) for package, tag in pairs]
        had = await find_versions(asked, commits)
        for package, tag in pairs:
            said = had[package.id, tag.commit]
            version = _canonicalize(package.id.ecosystem, said)
            is_same = version and numbering_of(package.id.ecosystem).order(version) == tag.order
            # Where today's manifest says a version, that of then may have been another package's.
            is_unsaid = said == today[package.id, head] == UNSAID
            if is_same or (is_unsaid and package.id not in own):
                found.setdefault(package.id, tag)
    return own | found


def name_unsaid(version_at: VersionAt) -> VersionAt:
    def read_version(package: Package, read: Read) -> str:
        said = version_at(package, read)
        if said and not _NEVER_RELEASED.fullmatch(said):
            return said
        return "" if read(package.manifest) is None else UNSAID

    return read_version


async def _find_bases(
    last: Mapping[PackageId, _Tag],
    tags: _Tags,
    places: Mapping[str, _Place],
    commits: Commits,
    line: Line,
) -> dict[PackageId, int]:
    """Where the decision on a released version was made on an earlier commit than the one that is
    tagged, by the trailer of that one, or of what it merges.
    """
    tagged = {package: places[tag.commit].younger for package, tag in last.items()}
    writing = {index: line.commits[index] for index in tagged.values() if index < len(line.commits)}
    bases = await read_bases(commits, writing.values())
    # What a shallow clone lacks may be a base.
    lacking = len(line.commits) if line.is_shallow else 0
    found = {}
    for package, index in tagged.items():
        stated = bases.get(writing.get(index, ""), "")
        base = line.indexes.get(stated, lacking) if stated else 0
        if base <= index:
            continue
        # What the release before it had is no change of this one, whatever a message says.
        earlier = (
            places[each.commit].younger
            for each in tags.list_above(package)
            if each.is_stable and each.order < last[package].order and each.commit in places
        )
        limit = min((each for each in earlier if each > index), default=len(line.commits))
        found[package] = min(base, limit)
        if found[package] == len(line.commits):
            raise make_shallow_error()
    return found
