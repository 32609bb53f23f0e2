"""`make demo` as somebody who has just cloned the repository sees it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration import reactor
from integration.maven_server import local_repository
from integration.servers import static_server
from integration.tools import require_tool
from workspaces import PROJECT, Program, git

OTHERS = ("cargo", "npm", "go", "maven")
# With all that begins like them: git-shell, npm-cli, mvnDebug.
TOOLS = ("cargo", "rustc", "npm", "node", "go", "git", "mvn", "java", "python", "pip", "uv")


@dataclass(frozen=True)
class Demo:
    """A clone, and what it publishes into."""

    clone: Path
    environment: dict[str, str]

    @property
    def registry(self) -> Path:
        return self.clone / "build" / "demo-registry"

    def run(self) -> str:
        done = subprocess.run(
            ["make", "demo"],
            cwd=self.clone,
            env=self.environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def files(self) -> dict[Path, int]:
        """What is in the registry, and when it came."""
        return {
            path: path.stat().st_mtime_ns for path in self.registry.rglob("*") if path.is_file()
        }


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    require_tool("make")
    clone = tmp_path / "a clone"
    git(tmp_path, "clone", "--quiet", str(PROJECT), str(clone))
    (tmp_path / "home").mkdir()
    return Demo(clone, Program(tmp_path / "home").full_environment)


def bare(directory: Path) -> Path:
    """A PATH with Python, and without the tools of any ecosystem."""
    places = [Path(place) for place in os.environ["PATH"].split(os.pathsep)]
    found = [path for place in places if place.is_dir() for path in place.iterdir()]
    programs = {path.name: path for path in reversed(found) if not path.name.startswith(TOOLS)}
    directory.mkdir()
    for name, path in {**programs, "python3": Path(sys.executable).resolve()}.items():
        (directory / name).symlink_to(path)
    return directory


def test_the_tests_say_first_what_they_do_without(tmp_path: Path) -> None:
    """Who starts them on a bare machine hears how long it takes, what is fetched, what is left out.

    In CI it is no matter of leaving out: there they fail.
    """
    path = str(bare(tmp_path / "bin"))
    for in_ci, words in (("", "skips the tests that need"), ("true", "tests fail for want of")):
        done = subprocess.run(
            [require_tool("make"), "--no-print-directory", "expect"],
            cwd=PROJECT,
            env={"PATH": path, "CI": in_ci},
            check=True,
            capture_output=True,
            text=True,
        )
        time, fetched, lacking = done.stdout.splitlines()
        assert "minutes" in time
        assert "MB" in fetched
        assert words in lacking
        assert {"npm", "cargo", "go", "mvn"} <= set(lacking.split())


def test_the_demo_publishes_what_pip_installs(demo: Demo, tmp_path: Path) -> None:
    """R19, R25"""
    out = demo.run()
    simple = demo.registry / "pypi" / "simple"
    names = sorted(path.name for path in simple.iterdir() if path.is_dir())
    assert len(names) >= 4
    assert all(f"pypi:{name}" in out for name in names)
    for ecosystem in OTHERS:
        assert (demo.registry / ecosystem).is_dir() != (f"without {ecosystem}" in out)
    before = demo.files()
    assert "already published" in demo.run()
    assert demo.files() == before
    assert git(demo.clone, "status", "--porcelain") == ""

    with static_server(demo.registry) as url:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
        where = ["--target", str(tmp_path / "into"), "--index-url", f"{url}/pypi/simple/"]
        subprocess.run([*install, *where, *names], check=True, timeout=300)

    # Each line that it ends with, copied as it is; and all of it lands below build/.
    _, serve, *lines = re.split(r"^ {4}(?=\S)", out[out.index("Now install") :], flags=re.MULTILINE)
    published = [each for each in ("pypi", *OTHERS) if f"without {each}" not in out]
    assert len(lines) == len(published)
    environment = {**demo.environment, "GOFLAGS": "-modcacherw"}
    if "maven" in published:
        environment["MAVEN_OPTS"] = "-Duser.home=" + fetch_plugin(Path(demo.environment["HOME"]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = "".join(["set -ex\ntrap 'kill %1' EXIT\n", serve, *lines]).replace("8000", port)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=demo.clone,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    there = {path.name for path in (demo.clone / "build" / "try").iterdir()}
    assert there == {*published} - {"maven"}
    assert {path.name for path in tmp_path.iterdir()} == {"a clone", "home", "into"}
    assert git(demo.clone, "status", "--porcelain") == ""


def fetch_plugin(home: Path) -> str:
    """The home from which Maven finds it where other tests have it."""
    if not (local_repository() / "org/apache/maven/plugins/maven-dependency-plugin/3.8.1").exists():
        reactor.mvn(home, "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:help")
    (home / ".m2").mkdir()
    (home / ".m2" / "settings.xml").write_text(
        "<settings><mirrors><mirror><id>tests</id><mirrorOf>central</mirrorOf>"
        f"<url>{local_repository().as_uri()}</url></mirror></mirrors></settings>"
    )
    return str(home)


def test_the_demo_takes_no_more_than_python_and_make(demo: Demo, tmp_path: Path) -> None:
    """It says which ecosystems are left out, and who has to stay behind with them."""
    little = Demo(demo.clone, {**demo.environment, "PATH": str(bare(tmp_path / "bin"))})
    out = little.run()
    assert all(f"without {ecosystem}" in out for ecosystem in OTHERS)
    assert "without cargo and pypi:acme-measure: it takes cargo 1.90 or later" in out
    assert sorted(path.name for path in demo.registry.iterdir()) == ["pypi"]
    assert demo.files()
    assert git(demo.clone, "status", "--porcelain") == ""
