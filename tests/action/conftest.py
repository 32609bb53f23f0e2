from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from harness.act import PROJECT, Repository, git

if TYPE_CHECKING:
    from pathlib import Path


# Of the other ecosystems; a runner of these tests has none of their tools.
OTHERS = ("npm", "cargo", "go", "maven", "package.json", "releasekit.toml")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A user's repository: the Python part of the example in its root."""
    root = tmp_path / "user repo"
    shutil.copytree(
        PROJECT / "examples/polyglot",
        root,
        ignore=shutil.ignore_patterns(".releasekit", "__pycache__", *OTHERS),
    )
    git(root, "init", "--quiet", "--initial-branch=main")
    return Repository(root, tmp_path)
