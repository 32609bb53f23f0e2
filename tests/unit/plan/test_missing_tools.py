"""R47, R70: a tool that is missing, or too old, stops a run before anything is built, in one
line.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

import fakes
from fakes import FakeRegistry, FakeTarget, FakeWorkspace, artifact, package, plan, target
from releasekit.config.declaration import Tool, read_version
from releasekit.ecosystems.go.verify import find_go
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.mvn import find_mvn
from releasekit.ecosystems.npm.packing import find_npm
from releasekit.ecosystems.pypi import PyPIOptions
from releasekit.ecosystems.pypi.target import PyPI
from releasekit.errors import ConfigError, PlanError, ReleasekitError
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.host.sandbox import UNCONFINED, Sandbox
from releasekit.model import Action
from releasekit.plan.make import find_missing_tools
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Package

CORE = package("core")


def machine(root: Path, **programs: str) -> dict[str, str]:
    """The environment of one with these programs; the text of each is where it really lies below
    `root`, and after a colon what it says.
    """
    (root / "bin").mkdir(exist_ok=True)
    for name, told in programs.items():
        place, _, says = told.partition(":")
        real = root / place
        real.parent.mkdir(parents=True, exist_ok=True)
        said = f'echo "$@" >>{root}/asked; echo "{says}"' if says else "exit 1"
        real.write_text(f"#!/bin/sh\n{said}\n")
        real.chmod(0o755)
        (root / "bin" / name).symlink_to(real)
    return {"PATH": str(root / "bin")}


def judge(
    find: Callable[[Processes], Awaitable[str]],
    environment: Mapping[str, str],
    sandbox: Sandbox = UNCONFINED,
) -> str | ReleasekitError:
    """What it finds, or the error that it raises."""

    async def main() -> str | ReleasekitError:
        async with Processes(
            environment=environment, variables=fakes.TOOL_VARIABLES, sandbox=sandbox
        ) as processes:
            try:
                return await find(processes)
            except (ConfigError, PlanError) as error:
                return error

    found = asyncio.run(main())
    assert isinstance(found, str) or "\n" not in f"{found}{found.hint}"
    return found


@pytest.mark.parametrize(
    ("said", "version", "is_enough"),
    [
        ("cargo 1.85.1 (d73d2caf9 2024-12-31)", "1.85.1", False),
        ("cargo 1.90.0-nightly (840b83a10 2025-07-30)", "1.90.0", True),
        ("go version go1.100rc1 linux/amd64", "1.100", True),
        ("\x1b[1mApache Maven 3.9.9\x1b[m\nJava version: 21.0.9", "3.9.9", True),
        ("1.90", "1.90", True),
        ("1", "", False),
    ],
)
def test_versions_are_read_as_tools_say_them(said: str, version: str, is_enough: bool) -> None:
    assert read_version(said) == version
    tool = Tool(program="x", version="1.90", install="Buy one.")
    assert not version or tool.admits(version) is is_enough


NPM = {"node": "n/node", "npm": "lib/npm/bin/npm-cli.js"}


@pytest.mark.parametrize(
    ("programs", "version", "said"),
    [
        ({}, "", "npm: node is not on PATH"),
        ({"node": "n/node"}, "", "npm: npm is not on PATH"),
        (NPM, "8.19.4", "npm: npm is 8.19.4, too old to build with: 9 or later is needed"),
        (NPM, "9.0.0", "npm 9.0.0"),
        (NPM, "11.0.0-pre.1", "npm 11.0.0"),
        ({"node": "n/node", "npm": "shims/a/npm:10.9.2"}, "", "npm 10.9.2"),
        ({"node": "n/node", "npm": "shims/a/npm:8.0.0"}, "", "npm is 8.0.0, too old"),
        ({"node": "n/node", "npm": "shims/a/npm:hello"}, "", "`npm --version` prints no version"),
        ({"node": "n/node", "npm": "shims/a/npm"}, "", "`npm --version` fails: "),
    ],
)
def test_of_npm(tmp_path: Path, programs: dict[str, str], version: str, said: str) -> None:
    environment = machine(tmp_path, **programs)
    if version:
        manifest = {"name": "npm", "version": version}
        (tmp_path / "lib/npm/package.json").write_text(json.dumps(manifest))
    found = judge(lambda processes: find_npm([CORE], processes, tmp_path), environment)
    assert said in str(found)
    assert isinstance(found, str) or "npm 9 or later" in found.hint
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.tgz", b"1"),))
    assert judge(lambda processes: find_npm([brought], processes, tmp_path), environment) == ""


GO = {"go": "go/bin/go:go version go1.22.3 linux/amd64"}


@pytest.mark.parametrize(
    ("programs", "version", "said", "is_asked"),
    [
        ({}, "", "go: go is not on PATH", False),
        (GO, "", "go 1.22.3", True),
        (GO, "1.23.0", "go 1.22.3", True),
        (GO, "go1.26.8\ntime 2026-08-28T16:20:06Z\n", "go 1.26.8", False),
        (GO, "go1.19.8", "go: go is 1.19.8, too old to build with: 1.21 or later is needed", False),
        (GO, "go tip", "go 1.22.3", True),
    ],
)
def test_of_go(
    tmp_path: Path, programs: dict[str, str], version: str, said: str, is_asked: bool
) -> None:
    """What its installation says of itself is enough."""
    environment = machine(tmp_path, **programs)
    if version:
        (tmp_path / "go/VERSION").write_text(version)
    assert said in str(judge(lambda processes: find_go(processes, tmp_path), environment))
    assert (tmp_path / "asked").exists() is is_asked


MVN = {"mvn": "m/bin/mvn", "java": "j/java"}


@pytest.mark.parametrize(
    ("programs", "jar", "sign", "said"),
    [
        ({}, "", False, "maven: mvn is not on PATH"),
        (MVN, "maven-core-3.6.1.jar", False, "maven: mvn is 3.6.1, too old to build with: 3.6.3"),
        ({"mvn": "m/bin/mvn"}, "maven-core-3.9.9.jar", False, "maven: java is not on PATH"),
        (MVN, "maven-core-4.0.0-rc-3.jar", False, "mvn 4.0.0"),
        (MVN, "maven-core-x.jar", False, "`mvn --version` fails"),
        ({"mvn": "shims/bin/mvn:Apache Maven 3.8.7", "java": "j/java"}, "", False, "mvn 3.8.7"),
        ({"mvn": "shims/bin/mvn:3.5.0", "java": "j/java"}, "", False, "mvn is 3.5.0, too old"),
        ({"mvn": "shims/bin/mvn:3.9.9", "java": "j/java"}, "", True, "gpg is not on PATH"),
    ],
)
def test_of_maven(
    tmp_path: Path, programs: dict[str, str], jar: str, sign: bool, said: str
) -> None:
    environment = {**machine(tmp_path, **programs), "HOME": str(tmp_path)}
    if jar:
        (tmp_path / "m/lib").mkdir(parents=True)
        (tmp_path / "m/lib" / jar).write_text("")

    def find(package: Package, options: MavenOptions) -> str | ReleasekitError:
        return judge(
            lambda it: find_mvn([package], options, it, environment, tmp_path), environment
        )

    assert said in str(find(CORE, MavenOptions(sign=sign)))
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.jar", b"1"),))
    assert find(brought, MavenOptions()) == ""


def test_a_gpg_that_a_build_could_change_is_refused(tmp_path: Path) -> None:
    """R50: it runs outside of the sandbox, and so do the programs that its settings name."""
    machine(tmp_path, mvn="m/bin/mvn", java="j/java", gpg="g/gpg")
    (tmp_path / "m/lib").mkdir()
    (tmp_path / "m/lib/maven-core-3.9.9.jar").write_text("")
    (tmp_path / "open").mkdir()
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.jar", b"1"),))
    home = tmp_path / "home" / ".gnupg"
    home.mkdir(parents=True)

    def refusal(*places: str, package: Package = CORE, **given: str) -> str:
        environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home"), **given}
        within = Sandbox(words="", abi=7, places=tuple(f"{tmp_path}/{each}" for each in places))
        options = MavenOptions(sign=True)
        found = judge(
            lambda it: find_mvn([package], options, it, environment, tmp_path), environment, within
        )
        return "" if isinstance(found, str) else str(found)

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
    """The wrapper belongs to the workspace and may fetch a Maven, so it is asked nothing."""
    environment = machine(tmp_path)
    wrapped = MavenOptions(command="./mvnw")

    def find(told: Mapping[str, str]) -> str | ReleasekitError:
        return judge(lambda it: find_mvn([CORE], wrapped, it, told, tmp_path), environment)

    assert find({"HOME": str(tmp_path), "JAVA_HOME": "/jdk"}) == "./mvnw"
    (tmp_path / ".mavenrc").write_text("JAVA_HOME=/jdk")
    assert find({"HOME": str(tmp_path)}) == "./mvnw"


def test_uv_is_asked_once_where_it_makes_environments(tmp_path: Path) -> None:
    """Without one, pip makes them."""

    def find(processes: Processes) -> Awaitable[str]:
        config = fakes.config(tmp_path)
        ecosystem = PyPI(config, PyPIOptions(), fakes.services(config, processes))

        async def ask() -> str:
            assert await ecosystem.find_tool() == await ecosystem.find_tool()
            return await ecosystem.find_tool()

        return ask()

    assert str(judge(find, machine(tmp_path))).startswith("Python 3.")
    assert str(judge(find, machine(tmp_path, uv="uv:uv 0.5.5"))).startswith("Python 3.")
    assert (tmp_path / "asked").read_text() == "--version\n"
    (tmp_path / "uv").write_text("#!/bin/sh\necho uv 0.4.30\n")
    found = judge(find, {"PATH": str(tmp_path / "bin")})
    said = f"pypi: {tmp_path}/bin/uv is 0.4.30, too old to build with: 0.5.5 or later is needed"
    assert str(found) == said
    assert isinstance(found, PlanError)
    assert found.problem is Problem.TOOL_TOO_OLD
    assert "uv-path" in found.hint


def test_only_what_is_built_takes_a_tool() -> None:
    asked: list[list[str]] = []

    async def find_tool(packages: Sequence[Package]) -> str:
        asked.append([each.id.name for each in packages])
        raise ConfigError("fake: hammer is not on PATH", hint="Buy one.")

    made = plan(CORE, package("app"), actions={"app": Action.KEEP})
    fake = FakeTarget(FakeWorkspace((CORE,)), FakeRegistry(), find_tool=find_tool)
    (error,) = asyncio.run(find_missing_tools(made, {"fake": fake}))
    assert (str(error), error.hint) == ("fake: hammer is not on PATH", "Buy one.")
    kept = plan(CORE, actions={"core": Action.KEEP})
    assert asyncio.run(find_missing_tools(kept, {"fake": fake})) == []
    assert asked == [["core"]]
    there = target(FakeWorkspace((CORE,)), FakeRegistry())
    assert asyncio.run(find_missing_tools(made, there)) == []
