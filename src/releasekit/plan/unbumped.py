"""What has changed in packages since the version that is on the registry was made."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from releasekit.errors import CommandFailed
from releasekit.git.commits import Commits
from releasekit.git.versions import find_versions
from releasekit.host.files import repository_of
from releasekit.model import Action
from releasekit.plan.changes import (
    Revision,
    below,
    changes,
    compiled,
    outside_others,
    tags_of,
    tracked_files,
    version_tags,
)
from releasekit.plan.decision import is_clean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.git.versions import VersionAt
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId, Plan, PlannedPackage
    from releasekit.plan.changes import Since
    from releasekit.state.history import History

_INHERITED: Final = ("what its manifest takes from the workspace",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What no commit or no version has: files, by names relative to the directory of the package,
    or to the root where they are of another one that is built into it.

    `unbumped` are those that are on the registry and have changed since the revision beside;
    `uncommitted` those to be built, with files that differ from the commit. Of `unknown` it cannot
    be told whether they have changed.
    """

    unbumped: Mapping[Package, tuple[Revision, list[str]]] = field(default_factory=dict)
    uncommitted: Mapping[Package, list[str]] = field(default_factory=dict)
    unknown: Sequence[Package] = ()


async def find_changes(
    plan: Plan,
    root: Path,
    targets: Mapping[str, Target],
    history: History,
    processes: Processes,
    *,
    uncommitted: Sequence[str],
    tags: Mapping[PackageId, str],
) -> Changes:
    """`uncommitted` are files by sorted names relative to the root, and `tags` what the tag of each
    version is called. Outside git, none are known.
    """
    kept = [planned for planned in plan.packages if planned.action is Action.KEEP]
    built = [
        planned.package
        for planned in plan.packages
        if planned.action is Action.PUBLISH and not planned.package.prebuilt
    ]
    if not plan.commit or not (kept or uncommitted):
        return Changes()
    since, unknown, clean = await _find_revisions(
        plan, kept, root, targets, history, processes, tags
    )
    parts = {each: targets[each.id.ecosystem].compiled_in(each) for each in since}
    everything = [each for target in targets.values() for each in target.workspace.packages]
    asked = [*since.items(), *((part, since[each]) for each in since for part in parts[each])]
    found = await changes(asked, everything, root, processes)
    sources = _Sources(
        root=root,
        targets=targets,
        directories=[each.directory for each in everything],
        uncommitted=uncommitted,
        tracked=await tracked_files(root, processes) if found or uncommitted else (),
    )
    changed = await _find_committed(since, parts, found, sources, processes)
    edited = await _find_edited(clean, sources, processes)
    head = Revision.of_commit(plan.commit.partition("+")[0])
    before = replace(head, shown=f"{head.shown}, or an earlier one")
    names = {
        package: list(dict.fromkeys([*changed.get(package, ()), *edited.get(package, ())]))
        for package in (changed | edited)
    }
    return Changes(
        unbumped={
            package: (since.get(package, before), listed)
            for package, listed in names.items()
            if listed
        },
        uncommitted={each: listed for each in built if (listed := sources.list_uncommitted(each))},
        unknown=unknown,
    )


async def _find_revisions(
    plan: Plan,
    kept: Sequence[PlannedPackage],
    root: Path,
    targets: Mapping[str, Target],
    history: History,
    processes: Processes,
    names: Mapping[PackageId, str],
) -> tuple[dict[Package, Revision], list[Package], list[Package]]:
    """The state of the sources that each was published from, by the journal or by its tag; those of
    which neither tells; and those that were built without uncommitted changes, as far as is known.
    Of others, it is unknown which of these are new.
    """
    tagged = {}
    if kept:
        tags = await tags_of(root, processes)
        tagged = version_tags((each.package for each in plan.packages), root, tags)
        holders = Counter(names.values())
        for package in (planned.package for planned in kept):
            name = names.get(package.id)
            if name in tags and holders[name] == 1:
                tagged[package] = Revision.of_tag(name)
    from_commit = [each for each in tagged if targets[each.id.ecosystem].builds_from_commit]
    if from_commit:
        # Publishing may complete a package in a commit of its own, on top of what it is built from.
        aside = await tags_of(root, processes, "--no-merged=HEAD")
        for package in from_commit:
            tag = tagged[package]
            if tag.id.removeprefix("refs/tags/") in aside:
                tagged[package] = replace(tag, id=f"{tag.id}^")
    since: dict[Package, Revision] = {}
    unknown, clean = [], []
    for planned in kept:
        package, entry = planned.package, history.entry(planned.package)
        if entry is not None and entry.commit == plan.commit:
            continue  # with the same changes to it, if any
        if entry is not None and planned.artifacts and is_clean(entry.commit):
            since[package] = Revision.of_commit(entry.commit)
        elif package in tagged:
            since[package] = tagged[package]
        else:
            unknown.append(package)
        if entry is None or is_clean(entry.commit):
            clean.append(package)
    return since, unknown, clean


async def _find_committed(
    since: Mapping[Package, Revision],
    parts: Mapping[Package, Mapping[Package, Collection[Package]]],
    found: Mapping[Since, Sequence[str]],
    sources: _Sources,
    processes: Processes,
) -> dict[Package, list[str]]:
    """What the commit checked out has otherwise than the one that each was published from."""
    changed = {
        package: sources.list_packed(package, found.get((package, then), ()))
        for package, then in since.items()
    }
    targets = {package: sources.targets[package.id.ecosystem] for package in since}
    offering = {
        package: targets[package].offered_at
        for package, names in changed.items()
        if package.manifest.name in names
    }
    offered = await _compare_manifests(offering, since, sources.root, processes)
    for package, is_same in offered.items():
        if is_same:
            changed[package].remove(package.manifest.name)
    inheriting = {package: targets[package].inherited_at for package in since}
    inherited = await _compare_manifests(inheriting, since, sources.root, processes)
    for package, then in since.items():
        taken_in = sources.list_taken_in(package, then, parts[package], found)
        changed[package] += await asyncio.to_thread(list, taken_in)
        if not inherited.get(package, True):
            changed[package] += _INHERITED
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """The files of a workspace by its packages, which lie in `directories`. All that git has is
    `tracked`, and what differs from the commit `uncommitted`, both by sorted names relative to the
    root.
    """

    root: Path
    targets: Mapping[str, Target]
    directories: Sequence[Path]
    uncommitted: Sequence[str]
    tracked: Sequence[str]
    _readers: dict[tuple[Package, Package], Callable[[str], bool] | None] = field(
        default_factory=dict
    )

    def list_own(self, package: Package) -> Sequence[str]:
        return below(package.directory, self.root, self.tracked)

    def list_packed(self, package: Package, names: Sequence[str]) -> list[str]:
        """Those of its files that users get, or get something made of."""
        if not names:
            return []
        packs = self.targets[package.id.ecosystem].packs
        return list(filter(packs(package, self.list_own(package)), names))

    def list_uncommitted(self, package: Package) -> list[str]:
        """Those of its files that differ from the commit, and that users get."""
        names = below(package.directory, self.root, self.uncommitted)
        if names:
            names = outside_others(names, package.directory, self.directories)
        return self.list_packed(package, names)

    def list_edited(self, package: Package) -> list[str]:
        """Those of them that git has."""
        names = self.list_uncommitted(package)
        own = {*self.list_own(package)} if names else set()
        return [name for name in names if name in own]

    def list_taken_in(
        self,
        package: Package,
        then: Revision,
        parts: Mapping[Package, Collection[Package]],
        found: Mapping[Since, Sequence[str]],
    ) -> Iterator[str]:
        """Of other packages, what the sources of this one lead to."""
        for part, takers in parts.items():
            packed = self.list_packed(part, found.get((part, then), ()))
            if names := compiled(packed, part):
                leading = [each for each in takers if self._leads(package, each, parts)]
                counting = [counts for each in leading if (counts := self._reads(each, part))]
                place = part.directory.relative_to(self.root).as_posix()
                for name in names:
                    if any(counts(name) for counts in counting):
                        yield f"{place}/{name}"

    def _leads(
        self,
        package: Package,
        taker: Package,
        parts: Mapping[Package, Collection[Package]],
    ) -> bool:
        """Whether it is the package, or its sources take it in, or take in what does."""
        seen, pending = {taker}, [taker]
        while pending:
            each = pending.pop()
            if each == package:
                return True
            takers = parts.get(each, ())
            new = [one for one in takers if one not in seen and self._reads(one, each)]
            seen.update(new)
            pending += new
        return False

    def _reads(self, taker: Package, part: Package) -> Callable[[str], bool] | None:
        """What the sources of `taker` take in of `part`, read once."""
        if (taker, part) not in self._readers:
            target = self.targets[taker.id.ecosystem]
            self._readers[taker, part] = target.takes_in(taker, part, self.list_own)
        return self._readers[taker, part]


async def _find_edited(
    packages: Iterable[Package], sources: _Sources, processes: Processes
) -> dict[Package, list[str]]:
    """Files of the commit that differ from it, of packages whose version does not: an earlier step
    of the job that writes the version into a manifest may write it into other files too. Files that
    git does not have may be what a build has left.
    """
    names = {each: listed for each in packages if (listed := sources.list_edited(each))}
    asked = [(each, sources.targets[each.id.ecosystem].version_at, "HEAD") for each in names]
    committed = await _read_manifests(asked, sources.root, processes)
    return {each: names[each] for each in names if committed.get((each.id, "HEAD")) == each.version}


async def _compare_manifests(
    asked: Mapping[Package, VersionAt],
    since: Mapping[Package, Revision],
    root: Path,
    processes: Processes,
) -> dict[Package, bool]:
    """Whether the manifests of each say the same today as then; without those that did not tell."""
    states = [(each, at, it) for each, at in asked.items() for it in ("HEAD", since[each].id)]
    said = await _read_manifests(states, root, processes)
    pairs = {
        each: (said.get((each.id, since[each].id)), said.get((each.id, "HEAD"))) for each in asked
    }
    return {each: then == today for each, (then, today) in pairs.items() if then and today}


async def _read_manifests(
    asked: Sequence[tuple[Package, VersionAt, str]], root: Path, processes: Processes
) -> dict[tuple[PackageId, str], str]:
    """What the manifests of each say at a revision; nothing where git does not tell."""
    top = repository_of(root)
    if not asked or top is None:
        return {}
    try:
        return await find_versions(asked, Commits(top, processes))
    except CommandFailed:
        return {}
