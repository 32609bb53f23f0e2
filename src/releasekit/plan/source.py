"""Which state of the sources a release is made from."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from releasekit.errors import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.host.process import Processes

# What in-tree builds leave behind is not source.
LEFTOVERS = (
    ":(exclude,glob)**/*.egg-info/**",
    ":(exclude,glob)**/build/**",
    ":(exclude,glob)**/dist/**",
)


async def commit_of(root: Path, processes: Processes, *, beside: Iterable[Path] = ()) -> str:
    """The commit that is checked out at `root`, empty outside git.

    `+dirty.` and a hash follow when tracked files differ from it or untracked ones are there that
    git does not ignore. What lies in the directories `beside` is no source.
    """
    others_than = [
        f":(exclude,literal){path.relative_to(root).as_posix()}"
        for path in beside
        if path != root and path.is_relative_to(root)
    ]
    try:
        head = (await _git(processes, root, "rev-parse", "HEAD")).strip()
        changed = await _git(
            processes,
            root,
            *("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--binary", "--", "."),
        )
        others = await _git(
            processes,
            root,
            *(
                "ls-files",
                "--others",
                "--exclude-standard",
                "-z",
                "--",
                ".",
                *LEFTOVERS,
                *others_than,
            ),
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


async def head_of(root: Path, processes: Processes) -> str:
    """The commit that is checked out at `root`, whatever files differ from it; empty where git
    does not say.
    """
    try:
        return (await _git(processes, root, "rev-parse", "HEAD")).strip()
    except CommandFailed:
        return ""


async def is_tracked(path: Path, repository: Path, processes: Processes) -> bool:
    """Whether git has this file in its index; False where git does not say."""
    name = path.relative_to(repository).as_posix()
    try:
        return bool(await _git(processes, repository, "ls-files", "--", f":(literal){name}"))
    except CommandFailed:
        return False


async def _git(processes: Processes, root: Path, *arguments: str) -> str:
    completed = await processes.run(["git", *arguments], cwd=root, timeout_s=60.0)
    return completed.stdout
