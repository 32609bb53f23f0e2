"""Which version of each package was released last, by the tags that lead to HEAD, and up to which
commit changes went into the decision on it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.fields import replace
from releasekit.git.versions import find_first_commits, find_versions
from releasekit.text.numbering import numbering_of
from releasekit.versions.candidates import LastRelease
from releasekit.versions.history import make_shallow_error, read_bases
from releasekit.versions.tags import LinePlace, VersionTag, canonicalize, find_alike, read_tags

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.git.commits import Commits
    from releasekit.git.versions import Read, Reader
    from releasekit.model import Package, PackageId
    from releasekit.versions.candidates import Candidate
    from releasekit.versions.history import MainLine
    from releasekit.versions.tags import Tags

    # Whether a registry has the version of each package; None where it does not say.
    FindPublished = Callable[[Sequence[Package]], Awaitable[Mapping[PackageId, bool | None]]]

# So many tags that do not name one package alone are compared with the manifests of their commits.
_MOST_COMPARED: Final = 32
# In place of a version: the manifest is there and says none, as where the version is the tag's. So
# does 0.0.0-development, https://semantic-release.gitbook.io/semantic-release/support/faq
UNSAID: Final = "unsaid"
_NEVER_RELEASED: Final = re.compile(r"v?0\.0\.0[-.+]?[A-Za-z].*")


class _Facts(Struct, frozen=True, kw_only=True):
    """What is known of one candidate. `tag` is that of its last stable version, and `base` where
    that was decided on an earlier commit, as `_find_bases` has it. Of a version that is written
    without a tag, `wrote` is the commit that it begins with, and `is_published` what its registry
    says. Where no stable version has a tag, `prerelease` is the highest one that has, and `begun`
    as `_find_beginnings` has it.
    """

    candidate: Candidate
    tag: VersionTag | None
    base: int | None
    wrote: str = ""
    is_published: bool | None = None
    prerelease: VersionTag | None = None
    begun: int | None = None


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
    tags = await read_tags(candidates, packages, line, root)
    last = await _find_last(candidates, tags, line.git)
    if line.is_shallow and any(each.id not in last for each in candidates):
        raise make_shallow_error()
    bases = await _find_bases(last, tags, line)
    facts = [
        _Facts(candidate=each, tag=last.get(each.id), base=bases.get(each.id))
        for each in candidates
    ]
    facts = await _ask_of_written(facts, line, find_published)
    facts = await _ask_of_prereleases(facts, tags, line)
    found = [replace(each.candidate, release=_make_release(each, tags, line)) for each in facts]
    fresh = await _find_fresh([each for each in found if each.label], tags, line)
    return [
        replace(each, release=replace(each.release, fresh=fresh.get(each.id, each.release.fresh)))
        for each in found
    ]


async def _ask_of_written(
    facts: Sequence[_Facts], line: MainLine, find_published: FindPublished
) -> list[_Facts]:
    """What is published may have no tag: a run died, or tags are not made any more."""
    asked = [it.candidate for it in facts if it.tag is None or _is_pending(it.candidate, it.tag)]
    first = await find_first_commits({it.package: it.read_version for it in asked}, line.git)
    unsure = [it.candidate for it in facts if it.tag is None or first.get(it.candidate.id)]
    published = await find_published([each.package for each in unsure])
    return [
        replace(
            each,
            wrote=first.get(each.candidate.id, ""),
            is_published=published.get(each.candidate.id),
        )
        for each in facts
    ]


async def _ask_of_prereleases(facts: Sequence[_Facts], tags: Tags, line: MainLine) -> list[_Facts]:
    untagged = [each.candidate for each in facts if each.tag is None]
    unpublished = {each.candidate.id for each in facts if each.is_published is False}
    last = await _find_last(untagged, tags, line.git, is_stable=False)
    beginning = [
        each
        for each in untagged
        if _is_prerelease(each.id.ecosystem, each.package.version)
        or (each.id in last and each.id in unpublished)
    ]
    begun = await _find_beginnings(beginning, tags, line)
    return [
        replace(each, prerelease=last.get(each.candidate.id), begun=begun.get(each.candidate.id))
        for each in facts
    ]


def _make_release(facts: _Facts, tags: Tags, line: MainLine) -> LastRelease:
    package, whole = facts.candidate.id, len(line.commits)
    written = canonicalize(package.ecosystem, facts.candidate.package.version)
    index = line.indexes.get(facts.wrote, 0)
    if facts.tag:
        tagged = _release_tagged(package, facts.tag, tags, facts.base)
        return _release_untagged(written, index, tagged.taken) if facts.is_published else tagged
    taken = {tag.version: tag.commit for tag in tags.list_own(package) if not tag.is_stable}
    # Without an answer, a version that never had a tag counts as released: to take it for
    # unpublished would leave a change without a version.
    is_there = facts.is_published is not False
    written = written if is_there else ""
    if facts.begun is not None:
        release = _release_prerelease(facts, written, taken, whole)
    elif written:
        release = _release_untagged(written, index, taken)
    else:
        base = index if is_there else min(index + 1, whole)
        release = LastRelease(base=base, tagged=whole, taken=taken)
    if release.version or release.prerelease:
        return release
    return replace(release, fresh=whole, similar_tags=find_alike(package, tags.unclaimed))


def _release_tagged(
    package: PackageId, tag: VersionTag, tags: Tags, base: int | None
) -> LastRelease:
    """`base` is None where the version was decided on the commit that is tagged."""
    place = tags.places[tag.commit]
    base = place.younger if base is None else base
    # Of tags that may be of others, those that no manifest in the history of HEAD speaks for.
    above = tags.listed[package] if tag.is_own else tags.list_above(package, tag)
    return LastRelease(
        version=tag.version,
        base=base,
        tagged=place.younger,
        beside=place.beside,
        taken={
            each.version: each.commit
            for each in above
            if each.is_own or not (tag.is_own or (each.is_stable and each.commit in tags.places))
        },
        fresh=base,
    )


def _release_untagged(version: str, index: int, taken: Mapping[str, str]) -> LastRelease:
    """The commit at `index` wrote it."""
    return LastRelease(
        version=version,
        base=index,
        tagged=index,
        taken=taken,
        guessed=version not in taken,
        fresh=index,
    )


def _release_prerelease(
    facts: _Facts, written: str, taken: Mapping[str, str], whole: int
) -> LastRelease:
    """Of a package that had nothing else: the one that is written, or the highest one that has a
    tag. No stable version had any of its changes.
    """
    base, tag = facts.begun or 0, facts.prerelease
    release = LastRelease(base=base, tagged=whole, taken=taken, fresh=base)
    ecosystem = facts.candidate.id.ecosystem
    order = numbering_of(ecosystem).order(written) if written else None
    if order and (tag is None or tag.order < order):
        known, guessed = {**taken, written: facts.wrote}, written not in taken
        return replace(release, prerelease=written, taken=known, guessed=guessed)
    if tag is None:
        return release
    return replace(release, prerelease=tag.version, taken={tag.version: tag.commit, **taken})


async def _find_beginnings(
    candidates: Sequence[Candidate], tags: Tags, line: MainLine
) -> dict[PackageId, int]:
    """How many commits of the line have what came since these packages were made prereleases of:
    from the commit that wrote the first one, or after the first that has a tag.
    """
    versions = {each.package: _join_prereleases(each.read_version) for each in candidates}
    first = await find_first_commits(versions, line.git)
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


def _join_prereleases(reader: Reader) -> Reader:
    """As if all of them were the version of today."""

    def read_version(package: Package, read: Read) -> str:
        said = reader(package, read)
        return package.version if _is_prerelease(package.id.ecosystem, said) else said

    return read_version


def _is_prerelease(ecosystem: str, text: str) -> bool:
    """Whether it is a prerelease, and does not only hold the place of a version."""
    version = canonicalize(ecosystem, text)
    parts = numbering_of(ecosystem).read(version) if version else None
    return parts is not None and parts.is_prerelease and not parts.is_placeholder


async def _find_fresh(
    candidates: Sequence[Candidate], tags: Tags, line: MainLine
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
    asked = {own[each].package: own[each].read_version for each in written}
    first = await find_first_commits(asked, line.git)
    places, found = dict(tags.places), {}
    for package, tag in written.items():
        commit = first[package]
        if commit in line.indexes:
            last[package] = tag._replace(commit=commit)
            places[commit] = LinePlace(line.indexes[commit])
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


def _read_prerelease(candidate: Candidate, last: VersionTag | None) -> VersionTag | None:
    """What is written as if it had a tag, where it is a prerelease by the candidate's label, and
    higher than its `last` one.
    """
    ecosystem = candidate.id.ecosystem
    written = canonicalize(ecosystem, candidate.package.version)
    numbering = numbering_of(ecosystem)
    stable = numbering.stable(written) if written else ""
    if not stable or numbering.find_number(written, candidate.label, stable) < 0:
        return None
    tag = VersionTag(
        order=numbering.order(written),
        is_own=True,
        version=written,
        name="",
        commit="",
        is_stable=False,
    )
    return tag if last is None or last.order < tag.order else None


def _is_pending(candidate: Candidate, last: VersionTag) -> bool:
    """Whether a higher version is written than the last one with a tag. The tag of a Go module is
    what publishes it.
    """
    written = canonicalize(candidate.id.ecosystem, candidate.package.version)
    if not written or candidate.id.ecosystem == "go":
        return False
    numbering = numbering_of(candidate.id.ecosystem)
    return numbering.order(written) > last.order and not numbering.read(written).is_prerelease


async def _find_last(
    candidates: Sequence[Candidate], tags: Tags, commits: Commits, *, is_stable: bool = True
) -> dict[PackageId, VersionTag]:
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
        (each.package, name_unsaid(each.read_version)) for each in candidates if unsure[each.id]
    ]
    head = commits.head
    today = await find_versions([(package, at, head) for package, at in reading], commits)
    found: dict[PackageId, VersionTag] = {}
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
            # Where today's manifest says a version, that of then may have been another package's.
            is_unsaid = package.id not in own and said == today[package.id, head] == UNSAID
            if is_unsaid or _is_version_of(tag, said, package.id.ecosystem):
                found.setdefault(package.id, tag)
    return own | found


def _is_version_of(tag: VersionTag, said: str, ecosystem: str) -> bool:
    version = canonicalize(ecosystem, said)
    return bool(version) and numbering_of(ecosystem).order(version) == tag.order


def _list_higher(package: Package, own: VersionTag | None, tags: Tags) -> Iterator[VersionTag]:
    """Those that may be of the package, above its `own`. Of those above what is written, younger
    ones: it may have begun again below a version that it shared with others.
    """
    higher = tags.list_above(package.id, own)
    written = canonicalize(package.id.ecosystem, package.version)
    if not own or not written:
        return higher
    order = numbering_of(package.id.ecosystem).order(written)
    age = tags.places[own.commit].younger
    return (tag for tag in higher if tag.order <= order or tags.places[tag.commit].younger <= age)


def name_unsaid(reader: Reader) -> Reader:
    def read_version(package: Package, read: Read) -> str:
        said = reader(package, read)
        if said and not _NEVER_RELEASED.fullmatch(said):
            return said
        return "" if read(package.manifest) is None else UNSAID

    return read_version


async def _find_bases(
    last: Mapping[PackageId, VersionTag], tags: Tags, line: MainLine
) -> dict[PackageId, int]:
    """Where the decision on a released version was made on an earlier commit than the one that is
    tagged, by the trailer of that one, or of what it merges.
    """
    places = tags.places
    tagged = {package: places[tag.commit].younger for package, tag in last.items()}
    writing = {index: line.commits[index] for index in tagged.values() if index < len(line.commits)}
    bases = await read_bases(line, writing.values())
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
