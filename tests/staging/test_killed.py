"""A run that stages, killed around every staging, and run again until it comes to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from effort import SEARCHING
from harness.killing import Killing
from harness.npm.documents import pack
from integration.tools import require_tool
from workspaces import Program, npm_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from harness.npm.documents import Request
    from harness.npm.registry import Registry

LEVELS = 3
WIDTH = 4 if SEARCHING else 2
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
    """R14, R15, R18, R19: three levels of packages; before each staging, and after it with its
    answer lost.
    """
    require_tool("npm")
    for name in PACKAGES:
        registry.npm.publish(pack({"name": f"@acme/{name}", "version": "0.9.0"}))
    workspace = npm_workspace(tmp_path / "workspace", PACKAGES)
    (tmp_path / "home").mkdir()
    program = Program(tmp_path / "home", {"RELEASEKIT_NPM_TOKEN": "npm_stage-only"})
    flags = ["--npm-registry", registry.url, "--stage", "always", "--retry-base-delay", "0s"]
    killing = Killing(
        lambda: program.start("publish", workspace, *flags), workspace, program.log.read_text
    )

    def may_die(moment: str, request: Request) -> None:
        if request.target.startswith(STAGED):
            killing.die_once(moment, request.target)

    registry.tell(may_die)
    killing.finish(most=2 * len(PACKAGES) + 1)
    assert len(killing.killed) == 2 * len(PACKAGES)
    assert sorted(registry.npm.stagings) == sorted(f"@acme/{name}@1.0.0" for name in PACKAGES)
    assert registry.npm.publishings == []
    ended = program.run("publish", workspace, *flags)
    assert (ended.code, ended.results["result"]) == (0, "staged")
    assert {row["staged"]["id"] for row in ended.results["packages"]} == set(registry.npm.staged)
