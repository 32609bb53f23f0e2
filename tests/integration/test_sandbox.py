"""Builds that mean harm: real ones, of three ecosystems, in the sandbox and without it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from integration.test_cargo_publish import toolchain
from integration.tools import require_landlock, require_tool
from outside import make_outside
from workspaces import Program, git, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from workspaces import Run

# Tries what no build has any business doing, and writes down how far it came.
ATTACK = """\
import ctypes, json, os, pathlib, signal, sys

def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno
    return 0

def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def of_releasekit(pid):
    return b"__main__.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()

def attach():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, pid, None, None) == -1:  # PTRACE_SEIZE, which stops nothing
        raise OSError(ctypes.get_errno(), "ptrace")

pid = os.getppid()
while not of_releasekit(pid):
    pid = parent_of(pid)
name, victim, told = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
told.write_text(json.dumps({
    "write": tried((victim / name).touch),
    "change": tried(lambda: (victim / "there.txt").write_text(name)),
    "empty": tried(lambda: os.truncate(victim / "there.txt", 0)),
    "link": tried(lambda: os.link(victim / "there.txt", told.with_suffix(".stolen"))),
    "environ": tried(lambda: open(f"/proc/{pid}/environ", "rb").close()),
    "memory": tried(lambda: open(f"/proc/{pid}/mem", "rb").close()),
    "descriptors": tried(lambda: os.stat(f"/proc/{pid}/fd/1")),
    "attach": tried(attach),
    "signal": tried(lambda: os.kill(pid, signal.SIGURG)),
}))
"""
BACKEND = """\
import io, subprocess, sys, tarfile, zipfile

METADATA = "Metadata-Version: 2.1\\nName: mean\\nVersion: 1.0.0\\n"

def build_sdist(into, settings=None):
    subprocess.run([sys.executable, *{attack}], check=True)
    with tarfile.open(f"{{into}}/mean-1.0.0.tar.gz", "w:gz") as archive:
        archive.add("pyproject.toml", "mean-1.0.0/pyproject.toml")
        archive.add("backend.py", "mean-1.0.0/backend.py")
        info = tarfile.TarInfo("mean-1.0.0/PKG-INFO")
        info.size = len(METADATA)
        archive.addfile(info, io.BytesIO(METADATA.encode()))
    return "mean-1.0.0.tar.gz"

def build_wheel(into, settings=None, metadata=None):
    with zipfile.ZipFile(f"{{into}}/mean-1.0.0-py3-none-any.whl", "w") as archive:
        archive.writestr("mean.py", "")
        archive.writestr("mean-1.0.0.dist-info/METADATA", METADATA)
        archive.writestr(
            "mean-1.0.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\\nGenerator: mean\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        )
        archive.writestr("mean-1.0.0.dist-info/RECORD", "")
    return "mean-1.0.0-py3-none-any.whl"
"""
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "mean"
version = "1.0.0"
"""
CARGO = """\
[package]
name = "mean"
version = "1.0.0"
edition = "2021"
license = "MIT"
description = "Means harm"
build = "build.rs"
"""
ECOSYSTEMS = ("cargo", "npm", "pypi")


@pytest.fixture
def victim() -> Path:
    """A directory with a file, where no build has to write: /tmp is everybody's."""
    directory = make_outside("victim")
    (directory / "there.txt").write_text("as it was")
    return directory


@pytest.fixture
def program(tmp_path: Path) -> Program:
    require_landlock()
    for tool in ("cargo", "npm", "uv"):
        require_tool(tool)
    home = tmp_path / "home"
    home.mkdir()
    return Program(home, toolchain(home))


@pytest.fixture
def workspace(tmp_path: Path, victim: Path) -> Path:
    """A package of each ecosystem, of which each attacks as it is built."""
    root = tmp_path / "workspace"
    attack = root / "attack.py"

    def command(name: str) -> list[str]:
        return [str(attack), name, str(victim), str(root / f"{name}.told")]

    for name in ECOSYSTEMS:
        (root / name).mkdir(parents=True)
    attack.write_text(ATTACK)
    (root / "releasekit.toml").write_text(
        '[pypi]\npackages = ["pypi"]\n[npm]\npackages = ["npm"]\n[cargo]\nworkspaces = ["cargo"]\n'
    )
    (root / "pypi" / "pyproject.toml").write_text(PYPROJECT)
    (root / "pypi" / "backend.py").write_text(BACKEND.format(attack=command("pypi")))
    prepack = f"python3 {' '.join(command('npm'))}"
    write_json(
        root / "npm" / "package.json",
        {"name": "mean", "version": "1.0.0", "license": "MIT", "scripts": {"prepack": prepack}},
    )
    (root / "cargo" / "src").mkdir()
    (root / "cargo" / "src" / "lib.rs").write_text("")
    (root / "cargo" / "Cargo.toml").write_text(CARGO)
    arguments = ", ".join(json.dumps(each) for each in command("cargo"))
    (root / "cargo" / "build.rs").write_text(
        'fn main() {\n    let done = std::process::Command::new("python3")'
        f".args([{arguments}]).status();\n    assert!(done.unwrap().success());\n}}\n"
    )
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def publish(program: Program, workspace: Path, *more: str) -> Run:
    registry = f"dir:{workspace.parent / 'registry'}"
    return program.run("publish", workspace, "--registry", registry, *more)


def told(workspace: Path, name: str) -> dict[str, int]:
    found: dict[str, int] = json.loads((workspace / f"{name}.told").read_text())
    return found


def test_a_build_in_the_sandbox_gains_nothing_and_is_published(
    program: Program, workspace: Path, victim: Path
) -> None:
    """R50, R52"""
    run = publish(program, workspace, "--build-sandbox", "auto")
    assert run.code == 0, run.out + run.err
    assert [row["outcome"] for row in run.results["packages"]] == ["published"] * 3
    abi = require_landlock()
    # A home in /tmp has more to say.
    assert run.results["builds"].startswith(f"sandboxed (Landlock {abi})")
    assert f"builds: sandboxed (Landlock {abi})" in run.out
    for name in ECOSYSTEMS:
        came_through = {what for what, number in told(workspace, name).items() if number == 0}
        assert came_through <= ({"signal"} if abi < 6 else set()), name
    assert [path.name for path in victim.iterdir()] == ["there.txt"]
    assert (victim / "there.txt").read_text() == "as it was"


def test_without_it_a_build_does_as_it_likes(
    program: Program, workspace: Path, victim: Path
) -> None:
    """The attacks work, or the test above would show nothing."""
    run = publish(program, workspace, "--build-sandbox", "off")
    assert run.code == 0, run.out + run.err
    assert run.results["builds"] == "not sandboxed: build-sandbox is off"
    for name in ECOSYSTEMS:
        attempts = told(workspace, name)
        assert [attempts[what] for what in ("write", "change", "empty", "signal")] == [0] * 4
        assert (victim / name).exists()


def test_a_build_that_has_to_write_elsewhere_is_told_how(
    program: Program, workspace: Path, victim: Path
) -> None:
    """R50: it fails with a hint at the input, and succeeds once the input names the place."""
    path = workspace / "npm" / "package.json"
    declared = json.loads(path.read_text()) | {"scripts": {"prepack": f"touch {victim}/needed"}}
    write_json(path, declared)
    only = ("--ecosystem", "npm")
    failed = publish(program, workspace, *only)
    assert failed.code == 1, failed.out + failed.err
    assert "`build-sandbox-paths`" in failed.row("mean")["hint"]
    assert "`build-sandbox: off`" in failed.row("mean")["hint"]
    assert publish(program, workspace, *only, "--build-sandbox-paths", str(victim)).code == 0
    assert (victim / "needed").exists()


def test_the_journal_outside_of_the_workspace_is_out_of_reach(
    program: Program, workspace: Path
) -> None:
    """R50, R52: a build works below the state directory, and forges nothing there."""
    state = make_outside("home") / "state"
    path = workspace / "npm" / "package.json"
    script = f"for it in {state}/journal.jsonl {state}/forged; do echo x >>$it; done; exit 0"
    declared = json.loads(path.read_text()) | {"scripts": {"prepack": script}}
    write_json(path, declared)
    run = publish(program, workspace, "--ecosystem", "npm", "--state-directory", str(state))
    assert run.code == 0, run.out + run.err
    assert not (state / "forged").exists()
    lines = (state / "journal.jsonl").read_text().splitlines()
    assert lines
    assert "x" not in lines
