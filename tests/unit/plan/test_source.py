from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from fakes import package, plan
from integration.tools import require_tool
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.plan import source
from releasekit.plan.source import Head, has_base, read_checkout
from releasekit.release.sources import Sources
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.host.process import Child


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    require_tool("git")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("one\n")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    return tmp_path


def commit(root: Path, *beside: Path) -> str:
    async def ask() -> str:
        async with Processes(environment=dict(os.environ)) as processes:
            return (await read_checkout(root, processes, beside=beside)).commit

    return asyncio.run(ask())


def test_a_clean_tree_is_its_commit(repository: Path) -> None:
    assert commit(repository) == git(repository, "rev-parse", "HEAD").strip()


def test_one_git_tells_of_a_clean_tree_and_writes_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R20: its index has other times than the file, as after a job has restored it."""
    git(repository, "config", "status.showUntrackedFiles", "no")
    os.utime(repository / "file", (1_000_000_000, 1_000_000_000))
    index, asked, number = (repository / ".git" / "index").read_bytes(), source._git, []

    async def listed(processes: Processes, root: Path, *arguments: str) -> str:
        number.append(arguments)
        return await asked(processes, root, *arguments)

    monkeypatch.setattr(source, "_git", listed)
    assert commit(repository) == git(repository, "rev-parse", "HEAD").strip()
    assert len(number) == 1
    assert (repository / ".git" / "index").read_bytes() == index
    (repository / "another").write_text("two\n")
    assert "+dirty." in commit(repository)


def test_before_the_first_commit_there_is_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert commit(tmp_path) == ""
    (tmp_path / "file").write_text("one\n")
    assert commit(tmp_path) == ""


@pytest.mark.parametrize("name", ["file", "another"])
def test_changes_show(repository: Path, name: str) -> None:
    """R20"""
    (repository / name).write_text("two\n")
    first = commit(repository)
    assert re.fullmatch(r"[0-9a-f]{40}\+dirty\.[0-9a-f]{12}", first)
    assert commit(repository) == first
    (repository / name).write_text("three, and longer\n")
    assert commit(repository) != first


def test_a_file_that_somebody_removes_meanwhile_is_no_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, asked = repository / "gone", source._git
    gone.write_text("for a moment\n")

    async def listed(processes: Processes, root: Path, *arguments: str) -> str:
        said = await asked(processes, root, *arguments)
        if arguments[0] == "ls-files":
            gone.unlink()
        return said

    monkeypatch.setattr(source, "_git", listed)
    assert "+dirty." in commit(repository)


def test_a_path_that_is_too_long_for_a_name_is_no_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R53: a build can make one, a directory at a time."""
    (repository / "another").write_text("two\n")
    asked = source._git

    async def listed(processes: Processes, root: Path, *arguments: str) -> str:
        said = await asked(processes, root, *arguments)
        return f"{said}{'n' * 5000}\0" if arguments[0] == "ls-files" else said

    monkeypatch.setattr(source, "_git", listed)
    assert "+dirty." in commit(repository)


@pytest.mark.parametrize("name", ["ignored", "a.egg-info/PKG-INFO", "build/lib/a.py", "dist/a.whl"])
def test_what_builds_leave_behind_is_no_change(repository: Path, name: str) -> None:
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("built\n")
    assert "+" not in commit(repository)


def test_files_from_elsewhere_are_no_change(repository: Path) -> None:
    """R20: a plan is the same in the job that has downloaded them."""
    wheels = repository / "wheel [house]"
    wheels.mkdir()
    (wheels / "a.whl").write_text("built\n")
    assert "+" in commit(repository)
    assert "+" in commit(repository, repository)
    assert "+" not in commit(repository, repository.parent, wheels)


def test_outside_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) == ""


class Children(Processes):
    """Those that were started to talk with."""

    started: list[Child]

    async def start(self, argv: Sequence[str], **rest: Any) -> Child:
        child = await super().start(argv, **rest)
        self.started = [*getattr(self, "started", ()), child]
        return child


def test_each_look_sees_the_commit_whatever_differs_from_it(repository: Path) -> None:
    """R45: also one that a build makes, switches to, packs or replaces; all by one process."""

    async def main() -> None:
        async with Children(environment=dict(os.environ)) as processes:
            head = Head(repository, processes)
            first = await head.look()
            assert first == git(repository, "rev-parse", "HEAD").strip()
            (repository / "file").write_text("two\n")
            assert await head.look() == first
            for step in (
                ("commit", "--quiet", "--all", "--message", "Second"),
                ("pack-refs", "--all"),
                ("commit", "--quiet", "--allow-empty", "--message", "Third"),
                ("replace", "HEAD", "HEAD~1"),
                ("checkout", "--quiet", "-b", "other", "HEAD~1"),
                ("checkout", "--quiet", "--detach", first),
                ("gc", "--quiet", "--prune=now"),
                ("commit", "--quiet", "--allow-empty", "--message", "Fourth"),
            ):
                git(repository, *step)
                assert await head.look() == git(repository, "rev-parse", "HEAD").strip(), step
            assert len(processes.started) == 1
            git(repository, "checkout", "--quiet", "--orphan", "nothing")
            assert await head.look() == ""

    asyncio.run(main())


def test_an_answer_goes_to_none_but_the_look_that_asked(repository: Path) -> None:
    """R45: also where the one before it was cancelled."""

    async def main() -> None:
        async with Processes(environment=dict(os.environ)) as processes:
            head = Head(repository, processes)
            first = await head.look()
            looking = asyncio.ensure_future(head.look())
            await asyncio.sleep(0)
            looking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await looking
            git(repository, "commit", "--quiet", "--allow-empty", "--message", "Second")
            assert await head.look() not in {"", first}

    asyncio.run(main())


def test_a_look_outlives_the_process_that_looked(repository: Path) -> None:
    """R45"""

    async def main() -> None:
        async with Children(environment=dict(os.environ)) as processes:
            head = Head(repository, processes)
            first = await head.look()
            processes.started[0].close()
            await asyncio.sleep(0)  # it reads no more, and nobody knows yet
            assert await head.look() == first
            assert len(processes.started) == 2

    asyncio.run(main())


def test_where_git_does_not_say_there_is_no_head(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """R45: and it is asked anew, by another process, once it may say so."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    async def main() -> None:
        async with Processes(environment=dict(os.environ)) as processes:
            head = Head(elsewhere, processes)
            assert await head.look() == ""
            (repository / ".git").rename(elsewhere / ".git")
            assert await head.look() == git(elsewhere, "rev-parse", "HEAD").strip()
            assert await Head(elsewhere / "gone", processes).look() == ""

    asyncio.run(main())


def test_outside_git_only_manifests_are_looked_at(tmp_path: Path) -> None:
    """R45"""
    made = replace(package("a"), directory=tmp_path, manifest=tmp_path / "manifest")
    made.manifest.write_text("")

    async def main() -> None:
        async with Processes(environment=dict(os.environ)) as processes:
            planned = replace(plan(made), commit=(await read_checkout(tmp_path, processes)).commit)
            sources = Sources.in_checkout(planned, tmp_path, processes)
        assert await sources.change(made) == ""
        made.manifest.write_text("edited")
        assert "manifest is not" in await sources.change(made)

    asyncio.run(main())


def test_a_base_is_looked_for_in_what_was_committed_last(repository: Path) -> None:
    """Without commits git does not tell, and outside of a repository there is nothing to tell."""

    async def ask(root: Path) -> bool:
        async with Processes(environment=dict(os.environ)) as processes:
            return await has_base(root, processes)

    assert not asyncio.run(ask(repository))
    line = f"ReleaseKit-Base: {'a' * 40}"
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "Release", "-m", line)
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "More")
    assert asyncio.run(ask(repository))
    git(repository, "checkout", "--quiet", "--orphan", "empty")
    assert asyncio.run(ask(repository))
    (repository / ".git").rename(repository / "elsewhere")
    assert not asyncio.run(ask(repository))
