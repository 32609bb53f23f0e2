"""Snapshots: versions of a commit that are published under a label, and thrown away."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from versioning.test_version_command import (
    bare_environment,
    commit,
    lines,
    member,
    repository,
)
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bare_environment"]

FILES = {
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["python/*"]\n',
    "python/core/pyproject.toml": member("acme-core", "1.2.0"),
    "python/core/src/acme_core/__init__.py": "",
    "python/cli/pyproject.toml": member("acme-cli", "0.4.1", "acme-core>=1.2,<2"),
    "python/cli/src/acme_cli/__init__.py": "",
    "package.json": '{"private": true, "workspaces": ["node/*"]}',
    "node/icons/package.json": '{"name": "icons", "version": "2.4.1"}',
    "node/ui/package.json": '{"name": "ui", "version": "3.0.0", "dependencies": '
    '{"icons": "^2.4.0"}}',
    "node/far/package.json": '{"name": "far", "version": "3.0.0"}',
    "go.mod": "module example.com/acme/kit\n\ngo 1.22\n",
    "kit.go": "package kit\n",
    "releasekit.toml": '[go]\nversion = "v1.0.0"\n',
    ".gitignore": ".releasekit\n",
}
CHANGED = {
    "python/core/src/acme_core/more.py": "1\n",
    "node/icons/more.js": "1\n",
    "kit.go": "package kit\n\nconst More = 1\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = repository(tmp_path / "w", FILES)
    for tag in ("acme-core-v1.2.0", "acme-cli-v0.4.1", "icons-v2.4.1", "ui-v3.0.0", "far-v3.0.0"):
        git(root, "tag", tag)
    git(root, "tag", "v1.0.0")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-21T09:30:00Z")
    commit(root, "feat: more", CHANGED)
    commit(root, "chore: far", {".changeset/a.md": '---\n"icons": minor\n---\nMore.\n'})
    return root


def test_what_would_be_released_and_all_that_needs_it_is_of_this_commit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = git(root, "rev-parse", "HEAD").strip()[:10]
    npm = f"0.0.0-pr-97.20261121093000.g{head}"
    assert main(["version", str(root), "--snapshot", "pr-97"]) == 0
    told = lines(capsys)
    shown = {row[0]: row[3] for line in told if (row := line.split()) and " → " in line}
    assert shown == {
        "acme-core": "1.3.0.dev20261121093000",
        "acme-cli": "0.4.2.dev20261121093000",
        "icons": npm,
        "ui": npm,
    }
    name = "example.com/acme/kit"
    assert f"{name}  Go takes a commit as it is: go get {name}@{head}" in map(str.strip, told)
    changed = git(root, "status", "--porcelain").split("\n")
    assert [line[3:] for line in changed if line] == [
        "node/icons/package.json",
        "node/ui/package.json",
        "python/cli/pyproject.toml",
        "python/core/pyproject.toml",
    ]
    ui = json.loads((root / "node/ui/package.json").read_text())
    assert ui["dependencies"] == {"icons": npm}


def test_it_is_published_under_its_label_and_found_again(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--pin", "exact", "--ecosystem", "pypi,npm"]
    assert main(["publish", str(root), "--ecosystem", "npm"]) == 0
    for outcome in ("published", "nothing to do"):
        assert main(["version", str(root), "--snapshot", "pr-97"]) == 0
        lines(capsys)
        assert main(["publish", str(root), *flags, "--packages", "acme-*,icons,ui"]) == 0
        assert outcome in "\n".join(lines(capsys))
        git(root, "checkout", "--quiet", ".")
    document = json.loads((tmp_path / "registry/npm/ui").read_text())
    version = document["dist-tags"].pop("pr-97")
    assert version.startswith("0.0.0-pr-97.20261121093000.g")
    assert document["dist-tags"] == {"latest": "3.0.0"}
    assert document["versions"][version]["dependencies"] == {"icons": version}
    assert main(["version", str(root), "--dry-run"]) == 0
    assert re.search("icons +2.4.1 → 2.5.0", "\n".join(lines(capsys)))


@pytest.mark.parametrize("label", ["97", "v1", "x", "latest", "pr_97", "PR", "a" * 300 + "!"])
def test_a_label_is_no_range_and_no_release(
    root: Path, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["version", str(root), "--snapshot", label]) == 2
    assert "write a word such as pr-97" in capsys.readouterr().err
    assert git(root, "status", "--porcelain") == ""
