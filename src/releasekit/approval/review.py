"""What changed since the versions that users have now, of everything that waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all, uncancellable
from releasekit.errors import PackageError
from releasekit.report.review import Change, Review

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.approval.compare import Examined
    from releasekit.approval.held import Held
    from releasekit.ecosystems.approval import Approval, Contents
    from releasekit.model import PackageId, Report

# Downloads, and archives that are read, at the same time.
AT_ONCE: Final = 4


async def reviewed(
    report: Report,
    held: Held,
    examined: Mapping[PackageId, Examined],
    approvals: Mapping[str, Approval],
    *,
    compare: bool,
) -> Review:
    """To `compare`, it asks the registries for what they published last; where that fails, the
    review says so.
    """
    levels, needed_by = held.levels(), held.needed_by()
    turn = asyncio.Semaphore(AT_ONCE)

    async def change_of(each: Examined) -> Change:
        recorded, waiting = each.recorded, each.waiting
        package = recorded.package
        ours, before, note = None, None, ""
        if compare:
            async with turn:
                ours, before, note = await _compared(each, approvals[package.id.ecosystem])
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
            added=_beyond(ours, before),
            removed=_beyond(before, ours),
            scripts=_new_scripts(ours, before),
            needed_by=tuple(needed_by[package.id]),
            note=note,
        )

    waiting = [each for each in examined.values() if each.waiting and not each.refusal]
    changes = await gather_all(map(change_of, waiting))
    return Review(
        run_id=report.run_id,
        commit=report.commit,
        places=tuple(sorted({approval.url for approval in approvals.values()})),
        changes=tuple(sorted(changes, key=lambda change: (change.level, change.package))),
        settled={
            str(each.recorded.package): "everybody sees it" if each.visible else _GONE
            for each in examined.values()
            if not each.waiting and not each.refusal
        },
        refused={
            str(each.recorded.package): _told(each.refusal, each)
            for each in examined.values()
            if each.refusal
        },
        behind={name: sorted(needs) for name, needs in held.behind.items()},
    )


_GONE: Final = "it waits no more, and nobody sees it yet: approved a while ago, or rejected"


def _told(error: PackageError, each: Examined) -> str:
    return str(error).removeprefix(f"{each.recorded.package}: ")


async def _compared(
    each: Examined, approval: Approval
) -> tuple[Contents | None, Contents | None, str]:
    """What is in it, what was in the version before, and why that is not known."""
    try:
        ours = await uncancellable(asyncio.to_thread(approval.contents, each.recorded, each.files))
    except PackageError as error:
        return None, None, f"nobody could look into it: {error}"
    try:
        return ours, await approval.last_published(each.recorded, each.place), ""
    except PackageError as error:
        # With nothing before it, each of its scripts is shown as a new one.
        return ours, None, f"not compared with the version before: {error}"


def _beyond(one: Contents | None, other: Contents | None) -> tuple[str, ...]:
    """Names that only the first one has."""
    if one is None or other is None:
        return ()
    return tuple(sorted(one.names - other.names))


def _new_scripts(ours: Contents | None, before: Contents | None) -> tuple[str, ...]:
    known = before.scripts if before else {}
    found = ours.scripts.items() if ours else ()
    return tuple(f"{name}: {script}" for name, script in found if known.get(name) != script)
