"""Since when a version is there, and what else commits tell, of real repositories."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.cargo import past as cargo
from releasekit.ecosystems.maven import past as maven
from releasekit.ecosystems.npm import past as npm
from releasekit.ecosystems.pypi import past as pypi
from releasekit.git.commits import Commits
from releasekit.git.versions import first_commits
from releasekit.host.process import Processes
from releasekit.model import Package, PackageId
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import TypeVar

    from releasekit.git.versions import VersionAt

    T = TypeVar("T")

KINDS: dict[str, tuple[str, VersionAt]] = {
    "npm": ("package.json", npm.version_at),
    "pypi": ("pyproject.toml", pypi.version_at),
    "cargo": ("Cargo.toml", cargo.version_at),
    "maven": ("pom.xml", maven.version_at),
}
MANIFESTS: dict[str, Callable[[dict[str, str]], str]] = {
    "npm": json.dumps,
    "pypi": lambda at: f'[project]\nname = "{at["name"]}"\nversion = "{at["version"]}"\n',
    "cargo": lambda at: f'[package]\nname = "{at["name"]}"\nversion = "{at["version"]}"\n',
    "maven": lambda at: f"<project><version>{at['version']}</version></project>",
}


def asked(root: Path, question: Callable[[Commits], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Processes(environment={"PATH": "/usr/bin:/bin"}) as processes:
            return await question(Commits(root, processes))

    return asyncio.run(main())


def package(root: Path, ecosystem: str = "npm", name: str = "core") -> Package:
    directory = root / name
    return Package(
        id=PackageId(ecosystem, name),
        version="1.1.0",
        directory=directory,
        manifest=directory / KINDS[ecosystem][0],
    )


def commit(root: Path, files: dict[str, str], message: str = "Change") -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(root, "rev-parse", "HEAD").strip()


def has(root: Path, version: str, *, ecosystem: str = "npm", more: str = "") -> str:
    text = MANIFESTS[ecosystem]({"name": "core", "version": version, "more": more})
    return commit(root, {f"core/{KINDS[ecosystem][0]}": text})


def first(root: Path, *packages: Package) -> list[str]:
    wanted = {each: KINDS[each.id.ecosystem][1] for each in packages}
    found = asked(root, lambda commits: first_commits(wanted, commits))
    return [found[each.id] for each in packages]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "a repository"
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch", "main")
    return place


@pytest.mark.parametrize("ecosystem", KINDS)
def test_the_commit_that_brought_the_version(root: Path, ecosystem: str) -> None:
    has(root, "1.0.0", ecosystem=ecosystem)
    commit(root, {"other": "1"})
    bump = has(root, "1.1.0", ecosystem=ecosystem)
    commit(root, {"core/code": "1"})
    commit(root, {"other": "2"})
    assert first(root, package(root, ecosystem)) == [bump]


def test_changes_of_the_manifest_that_leave_the_version_do_not_count(root: Path) -> None:
    has(root, "1.0.0")
    bump = has(root, "1.1.0")
    for number in range(12):
        has(root, "1.1.0", more=str(number))
    assert first(root, package(root)) == [bump]


def test_a_version_that_was_taken_back_counts_from_its_return(root: Path) -> None:
    has(root, "1.1.0")
    has(root, "1.0.0")
    again = has(root, "1.1.0")
    assert first(root, package(root)) == [again]


def test_the_first_commit_of_all(root: Path) -> None:
    begun = has(root, "1.1.0")
    has(root, "1.1.0", more="x")
    assert first(root, package(root)) == [begun]


def test_a_bump_that_was_merged_counts_from_the_merge(root: Path) -> None:
    has(root, "1.0.0")
    git(root, "checkout", "--quiet", "-b", "bump")
    has(root, "1.1.0")
    git(root, "checkout", "--quiet", "main")
    commit(root, {"other": "1"})
    git(root, "merge", "--quiet", "--no-ff", "--message", "Merge", "bump")
    assert first(root, package(root)) == [git(root, "rev-parse", "HEAD").strip()]


def test_nobody_knows_what_is_not_committed_or_not_said(root: Path) -> None:
    has(root, "1.0.0")
    (root / "core/package.json").write_text(json.dumps({"version": "1.1.0"}))
    unborn = replace(package(root), directory=root / "new", manifest=root / "new/package.json")
    assert first(root, package(root), replace(unborn, id=PackageId("npm", "new"))) == ["", ""]


def test_a_clone_that_ends_before_the_bump_does_not_tell(root: Path, tmp_path: Path) -> None:
    has(root, "1.0.0")
    bump = has(root, "1.1.0")
    commit(root, {"other": "1"})
    shallow, deeper = tmp_path / "shallow", tmp_path / "deeper"
    git(tmp_path, "clone", "--quiet", "--depth", "1", root.as_uri(), str(shallow))
    git(tmp_path, "clone", "--quiet", "--depth", "3", root.as_uri(), str(deeper))
    assert first(shallow, package(shallow)) == [""]
    assert first(deeper, package(deeper)) == [bump]


def test_without_a_commit_nothing_is_known(root: Path) -> None:
    assert first(root, package(root)) == [""]


def test_a_version_of_the_workspace_or_of_the_parent(root: Path) -> None:
    member = '[package]\nname = "core"\nversion.workspace = true\n'
    module = "<project><parent><version>${revision}</version></parent></project>"
    root_pom = "<project><properties><revision>{}</revision></properties></project>"
    table = '[workspace.package]\nversion = "{}"\n'
    commit(
        root,
        {
            "core/Cargo.toml": member,
            "Cargo.toml": table.format("1.0.0"),
            "core/pom.xml": module,
            "pom.xml": root_pom.format("1.0.0"),
        },
    )
    bump = commit(root, {"Cargo.toml": table.format("1.1.0")})
    later = commit(root, {"pom.xml": root_pom.format("1.1.0")})
    found = first(root, package(root, "cargo"), package(root, "maven"))
    assert found == [bump, later]


def test_many_packages_take_few_processes(root: Path) -> None:
    packages = [package(root, name=f"p{number}") for number in range(1_200)]
    files = {f"{each.id.name}/package.json": '{"version": "1.0.0"}' for each in packages}
    commit(root, files)
    bump = commit(root, dict.fromkeys(files, '{"version": "1.1.0"}'))
    calls = []

    async def counted(commits: Commits) -> dict[PackageId, str]:
        run = commits._processes.run

        async def counting(*arguments: object, **given: object) -> object:
            calls.append(arguments)
            return await run(*arguments, **given)  # type: ignore[arg-type]

        commits._processes.run = counting  # type: ignore[method-assign, assignment]
        return await first_commits(dict.fromkeys(packages, npm.version_at), commits)

    assert set(asked(root, counted).values()) == {bump}
    assert len(calls) < 12


def test_what_a_commit_says(root: Path) -> None:
    start = has(root, "1.0.0")
    below = commit(root, {"core/inner/file": "1"}, "Change what is inside")
    own = commit(root, {"core/file": "1"}, "Change the package <!-- x -->")
    git(root, "tag", "--annotate", "--message", "T", "core-v1.0.0", start)

    async def questions(commits: Commits) -> None:
        by = await commits.committer(start)
        assert (by.name, by.email) == ("Releaser", "releaser@example.invalid")
        assert by.time_s == int(git(root, "show", "--no-patch", "--format=%ct", start))
        assert await commits.exists(start)
        assert not await commits.exists("1" * 40)
        assert await commits.file_at(own, root / "core/file") == b"1"
        assert await commits.file_at(start, root / "core/file") is None
        assert await commits.local_tag("core-v1.0.0") == start
        assert await commits.local_tag("core-v9") == ""
        assert await commits.local_tags() == {"core-v1.0.0": start}
        assert await commits.head() == own
        assert not await commits.is_shallow()
        assert await commits.names_at(own, root / "core") == ("file", "inner", "package.json")
        assert await commits.names_at(start, root / "core/inner") == ()
        core, inner = root / "core", root / "core/inner"
        everything = await commits.touching(core, since="", until=own)
        assert [each.id for each in everything] == [own, below, start]
        since = await commits.touching(core, since=start, until=own, without=[core, inner])
        assert [(each.subject, each.author) for each in since] == [
            ("Change the package <!-- x -->", "Releaser")
        ]
        assert await commits.touching(core, since="2" * 40, until=own) == ()

    asked(root, questions)
