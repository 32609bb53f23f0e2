"""Staged versions before a decision: whether each is what the run built, and what changed since the
version that users have now.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.aio import gather_all, uncancellable
from releasekit.errors import ConfigError, DigestMismatch, PackageError
from releasekit.fields import replace
from releasekit.model import Outcome
from releasekit.problems import Problem
from releasekit.report.joined import publish_order
from releasekit.report.mermaid import layers
from releasekit.report.review import Change, Review
from releasekit.report.text import split_staged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.approval import Approval, Contents, Waiting
    from releasekit.model import Artifact, PackageId, Report, Result


# Downloads and archives read at the same time.
AT_ONCE: Final = 4


async def build_review(
    report: Report,
    held: Held,
    examined: Mapping[PackageId, Examined],
    approval: Approval,
    *,
    compare: bool,
) -> Review:
    """With `compare`, each version is compared with the last published one; the review says where
    that fails.
    """
    levels, needed_by = held.levels(), held.needed_by()
    turn = asyncio.Semaphore(AT_ONCE)

    async def change_of(each: Examined) -> Change:
        recorded, waiting = each.recorded, each.waiting
        package = recorded.package
        ours, before, note = None, None, ""
        if compare:
            async with turn:
                ours, before, note = await _compare(each, approval)
        return Change(
            package=package.id,
            version=package.version,
            level=levels[package.id],
            size=sum(artifact.size for artifact in recorded.artifacts),
            files=len(ours.names) if ours else 0,
            tag=waiting.tag if waiting else "",
            by=waiting.by if waiting else "",
            before=before.version if before else "",
            size_before=before.size if before else 0,
            added=_names_only_in(ours, before),
            removed=_names_only_in(before, ours),
            scripts=_new_scripts(ours, before),
            needed_by=tuple(needed_by[package.id]),
            note=note,
        )

    waiting = [each for each in examined.values() if each.waiting and not each.refusal]
    changes = await gather_all(map(change_of, waiting))
    return Review(
        run_id=report.run_id,
        commit=report.commit,
        place=approval.url,
        changes=tuple(sorted(changes, key=lambda change: (change.level, change.package))),
        settled={
            str(each.recorded.package): "everybody sees it" if each.visible else _GONE
            for each in examined.values()
            if not each.waiting and not each.refusal
        },
        refused={
            str(each.recorded.package): str(each.refusal).removeprefix(f"{each.recorded.package}: ")
            for each in examined.values()
            if each.refusal
        },
        behind={name: sorted(needs) for name, needs in held.behind.items()},
    )


_GONE: Final = "it no longer waits, and is not visible yet: approved a while ago, or rejected"


async def _compare(
    each: Examined, approval: Approval
) -> tuple[Contents | None, Contents | None, str]:
    """Contents of the version and of the one before, and a note where either is not known."""
    try:
        ours = await uncancellable(asyncio.to_thread(approval.contents, each.recorded, each.files))
    except PackageError as error:
        return None, None, f"its files could not be read: {error}"
    try:
        return ours, await approval.last_published(each.recorded, each.place), ""
    except PackageError as error:
        # Without a version before, every script counts as new.
        return ours, None, f"not compared with the version before: {error}"


def _names_only_in(one: Contents | None, other: Contents | None) -> tuple[str, ...]:
    """Names in `one` that are not in `other`."""
    if one is None or other is None:
        return ()
    return tuple(sorted(one.names - other.names))


def _new_scripts(ours: Contents | None, before: Contents | None) -> tuple[str, ...]:
    known = before.scripts if before else {}
    found = ours.scripts.items() if ours else ()
    return tuple(f"{name}: {script}" for name, script in found if known.get(name) != script)


_FOREIGN = (
    "Nothing of it was approved. Find out who has staged that; then reject it, and run the release "
    "again."
)


class Examined(Struct, frozen=True, kw_only=True):
    """`recorded` has the digests of the downloaded files. `waiting` is None for versions that are
    `visible` or gone; `refusal` is why the version must not be approved. `place` is a directory for
    further downloads.
    """

    recorded: Result
    place: Path
    waiting: Waiting | None = None
    visible: bool = False
    refusal: PackageError | None = None
    files: tuple[Artifact, ...] = ()


async def examine(
    recorded: Result, approval: Approval, into: Path, *, compare: bool = True
) -> Examined:
    """What has become of one package and, with `compare`, whether it is what was built. An answer
    that cannot be understood is a refusal too: what is unknown is never approved.
    """
    found = Examined(recorded=recorded, place=into)
    try:
        waiting = await approval.waiting(recorded)
        if waiting is None:
            return replace(found, visible=await approval.is_visible(recorded, into))
        found = replace(found, waiting=waiting)
        check_staged(recorded, waiting)
        if not compare:
            return found
        files = tuple(await approval.files(recorded, waiting, into))
        if different := differences(recorded, files):
            raise DigestMismatch(f"{recorded.package}: {'; '.join(different)}", hint=_FOREIGN)
    except PackageError as error:
        return replace(found, refusal=error)
    built = {artifact.filename: artifact for artifact in recorded.artifacts}
    compared = tuple(replace(built[file.filename], digests=file.digests) for file in files)
    return replace(found, recorded=replace(recorded, artifacts=compared), files=files)


def check_staged(recorded: Result, waiting: Waiting) -> None:
    """Raises PackageError unless name, version, id and tag are those that the run staged."""
    package, staged = recorded.package, recorded.staged
    wanted = {"name": package.id.name, "version": package.version}
    if staged is not None and staged.id:
        wanted["id"] = staged.id
    if staged is not None and staged.tag:
        wanted["tag"] = staged.tag
    for key, ours in wanted.items():
        theirs = getattr(waiting, key)
        if theirs != ours:
            by = f", staged by {waiting.by}" if waiting.by else ""
            raise PackageError(
                f"{package}: what waits has the {key} {theirs!r}{by}, and {ours!r} is what the run "
                "has left",
                hint=_FOREIGN,
                problem=Problem.WAITS_DIFFERENT,
            )


def differences(recorded: Result, files: Sequence[Artifact]) -> list[str]:
    """A sentence for each file that differs from the built one, is missing, or was not built."""
    built = {artifact.filename: artifact for artifact in recorded.artifacts}
    found = {artifact.filename: artifact for artifact in files}
    told = [f"{name} was built, and does not wait" for name in sorted(built.keys() - found.keys())]
    told += [f"{name} waits, and was not built" for name in sorted(found.keys() - built.keys())]
    for name in sorted(built.keys() & found.keys()):
        ours, theirs = built[name], found[name]
        if (ours.sha256, ours.size) != (theirs.sha256, theirs.size):
            told.append(
                f"{name} waits with sha256 {theirs.sha256} ({theirs.size} bytes), and {ours.sha256}"
                f" ({ours.size} bytes) was built"
            )
    return told


def _refuse_unrecorded(result: Result, where: str) -> None:
    if not result.artifacts or result.staged is None:
        raise ConfigError(
            f"{where}: {result.package.id} is staged, and its files are not on record",
            hint="Take the results.json of the run that staged it.",
            problem=Problem.RESULTS,
        )


def _find_reach(
    order: Iterable[PackageId],
    edges: Mapping[PackageId, frozenset[PackageId]],
    staged: Collection[PackageId],
) -> dict[PackageId, frozenset[PackageId]]:
    """The first staged packages on all ways from each; dependencies come first in `order`."""
    reach: dict[PackageId, frozenset[PackageId]] = {}
    for name in order:
        needed = edges.get(name, frozenset())
        # Packages between two staged ones order them as well.
        reach[name] = frozenset().union(
            *({need} if need in staged else reach.get(need, frozenset()) for need in needed)
        )
    return reach


class Held(Struct, frozen=True):
    """What a run left to be approved, from its results alone. `recorded` are the staged results,
    dependencies first; `needs` are the edges among them. `behind` maps each blocked package to what
    it waits for, directly or not; `lacks` maps a staged package to needs that are neither published
    nor staged. Of `paged` results a person decides on the page of the registry.
    """

    recorded: Mapping[PackageId, Result]
    needs: Mapping[PackageId, frozenset[PackageId]]
    behind: Mapping[PackageId, frozenset[PackageId]]
    lacks: Mapping[PackageId, frozenset[PackageId]]
    paged: Sequence[Result]

    @classmethod
    def of(cls, report: Report, where: str, is_chosen: Callable[[str], bool]) -> Self:
        """Of the ecosystems that are chosen. Raises ConfigError that names `where`, the file, for
        results with a cycle, or with a staged package whose files are not on record.
        """
        results = {result.package.id: result for result in report.results}
        commanded, paged = (
            [each for each in part if is_chosen(each.package.id.ecosystem)]
            for part in split_staged(report.results)
        )
        staged = {each.package.id for each in commanded}
        for name in sorted(staged):
            _refuse_unrecorded(results[name], where)
        reach = _find_reach(publish_order(report.edges, where), report.edges, staged)
        recorded = {name: results[name] for name in reach if name in staged}
        blocked = {name for name, each in results.items() if each.outcome is Outcome.BLOCKED}
        absent = {name for name, each in results.items() if not each.outcome.done} - staged
        lacks = {name: report.edges.get(name, frozenset()) & absent for name in recorded}
        return cls(
            recorded,
            {name: reach[name] for name in recorded},
            {name: needs for name, needs in reach.items() if needs and name in blocked},
            {name: needs for name, needs in lacks.items() if needs},
            paged,
        )

    def levels(self) -> Mapping[PackageId, int]:
        """1 for packages that need nothing that waits, and up from there."""
        return layers(self.recorded, self.needs)

    def needed_by(self) -> Mapping[PackageId, Sequence[PackageId]]:
        """For each package, the waiting packages that need it."""
        return {
            name: [other for other, needs in self.needs.items() if name in needs]
            for name in self.recorded
        }
