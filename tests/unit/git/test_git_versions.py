"""Real repositories, and the commit with which a package got its version."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from fakes import package
from integration.tools import require_tool
from releasekit.fields import replace
from releasekit.git.commits import Commit, Commits
from releasekit.git.versions import find_first_commits, find_versions
from releasekit.host.process import Processes
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import TypeVar

    from releasekit.host.process import Printed
    from releasekit.model import Package

    T = TypeVar("T")


def read_version(found: Package, read: Callable[[Path], bytes | None]) -> str:
    """A version of its own, or that of the file it names."""
    said = json.loads(read(found.manifest) or b"{}")
    if said.get("name") != found.id.name:
        return ""
    shared = read(found.manifest.parents[2] / said["from"]) if "from" in said else b""
    return (shared or b"").decode() or str(said.get("version", ""))


def at(root: Path, place: str, version: str, name: str = "") -> Package:
    directory = root / place
    return replace(
        package(name or directory.name),
        version=version,
        directory=directory,
        manifest=directory / "m.json",
    )


def said(version: str, name: str = "a", **more: str) -> str:
    return json.dumps({"name": name, "version": version, **more}, indent=1)


def commit(root: Path, files: dict[str, str], subject: str = "Change") -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    require_tool("git")
    (tmp_path / "here").mkdir()
    git(tmp_path / "here", "init", "--quiet", "--initial-branch=main")
    return (tmp_path / "here").resolve()


def asked(root: Path, ask: Callable[[Commits], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Processes(environment=dict(os.environ)) as processes:
            return await ask(Commits(root, processes))

    return asyncio.run(main())


def first(root: Path, *packages: Package) -> list[str]:
    found = asked(
        root, lambda commits: find_first_commits(dict.fromkeys(packages, read_version), commits)
    )
    return [found[each.id] for each in packages]


def test_a_version_begins_where_it_was_written_last(root: Path) -> None:
    """Bumped, taken back, and bumped again; later changes of the manifest do not count."""
    one = commit(root, {"p/a/m.json": said("1.0")})
    assert first(root, at(root, "p/a", "1.0")) == [one]
    commit(root, {"p/a/m.json": said("2.0")})
    commit(root, {"p/a/m.json": said("1.0")})
    again = commit(root, {"p/a/m.json": said("2.0")})
    commit(root, {"p/a/m.json": said("2.0", needs="b")})
    commit(root, {"else.txt": ""})
    assert first(root, at(root, "p/a", "2.0")) == [again]


def test_a_merge_brings_what_its_branch_did(root: Path) -> None:
    commit(root, {"p/a/m.json": said("1.0")})
    git(root, "checkout", "--quiet", "-b", "bump")
    commit(root, {"p/a/m.json": said("2.0")})
    git(root, "checkout", "--quiet", "main")
    commit(root, {"b.txt": ""})
    git(root, "merge", "--quiet", "--no-ff", "--message", "Merge", "bump")
    merge = git(root, "rev-parse", "HEAD").strip()
    commit(root, {"c.txt": ""})
    assert first(root, at(root, "p/a", "2.0")) == [merge]


def test_what_is_not_committed_so_is_not_known(root: Path) -> None:
    assert first(root, at(root, "p/a", "1.0")) == [""]
    commit(root, {"p/a/m.json": said("1.0"), "p/b/m.json": json.dumps({"name": "b"})})
    (root / "p/a/m.json").write_text(said("2.0"))
    both = (at(root, "p/a", "2.0"), at(root, "p/b", "1.0"), at(root, "p/none", "1.0"))
    assert first(root, *both) == ["", "", ""]


def test_renamed_directories_are_followed(root: Path) -> None:
    one = commit(root, {"p/a/m.json": said("1.0"), "p/b/m.json": said("1.0", "b")})
    git(root, "mv", "p", "q")
    commit(root, {})
    new = commit(root, {"p/a/m.json": said("1.0", "other")})
    git(root, "mv", "q/a", "q/c")
    commit(root, {})
    moved = (at(root, "q/c", "1.0", "a"), at(root, "q/b", "1.0"), at(root, "p/a", "1.0", "other"))
    assert first(root, *moved) == [one, one, new]


def test_a_version_may_stand_in_another_file(root: Path) -> None:
    commit(root, {"VERSION": "1.0", "p/a/m.json": said("0.9")})
    commit(root, {"p/a/m.json": json.dumps({"name": "a", "from": "VERSION"})})
    two = commit(root, {"VERSION": "2.0"})
    commit(root, {"p/a/m.json": json.dumps({"name": "a", "from": "VERSION", "x": ""})})
    assert first(root, at(root, "p/a", "2.0")) == [two]
    # Before, its own manifest said the same as a file that was not read yet.
    three = commit(root, {"p/a/m.json": json.dumps({"name": "a", "version": "3.0"})})
    commit(root, {"p/a/m.json": json.dumps({"name": "a", "from": "NEW"}), "NEW": "3.0"})
    assert first(root, at(root, "p/a", "3.0")) == [three]


def test_a_shallow_clone_does_not_know_what_it_lacks(root: Path) -> None:
    one = commit(root, {"p/a/m.json": said("1.0"), "p/b/m.json": said("1.0", "b")})
    commit(root, {"x": ""})
    two = commit(root, {"p/b/m.json": said("2.0", "b")})
    clone = root.parent / "clone"
    git(root.parent, "clone", "--quiet", "--depth=2", root.as_uri(), str(clone))
    assert first(clone, at(clone, "p/a", "1.0"), at(clone, "p/b", "2.0")) == ["", two]
    assert asked(clone, lambda commits: commits.is_shallow())
    assert not asked(clone, lambda commits: commits.find_existing([one]))
    git(clone, "fetch", "--quiet", "--depth=5")
    assert first(clone, at(clone, "p/a", "1.0")) == [one]


def test_a_thousand_packages_take_few_processes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{number}" for number in range(1_000)]
    one = commit(root, {f"p/{name}/m.json": said("1.0", name) for name in names})
    ids = [commit(root, {f"p/{name}/m.json": said("2.0", name)}) for name in names[:70]]
    calls: list[str] = []
    real = Commits.run_git

    async def counted(self: Commits, *arguments: str, stdin: str | None = None) -> Printed:
        calls.append(arguments[0])
        return await real(self, *arguments, stdin=stdin)

    monkeypatch.setattr(Commits, "run_git", counted)
    packages = [at(root, f"p/{name}", "2.0" if n < 70 else "1.0") for n, name in enumerate(names)]
    assert first(root, *packages) == ids + [one] * 930
    assert len(calls) < 20


def test_versions_at_other_commits(root: Path) -> None:
    one = commit(root, {"p/a/m.json": said("1.0")})
    two = commit(root, {"p/a/m.json": said("2.0"), "p/b/m.json": said("1.0", "b")})
    a, b = at(root, "p/a", "2.0"), at(root, "p/b", "1.0")
    wanted = [(a, read_version, one), (a, read_version, two), (b, read_version, two)]
    found = asked(root, lambda commits: find_versions(wanted, commits))
    assert found == {(a.id, one): "1.0", (a.id, two): "2.0", (b.id, two): "1.0"}


def test_a_path_with_a_line_break_has_an_answer(root: Path) -> None:
    """R68: what has none is asked for again, without an end."""
    head = commit(root, {"p/a\nb/m.json": said("1.0", "b")})
    name = f"{head}:p/a\nb/m.json"
    assert asked(root, lambda commits: commits.read_blobs([name])) == {name: None}


def test_what_is_asked_of_commits(root: Path) -> None:
    assert asked(root, lambda commits: commits.read_head()) == ""
    one = commit(root, {"p/a/x": "1\n2", "p/a/sub/y": "é missing\n"}, "One: é")
    git(root, "tag", "--annotate", "--message", "v1", "v1")
    commit(root, {"p/a/sub/y": "2"}, "Below")
    three = commit(root, {"p/a/x": "3"}, "Three")

    async def ask(commits: Commits) -> None:
        assert await commits.read_head() == three
        assert await commits.list_tags() == {"v1": one}
        assert await commits.find_existing([one, "--all", "0" * 40]) == {one}
        by = (await commits.read_committers([one]))[one]
        assert (by.name, by.email) == ("Releaser", "releaser@example.invalid")
        assert not await commits.is_shallow()
        paths = [root / "p/a/sub/y", root / "p/a/none", root / "p"]
        read = await commits.read_blobs(commits.name_object(one, path) for path in paths)
        assert [*read.values()] == ["é missing\n".encode(), None, None]
        since = await commits.list_commits(
            [root / "p/a"], since="v1", until="HEAD", without=[root / "p/a/sub"]
        )
        assert since == (Commit(three, "Three", "Releaser"),)
        everything = await commits.list_commits([root], since="", until=three, without=[])
        assert [each.subject for each in everything] == ["Three", "Below", "One: é"]
        assert await commits.list_commits([root], since="", until="--all", without=[]) == ()

    asked(root, ask)
