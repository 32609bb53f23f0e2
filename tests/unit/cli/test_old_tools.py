"""R70: what commands say of tools that are too old for what they would build."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from releasekit.__main__ import main
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

# What each says of itself; nobody asks pnpm and yarn, which build nothing.
OLD = {
    "node": "v16.20.2",
    "npm": "8.19.4",
    "cargo": "cargo 1.85.1 (d73d2caf9 2024-12-31)",
    "go": "go version go1.19.8 linux/amd64",
    "mvn": "Apache Maven 3.5.4 (1edded0938998edf8bf061f1ceb3cfdeccf443fe)",
    "uv": "uv 0.4.30",
    "java": 'openjdk version "17.0.15"',
    "pnpm": "5.0.0",
    "yarn": "0.27.5",
}
SAID = {
    "cargo": "cargo: cargo is 1.85.1, too old to build with: 1.90 or later is needed",
    "go": "go: go is 1.19.8, too old to build with: 1.21 or later is needed",
    "maven": "maven: mvn is 3.5.4, too old to build with: 3.6.3 or later is needed",
    "npm": "npm: npm is 8.19.4, too old to build with: 9 or later is needed",
    "pypi": "uv is 0.4.30, too old to build with: 0.5.5 or later is needed",
}
PYPROJECT = """\
project = { name = "acme", version = "1.0" }
build-system = { requires = [] }
"""
POM = """\
<project><modelVersion>4.0.0</modelVersion><groupId>com.acme</groupId>
<artifactId>kit</artifactId><version>1.0.0</version></project>
"""


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One package of each ecosystem, on a machine whose tools are old."""
    root, programs = tmp_path / "acme", tmp_path / "bin"
    root.mkdir()
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "git")
    crate: dict[str, Any] = {
        "name": "acme",
        "version": "1.0.0",
        "manifest_path": str(root / "Cargo.toml"),
        "publish": None,
        "description": "Acme",
        "license": "MIT",
        "license_file": None,
        **dict.fromkeys(("homepage", "documentation", "repository")),
        **{key: [] for key in ("dependencies", "keywords", "categories")},
        "features": {},
        "targets": [{"kind": ["lib"], "crate_types": ["lib"]}],
    }
    metadata = json.dumps({"workspace_root": str(root), "packages": [crate]})
    (tmp_path / "metadata.json").write_text(metadata)
    for name, said in OLD.items():
        reads = f'test "$1" != metadata || exec /bin/cat {tmp_path}/metadata.json'
        asked = f'echo {name} "$@" >>{tmp_path}/asked'
        (programs / name).write_text(f"#!/bin/sh\n{reads}\n{asked}\necho '{said}'\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    files = {
        "package.json": '{"name": "acme", "version": "1.0.0", "packageManager": "pnpm@5.0.0"}',
        "pyproject.toml": PYPROJECT,
        "Cargo.toml": '[package]\nname = "acme"\nversion = "1.0.0"\nedition = "2021"\n',
        "go.mod": "module acme.example/acme\n\ngo 1.19\n",
        "acme.go": "package acme\n",
        "pom.xml": POM,
        "releasekit.toml": '[go]\nversion = "v1.0.0"\n',
    }
    for name, text in files.items():
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Begin")
    return root


def run(root: Path, *arguments: str) -> int:
    command, *flags = arguments
    return main([command, str(root), "--registry", f"dir:{root.parent / 'registry'}", *flags])


def list_asked(root: Path) -> list[str]:
    """Which of them were asked for their versions since the last call."""
    path = root.parent / "asked"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(line for line in found if line.endswith("version"))


@pytest.mark.parametrize("command", [["plan"], ["publish", "--dry-run"], ["publish"]])
def test_nothing_is_planned_that_they_would_have_to_build(
    root: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Each is named with the version wanted and how to get it, and asked once; no run begins."""
    assert run(root, *command) == 3
    said = capsys.readouterr().err
    for each in SAID.values():
        assert f"{each} [RK-347]\n" in said
    for hint in ("rustup.rs", "go.dev/dl", "maven.apache.org/install", "setup-node", "uv-path"):
        assert hint in said
    asked = ["cargo --version", "go version", "mvn --version", "npm --version", "uv --version"]
    assert list_asked(root) == asked
    assert not (root.parent / "registry").exists()


def test_check_says_what_to_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "check") == 3
    said = capsys.readouterr().out
    for each in SAID.values():
        assert f"{each} [RK-347]\n" in said
    assert f"{len(SAID)} things to do" in said


@pytest.mark.parametrize("ecosystem", SAID)
def test_only_what_is_chosen_counts(
    root: Path, capsys: pytest.CaptureFixture[str], ecosystem: str
) -> None:
    assert run(root, "plan", "--ecosystem", ecosystem) == 3
    said = capsys.readouterr().err
    assert [name for name, each in SAID.items() if each in said] == [ecosystem]
    list_asked(root)
    others = ",".join(name for name in SAID if name != ecosystem)
    assert run(root, "plan", "--ecosystem", others) == 3
    assert SAID[ecosystem] not in capsys.readouterr().err


def test_a_plan_that_builds_nothing_is_green(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "package.json").write_text('{"name": "acme", "version": "1.0.0", "private": true}')
    assert run(root, "plan", "--ecosystem", "npm") == 0
    assert "too old" not in capsys.readouterr().err
    assert not list_asked(root)


def test_a_cargo_whose_metadata_is_recent_is_not_asked(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor refused: no stable one before 1.91 says `build_directory`."""
    path = root.parent / "metadata.json"
    told = {**json.loads(path.read_text()), "build_directory": str(root / "target")}
    path.write_text(json.dumps(told))
    assert run(root, "plan", "--ecosystem", "cargo") == 0
    assert run(root, "check", "--ecosystem", "cargo") == 0
    assert "packed by cargo 1.91 or later" in capsys.readouterr().out
    assert not list_asked(root)


def test_a_plan_names_what_is_missing_and_is_refused_for_what_is_old(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another machine may publish it."""
    for name in ("npm", "mvn"):
        (root.parent / "bin" / name).unlink()
    assert run(root, "plan", "--ecosystem", "npm,maven") == 0
    said = "".join(capsys.readouterr())
    assert "npm is not on PATH, and nothing can be built." in said
    assert "mvn is not on PATH, and nothing can be built." in said
    assert run(root, "plan", "--ecosystem", "npm,go") == 3
    said = "".join(capsys.readouterr())
    assert SAID["go"] in said
    assert "npm is not on PATH [RK-213]" in said


@pytest.mark.parametrize("command", [["plan"], ["publish", "--dry-run"], ["publish"]])
def test_what_discovery_lacks_is_named_with_what_builds_lack(
    root: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """R47: each once, so that one cure does not show the next thing to cure."""
    for name in OLD:
        (root.parent / "bin" / name).unlink()
    assert run(root, *command) == 2
    said = capsys.readouterr().err
    for name in ("cargo", "node", "go", "mvn"):
        assert said.count(f" {name} is not on PATH [RK-213]") == 1
    chosen = ["--ecosystem", "cargo,maven,npm", "--exclude-packages", "com.acme:kit"]
    assert run(root, *command, *chosen) == 2
    said = capsys.readouterr().err
    assert said.count("is not on PATH") == 2
    (root / "dist").mkdir()
    assert run(root, *command, "--dist", str(root / "dist")) == 2
    assert capsys.readouterr().err.count("is not on PATH") == 1
    assert run(root, "version", "--dry-run") == 2
    assert capsys.readouterr().err.count("is not on PATH") == 1
