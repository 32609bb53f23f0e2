"""What is no output of git is an error with the command and the line, whoever reads it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import PlanError
from releasekit.git.commits import Commits
from releasekit.host.process import Processes
from releasekit.plan.changes import Revision, changes, tags_of
from releasekit.plan.holdings import read_tree
from releasekit.plan.source import read_checkout
from releasekit.problems import Problem
from releasekit.versions.history import MainLine, find_adding, read_changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

ONE, TWO = "1" * 40, "2" * 40


def line(git: Commits) -> MainLine:
    return MainLine(git, (ONE,), {ONE: []}, {ONE: 0}, is_shallow=False)


SINCE = [("a", Revision.of_commit(ONE))]
# Each reader, and what it makes nothing of besides a line of text: some find nothing in order.
READERS: dict[str, tuple[Callable[[Commits, Processes], Awaitable[object]], tuple[str, ...]]] = {
    "find_existing": (lambda git, _: git.find_existing([ONE]), ("", f"{TWO} commit")),
    "read_committers": (lambda git, _: git.read_committers([ONE]), ("", f"{TWO}\0x\0x\0x\0")),
    "read_head": (lambda git, _: git.read_head(), ("",)),
    "list_tags": (lambda git, _: git.list_tags(), ("v1\1tag\1x\1",)),
    "is_shallow": (lambda git, _: git.is_shallow(), ("",)),
    "read_blobs": (lambda git, _: git.read_blobs(["HEAD:a"]), ("",)),
    "list_commits": (
        lambda git, _: git.list_commits([git.top], since="", until="HEAD", without=[]),
        ("x\1y\1z\0",),
    ),
    "list_files": (lambda git, _: git.list_files("HEAD", ["a"]), ("100644 blob x\ta\0",)),
    "list_changed": (lambda git, _: git.list_changed(ONE, TWO), (f":1 2 {ONE} {TWO} M\0",)),
    "is_in_history": (lambda git, _: git.is_in_history(TWO, of=ONE), (f"{ONE} {TWO}",)),
    "list_parents": (lambda git, _: git.list_parents("HEAD"), ("1 2",)),
    "read_changes": (lambda git, _: read_changes(git, [ONE]), ("commit x\x001\0x\0",)),
    "find_adding": (lambda git, _: find_adding(line(git), ["a"]), (TWO,)),
    "tags_of": (lambda git, run: tags_of(git.top, run), ("v1",)),
    "changes": (lambda git, run: changes(SINCE, git.top, run), ("", f"{ONE} tree")),
    "read_tree": (lambda git, run: read_tree(git.top, run), ("H 100644\ta\0",)),
    "read_checkout": (lambda git, run: read_checkout(git.top, run), ("", "# branch.oid x\0")),
}


@pytest.mark.parametrize("name", READERS)
def test_what_git_would_not_print_is_told_with_its_command(tmp_path: Path, name: str) -> None:
    """R63, R68: it is neither a traceback, nor taken for nothing."""
    read, further = READERS[name]
    (tmp_path / ".git").mkdir()
    program, said = tmp_path / "git", tmp_path / "said"
    program.write_text(f"#!/bin/sh\nexec cat '{said}'\n")
    program.chmod(0o755)

    async def main() -> None:
        async with Processes(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}) as processes:
            for text in ("git wrapper 1.2\n", *further):
                said.write_text(text)
                with pytest.raises(PlanError) as caught:
                    await read(Commits(tmp_path, processes), processes)
                assert caught.value.problem is Problem.STRANGE_OUTPUT
                assert str(caught.value).startswith("`git ")
                assert str(caught.value).isprintable()
                assert str(program) in caught.value.hint

    asyncio.run(main())
