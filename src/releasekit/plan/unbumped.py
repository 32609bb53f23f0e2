"""What has changed in packages since the version that is on the registry was made."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.errors import CommandFailed
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.git.versions import find_versions
from releasekit.host.files import repository_of
from releasekit.model import Action
from releasekit.plan.changes import Revision, changes, compiled, tags_of, version_tags
from releasekit.plan.decision import is_clean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.git.versions import Reader
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId, Plan, PlannedPackage
    from releasekit.plan.holdings import Holdings
    from releasekit.state.history import History

_INHERITED: Final = ("what its manifest takes from the workspace",)


class Changes(Struct, frozen=True, kw_only=True):
    """What no commit or no version has: files, by names relative to the directory of the package,
    or to the root where they lie elsewhere.

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
    holdings: Holdings,
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
    built = [each.package for each in plan.packages if each.is_built]
    if not plan.commit or not (kept or uncommitted):
        return Changes()
    tagged = await _find_tagged(plan, root, targets, processes, tags) if kept else {}
    since, unknown, clean = _find_revisions(plan.commit, kept, tagged, history)
    sources = _Sources(root=root, targets=targets, holdings=holdings)
    changed = await _find_committed(since, sources, processes)
    edits = sources.sort_by_package(uncommitted)
    edited = await _find_edited(clean, edits, sources, processes)
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
        uncommitted={
            each: listed for each in built if (listed := sources.list_changed(each, edits))
        },
        unknown=unknown,
    )


def _find_revisions(
    commit: str,
    kept: Sequence[PlannedPackage],
    tagged: Mapping[Package, Revision],
    history: History,
) -> tuple[dict[Package, Revision], list[Package], list[Package]]:
    """The state of the sources that each was published from, by the journal or by its tag; those of
    which neither tells; and those that were built without uncommitted changes, as far as is known.
    Of others, it is unknown which of these are new.
    """
    since: dict[Package, Revision] = {}
    unknown, clean = [], []
    for planned in kept:
        package, entry = planned.package, history.entry(planned.package)
        if package.follows is not None or (entry is not None and entry.commit == commit):
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


async def _find_tagged(
    plan: Plan,
    root: Path,
    targets: Mapping[str, Target],
    processes: Processes,
    names: Mapping[PackageId, str],
) -> dict[Package, Revision]:
    tags = await tags_of(root, processes)
    tagged = version_tags((each.package for each in plan.packages), root, tags)
    holders = Counter(names.values())
    for planned in plan.packages:
        name = names.get(planned.package.id)
        if planned.action is Action.KEEP and name in tags and holders[name] == 1:
            tagged[planned.package] = Revision.of_tag(name)
    from_commit = [each for each in tagged if targets[each.id.ecosystem].builds_from_commit]
    # Publishing may complete a package in a commit of its own, on top of what it is built from.
    aside = await tags_of(root, processes, "--no-merged=HEAD") if from_commit else ()
    for package in from_commit:
        tag = tagged[package]
        if tag.id.removeprefix("refs/tags/") in aside:
            tagged[package] = replace(tag, id=f"{tag.id}^")
    return tagged


async def _compare_files(
    since: Mapping[Package, Revision], sources: _Sources, processes: Processes
) -> dict[Package, list[str]]:
    places = {
        package: [
            place
            for each in (package, *sources.find_parts(package))
            for place in sources.holdings.list_places(each)
        ]
        for package in since
    }
    asked = [(place, since[package]) for package, listed in places.items() for place in listed]
    found = await changes(asked, sources.root, processes)
    changed: dict[Package, list[str]] = {}
    for package, then in since.items():
        files = {name for place in places[package] for name in found.get((place, then), ())}
        changed[package] = await asyncio.to_thread(
            sources.list_changed, package, sources.sort_by_package(sorted(files))
        )
    return changed


async def _find_committed(
    since: Mapping[Package, Revision], sources: _Sources, processes: Processes
) -> dict[Package, list[str]]:
    """What the commit checked out has otherwise than the one that each was published from."""
    changed = await _compare_files(since, sources, processes)
    compositions = {it: sources.targets[it.id.ecosystem].composition for it in since}
    offering = {
        package: compositions[package].read_offered
        for package, names in changed.items()
        if package.manifest.name in names
    }
    offered = await _compare_manifests(offering, since, sources.root, processes)
    for package, is_same in offered.items():
        if is_same:
            changed[package].remove(package.manifest.name)
    inheriting = {package: compositions[package].read_inherited for package in since}
    inherited = await _compare_manifests(inheriting, since, sources.root, processes)
    for package in since:
        if not inherited.get(package, True):
            changed[package] += _INHERITED
    return changed


class _Sources(Struct, frozen=True, kw_only=True):
    """The files of a workspace by its packages, and by those that others are compiled into."""

    root: Path
    targets: Mapping[str, Target]
    holdings: Holdings
    _parts: dict[Package, Mapping[Package, Collection[Package]]] = field(default_factory=dict)
    _readers: dict[tuple[Package, Package], Callable[[str], bool] | None] = field(
        default_factory=dict
    )

    def find_parts(self, package: Package) -> Mapping[Package, Collection[Package]]:
        if package not in self._parts:
            composition = self.targets[package.id.ecosystem].composition
            self._parts[package] = composition.find_parts(package)
        return self._parts[package]

    def sort_by_package(self, paths: Iterable[str]) -> Mapping[PackageId, Sequence[str]]:
        """Of files, those that the users of each package get, or get something made of."""
        found: defaultdict[PackageId, dict[str, None]] = defaultdict(dict)
        for path in paths:
            for package in self.holdings.list_holders(path):
                found[package][path] = None
        return {package: list(listed) for package, listed in found.items()}

    def list_changed(self, package: Package, files: Mapping[PackageId, Sequence[str]]) -> list[str]:
        """What it has of such files, and what its sources lead to in other packages."""
        own, place = files.get(package.id, ()), self.holdings.find_place(package)
        prefix = f"{place}/" if place else ""
        names = (path.removeprefix(prefix) for path in own)
        return [*dict.fromkeys((*names, *self._list_taken_in(package, files)))]

    def _list_taken_in(
        self, package: Package, files: Mapping[PackageId, Sequence[str]]
    ) -> Iterator[str]:
        parts = self.find_parts(package) if files else {}
        for part, takers in parts.items():
            place = self.holdings.find_place(part)
            packed = [path.removeprefix(f"{place}/") for path in files.get(part.id, ())]
            if names := compiled(packed, part):
                leading = [each for each in takers if self._leads(package, each, parts)]
                counting = [counts for each in leading if (counts := self._reads(each, part))]
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
            composition = self.targets[taker.id.ecosystem].composition
            counts = composition.follow_imports(taker, part, self.holdings.list_own)
            self._readers[taker, part] = counts
        return self._readers[taker, part]


async def _find_edited(
    packages: Iterable[Package],
    edits: Mapping[PackageId, Sequence[str]],
    sources: _Sources,
    processes: Processes,
) -> dict[Package, list[str]]:
    """Files of the commit that differ from it, of packages whose version does not: an earlier step
    of the job that writes the version into a manifest may write it into other files too. Files that
    git does not have may be what a build has left.
    """
    tracked = {*sources.holdings.tree.files, *sources.holdings.tree.submodules} if edits else set()
    known = {
        package: [path for path in listed if path in tracked or path.startswith("../")]
        for package, listed in edits.items()
    }
    names = {each: listed for each in packages if (listed := sources.list_changed(each, known))}
    asked = [
        (each, sources.targets[each.id.ecosystem].versioning.read_version, "HEAD") for each in names
    ]
    committed = await _read_manifests(asked, sources.root, processes)
    return {each: names[each] for each in names if committed.get((each.id, "HEAD")) == each.version}


async def _compare_manifests(
    asked: Mapping[Package, Reader],
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
    asked: Sequence[tuple[Package, Reader, str]], root: Path, processes: Processes
) -> dict[tuple[PackageId, str], str]:
    """What the manifests of each say at a revision; nothing where git does not tell."""
    top = repository_of(root)
    if not asked or top is None:
        return {}
    try:
        return await find_versions(asked, Commits(top, processes))
    except CommandFailed:
        return {}
