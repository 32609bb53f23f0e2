"""What our client stages and npm's client sees is the same, at npm's double and at verdaccio."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from harness.npm.documents import pack
from integration.tools import require_tool
from staging.client import Client
from workspaces import Program, npm_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from harness.npm.registry import Registry
    from integration.verdaccio import Verdaccio

CODE = "123456"
PACKAGES = {"demo-base": (), "demo-io": ("demo-base",), "demo-lone": ()}


@pytest.fixture(params=["double", "verdaccio"])
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """URL, and a token that may stage and look."""
    if request.param == "verdaccio":
        server: Verdaccio = request.getfixturevalue("staging_verdaccio")
        return server.url, server.token
    registry: Registry = request.getfixturevalue("registry")
    for name in PACKAGES:
        registry.npm.publish(pack({"name": f"@acme/{name}", "version": "0.0.1"}))
    registry.npm.accounts.tokens["npm_ours"] = "session"
    return registry.url, "npm_ours"


def test_npm_sees_what_is_staged_as_we_report_it(place: tuple[str, str], tmp_path: Path) -> None:
    """R19: also after a second run, and after one that knows nothing of the first."""
    require_tool("npm")
    url, token = place
    home, other = tmp_path / "home", tmp_path / "npm"
    home.mkdir()
    other.mkdir()
    workspace = npm_workspace(tmp_path / "workspace", PACKAGES)
    program = Program(home, {"RELEASEKIT_NPM_TOKEN": token})
    npm = Client(home=other, url=url, token=token, environment={})
    command = ["--npm-registry", url, "--stage", "always", "--retry-base-delay", "0.05s"]

    listings = []
    for state in ("none", "kept", "lost"):
        if state == "lost":
            shutil.rmtree(workspace / ".releasekit")
        run = program.run("publish", workspace, *command)
        assert run.code == 0, run.out
        assert set(run.outcomes.values()) == {"staged"}
        rows = json.loads(npm.out("stage", "list", "--json"))
        listings.append({(row["packageName"], row["version"], row["id"]) for row in rows})
        ours = {
            (row["name"], row["version"], row["staged"]["id"]) for row in run.results["packages"]
        }
        assert ours == listings[-1]
    assert len(listings[0]) == len(PACKAGES)
    assert listings[0] == listings[1] == listings[2]

    for _, _, stage_id in sorted(listings[0]):
        npm.out("stage", "approve", stage_id, "--otp", CODE)
    run = program.run("publish", workspace, *command)
    assert run.code == 0, run.out
    assert set(run.outcomes.values()) == {"already-published"}
