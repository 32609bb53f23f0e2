"""The roots of workspaces that options name, below the root of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import MembersError
from releasekit.host.files import inside, is_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def named_roots(
    root: Path, names: Iterable[str], manifests: Sequence[str], *, where: str
) -> list[Path]:
    """The directories that the option at `where` names, resolved; each has one of `manifests`.

    Raises ConfigError for one that leads out of `root` or has none of them.
    """
    found = []
    for name in names:
        directory = inside(root, root / name, where=f"{where}: {name!r}")
        if not any(is_file(directory / manifest) for manifest in manifests):
            raise MembersError(
                f"{where}: {name!r} has no {' or '.join(manifests)}",
                hint="Remove the entry, or correct the path.",
            )
        found.append(directory)
    return found
