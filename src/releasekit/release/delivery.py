"""How files get to a registry: published, or staged for a person to approve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import PackageError, StageOnly
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact, Package, PackageId, Staged
    from releasekit.release.life import PackageRun

    Release = Mapping[Package, Sequence[Artifact]]
    Waiting = Mapping[PackageId, Staged]


async def deliver(target: Target, release: Release, runs: Sequence[PackageRun]) -> Waiting:
    """Send `release`, of these runs; what of it waits for a person now.

    What is staged once is never published directly, whatever comes of it.
    """
    staging = target.staging
    if not release:
        return {}
    if staging is not None and any(run.stages for run in runs):
        return await staging.stage(release)
    try:
        await _publish(target, release)
    except StageOnly as only:
        if staging is None or staging.mode != "auto":
            raise
        for run in runs:
            words = str(only).removeprefix(f"{run.planned.package}: ")
            run.stages, run.may_only_stage = True, words
        return await staging.stage(release)
    return {}


async def _publish(target: Target, release: Release) -> None:
    if target.deployment is not None:
        await target.deployment.deploy(release)
        return
    for package, artifacts in release.items():
        await target.registry.upload(package, artifacts)


def hold_back(runs: Sequence[PackageRun], needs: Iterable[PackageRun], *, mode: StageMode) -> None:
    """Decide whether packages that go out together are staged, from what they need.

    Raises PackageError where they need what waits for approval, and cannot wait beside it.
    """
    ecosystem = runs[0].id.ecosystem
    waiting = {need.id for need in needs if need.awaits_approval}
    apart = {on for on in waiting if mode == "never" or on.ecosystem != ecosystem}
    for run in runs:
        run.held_by = frozenset(apart)
        run.stages = run.stages or bool(waiting)
    if apart:
        names = ", ".join(map(str, sorted(apart)))
        raise PackageError(
            f"needs {names}, which waits for approval; nothing of it was sent",
            problem=Problem.WAITS_FOR_APPROVAL,
        )
