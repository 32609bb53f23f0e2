"""The directories that globs of a workspace, or options, name, all inside of the workspace."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.errors import MembersError
from releasekit.host.files import inside, is_file
from releasekit.text.globs import MAX_DEPTH, Glob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence


MAX_VISITED: Final = 100_000
MAX_MEMBERS: Final = 10_000
MAX_GLOBS: Final = 1_000


def refuse_too_many(patterns: Collection[str], *, where: str) -> None:
    if len(patterns) > MAX_GLOBS:
        raise MembersError(f"{where} holds more than {MAX_GLOBS} globs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Finds directories with a file of any of these `markers`. Does not enter the names in
    `skipped`, nor, without `links`, symbolic links.
    """

    markers: tuple[str, ...]
    skipped: frozenset[str] = frozenset()
    links: bool = False

    def directories(self, root: Path, globs: Sequence[Glob], *, where: str) -> list[Path]:
        """The directories that a glob names, sorted."""
        found = []
        for visited, (directory, is_named) in enumerate(self._walk(root, globs)):
            if visited > MAX_VISITED:
                raise MembersError(
                    f"{where} searches more than {MAX_VISITED} directories",
                    hint="Name them more closely; '**' also searches what was installed there.",
                )
            if is_named and any(os.path.lexists(directory / each) for each in self.markers):
                found.append(directory)
            if len(found) > MAX_MEMBERS:
                raise MembersError(f"{where} names more than {MAX_MEMBERS} packages")
        return sorted(found)

    def _walk(self, root: Path, globs: Sequence[Glob]) -> Iterator[tuple[Path, bool]]:
        """Every directory that a glob names or leads through, and whether one names it."""
        pending = [(root, 0, [(glob, glob.start) for glob in globs])]
        while pending:
            directory, depth, reached = pending.pop()
            yield directory, any(len(glob.segments) in positions for glob, positions in reached)
            leading = [(glob, used) for glob, used in reached if min(used) < len(glob.segments)]
            if not leading or depth == MAX_DEPTH:
                continue
            with os.scandir(directory) as entries:
                below = [entry for entry in entries if entry.is_dir(follow_symlinks=self.links)]
            for entry in below:
                link = entry.is_symlink()
                steps = [(glob, glob.step(used, entry.name, link=link)) for glob, used in leading]
                following = [(glob, used) for glob, used in steps if used]
                if following and entry.name not in self.skipped:
                    pending.append((Path(entry.path), depth + 1, following))


def named_roots(
    root: Path, names: Iterable[str], manifests: Sequence[str], *, where: str
) -> list[Path]:
    """The roots of workspaces below `root` that the option at `where` names, resolved.

    Raises ConfigError for one that leads out of `root`, or has none of `manifests`.
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
