from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peers.sources import Source, fetch, find_top
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("above", ["", "a-1.0/", "golang.org/x/mod@v1/"])
def test_the_top_of_an_archive_is_found_below_its_path(tmp_path: Path, above: str) -> None:
    for name in ("go.mod", "zip/a/b.go"):
        path = tmp_path / above / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_top(tmp_path) == tmp_path / above


def test_a_directory_in_another_checkout_is_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "demo").mkdir()
    found = fetch(Source(name="demo", git="https://x.invalid", licence="MIT"), tmp_path, tmp_path)
    assert (found.directory, found.failed) == (None, True)
    assert "git" in found.what or "top of a checkout" in found.what


def test_what_only_git_has_is_left_out_without_a_place_for_it(tmp_path: Path) -> None:
    source = Source(name="demo", git="https://x.invalid/demo", licence="MIT")
    found = fetch(source, tmp_path, None)
    assert (found.directory, found.failed) == (None, False)
    assert "https://x.invalid/demo" in found.what
