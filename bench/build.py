"""What building N small hatchling packages costs: ours against uv, side by side.

    python bench/build.py [--packages 30] [--rounds 3] [--uv PATH]

Each round runs every way once, so that a busy machine slows all of them alike; the ratios are of
the best rounds. CPU counts all children. The environment is part of what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.ecosystems.pypi import DECLARATION, PyPIOptions
from releasekit.ecosystems.pypi.build import Builder
from releasekit.ecosystems.pypi.discover import read_projects
from releasekit.ecosystems.pypi.environment import Environments, Installer
from releasekit.host.process import Processes
from releasekit.host.scrub import NOTHING_SECRET
from releasekit.state.run_logs import Logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.ecosystems.pypi.manifest import PyProject

MANIFEST = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "bench-{number}"
version = "1.0.0"
requires-python = ">=3.11"
"""


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float


def workspace(root: Path, packages: int) -> None:
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    for number in range(packages):
        directory = root / "packages" / f"bench-{number}"
        module = directory / "src" / f"bench_{number}"
        module.mkdir(parents=True)
        (directory / "pyproject.toml").write_text(MANIFEST.format(number=number))
        (module / "__init__.py").write_text(f"NUMBER = {number}\n")


async def ours(root: Path, into: Path, *, uv: str, concurrency: int) -> None:
    visible = DECLARATION.variables
    async with Processes(environment=dict(os.environ), variables=visible) as processes:
        scratch = into / "scratch"
        scratch.mkdir(parents=True)
        environments = await processes.group.enter(
            Environments(Installer(uv=uv), processes, scratch)
        )
        builder = Builder(
            environments=environments,
            config_settings={},
            environment={},
            state=into / "state",
            scratch=scratch,
            logs=Logs(into / "state", "bench", NOTHING_SECRET),
        )
        limit = asyncio.Semaphore(concurrency)

        async def one(project: PyProject) -> None:
            async with limit:
                await builder.build(project, into / project.name, wheels={})

        async with asyncio.TaskGroup() as group:
            for project in read_projects(root, PyPIOptions())[0].values():
                group.create_task(one(project))


def all_packages(root: Path, into: Path, *, uv: str) -> None:
    argv = [uv, "build", "--quiet", "--all-packages", "--out-dir", str(into)]
    subprocess.run(argv, cwd=root, check=True)


def one_by_one(root: Path, into: Path, *, uv: str) -> None:
    for directory in sorted((root / "packages").iterdir()):
        argv = [uv, "build", "--quiet", "--out-dir", str(into), str(directory)]
        subprocess.run(argv, cwd=root, check=True)


def measured(way: Callable[[Path], None]) -> Cost:
    def cpu() -> float:
        usage = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return sum(it.ru_utime + it.ru_stime for it in usage)

    with tempfile.TemporaryDirectory(prefix="bench-") as into:
        wall, before = time.perf_counter(), cpu()
        way(Path(into))
        return Cost(time.perf_counter() - wall, cpu() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--uv", default=shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        root = Path(directory).resolve()
        workspace(root, options.packages)
        ways: dict[str, Callable[[Path], None]] = {
            "releasekit, one at a time": lambda into: asyncio.run(
                ours(root, into, uv=options.uv, concurrency=1)
            ),
            "releasekit, two at a time": lambda into: asyncio.run(
                ours(root, into, uv=options.uv, concurrency=2)
            ),
            "uv build --all-packages": lambda into: all_packages(root, into, uv=options.uv),
            "uv build, one by one": lambda into: one_by_one(root, into, uv=options.uv),
        }
        rounds = [
            {name: measured(way) for name, way in ways.items()} for _ in range(options.rounds)
        ]
    first = next(iter(ways))
    best = {
        name: Cost(min(it[name].wall_s for it in rounds), min(it[name].cpu_s for it in rounds))
        for name in ways
    }
    print(f"{options.packages} packages, best of {options.rounds}: ms a package (sdist and wheel)")
    print(f"{'':28}{'wall':>9}{'ratio':>8}{'CPU':>9}{'ratio':>8}")
    for name, cost in best.items():
        wall, cpu = (1000 * it / options.packages for it in (cost.wall_s, cost.cpu_s))
        print(
            f"{name:28}{wall:9.1f}{cost.wall_s / best[first].wall_s:8.1f}"
            f"{cpu:9.1f}{cost.cpu_s / best[first].cpu_s:8.1f}"
        )


if __name__ == "__main__":
    main()
