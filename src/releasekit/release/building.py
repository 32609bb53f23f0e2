"""What the tool of an ecosystem makes of a batch of packages, and what keeps it from being sent."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from releasekit.aio import in_time
from releasekit.ecosystems.shared.archives import member_names
from releasekit.ecosystems.shared.artifacts import no_place
from releasekit.errors import BuildFailed, DigestMismatch, PackageError, PathError
from releasekit.host.artifact_reader import open_artifact
from releasekit.model import map_digests
from releasekit.plan.decision import UNVOUCHED, compare, mismatch
from releasekit.plan.make import pin_manifest
from releasekit.problems import Problem
from releasekit.state.directory import built_directory, first_leaked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Built, Target, Workspace
    from releasekit.model import Artifact, Package, PackageId
    from releasekit.release.package_run import PackageRun
    from releasekit.state.journal import Journal


def make_pins(
    workspace: Workspace, packages: Sequence[Package], versions: Mapping[str, str]
) -> dict[Path, bytes]:
    """The manifests that have to change for the build, with the bytes they are to have."""
    pins = {}
    for manifest in dict.fromkeys(path for package in packages for path in package.manifests):
        before, after = pin_manifest(workspace, manifest, versions)
        if after != before:
            pins[manifest] = after.encode("utf-8", "surrogateescape")
    return pins


async def build_batch(
    workspace: Workspace, packages: Sequence[Package], config: PlanConfig
) -> Mapping[PackageId, Built]:
    """Whatever goes wrong is the answer for each package, within the time for one."""
    into = partial(built_directory, state_directory=config.state_directory)
    limit_s = config.task_timeout
    try:
        async with in_time(asyncio.timeout(limit_s)):
            return await workspace.build(packages, into)
    except TimeoutError:
        error = BuildFailed(
            f"the build did not end within {limit_s:g} s",
            hint="Raise `task-timeout`.",
            problem=Problem.BUILD_TIMED_OUT,
        )
        return {package.id: error for package in packages}
    except BuildFailed as failed:
        return {package.id: failed for package in packages}
    except OSError as trouble:
        # A disk that is full, or a link in the way of what is built.
        return {package.id: no_place(trouble) for package in packages}
    except PathError as trouble:
        return {package.id: BuildFailed(str(trouble)) for package in packages}


async def keep_built(
    run: PackageRun, answer: Built, target: Target, *, config: PlanConfig, journal: Journal
) -> None:
    """What was built of one package goes on record, unless something is wrong with it."""
    if isinstance(answer, BuildFailed):
        if not (run.postponed and answer.premature):
            run.error = answer
        return
    # In this order: the second leaves a note, which only what is sent is to have.
    run.error = await _find_trouble(run, answer, target, config) or _find_conflict(run, answer)
    if run.error is None:
        entry = journal.history.entry(run.planned.package)
        was_begun = entry is not None and entry.intent is not None  # here or elsewhere
        await journal.built(
            run.planned.package,
            answer,
            fingerprint=run.planned.fingerprint,
            again=bool(run.planned.claimed) and was_begun,
        )
        run.artifacts = answer


async def _find_trouble(
    run: PackageRun, artifacts: Sequence[Artifact], target: Target, config: PlanConfig
) -> PackageError | None:
    """Why what was built is not going to be sent; its warnings go along with the run."""
    package = run.planned.package
    try:
        await asyncio.to_thread(refuse_state, package, artifacts, config.state_directory)
        found = await target.find_warnings(package, artifacts)
    except PackageError as error:
        return error
    except OSError as error:
        return no_place(error)  # for the copies that are examined
    # The plan has told those of files from elsewhere already.
    run.warnings = tuple(dict.fromkeys([*run.warnings, *config.levels.apply(found)]))
    errors = [each for each in run.warnings if each.error]
    if not errors:
        return None
    return BuildFailed(
        "; ".join(f"{each.name}: {each.message}" for each in errors),
        hint=config.levels.find_way_out([each.name for each in errors]),
        problem=Problem.WARNING_OF_BUILD,
    )


def _find_conflict(run: PackageRun, built: Sequence[Artifact]) -> PackageError | None:
    """Why what was built again cannot go on with an upload that was begun with other bytes. Notes
    whether they are those that an earlier run is said to have built.
    """
    planned = run.planned
    if not planned.claimed:
        return None
    there = compare(built, planned.published).differing
    if there:
        return DigestMismatch(mismatch(built, planned.published, there[0], way_out=UNVOUCHED))
    is_same = map_digests(planned.claimed) == map_digests(built)
    run.note = "built again, the same" if is_same else "built again, with other bytes"
    return None


def refuse_state(package: Package, artifacts: Sequence[Artifact], state_directory: Path) -> None:
    """Raises PackageError for files that contain the state of a run, and for files that changed
    since the build. Blocks.
    """
    for artifact in artifacts:
        with open_artifact(artifact) as file, file.raw() as raw:
            names = member_names(raw)
        if found := first_leaked(names, package, state_directory):
            raise BuildFailed(
                f"{package.id}: {artifact.filename} holds {found}, which is state of a run",
                hint="Delete that directory where an earlier run has left it in the sources; else "
                "leave it out of what is packed, or name another `state-directory`.",
                problem=Problem.STATE_IN_PACKAGE,
            )
