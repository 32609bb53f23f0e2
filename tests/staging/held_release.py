"""Twenty packages in four levels, as a run has left them: staged, with a results.json."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.npm.documents import pack
from releasekit.model import (
    Artifact,
    Outcome,
    Package,
    PackageId,
    Report,
    Result,
    Staged,
)
from releasekit.report import results_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.npm.npmjs import Npmjs

LEVELS = 4
WIDTH = 5
VERSION = "1.1.0"


def name_of(level: int, place: int) -> str:
    return f"@acme/l{level}-{place}"


NAMES = [name_of(level, place) for level in range(LEVELS) for place in range(WIDTH)]


def needs_of(name: str) -> list[str]:
    """Two of the level before: each but the leaves of the last level has dependents."""
    level, place = int(name[7]), int(name[9:])
    if level == 0:
        return []
    return sorted({name_of(level - 1, place), name_of(level - 1, (place + 1) % WIDTH)})


def tarball(name: str, version: str, **more: object) -> bytes:
    files = {"index.js": f"// {name}\n", f"{version}.js": ""}
    return pack({"name": name, "version": version, **more}, files)


@dataclass(frozen=True)
class HeldRelease:
    """`behind` is what waits in another ecosystem for all of it."""

    directory: Path
    url: str

    @property
    def results(self) -> Path:
        return self.directory / "results.json"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.directory),
            "RELEASEKIT_NPM_TOKEN": "npm_session",
            "RELEASEKIT_NPM_OTP": "123456",
            **more,
        }

    def command(self, command: str = "approve", *flags: str) -> list[str]:
        return [
            *(sys.executable, "-m", "releasekit", command, str(self.results)),
            *("--npm-registry", self.url, "--retry-base-delay", "0s", *flags),
        ]

    def start(self) -> subprocess.Popen[bytes]:
        """In a session of its own."""
        return subprocess.Popen(
            self.command("approve", "--yes"),
            env=self.environment(),
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(
        self, *flags: str, command: str = "approve", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(command, "--yes", *flags),
            env=environment or self.environment(),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


def held_release(directory: Path, npm: Npmjs, names: list[str] | None = None) -> HeldRelease:
    """Every package has a version 1.0.0 that everybody sees."""
    directory.mkdir(exist_ok=True)
    names = NAMES if names is None else names
    results, edges = [], {}
    for name in names:
        npm.publish(tarball(name, "1.0.0"))
        data = tarball(name, VERSION, dependencies=dict.fromkeys(needs_of(name), VERSION))
        release = npm.stage(data)
        id_ = PackageId("npm", name)
        edges[id_] = frozenset(PackageId("npm", need) for need in needs_of(name) if need in names)
        results.append(_result(id_, Outcome.STAGED, data, Staged(id=release.id, tag="latest")))
    behind = PackageId("pypi", "acme")
    edges[behind] = frozenset([PackageId("npm", names[-1])])
    results.append(_result(behind, Outcome.BLOCKED, b"", None))
    report = Report(
        run_id="run",
        plan_digest="",
        commit="1234567890abcdef",
        started_at="2026-11-22T12:00:00+00:00",
        duration_s=1.0,
        results=tuple(results),
        edges=edges,
        registries={"npm": f"{npm.origin}/"},
    )
    (directory / "results.json").write_text(results_json(report))
    return HeldRelease(directory, f"{npm.origin}/")


def _result(id_: PackageId, outcome: Outcome, data: bytes, staged: Staged | None) -> Result:
    package = Package(id=id_, version=VERSION, directory=Path(), manifest=Path())
    filename = f"{id_.name.removeprefix('@').replace('/', '-')}-{VERSION}.tgz"
    artifact = Artifact(
        path=Path(filename),
        size=len(data),
        digests={"sha256": hashlib.sha256(data).hexdigest()},
    )
    return Result(
        package=package,
        outcome=outcome,
        reason="",
        artifacts=(artifact,) if staged else (),
        staged=staged,
    )
