from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from releasekit.ecosystems.pypi.roots import find_members
from releasekit.errors import ConfigError
from releasekit.host.files import inside
from releasekit.text import globs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "workspace"
    for name in (
        "packages/a",
        "packages/b",
        "packages/group/c",
        "packages/.hidden",
        "tools",
        "x[y]",
    ):
        (root / name).mkdir(parents=True)
        (root / name / "pyproject.toml").touch()
    (root / "packages" / "empty").mkdir()
    (root / "packages" / "README").touch()
    return root


@pytest.mark.parametrize(
    ("globs", "exclude", "expected"),
    [
        (["packages/*"], [], ["packages/.hidden", "packages/a", "packages/b"]),
        (["packages/[ab]"], [], ["packages/a", "packages/b"]),
        (["./packages/a/", "packages/?"], ["packages/b"], ["packages/a"]),
        (["packages/**"], ["packages/.*"], ["packages/a", "packages/b", "packages/group/c"]),
        (["**/c", "tools"], [], ["packages/group/c", "tools"]),
        # A star of `exclude` matches a slash too, as in uv.
        (["packages/**", "tools"], ["packages/*"], ["tools"]),
        (["no/*", "packages/*/c"], [], ["packages/group/c"]),
        (["."], [], ["."]),
        ([], [], []),
    ],
)
def test_globs(root: Path, globs: list[str], exclude: list[str], expected: list[str]) -> None:
    (root / "pyproject.toml").touch()
    found = find_members(root, tuple(globs), tuple(exclude), where="here")
    assert [path.relative_to(root).as_posix() for path in found] == expected


@pytest.mark.parametrize(
    "pattern", ["../other", "packages/../../other", "/etc", "/".join("a" * 40), "**/" * 33]
)
def test_a_glob_cannot_leave_the_workspace(root: Path, pattern: str) -> None:
    """R36 R40"""
    with pytest.raises(ConfigError, match="here: ") as caught:
        find_members(root, (pattern,), (), where="here")
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize("pattern", ["packages/*", "packages/outside", "**/outside"])
def test_nor_can_a_link(root: Path, pattern: str) -> None:
    """R36"""
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (outside / "pyproject.toml").touch()
    (root / "packages" / "outside").symlink_to(outside)
    with pytest.raises(ConfigError, match=f"leads out of the workspace, to {outside}"):
        find_members(root, (pattern,), (), where="here")


def test_nor_can_one_that_takes_the_place_of_a_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R36: at the last moment before that is listed."""
    outside = root.parent / "elsewhere"
    (outside / "evil").mkdir(parents=True)
    (outside / "evil" / "pyproject.toml").touch()
    scan = os.scandir

    def swap_and_scan(directory: Path) -> Any:
        if directory == root / "packages":
            directory.rename(root / "moved")
            directory.symlink_to(outside)
        return scan(directory)

    monkeypatch.setattr(os, "scandir", swap_and_scan)
    with pytest.raises(ConfigError, match=f"leads out of the workspace, to {outside}/evil"):
        find_members(root, ("packages/*",), (), where="here")


def test_a_manifest_may_not_be_a_link_out_of_the_workspace_either(root: Path) -> None:
    """R36"""
    link = root / "tools" / "pyproject.toml"
    link.unlink()
    link.symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="leads out of the workspace"):
        inside(root, link, where="there")


def test_two_ways_to_one_directory_are_one_package(root: Path) -> None:
    (root / "link").symlink_to("tools")
    assert find_members(root, ("link", "tools"), (), where="here") == [root / "tools"]


def test_a_loop_of_links_ends(root: Path) -> None:
    """R40"""
    (root / "tools" / "loop").symlink_to(root)
    assert find_members(root, ("**/a",), (), where="here") == [root / "packages" / "a"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("packages/empty", "'packages/empty' has no pyproject.toml"),
        ("packages/gone", "'packages/gone' is not a directory"),
        ("packages/README", "'packages/README' is not a directory"),
    ],
)
def test_a_path_that_names_no_package_is_an_error(root: Path, pattern: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_members(root, (pattern,), (), where="here")


def test_what_is_excluded_needs_no_package_but_a_directory(root: Path) -> None:
    assert find_members(root, ("packages/empty",), ("packages/*",), where="here") == []
    with pytest.raises(ConfigError, match="'packages/gone' is not a directory"):
        find_members(root, ("packages/gone",), ("packages/*",), where="here")


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_VISITED", "searches more than 1 directories"),
        ("MAX_MEMBERS", "more than 1 packages"),
        ("MAX_GLOBS", "more than 1 globs"),
    ],
)
def test_the_search_is_bounded(
    root: Path, monkeypatch: pytest.MonkeyPatch, limit: str, message: str
) -> None:
    """R40"""
    monkeypatch.setattr(globs, limit, 1)
    with pytest.raises(ConfigError, match=message):
        find_members(root, ("packages/**", "tools"), (), where="here")
