"""What became of what earlier runs have staged, where that can be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.errors import Denied, DigestMismatch, PackageError
from releasekit.http.traffic import billed_to
from releasekit.model import Action, Staged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.ecosystems.interface import Registry, Staging, Target
    from releasekit.model import PlannedPackage

DROPPED: Final = (
    "it was staged by an earlier run, and is neither published nor staged any more: it was "
    "rejected, or the registry dropped it. Bump the version; or, if it was approved just now, run "
    "again in some minutes"
)


async def looked_at(
    packages: Sequence[PlannedPackage], targets: Mapping[str, Target]
) -> list[PlannedPackage]:
    """`packages`; those of them that were staged as their registries still have them. What is only
    claimed to be staged is `staged` nowhere unless its registry says so.
    """
    awaited: dict[str, list[PlannedPackage]] = {}
    for planned in packages:
        if planned.action is Action.AWAIT:
            awaited.setdefault(planned.package.id.ecosystem, []).append(planned)
    answers = await gather_all(
        _of_one(own, staging, targets[name].registry)
        for name, own in awaited.items()
        if (staging := targets[name].staging) is not None
    )
    found = {planned.package.id: planned for answer in answers for planned in answer}
    return [found.get(planned.package.id, planned) for planned in packages]


async def _of_one(
    packages: Sequence[PlannedPackage], staging: Staging, registry: Registry
) -> list[PlannedPackage]:
    """Who may not ask for the first one may not ask for the others."""
    first, *others = packages
    try:
        seen = await _as_it_is(first, staging, registry)
    except Denied:
        return []
    return [seen, *await gather_all(_as_far_as_known(p, staging, registry) for p in others)]


async def _as_far_as_known(
    planned: PlannedPackage, staging: Staging, registry: Registry
) -> PlannedPackage:
    try:
        return await _as_it_is(planned, staging, registry)
    except Denied:
        return planned


async def _as_it_is(
    planned: PlannedPackage, staging: Staging, registry: Registry
) -> PlannedPackage:
    """Raises Denied; a registry that gives no answer has told nothing else than before."""
    try:
        with billed_to(planned.package.id):
            found = await staging.staged(planned.package, planned.artifacts)
            # It may have been approved since it was looked up.
            dropped = found is None and await registry.lookup(planned.package) is None
    except DigestMismatch as mismatch:
        return replace(planned, action=Action.REFUSE, reason=str(mismatch), staged=None)
    except Denied:
        raise
    except PackageError:
        return planned
    if dropped and planned.staged is not None:
        return replace(planned, action=Action.REFUSE, reason=DROPPED, staged=None)
    return replace(planned, staged=_together(found, planned.staged))


def _together(found: Staged | None, known: Staged | None) -> Staged | None:
    """What a registry tells without an id has that of the journal."""
    if found is None or found.id or known is None:
        return found or known
    return Staged(id=known.id, url=known.url or found.url, tag=found.tag or known.tag)
