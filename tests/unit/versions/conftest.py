"""Repositories that tests begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from versions.repositories import Repository
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    require_tool("git")
    root = tmp_path / "here"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return Repository(root.resolve())


@pytest.fixture
def two(repository: Repository) -> Repository:
    """core 1.2.0 and cli 0.4.1, both with a tag."""
    files = {
        **repository.write("packages/core", "acme-core", "1.2.0"),
        **repository.write("packages/cli", "acme-cli", "0.4.1"),
    }
    repository.commit("feat: start", files)
    repository.git("tag", "acme-core-v1.2.0")
    repository.git("tag", "acme-cli@0.4.1")
    return repository
