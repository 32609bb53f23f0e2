"""What waits at a registry, held against what was built: nothing else is ever approved."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.errors import DigestMismatch, PackageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.ecosystems.approval import Approval, Waiting
    from releasekit.model import Artifact, Result

_FOREIGN = (
    "Nothing of it was approved. Find out who has staged that; then reject it, and run the release "
    "again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """`recorded` has all digests of files that were downloaded. `waiting` is None for what is
    `visible` already, and for what is gone; `refusal` is why it must not be approved.
    """

    recorded: Result
    waiting: Waiting | None = None
    visible: bool = False
    refusal: PackageError | None = None
    files: tuple[Artifact, ...] = ()


async def examine(recorded: Result, approval: Approval, into: Path) -> Examined:
    """What has become of one package, and whether it is what was built; asks nobody's approval.

    Raises what the registry's answers raise: Transient, Denied, Rejected.
    """
    try:
        waiting = await approval.waiting(recorded)
        if waiting is None:
            visible = await approval.is_visible(recorded, into)
            return Examined(recorded=recorded, visible=visible)
        refusal = _misplaced(recorded, waiting)
        if refusal is not None:
            return Examined(recorded=recorded, waiting=waiting, refusal=refusal)
        files = tuple(await approval.files(recorded, waiting, into))
    except DigestMismatch as error:
        return Examined(recorded=recorded, refusal=error)
    different = await asyncio.to_thread(differences, recorded, files)
    if different:
        return Examined(
            recorded=recorded,
            waiting=waiting,
            refusal=DigestMismatch(f"{recorded.package}: {'; '.join(different)}", hint=_FOREIGN),
        )
    known = {artifact.filename: artifact for artifact in recorded.artifacts}
    compared = tuple(replace(known[file.filename], digests=file.digests) for file in files)
    return Examined(recorded=replace(recorded, artifacts=compared), waiting=waiting, files=files)


def _misplaced(recorded: Result, waiting: Waiting) -> PackageError | None:
    """It may not be ours, or not what was staged, whatever its bytes are."""
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
            return PackageError(
                f"{package}: what waits has the {key} {theirs!r}{by}, and {ours!r} is what the run "
                "has left",
                hint=_FOREIGN,
            )
    return None


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
