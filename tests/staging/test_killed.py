"""A run that stages, killed around every staging, and run again until it comes to its end."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.http_server import HangUp
from integration.tools import require_tool
from staging.documents import pack
from workspaces import Program, kill, npm_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from staging.documents import Answer, Request
    from staging.registry import Registry

pytestmark = pytest.mark.no_cover

LEVELS = 3
WIDTH = 4
STAGED = "/-/stage/package/"


def name_of(level: int, place: int) -> str:
    return f"p{level}-{place}"


PACKAGES = {
    name_of(level, place): tuple(
        sorted({name_of(level - 1, place), name_of(level - 1, (place + 1) % WIDTH)})
        if level
        else ()
    )
    for level in range(LEVELS)
    for place in range(WIDTH)
}


def test_killed_around_every_staging_each_is_staged_once(
    registry: Registry, tmp_path: Path
) -> None:
    """R14, R15, R18, R19: twelve packages in three levels; before each staging, and after it with
    its answer lost.
    """
    require_tool("npm")
    for name in PACKAGES:
        registry.npm.publish(pack({"name": f"@acme/{name}", "version": "0.9.0"}))
    workspace = npm_workspace(tmp_path / "workspace", PACKAGES)
    (tmp_path / "home").mkdir()
    program = Program(tmp_path / "home", {"RELEASEKIT_NPM_TOKEN": "npm_stage-only"})
    flags = ["--npm-registry", registry.url, "--stage", "always", "--retry-base-delay", "0s"]
    argv = program.argv("publish", workspace, *flags)
    started: list[subprocess.Popen[bytes]] = []
    killed: set[tuple[str, str]] = set()

    def may_die(moment: str, request: Request) -> None:
        """Each run once, at the first staging that was not interrupted in this way yet."""
        if not request.target.startswith(STAGED):
            return
        process = started[-1]
        if process.poll() is not None:
            raise HangUp
        if (moment, request.target) not in killed:
            killed.add((moment, request.target))
            process.kill()
            process.wait()
            raise HangUp

    def before(request: Request) -> None:
        may_die("before", request)

    def after(request: Request, answer: Answer) -> Answer:
        may_die("after", request)
        return answer

    registry.before, registry.after = before, after
    while not started or started[-1].returncode != 0:
        assert len(started) <= 2 * len(PACKAGES), killed
        process = subprocess.Popen(
            argv,
            env=program.full_environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        process.wait()
        kill(process, workspace)
    assert len(killed) == 2 * len(PACKAGES)
    assert sorted(registry.npm.stagings) == sorted(f"@acme/{name}@1.0.0" for name in PACKAGES)
    assert registry.npm.publishings == []
    ended = program.run("publish", workspace, *flags)
    assert (ended.code, ended.results["result"]) == (0, "staged")
    assert {row["staged"]["id"] for row in ended.results["packages"]} == set(registry.npm.staged)
