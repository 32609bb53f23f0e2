from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from fakes import package
from integration.tools import require_tool
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.plan.changes import Revision, Since, changes, tags_of, version_tags
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package


def at(root: Path, name: str, directory: str = "", version: str = "1.2.0") -> Package:
    place = (root / (directory or name)).resolve()
    return replace(package(name), version=version, directory=place, manifest=place / "manifest")


def commit(root: Path, files: dict[str, str], *, tag: str = "") -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Change")
    if tag:
        git(root, "tag", tag)
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    require_tool("git")
    git(tmp_path, "init", "--quiet")
    return tmp_path.resolve()


def changed(root: Path, then: Revision, *places: str) -> dict[str, tuple[str, ...]]:
    async def ask() -> dict[Since, tuple[str, ...]]:
        async with Processes(environment=dict(os.environ)) as processes:
            return await changes([(place, then) for place in places], root, processes)

    return {place: paths for (place, _), paths in asyncio.run(ask()).items()}


def tags(root: Path) -> frozenset[str]:
    async def ask() -> frozenset[str]:
        async with Processes(environment=dict(os.environ)) as processes:
            return await tags_of(root, processes)

    return asyncio.run(ask())


def test_only_what_differs_is_named(root: Path) -> None:
    """R49 R64: of directories and of single files."""
    first = commit(root, {"core/a.py": "1", "core/ä b.py": "1", "app/b.py": "1", "LICENSE": "1"})
    commit(root, {"core/a.py": "2", "core/ä b.py": "2", "elsewhere": "1", "LICENSE": "2"})
    found = changed(root, Revision.of_commit(first), "core", "app", "LICENSE", "app/b.py")
    assert found == {"core": ("core/a.py", "core/ä b.py"), "LICENSE": ("LICENSE",)}
    everything = ("LICENSE", "core/a.py", "core/ä b.py", "elsewhere")
    assert changed(root, Revision.of_commit(first), "") == {"": everything}


def test_a_file_that_has_become_a_directory_is_one_change(root: Path) -> None:
    """R64"""
    first = commit(root, {"shared": "1"})
    (root / "shared").unlink()
    commit(root, {"shared/a.py": "1"})
    assert changed(root, Revision.of_commit(first), "shared") == {"shared": ("shared",)}


def test_a_workspace_below_the_top_of_its_repository(root: Path) -> None:
    first = commit(root, {"js/core/a.js": "1", "core/a.js": "1"})
    commit(root, {"js/core/a.js": "2"})
    then = Revision.of_commit(first)
    assert changed(root / "js", then, "core", "") == {"core": ("core/a.js",), "": ("core/a.js",)}


def test_what_the_repository_does_not_hold_tells_nothing(root: Path, tmp_path: Path) -> None:
    """A shallow checkout has neither the commit nor the tag."""
    commit(root, {"core/a.py": "1"})
    assert changed(root, Revision.of_commit("1" * 40), "core") == {}
    assert changed(root, Revision.of_tag("no"), "new") == {}
    outside = tmp_path / "outside"
    outside.mkdir()
    git_ceiling = {"GIT_CEILING_DIRECTORIES": str(tmp_path)}

    async def ask() -> tuple[object, object]:
        async with Processes(environment={**os.environ, **git_ceiling}) as processes:
            since = [("core", Revision.of_commit("HEAD"))]
            found = await changes(since, outside, processes)
            return found, await tags_of(outside, processes)

    assert asyncio.run(ask()) == ({}, frozenset())


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("@acme/core", "@acme/core@1.2.0"),
        ("@acme/core", "core@1.2.0"),
        ("core", "core-v1.2.0"),
        ("core", "core-1.2.0"),
        ("org.acme:core", "core-1.2.0"),
        ("example.com/m", "lib/core/v1.2.0"),
        ("core", "v1.2.0"),
        ("core", "1.2.0"),
    ],
)
def test_tags_as_the_tools_of_the_field_name_them(tmp_path: Path, name: str, tag: str) -> None:
    found = at(tmp_path.resolve(), name, "lib/core")
    tags = version_tags([found], tmp_path.resolve(), {tag, "other@1.2.0"})
    assert tags == {found: Revision.of_tag(tag)}


@pytest.mark.parametrize("tags", [{"core@1.1.0", "v1.2.0"}, {"core-v1.2.0-rc.1", "v1.2.0"}, {"v1"}])
def test_a_shared_tag_says_nothing_of_a_package_with_tags_of_its_own(
    tmp_path: Path, tags: set[str]
) -> None:
    assert version_tags([at(tmp_path.resolve(), "core")], tmp_path.resolve(), tags) == {}


@pytest.mark.parametrize("version", ["1.2.0", "1.3.0"])
def test_a_tag_that_may_be_that_of_another_package_says_nothing(
    tmp_path: Path, version: str
) -> None:
    """npm and PyPI know packages by one name, and a tag names no ecosystem."""
    here = tmp_path.resolve()
    of_npm, of_pypi = at(here, "e2b", "js"), at(here, "e2b", "python", version)
    tags = {"e2b@1.2.0", "e2b@1.3.0", "js/v1.2.0"}
    assert version_tags([of_npm, of_pypi], here, {"e2b@1.2.0", "e2b@1.3.0"}) == {}
    assert version_tags([of_npm, of_pypi], here, tags) == {of_npm: Revision.of_tag("js/v1.2.0")}


def test_packages_of_one_directory_share_their_tags(tmp_path: Path) -> None:
    """As a crate and what maturin makes of it."""
    here = tmp_path.resolve()
    crate, wheel = at(here, "fast", "fast"), at(here, "fast-py", "fast")
    tag = Revision.of_tag("fast-v1.2.0")
    assert version_tags([crate, wheel], here, {tag.shown[4:]}) == {crate: tag, wheel: tag}


def test_all_tags_are_listed(root: Path) -> None:
    commit(root, {"a": "1"}, tag="@acme/core@1.2.0")
    commit(root, {"a": "2"}, tag="v1")
    assert tags(root) == {"@acme/core@1.2.0", "v1"}
