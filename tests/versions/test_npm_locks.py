"""What npm, pnpm, yarn and Bun say of lock files that were edited as text."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from integration import verdaccio
from integration.tools import require_tool
from javascript import target, write
from releasekit.errors import PlanError
from versions.writing import write_versions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.decided import Ranges

VERSIONS = {"@acme/core": "2.0.0", "@acme/web": "2.1.0", "plain": "0.5.0"}
SNAPSHOT = dict.fromkeys(VERSIONS, "0.0.0-pr-97.20261121093000.g1a2b3c4d5e")
both = pytest.mark.parametrize("ranges", ["raise", "exact"])
MEMBERS: dict[str, dict[str, object]] = {
    ".": {
        "private": True,
        "workspaces": ["packages/*"],
        "devDependencies": {"@acme/core": "^1.2.0"},
    },
    "packages/core": {"name": "@acme/core", "version": "1.2.0", "bin": {"core": "x.js"}},
    "packages/web": {
        "name": "@acme/web",
        "version": "2.0.0",
        "dependencies": {"@acme/core": "1.2.0"},
        "optionalDependencies": {"plain": "~0.4.1"},
    },
    "packages/plain": {
        "name": "plain",
        "version": "0.4.1",
        "peerDependencies": {"@acme/core": ">=1.2 <2"},
        "devDependencies": {"@acme/core": "1.x"},
    },
    "packages/open": {
        "name": "open",
        "version": "1.0.0",
        "dependencies": {"@acme/core": ">=1.2.0", "@acme/web": "*"},
        "peerDependencies": {"plain": "^0.4.0"},
    },
}
# What npm does not know.
PROTOCOL = {"@acme/core": "workspace:^1.2.0", "plain": "workspace:^", "@acme/web": "workspace:~"}
CATALOGS = """\
packages: ['packages/*']
linkWorkspacePackages: true
catalog:
  '@acme/web': ^2.0.0
catalogs:
  old: # one
    plain: ~0.4.1
"""


class Workspace:
    def __init__(self, root: Path, *tool: str | Path) -> None:
        self.root = root
        self._tool = tool

    def run(self, *arguments: str) -> None:
        environment = {
            **os.environ,
            "YARN_ENABLE_TELEMETRY": "0",
            "YARN_ENABLE_NETWORK": "0",
            "YARN_NODE_LINKER": "node-modules",
        }
        argv = [*self._tool, *arguments]
        done = subprocess.run(
            argv, cwd=self.root, env=environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def check(
        self, ranges: Ranges, lock: str, check: Sequence[str], rewrite: Sequence[str]
    ) -> None:
        """That our edits leave nothing to do for the tool."""
        versions = SNAPSHOT if ranges == "exact" else VERSIONS
        self.run(*rewrite)
        before = (self.root / lock).read_bytes()
        assert lock in write_versions(self.root, target(self.root), versions, ranges=ranges)
        edited = (self.root / lock).read_bytes()
        assert edited != before
        self.run(*check)
        self.run(*rewrite)
        assert (self.root / lock).read_bytes() == edited


def manifests(*members: tuple[str, object]) -> dict[str, object]:
    everything = {**MEMBERS, **dict(members)}
    return {f"{where}/package.json": json.dumps(each) for where, each in everything.items()}


@both
@pytest.mark.parametrize("version", ["2", "3"])
def test_npm_finds_its_lock_complete(tmp_path: Path, version: str, ranges: Ranges) -> None:
    files = manifests(("packages/x", {"name": "x", "dependencies": {"@acme/core": "file:../core"}}))
    workspace = Workspace(write(tmp_path / "workspace", files), require_tool("npm"))
    rewrite = ("install", "--package-lock-only", "--offline", "--lockfile-version", version)
    workspace.check(ranges, "package-lock.json", ("ci", "--dry-run", "--offline"), rewrite)


@both
def test_pnpm_finds_its_lock_complete(tmp_path: Path, ranges: Ranges) -> None:
    require_tool("npm")
    cataloged = {
        "name": "x",
        "dependencies": {"@acme/web": "catalog:", "c": "workspace:@acme/core@^1.2.0"},
        "optionalDependencies": {"plain": "catalog:old"},
    }
    files = manifests(("packages/x", cataloged), ("packages/y", {"devDependencies": PROTOCOL}))
    root = write(tmp_path / "workspace", {**files, "pnpm-workspace.yaml": CATALOGS})
    workspace = Workspace(root, *verdaccio.pnpm())
    rewrite = ("install", "--lockfile-only", "--offline", "--ignore-scripts")
    workspace.check(ranges, "pnpm-lock.yaml", (*rewrite, "--frozen-lockfile"), rewrite)
    raised = "plain: ~0.5.0" in (root / "pnpm-workspace.yaml").read_text()
    assert raised is (ranges == "raise")


@both
def test_yarn_finds_its_lock_complete(tmp_path: Path, ranges: Ranges) -> None:
    require_tool("npm")
    wanted = {"private": True, "dependencies": {"@yarnpkg/cli-dist": "4.17.0"}}
    yarn = verdaccio.installed("yarn", wanted) / "@yarnpkg" / "cli-dist" / "bin" / "yarn.js"
    files = manifests(
        ("packages/x", {"name": "x", "dependencies": {"c": "npm:@acme/core@^1.2.0"}}),
        ("packages/y", {"name": "y", "dependencies": PROTOCOL}),
    )
    root = write(tmp_path / "workspace", {**files, ".yarnrc.yml": "", "yarn.lock": ""})
    workspace = Workspace(root, require_tool("node"), yarn)
    rewrite = ("install", "--mode=update-lockfile")
    workspace.check(ranges, "yarn.lock", ("install", "--immutable"), rewrite)


@both
@pytest.mark.parametrize("place", ["top", "workspaces"])
def test_bun_finds_its_lock_complete(tmp_path: Path, ranges: Ranges, place: str) -> None:
    """R36: with catalogs at either place."""
    catalogs = {"catalog": {"@acme/web": "^2.0.0"}, "catalogs": {"old": {"plain": "~0.4.1"}}}
    below = {"packages": ["packages/*"], **(catalogs if place == "workspaces" else {})}
    top = {**MEMBERS["."], "workspaces": below, **(catalogs if place == "top" else {})}
    cataloged = {
        "name": "x",
        "dependencies": {"@acme/web": "catalog:", "@acme/core": "workspace:^1.2.0"},
        "optionalDependencies": {"plain": "catalog:old"},
    }
    files = manifests(
        (".", top),
        ("packages/x", cataloged),
        ("packages/y", {"devDependencies": PROTOCOL}),
        ("packages/z", {"name": "", "devDependencies": {"@acme/core": "^1.2.0"}}),
    )
    root = write(tmp_path / "workspace", {**files, "bun.lock": ""})
    workspace = Workspace(root, verdaccio.bun())
    rewrite = ("install", "--lockfile-only")
    workspace.check(ranges, "bun.lock", ("install", "--frozen-lockfile", "--dry-run"), rewrite)
    assert ("~0.5.0" in (root / "package.json").read_text()) is (ranges == "raise")


def test_a_binary_lock_of_bun_is_converted_by_the_command_that_is_named(tmp_path: Path) -> None:
    settings = "[install]\nsaveTextLockfile = false\n"
    root = write(tmp_path / "workspace", {**manifests(), "bunfig.toml": settings})
    workspace = Workspace(root, verdaccio.bun())
    workspace.run("install", "--lockfile-only")
    with pytest.raises(PlanError, match=r"bun\.lockb is not in a format") as refused:
        write_versions(root, target(root), VERSIONS)
    (root / "bunfig.toml").unlink()
    workspace.run(*refused.value.hint.split("`")[1].split()[1:])
    assert not (root / "bun.lockb").exists()
    assert "bun.lock" in write_versions(root, target(root), VERSIONS)
