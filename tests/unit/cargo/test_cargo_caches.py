"""Where builds of crates may write besides the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.cargo import DECLARATION

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "variable", ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"]
)
def test_a_target_directory_outside_of_the_workspace_is_open(tmp_path: Path, variable: str) -> None:
    """Whoever shares one directory among workspaces builds in the sandbox as without."""
    (tmp_path / "cargo").touch(mode=0o700)
    here = {"PATH": str(tmp_path), "HOME": str(tmp_path / "home")}
    target = tmp_path / "target"
    opened = [place for cache in DECLARATION.caches for place in cache.places(here)]
    assert target not in opened
    there = {**here, variable: str(target)}
    assert target in [place for cache in DECLARATION.caches for place in cache.places(there)]
    beside = {**here, variable: "target"}
    assert [p for cache in DECLARATION.caches for p in cache.places(beside)] == opened
