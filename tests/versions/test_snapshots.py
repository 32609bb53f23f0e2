"""Snapshots: versions of a commit that are published under a label, and thrown away."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from releasekit.__main__ import main
from versions.test_version_command import (
    bare_environment,
    commit,
    hatch_vcs_project,
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
    require_tool("npm")
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


def test_a_job_of_a_pull_request_needs_no_history_of_its_base(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R61: what HEAD adds to it is not asked."""
    repo = {"repo": {"full_name": "acme/acme"}}
    head = {"sha": "2" * 40, "ref": "topic", **repo}
    base = {"sha": "1" * 40, "ref": "main", **repo}
    event = {"pull_request": {"number": 97, "title": "feat: a", "head": head, "base": base}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    assert snapshot(root, capsys)["acme-core"] == "1.3.0.dev20261121093000"


@pytest.mark.parametrize("label", ["97", "v1", "x", "vx", "latest", "pr_97", "PR", "a" * 300])
def test_a_label_is_no_range_and_no_release(
    root: Path, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["version", str(root), "--snapshot", label]) == 2
    assert "write a word such as pr-97" in capsys.readouterr().err
    assert git(root, "status", "--porcelain") == ""


def snapshot(root: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, str]:
    """Writes one; the version of each package."""
    assert main(["version", str(root), "--snapshot", "pr-97", *flags]) == 0
    rows = [line.split() for line in lines(capsys) if " → " in line]
    return {row[0]: row[row.index("→") + 1] for row in rows}


def run(root: Path, *argv: str) -> None:
    done = subprocess.run(argv, cwd=root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def crate(name: str, version: str, needs: str = "") -> str:
    text = f'[package]\nname = "{name}"\n{version}\nedition = "2021"\n[dependencies]\n'
    return text + needs


SHARED = "version.workspace = true"
CRATES = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n'
    '[workspace.package]\nversion = "0.3.0"\n',
    "crates/core/Cargo.toml": crate("core-x", 'version = "0.5.0"'),
    "crates/one/Cargo.toml": crate(
        "one-x", SHARED, 'core-x = { path = "../core", version = "0.*" }\n'
    ),
    "crates/two/Cargo.toml": crate("two-x", SHARED),
    "crates/far/Cargo.toml": crate("far-x", 'version = "1.0.0"'),
    "crates/bench/Cargo.toml": crate(
        "bench-x", 'version = "0.0.1"\npublish = false', 'two-x = { path = "../two" }\n'
    ),
    **{f"crates/{name}/src/lib.rs": "" for name in ("core", "one", "two", "far", "bench")},
}


def test_crates_that_share_a_version_share_that_of_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cargo = str(require_tool("cargo"))
    root = repository(tmp_path / "w", CRATES)
    run(root, cargo, "generate-lockfile", "--offline")
    commit(root, "chore: lock", {})
    for tag in ("core-x-v0.5.0", "one-x-v0.3.0", "two-x-v0.3.0", "far-x-v1.0.0"):
        git(root, "tag", tag)
    commit(root, "fix: more", {"crates/core/src/lib.rs": "// 1\n"})
    found = snapshot(root, capsys)
    assert found.keys() == {"core-x", "one-x", "two-x"}
    [version] = {*found.values()}
    assert f'version = "={version}"' in (root / "crates/one/Cargo.toml").read_text()
    run(root, cargo, "metadata", "--locked", "--offline", "--format-version=1")
    flags = ["--pin", "exact", "--ecosystem", "cargo", "--packages", ",".join(found)]
    for outcome in ("published", "nothing to do"):
        assert main(["publish", str(root), *flags]) == 0
        assert outcome in "\n".join(lines(capsys))
    [entry] = (tmp_path / "registry/cargo/on/e-/one-x").read_text().splitlines()
    assert [each["req"] for each in json.loads(entry)["deps"]] == [f"={version}"]


NODE = {
    "package.json": '{"private": true, "workspaces": ["node/*"]}',
    "node/icons/package.json": '{"name": "icons", "version": "2.4.1"}',
    "node/ui/package.json": '{"name": "ui", "version": "3.0.0", "dependencies": '
    '{"icons": "2.x"}, "devDependencies": {"theme": "*"}}',
    "node/theme/package.json": '{"name": "theme", "version": "1.0.0", "peerDependencies": '
    '{"ui": "^3 || ^4"}}',
    "node/site/package.json": '{"name": "site", "private": true, "dependencies": {"ui": "^3"}}',
}


def test_packages_need_exactly_each_other_whatever_the_form_of_their_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npm = str(require_tool("npm"))
    root = repository(tmp_path / "w", {**NODE, ".gitignore": "node_modules\n"})
    run(root, npm, "install", "--package-lock-only", "--offline")
    commit(root, "chore: lock", {})
    for tag in ("icons-v2.4.1", "ui-v3.0.0", "theme-v1.0.0"):
        git(root, "tag", tag)
    commit(root, "fix: more", {"node/icons/more.js": "1\n"})
    found = snapshot(root, capsys)
    assert found.keys() == {"icons", "ui", "theme"}
    [version] = {*found.values()}
    read = {name: json.loads((root / f"node/{name}/package.json").read_text()) for name in found}
    assert read["ui"]["dependencies"] == {"icons": version}
    assert read["ui"]["devDependencies"] == {"theme": version}
    assert read["theme"]["peerDependencies"] == {"ui": version}
    run(root, npm, "ci", "--dry-run", "--offline")


def test_projects_need_exactly_each_other(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uv = str(require_tool("uv"))
    own = "[tool.uv.sources]\nacme-core = { workspace = true }\n"
    commit(root, "chore: own", {"pyproject.toml": FILES["pyproject.toml"] + own})
    run(root, uv, "lock", "--offline")
    commit(root, "chore: lock", {})
    snapshot(root, capsys)
    text = (root / "python/cli/pyproject.toml").read_text()
    assert '"acme-core==1.3.0.dev20261121093000"' in text
    run(root, uv, "lock", "--check", "--offline")


def test_what_is_left_out_is_still_a_reason(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[dependencies]\n"npm:far" = [{ on = "go:example.com/acme/kit", bump = "patch" }]\n'
    commit(root, "chore: order", {"releasekit.toml": FILES["releasekit.toml"] + more})
    assert snapshot(root, capsys)["far"].startswith("0.0.0-pr-97.")


def test_what_only_comes_later_gets_none(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[dependencies]\n"npm:far" = ["go:example.com/acme/kit"]\n'
    commit(root, "chore: order", {"releasekit.toml": FILES["releasekit.toml"] + more})
    assert "far" not in snapshot(root, capsys)


def test_a_development_release_leads_to_no_second_one(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = '[version]\nprerelease = { "acme-*" = "dev" }\n'
    commit(root, "chore: line", {"releasekit.toml": FILES["releasekit.toml"] + line})
    assert snapshot(root, capsys)["acme-core"] == "1.3.0.dev20261121093000"


def test_a_version_that_another_branch_has_tagged_is_in_nobodys_way(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pull request may be checked out as it is, without what has been released meanwhile."""
    elsewhere = git(root, "commit-tree", "-m", "x", "HEAD^{tree}").strip()
    for tag in ("icons-v2.5.0", "acme-core-v1.3.0"):
        git(root, "tag", tag, elsewhere)
    made = snapshot(root, capsys)
    assert made["icons"].startswith("0.0.0-pr-97.")
    assert made["acme-core"] == "1.3.0.dev20261121093000"


def test_a_version_that_a_tag_says_has_no_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = hatch_vcs_project(tmp_path / "w")
    assert main(["version", str(root), "--snapshot", "pr-97"]) == 3
    assert "acme: its tag says its version, and a snapshot has none" in capsys.readouterr().err
    monkeypatch.setenv("RELEASEKIT_EXCLUDE_PACKAGES", "acme")
    assert snapshot(root, capsys) == {}


def test_a_pull_request_counts_by_its_title(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "w", NODE, "icons-v2.4.1", "ui-v3.0.0", "theme-v1.0.0")
    base = git(root, "rev-parse", "HEAD").strip()
    git(root, "switch", "--quiet", "--create", "topic")
    commit(root, "wip", {"node/icons/more.js": "1\n"})
    head = git(root, "rev-parse", "HEAD").strip()
    git(root, "switch", "--quiet", "--detach", "main")
    git(root, "merge", "--quiet", "--no-ff", "--message", f"Merge {head} into {base}", head)
    repo = {"repo": {"full_name": "acme/acme"}}
    request = {
        "number": 97,
        "title": "feat: more",
        "head": {"sha": head, "ref": "topic", **repo},
        "base": {"sha": base, "ref": "main", **repo},
    }
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": request}))
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    assert snapshot(root, capsys).keys() == {"icons", "ui", "theme"}
