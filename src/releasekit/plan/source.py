"""Which state of the sources a release is made from."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.errors import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.host.process import Processes

# What in-tree builds leave behind is not source.
LEFTOVERS = (
    ":(exclude,glob)**/*.egg-info/**",
    ":(exclude,glob)**/build/**",
    ":(exclude,glob)**/dist/**",
)


async def commit_of(root: Path, processes: Processes) -> str:
    """The commit that is checked out at `root`, empty outside git.

    `+dirty.` and a hash follow when tracked files differ from it or untracked ones are there that
    git does not ignore.
    """
    try:
        head = (await _git(processes, root, "rev-parse", "HEAD")).strip()
        changed = await _git(
            processes, root, "diff", "HEAD", "--no-ext-diff", "--binary", "--", "."
        )
        others = await _git(
            processes,
            root,
            *("ls-files", "--others", "--exclude-standard", "-z", "--", ".", *LEFTOVERS),
        )
    except CommandFailed:
        return ""
    names = [name for name in others.split("\0") if name]
    if not changed and not names:
        return head
    state = hashlib.sha256(changed.encode())
    for name in names:
        facts = (root / name).lstat()
        state.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return f"{head}+dirty.{state.hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Tree:
    """HEAD, and the tracked files that differ from it, with a digest of what each holds. `calm`: no
    build of ours was under way meanwhile.
    """

    head: str
    changed: Mapping[Path, str]
    calm: bool = True


async def tree_of(root: Path, processes: Processes) -> Tree:
    """What is checked out at `root`; without a head where git does not say."""
    try:
        head = (await _git(processes, root, "rev-parse", "HEAD")).strip()
        differing = await _git(
            processes,
            root,
            *("--no-optional-locks", "diff", "HEAD", "--no-ext-diff", "--no-renames"),
            *("--name-only", "-z", "--relative", "--", ".", *LEFTOVERS),
        )
    except CommandFailed:
        return Tree("", {})
    paths = [root / name for name in differing.split("\0") if name]
    return Tree(head, await asyncio.to_thread(lambda: {path: _digest(path) for path in paths}))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return str(error.strerror)


async def _git(processes: Processes, root: Path, *arguments: str) -> str:
    completed = await processes.run(["git", *arguments], cwd=root, timeout_s=60.0)
    return completed.stdout
