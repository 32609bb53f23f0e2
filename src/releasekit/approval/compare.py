"""What waits at a registry, held against what was built: nothing else is ever approved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from releasekit.errors import DigestMismatch, PackageError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.ecosystems.approval import Approval, Waiting
    from releasekit.model import Artifact, Result

_FOREIGN = (
    "Nothing of it was approved. Find out who has staged that; then reject it, and run the release "
    "again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """`recorded` has all digests of files that were downloaded. `waiting` is None for what is
    `visible` already, and for what is gone; `refusal` is why it must not be approved. `place` is a
    directory for what else has to be downloaded.
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
    """What has become of one package, and, to `compare`, whether it is what was built. Nothing
    that cannot be told is approved: what a registry's answer raises is a refusal, too.
    """
    found = Examined(recorded=recorded, place=into)
    try:
        waiting = await approval.waiting(recorded)
        if waiting is None:
            return replace(found, visible=await approval.is_visible(recorded, into))
        found = replace(found, waiting=waiting)
        check_place(recorded, waiting)
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


def check_place(recorded: Result, waiting: Waiting) -> None:
    """Raises PackageError where that is not what the run has left, whatever its bytes are."""
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
    """One for each file that is not what was built, is missing, or was not built at all."""
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
