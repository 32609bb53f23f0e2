"""Repositories whose root is not the root of everything, with the real tools."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from releasekit.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, name: str, content: object) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An npm workspace and a pnpm workspace that needs it, side by side."""
    require_tool("npm")
    root = tmp_path / "repository"
    write(root, "js/package.json", {"private": True, "workspaces": ["*"]})
    write(root, "js/core/package.json", {"name": "core", "version": "1.2.0"})
    write(root, "js/core/index.js", "")
    write(root, "docs/pnpm-workspace.yaml", "packages: ['*']\ncatalog: {core: ^1.0.0}\n")
    needs = {"dependencies": {"core": "catalog:"}}
    write(root, "docs/theme/package.json", {"name": "theme", "version": "1.0.0", **needs})
    return root


def test_workspaces_beside_one_another_are_one_release(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1"""
    registry = root.parent / "registry"
    assert main(["publish", str(root), "--npm-registry", f"dir:{registry}"]) == 0
    assert main(["plan", str(root), "--npm-registry", f"dir:{registry}"]) == 0
    said = capsys.readouterr().out
    assert "2 packages: 2 already published" in said
    assert "so the workspaces below it are planned: docs (npm), js (npm)" in said
    (packed,) = registry.rglob("theme-1.0.0.tgz")
    with tarfile.open(packed) as archive:
        manifest = archive.extractfile("package/package.json")
        assert manifest is not None
        assert json.load(manifest)["dependencies"] == {"core": "^1.0.0"}


def test_what_an_earlier_run_left_in_a_package_is_never_published(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """npm takes along whatever no file tells it to leave out."""
    write(root, "docs/theme/old/journal.jsonl", "{}")
    write(root, "docs/theme/old/lock.npm", "")
    registry = root.parent / "registry"
    assert main(["publish", str(root), "--npm-registry", f"dir:{registry}"]) == 1
    said = capsys.readouterr().out
    assert "theme-1.0.0.tgz holds package/old/journal.jsonl, which is state of a run" in said
    assert [path.name for path in registry.rglob("*.tgz")] == ["core-1.2.0.tgz"]
