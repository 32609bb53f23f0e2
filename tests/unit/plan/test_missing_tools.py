"""R47: a tool that is missing, or too old, stops a run before anything is built, in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, artifact, package, plan, target
from releasekit.ecosystems.maven import Options
from releasekit.ecosystems.maven.mvn import missing_tool as missing_for_maven
from releasekit.ecosystems.npm.packing import find_missing_tool as missing_for_npm
from releasekit.errors import ConfigError
from releasekit.host.process import Processes
from releasekit.host.sandbox import Sandbox
from releasekit.model import Action
from releasekit.plan.make import find_missing_tools

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Package

CORE = package("core")


def machine(root: Path, **programs: str) -> Processes:
    """One with these programs; the text of each is where it really lies below `root`."""
    (root / "bin").mkdir(exist_ok=True)
    for name, place in programs.items():
        real = root / place
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text("")
        real.chmod(0o755)
        (root / "bin" / name).symlink_to(real)
    return Processes(environment={"PATH": str(root / "bin")})


@pytest.mark.parametrize(
    ("programs", "version", "said"),
    [
        ({}, "", "npm: node is not on PATH"),
        ({"node": "n/node"}, "", "npm: npm is not on PATH"),
        ({"node": "n/node", "npm": "lib/npm/bin/npm-cli.js"}, "8.19.4", "is 8.19.4, too old"),
        ({"node": "n/node", "npm": "lib/npm/bin/npm-cli.js"}, "9.0.0", ""),
        ({"node": "n/node", "npm": "lib/npm/bin/npm-cli.js"}, "11.0.0-pre.1", ""),
        ({"node": "n/node", "npm": "shims/a/npm"}, "", ""),
    ],
)
def test_of_npm(tmp_path: Path, programs: dict[str, str], version: str, said: str) -> None:
    processes = machine(tmp_path, **programs)
    if version:
        manifest = {"name": "npm", "version": version}
        (tmp_path / "lib/npm/package.json").write_text(json.dumps(manifest))
    error = missing_for_npm([CORE], processes)
    assert said in str(error or "")
    assert (error is None) is (not said)
    assert error is None or "npm 9 or later" in error.hint
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.tgz", b"1"),))
    assert missing_for_npm([brought], processes) is None


@pytest.mark.parametrize(
    ("programs", "jar", "sign", "said"),
    [
        ({}, "", False, "maven: mvn is not on PATH"),
        ({"mvn": "m/bin/mvn"}, "maven-core-3.6.1.jar", False, "the mvn on PATH is 3.6.1, too old"),
        ({"mvn": "m/bin/mvn"}, "maven-core-3.9.9.jar", False, "maven: java is not on PATH"),
        ({"mvn": "m/bin/mvn", "java": "j/java"}, "maven-core-4.0.0-rc-3.jar", False, ""),
        ({"mvn": "m/bin/mvn", "java": "j/java"}, "maven-core-x.jar", False, ""),
        ({"mvn": "shims/bin/mvn", "java": "j/java"}, "", True, "gpg is not on PATH"),
    ],
)
def test_of_maven(
    tmp_path: Path, programs: dict[str, str], jar: str, sign: bool, said: str
) -> None:
    processes = machine(tmp_path, **programs)
    if jar:
        (tmp_path / "m/lib").mkdir(parents=True)
        (tmp_path / "m/lib" / jar).write_text("")
    environment = {"HOME": str(tmp_path)}
    error = missing_for_maven([CORE], Options(sign=sign), processes, environment)
    assert said in str(error or "")
    assert (error is None) is (not said)
    assert error is None or error.hint
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.jar", b"1"),))
    assert missing_for_maven([brought], Options(), processes, environment) is None


def test_a_gpg_that_a_build_could_change_is_refused(tmp_path: Path) -> None:
    """R50: it runs outside of the sandbox, and so do the programs that its settings name."""
    machine(tmp_path, mvn="m/bin/mvn", java="j/java", gpg="g/gpg")
    (tmp_path / "open").mkdir()
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.jar", b"1"),))
    home = tmp_path / "home" / ".gnupg"
    home.mkdir(parents=True)

    def refusal(*places: str, package: Package = CORE, **given: str) -> str:
        environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home"), **given}
        within = Sandbox(words="", abi=7, places=tuple(f"{tmp_path}/{each}" for each in places))
        processes = Processes(environment=environment, sandbox=within)
        error = missing_for_maven([package], Options(sign=True), processes, environment)
        assert error is None or "\n" not in f"{error}{error.hint}"
        return str(error or "")

    assert refusal("open") == ""
    assert refusal("open", GNUPGHOME=f"{tmp_path}/other") == ""
    program = f"maven: gpg is {tmp_path}/bin/gpg, where builds can write"
    assert refusal("g") == refusal("bin") == refusal("g", package=brought) == program
    assert refusal("home") == f"maven: gpg reads {home}, where builds can write"
    assert "write an absolute path" in refusal("open", GNUPGHOME="~/ring")
    named = f"maven: gpg reads {tmp_path}/open, where builds can write"
    assert refusal("open", GNUPGHOME=f"{tmp_path}/open") == named
    (home / "gpg.conf").symlink_to(tmp_path / "open" / "gpg.conf")
    assert refusal("open") == f"maven: gpg reads {home}/gpg.conf, where builds can write"


def test_a_wrapper_and_a_jdk_that_mvn_is_told_are_enough(tmp_path: Path) -> None:
    processes = machine(tmp_path)
    wrapped = Options(command="./mvnw")
    told = {"HOME": str(tmp_path), "JAVA_HOME": "/jdk"}
    assert missing_for_maven([CORE], wrapped, processes, told) is None
    (tmp_path / ".mavenrc").write_text("JAVA_HOME=/jdk")
    assert missing_for_maven([CORE], wrapped, processes, {"HOME": str(tmp_path)}) is None


def test_only_what_is_built_takes_a_tool(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def missing(packages: Sequence[Package]) -> ConfigError | None:
        asked.append([each.id.name for each in packages])
        return ConfigError("fake: hammer is not on PATH", hint="Buy one.")

    made = plan(CORE, package("app"), actions={"app": Action.KEEP})
    fake = FakeTarget(FakeWorkspace((CORE,)), FakeRegistry(), missing_tool=missing)
    error = find_missing_tools(made, {"fake": fake})
    assert (str(error), error and error.hint) == ("fake: hammer is not on PATH", "Buy one.")
    kept = plan(CORE, actions={"core": Action.KEEP})
    assert find_missing_tools(kept, {"fake": fake}) is None
    assert asked == [["core"]]
    assert find_missing_tools(made, target(FakeWorkspace((CORE,)), FakeRegistry())) is None
