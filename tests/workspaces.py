"""Small real workspaces, written to disk, and the program run on them as a user would."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from integration.tools import require_tool
from outside import make_outside
from processes import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROJECT = Path(__file__).parents[1]
ENTRYPOINT = PROJECT / "entrypoint.sh"
# All tests share it, and the environments in it; it is outside of where builds write.
STATE = Path.home() / ".local/state/releasekit-tests/state"

# Layers, a diamond, a chain and two loners: dependencies by name.
TWELVE: Mapping[str, tuple[str, ...]] = {
    "demo-base": (),
    "demo-types": (),
    "demo-io": ("demo-base",),
    "demo-net": ("demo-base", "demo-types"),
    "demo-store": ("demo-io",),
    "demo-http": ("demo-net", "demo-io"),
    "demo-auth": ("demo-http",),
    "demo-api": ("demo-http", "demo-store"),
    "demo-cli": ("demo-api", "demo-auth"),
    "demo-docs": ("demo-cli",),
    "demo-lone": (),
    "demo-solo": (),
}


def uv_workspace(
    root: Path, packages: Mapping[str, tuple[str, ...]] = TWELVE, *, version: str = "1.0.0"
) -> Path:
    """A git repository with one uv workspace; members are built with hatchling."""
    root.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    for name, needs in packages.items():
        write_member(root / "packages" / name, name, needs, version=version)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def write_member(
    directory: Path, name: str, needs: tuple[str, ...] = (), *, version: str = "1.0.0"
) -> None:
    module = directory / "src" / name.replace("-", "_")
    module.mkdir(parents=True)
    (module / "__init__.py").write_text(f'NAME = "{name}"\n')
    sources = "".join(f"{need} = {{ workspace = true }}\n" for need in needs)
    (directory / "pyproject.toml").write_text(
        "[project]\n"
        f'name = "{name}"\n'
        f'version = "{version}"\n'
        'requires-python = ">=3.11"\n'
        f"dependencies = {json.dumps(list(needs))}  # of this workspace\n"
        "\n"
        "[build-system]\n"
        'requires = ["hatchling"]\n'
        'build-backend = "hatchling.build"\n'
        "\n"
        f"[tool.uv.sources]\n{sources}"
    )


_SECONDS = itertools.count(int(time.time()) - 24 * 3600)


def git(root: Path, *arguments: str) -> str:
    """Each commit is a second after the one before, however fast the machine is."""
    settings = ["-c", "user.name=Releaser", "-c", "user.email=releaser@example.invalid"]
    now = f"@{next(_SECONDS)} +0000"
    done = subprocess.run(
        ["git", *settings, *arguments],
        cwd=root,
        env={"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now, **os.environ},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@dataclass(frozen=True)
class Program:
    """`./entrypoint.sh` as a user runs it, in an environment of its own.

    `environment` holds what the user set, credentials for instance.
    """

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str | Path, timeout_s: float = PATIENCE_S) -> Run:
        results = self.home / "results.json"
        results.unlink(missing_ok=True)
        done = subprocess.run(
            self.argv(*arguments),
            env=self.full_environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        found = json.loads(results.read_text()) if results.exists() else {}
        return Run(done.returncode, done.stdout, done.stderr, found)

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """In a session of its own, for `kill`; what it says goes to `log`. The directories that it
        leaves go with the session of the tests.
        """
        runner = make_outside("killed")
        (runner / "releasekit").symlink_to(STATE / "releasekit")
        with self.log.open("wb") as log:
            return subprocess.Popen(
                self.argv(*arguments),
                env={"RUNNER_TEMP": str(runner), **self.full_environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_once(
        self, reached: Callable[[], bool], workspace: Path, *arguments: str | Path
    ) -> None:
        """Publish, and kill the run without warning as soon as it has come that far."""
        process = self.start("publish", workspace, *arguments)
        try:
            wait_until(reached, process, self.log.read_text)
        finally:
            kill(process, workspace)

    @property
    def log(self) -> Path:
        return self.home / "log"

    def argv(self, *arguments: str | Path) -> list[str]:
        argv = [str(ENTRYPOINT), *map(str, arguments)]
        if arguments[0] in {"publish", "report"}:
            argv += ["--results-file", str(self.home / "results.json")]
        return argv

    @property
    def full_environment(self) -> dict[str, str]:
        """PATH, a home without configuration, a cache and a state that all tests share, and Rust's
        toolchain, which rustup looks for in the home.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in {"PATH", "XDG_CACHE_HOME", "LANG", "SSL_CERT_FILE", "COVERAGE_PROCESS_START"}
            or name.startswith(("PIP_", "UV_"))
        }
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        places = {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": cache,
            "XDG_STATE_HOME": str(STATE),
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup"),
            # With pip, making an environment for builds takes ten times as long.
            "RELEASEKIT_UV_PATH": str(require_tool("uv")),
        }
        return {**kept, **places, **self.environment}


def kill(process: subprocess.Popen[bytes], workspace: Path) -> None:
    """Kill a run and its process group without warning, and wait until no lock is held."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_for_orphans(workspace)


def wait_for_orphans(workspace: Path) -> None:
    """What a killed run had started is in groups of its own, and holds the locks till its end."""
    for path in (workspace / ".releasekit").glob("lock.*"):
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)


@dataclass(frozen=True)
class Run:
    """How a run ended; `results` is its results file, empty when it wrote none."""

    code: int
    out: str
    err: str
    results: dict[str, Any]

    @property
    def outcomes(self) -> dict[str, str]:
        return {row["name"]: row["outcome"] for row in self.results["packages"]}

    def row(self, name: str) -> dict[str, Any]:
        (row,) = [row for row in self.results["packages"] if row["name"] == name]
        return dict(row)


def npm_workspace(
    root: Path, packages: Mapping[str, tuple[str, ...]] = TWELVE, *, version: str = "1.0.0"
) -> Path:
    """A git repository with one npm workspace, each package in the scope @acme."""
    members = {name: {f"@acme/{need}": "*" for need in needs} for name, needs in packages.items()}
    write_json(root / "package.json", {"private": True, "workspaces": ["packages/*"]})
    return _javascript(root, members, version=version)


def pnpm_workspace(
    root: Path, packages: Mapping[str, tuple[str, ...]] = TWELVE, *, version: str = "1.0.0"
) -> Path:
    """The same for pnpm: dependencies by the workspace protocol, one range from a catalog."""
    markers = ("workspace:^", "workspace:~", "workspace:*", f"workspace:^{version}", "catalog:")
    members = {
        name: {f"@acme/{need}": markers[(len(name) + at) % 5] for at, need in enumerate(needs)}
        for name, needs in packages.items()
    }
    write_json(root / "package.json", {"private": True, "packageManager": "pnpm@10.34.9"})
    ranges = "".join(f"  '@acme/{name}': ^{version}\n" for name in packages)
    settings = f"packages:\n  - packages/*\ncatalog:\n{ranges}"
    (root / "pnpm-workspace.yaml").write_text(settings)
    return _javascript(root, members, version=version)


def yarn_1_workspace(
    root: Path, packages: Mapping[str, tuple[str, ...]] = TWELVE, *, version: str = "1.0.0"
) -> Path:
    """The same for yarn 1: its own spelling of the list, its lock file, versions or ranges."""
    ranges = (f"^{version}", version, "*")
    members = {
        name: {f"@acme/{need}": ranges[(len(name) + at) % 3] for at, need in enumerate(needs)}
        for name, needs in packages.items()
    }
    listed = {"packages": ["packages/*"], "nohoist": ["**/react-native"]}
    write_json(root / "package.json", {"private": True, "workspaces": listed})
    (root / "yarn.lock").write_text("# yarn lockfile v1\n\n\n")
    return _javascript(root, members, version=version)


def yarn_4_workspace(
    root: Path, packages: Mapping[str, tuple[str, ...]] = TWELVE, *, version: str = "1.0.0"
) -> Path:
    """The same for yarn 4, whose paths are from the root, and whose own program is not there."""
    markers = ("workspace:^", "workspace:~", "workspace:*", "workspace:packages/", "catalog:")
    members: dict[str, dict[str, str]] = {}
    for name, needs in packages.items():
        members[name] = {}
        for at, need in enumerate(needs):
            marker = markers[(len(name) + at) % 5]
            members[name][f"@acme/{need}"] = f"{marker}{need}" if marker[-1] == "/" else marker
    top = {"private": True, "workspaces": ["packages/*"], "packageManager": "yarn@4.17.0"}
    write_json(root / "package.json", top)
    (root / "yarn.lock").write_text("__metadata:\n  version: 8\n")
    ranges = "".join(f"  '@acme/{name}': ^{version}\n" for name in packages)
    settings = f"yarnPath: .yarn/releases/yarn-4.17.0.cjs\ncatalog:\n{ranges}"
    (root / ".yarnrc.yml").write_text(settings)
    return _javascript(root, members, version=version)


def _javascript(root: Path, members: Mapping[str, Mapping[str, str]], *, version: str) -> Path:
    for name, dependencies in members.items():
        directory = root / "packages" / name
        document = {"name": f"@acme/{name}", "version": version, "files": ["index.js"]}
        write_json(directory / "package.json", {**document, "dependencies": dependencies})
        requires = "".join(f"require({json.dumps(need)});\n" for need in dependencies)
        (directory / "index.js").write_text(f"{requires}module.exports = {json.dumps(name)};\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def write_json(path: Path, document: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
