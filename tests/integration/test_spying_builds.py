"""Builds that look for the secrets of the release, and tell the runner what to do next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from effort import SEARCHING
from integration import spying
from integration.reactor import page
from integration.spying import COMMANDS
from integration.test_cargo_publish import cargo_workspace
from integration.tools import require_access_for_others, require_tool
from workspaces import git, npm_workspace, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from integration.spying import Step

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")

BACKEND = """\
import io, subprocess, sys, tarfile, zipfile
from pathlib import Path

METADATA = b"Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0.0\\n"

def build_sdist(directory, config_settings=None):
    subprocess.run(["python3", {spy!r}, "backend"], check=True)
    with tarfile.open(Path(directory, "demo-1.0.0.tar.gz"), "w:gz") as archive:
        for name in ("pyproject.toml", "backend.py"):
            archive.add(name, "demo-1.0.0/" + name)
        info = tarfile.TarInfo("demo-1.0.0/PKG-INFO")
        info.size = len(METADATA)
        archive.addfile(info, io.BytesIO(METADATA))
    return "demo-1.0.0.tar.gz"

def build_wheel(directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(directory, "demo-1.0.0-py3-none-any.whl"), "w") as archive:
        archive.writestr("demo.py", "")
        archive.writestr("demo-1.0.0.dist-info/METADATA", METADATA)
        archive.writestr("demo-1.0.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("demo-1.0.0.dist-info/RECORD", "")
    return "demo-1.0.0-py3-none-any.whl"
"""
PYPROJECT = """\
[project]
name = "demo"
version = "1.0.0"

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
POM = """\
  <groupId>com.example</groupId>
  <artifactId>demo</artifactId>
  <version>1.0.0</version>
  <packaging>pom</packaging>"""
EXTENSION = """\
import javax.inject.Named;
import javax.inject.Singleton;
import org.apache.maven.AbstractMavenLifecycleParticipant;
import org.apache.maven.execution.MavenSession;

@Named
@Singleton
public class Spy extends AbstractMavenLifecycleParticipant {
    @Override
    public void afterSessionStart(MavenSession session) {
        ProcessBuilder spy = new ProcessBuilder("python3", SPY, "extension").inheritIO();
        spy.environment().put("OF_MAVEN", session.getRequest().getSystemProperties() + " "
            + session.getRequest().getUserProperties());
        try {
            spy.start().waitFor();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }
}
"""


def python(step: Step) -> None:
    """A build backend of the repository itself."""
    step.workspace.mkdir()
    (step.workspace / "pyproject.toml").write_text(PYPROJECT)
    (step.workspace / "backend.py").write_text(BACKEND.format(spy=str(step.spy)))
    git(step.workspace, "init", "--quiet")


def javascript(step: Step) -> None:
    """npm's `prepack`."""
    npm_workspace(step.workspace, {"demo": ()})
    document = {"name": "@acme/demo", "version": "1.0.0", "files": ["index.js"]}
    scripts = {"prepack": f"python3 {step.spy} prepack"}
    write_json(step.workspace / "packages/demo/package.json", {**document, "scripts": scripts})


def rust(step: Step) -> None:
    """A build.rs, which cargo runs where it compiles what it has packaged."""
    cargo_workspace(step.workspace, {"demo": ()}, docs=False)
    spy = f'Command::new("python3").args(["{step.spy}", "build.rs"])'
    (step.workspace / "crates/demo/build.rs").write_text(
        f"use std::process::Command;\nfn main() {{ assert!({spy}.status().unwrap().success()); }}\n"
    )
    (step.workspace / "releasekit.toml").unlink()


def java(step: Step) -> None:
    """An extension of mvn itself, which can do all that a plugin can, and has what mvn was told.
    https://maven.apache.org/guides/mini/guide-using-extensions.html
    """
    page(step.workspace / "pom.xml", POM)
    extension, source = step.place / "extension", step.place / "Spy.java"
    source.write_text(EXTENSION.replace("SPY", json.dumps(str(step.spy))))
    libraries = require_tool("mvn").resolve().parents[1] / "lib/*"
    argv = [require_tool("javac"), "-proc:none", "--release=8", "-Xlint:-options"]
    argv += ["-cp", libraries, "-d", extension, source]
    subprocess.run([*map(str, argv)], check=True)
    (extension / "META-INF/sisu").mkdir(parents=True)
    (extension / "META-INF/sisu/javax.inject.Named").write_text("Spy\n")
    (step.workspace / ".mvn").mkdir()
    (step.workspace / ".mvn/maven.config").write_text(f"-Dmaven.ext.class.path={extension}\n")
    git(step.workspace, "init", "--quiet")


# What rustup and mvn have fetched is in the home of whoever runs the tests. Another user's npm is
# started as another user's Python is.
CASES = {
    f"{what}, {who}": (uid, ecosystem, make)
    for who, uid in spying.users().items()
    for what, ecosystem, make in (
        ("a PEP 517 backend", "pypi", python),
        ("npm's prepack", "npm", javascript),
        ("cargo's build.rs", "cargo", rust),
        ("an extension of mvn", "maven", java),
    )
    if uid == os.geteuid() or ecosystem == "pypi" or (ecosystem == "npm" and SEARCHING)
}


def spied(
    step: Step, ecosystem: str, make: Callable[[Step], None]
) -> tuple[int, dict[str, Any], int, str]:
    """The pid of the release, what its build has found, its exit code, and what it said."""
    make(step)
    git(step.workspace, "add", "--all")
    git(step.workspace, "commit", "--quiet", "--allow-empty", "--message", "Spy")
    pid, done = step.run(ecosystem, "--build-sandbox", "off")
    found = step.found()
    assert len(found) == 1, done.stdout + done.stderr
    return pid, next(iter(found.values())), done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("uid", "ecosystem", "make"), CASES.values(), ids=CASES)
def test_a_build_finds_no_secret_and_tells_the_runner_nothing(
    uid: int, ecosystem: str, make: Callable[[Step], None]
) -> None:
    """R50: neither in a process nor in a descriptor, its own ones and its ancestors' included; and
    what it writes for the runner is taken out, its annotation names the file, and the step fails.
    All of this without the sandbox, which many systems do not have.
    """
    require_tool({"pypi": "git", "maven": "mvn"}.get(ecosystem, ecosystem))
    if uid != os.geteuid():
        require_access_for_others()
    with spying.step(uid) as step:
        pid, found, code, said = spied(step, ecosystem, make)
        assert_nothing_found(step, found, pid)
        assert found["own"]["RUNNER_TEMP"] != str(step.temp)
        assert code == 1, said
        assert_nothing_told(step, said)


def assert_nothing_found(step: Step, found: Mapping[str, Any], pid: int) -> None:
    ours = found["ancestors"][: found["ancestors"].index(os.getpid())]
    assert pid in ours
    held = [found["of ancestors"][str(each)] for each in ours]
    told = [found["arguments"][str(each)] for each in ours]
    everywhere = (found["own"], found["environments"], found["descriptors"], held, told)
    assert step.secret not in str(everywhere)
    assert not set(COMMANDS) & set(found["own"])
    environment = found["environments"][str(pid)]
    if step.uid == 0:
        assert "RELEASEKIT_HANDED_OVER=" in environment
    else:
        assert environment == "Permission denied"
        assert found["memory"][str(pid)] == "Permission denied"


def assert_nothing_told(step: Step, said: str) -> None:
    shown = [line for line in said.splitlines() if not line.startswith("::add-mask::")]
    assert step.secret not in str(shown)
    for name, prefix in COMMANDS.items():
        for path in (step.command_file(name), step.commands / f"{prefix}_outer"):
            assert "evil" not in path.read_text()
            told = f"{path}: written during the release, not by ReleaseKit; put back"
            assert f"error: {told} [RK-115]" in shown
            assert f"::error title=ReleaseKit [RK-115]::{told}" in shown
    assert step.command_file("GITHUB_ENV").read_text() == "BEFORE=1\n"
    *_, result = step.command_file("GITHUB_OUTPUT").read_text().split("\nresult<<")
    assert result.splitlines()[1] == "failure"
    assert step.command_file("GITHUB_STEP_SUMMARY").read_text()
    assert list(step.registry.iterdir())
    left = {path.name for path in step.temp.iterdir()}
    assert left - {"releasekit"} == {"_runner_file_commands"}
