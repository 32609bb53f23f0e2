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

from releasekit.git.tag_forms import (
    OWN_TAGS,
    SHARED_TAGS,
    is_version_of_another,
    list_like_names,
    list_names,
)
from releasekit.git.versions import find_first_commits, find_versions
from releasekit.text.numbering import numbering_of
from releasekit.versions.candidates import LastRelease
from releasekit.versions.history import make_shallow_error, read_changes
from releasekit.versions.release_branch import read_bases

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
    from releasekit.text.version_order import VersionKey
    from releasekit.versions.candidates import Candidate
    from releasekit.versions.history import MainLine

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


class _Tag(NamedTuple):
    """Sorts by its version. Its name is that of one package alone if it `is_own`."""

    order: VersionKey
    is_own: bool
    version: str
    name: str
    commit: str
    is_stable: bool


class _Place(NamedTuple):
    """Of a commit in the history of HEAD: how many of the line are younger, and itself if it is
    none of the line.
    """

    younger: int
    beside: str = ""


@dataclass(frozen=True, slots=True)
class _Tags:
    """By who may have them, the highest first; `holders` are what each package belongs to, itself
    first. Nobody has those that are `unread`, with a version in them. `places` are those of their
    commits that HEAD has.
    """

    listed: Mapping[_Holder, Sequence[_Tag]]
    holders: Mapping[PackageId, Sequence[_Holder]]
    unread: Sequence[str] = ()
    places: Mapping[str, _Place] = field(default_factory=dict)

    def list_own(self, package: PackageId) -> Iterator[_Tag]:
        """Those that name the package alone, the highest first."""
        return (tag for tag in self.listed.get(package, ()) if tag.is_own)

    def list_above(self, package: PackageId, own: _Tag | None = None) -> Iterator[_Tag]:
        """Those that may be of the package, the highest first, as far as its `own`."""
        found = merge(*(self.listed.get(it, ()) for it in self.holders[package]), reverse=True)
        return takewhile(lambda tag: own is None or tag > own, found)


async def find_releases(
    candidates: Sequence[Candidate],
    packages: Iterable[Package],
    line: MainLine,
    root: Path,
    find_published: FindPublished,
) -> list[Candidate]:
    """Each with its last release. `packages` are all that lie here; tags of others among them are
    none of the candidates'. Raises CommandFailed, and PlanError where the history that is here does
    not reach back.
    """
    tags = await _read_tags(candidates, packages, line, root)
    last = await _find_last(candidates, tags, line.git)
    untagged = [each for each in candidates if each.id not in last]
    if untagged and line.is_shallow:
        raise make_shallow_error()
    bases = await _find_bases(last, tags, line)
    releases = {
        package: _release_tagged(package, tag, tags, bases.get(package))
        for package, tag in last.items()
    }
    # Of these, what is published was not tagged: a run died, or tags are not made any more.
    pending = [each for each in candidates if each.id in last and _is_pending(each, last[each.id])]
    first: Mapping[PackageId, str] = {}
    if asked := [*untagged, *pending]:
        first = await find_first_commits({it.package: it.version_at for it in asked}, line.git)
    unsure = [*untagged, *(each for each in pending if first[each.id])]
    published = await find_published([each.package for each in unsure]) if unsure else {}
    for each in unsure:
        if each.id in releases and published[each.id]:
            index = line.indexes.get(first[each.id], 0)
            releases[each.id] = _release_pending(each, releases[each.id], index)
    releases |= await _find_untagged(untagged, first, published, tags, line)
    found = [replace(each, release=releases[each.id]) for each in candidates]
    fresh = await _find_fresh([each for each in found if each.label], tags, line)
    return [
        replace(each, release=replace(each.release, fresh=fresh[each.id]))
        if each.id in fresh
        else each
        for each in found
    ]


async def _read_tags(
    candidates: Sequence[Candidate], packages: Iterable[Package], line: MainLine, root: Path
) -> _Tags:
    known = await line.git.list_tags()
    names = _Names(root, line.git.top)
    for each in candidates:
        names.add(each.package, each.tag, each.shared)
    tags = names.sort(known)
    if tags.unread:
        ids = {each.id for each in candidates}
        others = [each for each in packages if each.id not in ids]
        left = {name: known[name] for name in tags.unread}
        listed = list_own_tags(others, root, line.git.top, left)
        read = {name for own in listed.values() for name in own.values()}
        tags = replace(tags, unread=[name for name in tags.unread if name not in read])
    reached = {tag.commit for listed in tags.listed.values() for tag in listed}
    return replace(tags, places=await _find_places(reached, line))


def _release_tagged(package: PackageId, tag: _Tag, tags: _Tags, base: int | None) -> LastRelease:
    """`base` is None where the version was decided on the commit that is tagged."""
    place = tags.places[tag.commit]
    # Of tags that may be of others, those that no manifest in the history of HEAD speaks for.
    above = tags.listed[package] if tag.is_own else tags.list_above(package, tag)
    return LastRelease(
        version=tag.version,
        base=place.younger if base is None else base,
        tagged=place.younger,
        beside=place.beside,
        taken={
            each.version: each.commit
            for each in above
            if each.is_own or not (tag.is_own or (each.is_stable and each.commit in tags.places))
        },
        fresh=place.younger if base is None else base,
    )


def _release_pending(candidate: Candidate, tagged: LastRelease, index: int) -> LastRelease:
    """Of a version that is published and has no tag: the commit at `index` wrote it."""
    version = _canonicalize(candidate.id.ecosystem, candidate.package.version)
    return LastRelease(
        version=version,
        base=index,
        tagged=index,
        taken=tagged.taken,
        guessed=version not in tagged.taken,
        fresh=index,
    )


async def _find_untagged(
    candidates: Sequence[Candidate],
    first: Mapping[PackageId, str],
    published: Mapping[PackageId, bool | None],
    tags: _Tags,
    line: MainLine,
) -> dict[PackageId, LastRelease]:
    """Of candidates without the tag of a stable version. `first` are the commits that wrote their
    versions.
    """
    prereleases = await _find_last(candidates, tags, line.git, is_stable=False)
    begun = await _find_beginnings(
        [
            each
            for each in candidates
            if _is_candidate(each.id.ecosystem, each.package.version)
            or (each.id in prereleases and published[each.id] is False)
        ],
        tags,
        line,
    )

    def make_release(candidate: Candidate) -> LastRelease:
        package, whole = candidate.id, len(line.commits)
        wrote = first[package]
        taken = {tag.version: tag.commit for tag in tags.list_own(package) if not tag.is_stable}
        # Without an answer, a version that never had a tag counts as released: to take it for
        # unpublished would leave a change without a version.
        is_there = published[package] is not False
        written = _canonicalize(package.ecosystem, candidate.package.version) if is_there else ""
        alike = _find_alike(package, tags.unread)
        if package not in begun:
            index = line.indexes.get(wrote, 0)
            base = index if is_there else min(index + 1, whole)
            # No stable version had anything, where there is none.
            since = base if written else whole
            guessed, unread = bool(written) and written not in taken, () if written else alike
            return LastRelease(
                version=written,
                base=base,
                tagged=since,
                taken=taken,
                guessed=guessed,
                fresh=since,
                unread=unread,
            )
        tag = prereleases.get(package)
        order = numbering_of(package.ecosystem).order(written) if written else None
        if order and (tag is None or tag.order < order):
            last, guessed = written, written not in taken
            taken[written] = wrote
        else:
            last, guessed = tag.version if tag else "", False
            if tag:
                taken.setdefault(tag.version, tag.commit)
        base = begun[package]
        return LastRelease(
            base=base,
            tagged=whole,
            taken=taken,
            guessed=guessed,
            fresh=base if last else whole,
            prerelease=last,
            unread=() if last else alike,
        )

    return {each.id: make_release(each) for each in candidates}


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


async def _find_beginnings(
    candidates: Sequence[Candidate], tags: _Tags, line: MainLine
) -> dict[PackageId, int]:
    """How many commits of the line have what came since these packages were made prereleases of:
    from the commit that wrote the first one, or after the first that has a tag.
    """
    versions = {each.package: _join_prereleases(each.version_at) for each in candidates}
    first = await find_first_commits(versions, line.git) if versions else {}
    found = {}
    for each in candidates:
        tagged = (
            tags.places[tag.commit].younger
            for tag in tags.list_own(each.id)
            if not tag.is_stable and tag.commit in tags.places
        )
        wrote = line.indexes.get(first[each.id], 0)
        found[each.id] = min(max(wrote + 1, *tagged, 1), len(line.commits))
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


async def _find_fresh(
    candidates: Sequence[Candidate], tags: _Tags, line: MainLine
) -> dict[PackageId, int]:
    """How many commits of the line are in no prerelease yet of those that are to be one: those
    after the highest one that has a tag, or is written with its label. Without those that have had
    none since their release.
    """
    if not candidates:
        return {}
    own = {each.id: each for each in candidates}
    last = await _find_last(candidates, tags, line.git, is_stable=False)
    written = {
        each.id: tag for each in candidates if (tag := _read_prerelease(each, last.get(each.id)))
    }
    asked = {own[each].package: own[each].version_at for each in written}
    first = await find_first_commits(asked, line.git) if asked else {}
    places, found = dict(tags.places), {}
    for package, tag in written.items():
        commit = first[package]
        if commit in line.indexes:
            last[package] = tag._replace(commit=commit)
            places[commit] = _Place(line.indexes[commit])
        elif not commit:
            last.pop(package, None)
            found[package] = -1
    tags = replace(tags, places=places)
    bases = await _find_bases(last, tags, line)
    for package, tag in last.items():
        release, numbering = own[package].release, numbering_of(package.ecosystem)
        if not release.version or tag.order > numbering.order(release.version):
            fresh = bases.get(package, places[tag.commit].younger)
            found[package] = min(release.base, fresh)
    return found


def _read_prerelease(candidate: Candidate, last: _Tag | None) -> _Tag | None:
    """What is written as if it had a tag, where it is a prerelease by the candidate's label, and
    higher than its `last` one.
    """
    ecosystem = candidate.id.ecosystem
    written = _canonicalize(ecosystem, candidate.package.version)
    numbering = numbering_of(ecosystem)
    stable = numbering.stable(written) if written else ""
    if not stable or numbering.find_number(written, candidate.label, stable) < 0:
        return None
    tag = _Tag(numbering.order(written), True, written, "", "", False)
    return tag if last is None or last.order < tag.order else None


def _is_pending(candidate: Candidate, last: _Tag) -> bool:
    """Whether a higher version is written than the last one with a tag. The tag of a Go module is
    what publishes it.
    """
    written = _canonicalize(candidate.id.ecosystem, candidate.package.version)
    if not written or candidate.id.ecosystem == "go":
        return False
    numbering = numbering_of(candidate.id.ecosystem)
    return numbering.order(written) > last.order and not numbering.read(written).is_prerelease


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

    def sort(self, tags: Mapping[str, str]) -> _Tags:
        """`tags` are names, with their commits."""
        suffixes = {"", *(suffix for _, suffix in self._meant)}
        found: defaultdict[_Holder, list[_Tag]] = defaultdict(list)
        unread = []
        for name, commit in tags.items():
            read = [
                each
                for digit, suffix in product(re.finditer(r"[0-9]", name), suffixes)
                for each in self._read(name, commit, digit.start(), suffix)
            ]
            for holder, tag in read:
                found[holder].append(tag)
            if not read and _VERSION.search(name):
                unread.append(name)
        for listed in found.values():
            listed.sort(reverse=True)
        return _Tags(found, self._holders, unread)

    def _read(self, name: str, commit: str, at: int, suffix: str) -> Iterator[tuple[_Holder, _Tag]]:
        """Those that the tag may be of, where its version begins at this character."""
        text = name[at:]
        those = self._meant.get((name[:at], suffix), {}) if text.endswith(suffix) else {}
        is_of_one = sum(those.values()) == 1 and not any(isinstance(it, str) for it in those)
        for holder, is_named in those.items():
            ecosystem = holder if isinstance(holder, str) else holder.ecosystem
            if version := _canonicalize(ecosystem, text.removesuffix(suffix)):
                is_own = is_named and (is_of_one or ecosystem == "go")
                numbering = numbering_of(ecosystem)
                is_stable = not numbering.read(version).is_prerelease
                order = numbering.order(version)
                yield holder, _Tag(order, is_own, version, name, commit, is_stable)


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


async def _find_places(wanted: Collection[str], line: MainLine) -> dict[str, _Place]:
    """Of these commits that HEAD has, or that publishing has made on one of them."""
    found = {each: _Place(line.indexes[each]) for each in wanted if each in line.indexes}
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
            found[each] = _Place(indexes[at], "" if at in line.indexes else at)
    return found


async def _find_last(
    candidates: Sequence[Candidate], tags: _Tags, commits: Commits, *, is_stable: bool = True
) -> dict[PackageId, _Tag]:
    """The highest tag of each package in the history of HEAD that is stable, or is not. Of those
    that may be of others, one at whose commit its manifests had that version.
    """
    listed = {
        holder: [it for it in each if it.is_stable is is_stable and it.commit in tags.places]
        for holder, each in tags.listed.items()
    }
    tags = replace(tags, listed=listed)
    own = {each.id: tag for each in candidates if (tag := next(tags.list_own(each.id), None))}
    unsure = {
        each.id: [*islice(_list_higher(each.package, own.get(each.id), tags), _MOST_COMPARED)]
        for each in candidates
    }
    reading = [
        (each.package, name_unsaid(each.version_at)) for each in candidates if unsure[each.id]
    ]
    head = commits.head
    today = await find_versions([(package, at, head) for package, at in reading], commits)
    found: dict[PackageId, _Tag] = {}
    # Nearly always it is the first one.
    for part in (slice(1), slice(1, None)):
        asked = [
            (package, at, tag)
            for package, at in reading
            if package.id not in found
            for tag in unsure[package.id][part]
        ]
        had = await find_versions([(package, at, it.commit) for package, at, it in asked], commits)
        for package, _, tag in asked:
            said = had[package.id, tag.commit]
            version = _canonicalize(package.id.ecosystem, said)
            is_same = version and numbering_of(package.id.ecosystem).order(version) == tag.order
            # Where today's manifest says a version, that of then may have been another package's.
            is_unsaid = said == today[package.id, head] == UNSAID
            if is_same or (is_unsaid and package.id not in own):
                found.setdefault(package.id, tag)
    return own | found


def _list_higher(package: Package, own: _Tag | None, tags: _Tags) -> Iterator[_Tag]:
    """Those that may be of the package, above its `own`. Of those above what is written, younger
    ones: it may have begun again below a version that it shared with others.
    """
    higher = tags.list_above(package.id, own)
    written = _canonicalize(package.id.ecosystem, package.version)
    if not own or not written:
        return higher
    order = numbering_of(package.id.ecosystem).order(written)
    age = tags.places[own.commit].younger
    return (tag for tag in higher if tag.order <= order or tags.places[tag.commit].younger <= age)


def name_unsaid(version_at: VersionAt) -> VersionAt:
    def read_version(package: Package, read: Read) -> str:
        said = version_at(package, read)
        if said and not _NEVER_RELEASED.fullmatch(said):
            return said
        return "" if read(package.manifest) is None else UNSAID

    return read_version


async def _find_bases(
    last: Mapping[PackageId, _Tag], tags: _Tags, line: MainLine
) -> dict[PackageId, int]:
    """Where the decision on a released version was made on an earlier commit than the one that is
    tagged, by the trailer of that one, or of what it merges.
    """
    places = tags.places
    tagged = {package: places[tag.commit].younger for package, tag in last.items()}
    writing = {index: line.commits[index] for index in tagged.values() if index < len(line.commits)}
    bases = await read_bases(line.git, writing.values())
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
