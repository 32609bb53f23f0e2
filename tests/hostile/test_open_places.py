"""The rule for places that builds may write: once the first build has begun, nothing outside of the
sandbox opens, changes or executes anything in them but beneath a descriptor and without following a
link, and nothing is loaded. Shown by the system calls of whole releases.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pypi_attestations
import pytest

import releasekit
from harness.github import REPOSITORY, serving_github
from harness.http_server import HangUp
from harness.npm.documents import pack
from hostile.traced import STRACE, fold, judge, read_calls
from integration import reactor
from integration.test_cargo_publish import toolchain
from integration.tools import require_closed, require_landlock, require_tool
from outside import make_outside
from processes import PATIENCE_S, wait_until
from provenance import world
from workspaces import Program, git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.github import GitHubDouble
    from hostile.traced import Deed, Findings
    from integration.portal import PortalServer

SOURCE: Final = Path(releasekit.__file__).parents[1]
CODE: Final = (
    str(SOURCE),
    sys.prefix,
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib")},
)
TOOLS: Final = ("strace", "uv", "npm", "cargo", "go", "mvn", "gpg")

# What may break the rule, as the message of the test names it, and why that harms nobody.
ALLOWED: Final[Mapping[str, str]] = {}
# The same, of what does so only where a busy machine is late with it.
RACED: Final[Mapping[str, str]] = {
    "ReleaseKit: openat {workspace}/python: goes by path": (
        "While members are searched, cargo may read its own workspace already. Behind a link that "
        "was put there, what is found leads out of the root, and is refused: test_pypi_roots.py."
    ),
}

# A workspace at a version, which stands here as VERSION. acme-cli is built with the wheel of
# acme-core, and with more once its backend is asked; the lock file of cargo is behind, so that
# cargo writes to it; and @acme/format was packed elsewhere.
FILES: Final = {
    ".gitignore": "target/\n.releasekit/\ndist/\n",
    "releasekit.toml": """\
dist = "dist"
[cargo]
workspaces = ["cargo"]
[go]
version = "vVERSION"
proxy = false
[maven]
reactors = ["maven"]
api = "portal"
repository = "PORTAL"
sign = true
[announce]
assets = ["checksums", "files", "provenance", "report"]
[dependencies]
"npm:@acme/tokens" = ["pypi:acme-cli"]
""",
    "pyproject.toml": "[tool.uv.workspace]\nmembers = ['python/*']\n",
    "python/acme-core/pyproject.toml": """\
[project]
name = "acme-core"
version = "VERSION"
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
""",
    "python/acme-core/acme_core/__init__.py": "",
    "python/acme-cli/pyproject.toml": """\
[project]
name = "acme-cli"
version = "VERSION"
dependencies = ["acme-core"]
[build-system]
requires = ["hatchling", "acme-core"]
build-backend = "backend"
backend-path = ["."]
[tool.uv.sources]
acme-core = { workspace = true }
""",
    "python/acme-cli/backend.py": """\
from hatchling.build import *

def get_requires_for_build_sdist(settings=None):
    return ["packaging"]

get_requires_for_build_wheel = get_requires_for_build_sdist
""",
    "python/acme-cli/acme_cli/__init__.py": "",
    "python/acme-cli/CHANGELOG.md": "# Changes\n\n## VERSION\n\n- More.\n",
    "package.json": '{"private": true, "workspaces": ["node/*"]}',
    "node/tokens/package.json": """\
{
  "name": "@acme/tokens",
  "version": "VERSION",
  "license": "MIT",
  "scripts": {"prepack": "node -e 0"},
  "repository": {"type": "git", "url": "git+https://github.com/acme/mono.git"},
  "publishConfig": {"access": "public"}
}
""",
    "node/format/package.json": """\
{
  "name": "@acme/format",
  "version": "VERSION",
  "license": "MIT",
  "repository": {"type": "git", "url": "git+https://github.com/acme/mono.git"},
  "publishConfig": {"access": "public"}
}
""",
    "cargo/Cargo.toml": """\
[package]
name = "acme-units"
version = "VERSION"
edition = "2021"
license = "MIT"
description = "Units"
""",
    "cargo/Cargo.lock": 'version = 3\n\n[[package]]\nname = "acme-units"\nversion = "0.9.0"\n',
    "cargo/src/lib.rs": "",
    "go/core/go.mod": "module example.com/acme/mono/go/core\n\ngo 1.22\n",
    "go/core/core.go": "package core\n",
    "maven/pom.xml": """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example.acme</groupId>
  <artifactId>acme-codec</artifactId>
  <version>VERSION</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
</project>
""",
    "maven/src/main/java/Codec.java": "class Codec {}\n",
}
PACKED: Final = "node/format/package.json"
PACKAGES: Final = 7


@dataclass
class Place:
    """A job at GitHub with a workspace of five ecosystems. All of it lies outside of /tmp, which is
    open to builds.
    """

    directory: Path
    flags: list[str]
    environment: dict[str, str]
    forge: GitHubDouble
    job: world.World
    portal: PortalServer
    violations: Counter[str] = field(default_factory=Counter)
    looks: Counter[Deed] = field(default_factory=Counter)

    @property
    def workspace(self) -> Path:
        return self.directory / "workspace"

    def write(self, version: str) -> None:
        """And commit it, and push the commit."""
        root = self.workspace
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                text.replace("VERSION", version).replace("PORTAL", self.portal.repository)
            )
        shutil.rmtree(root / "dist", ignore_errors=True)
        packed = root / "dist" / f"acme-format-{version}.tgz"
        packed.parent.mkdir()
        packed.write_bytes(pack(json.loads((root / PACKED).read_text())))
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", f"Prepare {version}")
        git(root, "push", "--quiet", "origin", "HEAD:main")

    def start(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-I", "-u", "-X", "utf8", str(SOURCE / "__main__.py"), "publish"]
        argv += [str(self.workspace), *self.flags, *more]
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*STRACE, "-o", str(self._trace(name)), *argv],
                cwd=self.directory,
                env=Program(self.directory / "home", self.environment).full_environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def finish(self, name: str, process: subprocess.Popen[bytes], status: int) -> Findings:
        """Wait for it and all that it has started, and take note of what went against the rule."""
        said = process.wait(timeout=PATIENCE_S)
        assert said == status, (self.directory / f"{name}.log").read_text()
        with self._trace(name).open(errors="replace") as lines:
            calls = read_calls(lines)
        findings = judge(calls, CODE, str(self.directory))
        for deed, count in fold(findings.violations, self._names).items():
            self.violations[str(deed)] += count
        self.looks += fold(findings.looks, self._names)
        return findings

    def _trace(self, name: str) -> Path:
        return self.directory / f"{name}.strace"

    @property
    def _names(self) -> dict[str, str]:
        names = {
            self.workspace: "{workspace}",
            self.directory / "tmp": "{tmp}",
            self.directory / "home": "{home}",
            self.directory: "{place}",
            SOURCE: "{source}",
            Path(sys.prefix): "{prefix}",
            Path(sysconfig.get_path("stdlib")): "{stdlib}",
        }
        return {str(path): name for path, name in names.items()}


@pytest.fixture
def place(portal_server: PortalServer) -> Iterator[Place]:
    require_landlock()
    require_closed()
    for tool in TOOLS:
        require_tool(tool)
    directory = make_outside("open")
    try:
        for name in ("home", "tmp", "gnupg", "workspace"):
            (directory / name).mkdir(mode=0o700)
        with world.serving_all(directory / "doubles") as job, serving_github(directory) as forge:
            yield _place(directory, job, forge, portal_server)
    finally:
        subprocess.run(["gpgconf", "--homedir", directory / "gnupg", "--kill", "all"], check=True)
        shutil.rmtree(directory, ignore_errors=True)  # the agent removes its sockets meanwhile


def _place(directory: Path, job: world.World, forge: GitHubDouble, portal: PortalServer) -> Place:
    home, gnupg = directory / "home", directory / "gnupg"
    # The agent that this starts serves all runs, so that none of them waits for one of its own.
    gpg: list[str | Path] = ["gpg", "--homedir", gnupg, "--batch", "--passphrase", ""]
    make = ["--quick-generate-key", "Releaser <releaser@example.invalid>"]
    subprocess.run([*gpg, *make], check=True, capture_output=True)
    job.sigstore.become(REPOSITORY)
    job.index.publisher = pypi_attestations.GitHubPublisher(
        repository=REPOSITORY, workflow="release.yml"
    )
    flags = [f"--{name}={value}" for name, value in job.inputs.items()]
    flags += [f"--pypi-index={job.pypi}/simple/", f"--cargo-registry=dir:{directory}/crates"]
    flags += [f"--maven-registry={portal.url}", "--retry-base-delay=0s", "--tag", "--announce"]
    flags += ["--build-sandbox=required", f"--results-file={home / 'results.json'}"]
    environment = {
        **job.environment,
        **portal.environment,
        **toolchain(home),
        **reactor.environment(),
        "GITHUB_API_URL": forge.api,
        "RELEASEKIT_FORGE_TOKEN": forge.environment["RELEASEKIT_FORGE_TOKEN"],
        "GNUPGHOME": str(gnupg),
        **{name: str(home / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")},
        "TMPDIR": str(directory / "tmp"),
        "PATH": f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}",
    }
    made = Place(directory, flags, environment, forge, job, portal)
    git(made.workspace, "init", "--quiet", "--initial-branch", "main")
    git(made.workspace, "remote", "add", "origin", forge.url)
    made.write("1.0.0")
    return made


def test_nothing_follows_or_loads_what_builds_may_have_changed(place: Place) -> None:
    outside = f"--state-directory={place.directory / 'state'}"
    findings = [place.finish("dry", place.start("dry", "--dry-run", outside), 0)]
    assert place.forge.releases == []

    findings += [place.finish("whole", place.start("whole"), 0)]
    assert len(place.forge.releases) == PACKAGES

    place.write("1.1.0")
    started: list[subprocess.Popen[bytes]] = []

    def kill_at_the_second_package(moment: str, what: str) -> None:
        if started and moment == "after" and what.startswith("upload acme_cli"):
            # While it runs, cargo changes a lock file that is behind.
            wait_until(lambda: any((place.directory / "crates").rglob("*1.1.0*")))
            strace = started.pop().pid
            (pid,) = Path(f"/proc/{strace}/task/{strace}/children").read_text().split()
            os.kill(int(pid), signal.SIGKILL)
            raise HangUp

    place.job.around = kill_at_the_second_package
    killed = place.start("killed")
    started.append(killed)
    findings += [place.finish("killed", killed, -signal.SIGKILL)]
    findings += [place.finish("resumed", place.start("resumed"), 0)]
    assert len(place.forge.releases) == 2 * PACKAGES
    results = json.loads((place.directory / "home" / "results.json").read_text())
    assert {row["outcome"] for row in results["packages"]} == {"published", "already-published"}

    for each in findings:
        assert each.first_build
        assert str(place.workspace) in each.places
        assert each.kept
    argued = ALLOWED.keys() | RACED.keys()
    unargued = {words: count for words, count in place.violations.items() if words not in argued}
    told = "\n".join(f"{count} x {words}" for words, count in sorted(unargued.items()))
    looked_at = "\n".join(sorted({f"{deed.call} {deed.path}" for deed in place.looks}))
    assert not unargued, (
        f"{len(unargued)} ways into open places:\n{told}\nand looks, which are none:\n{looked_at}"
    )
    assert ALLOWED.keys() <= place.violations.keys(), "nothing does what is allowed"
