"""A signed release through the real action, from a job with an identity, and once more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.act import Repository
from harness.github import TOKEN
from integration.tools import require_tool
from integration.verdaccio import NODE as NODE_MODULE
from integration.verdaccio import tools
from provenance.world import FILES, NODE, PYTHON, serving_all, workspace
from releasekit.provenance.bundle import Bundle

if TYPE_CHECKING:
    from pathlib import Path


def test_both_registries_get_attestations_and_github_the_release_statement(tmp_path: Path) -> None:
    """R1, R4, R14: what PyPI, npm and GitHub verify is what the action sends."""
    program = require_tool("npm")
    repository = Repository(workspace(tmp_path / "user repo"), tmp_path)
    repository.add_programs(node=tools() / NODE_MODULE / "bin" / "node", npm=program)
    with serving_all(tmp_path) as world:
        given = "".join(f"          {name}: {value}\n" for name, value in world.inputs.items())
        repository.workflow(
            f"""
on: push
permissions:
  contents: read
  id-token: write
  attestations: write
jobs:
  publish:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - id: release
        uses: org/releasekit-action@v1
        with:
          mode: publish
          forge-token: ${{{{ secrets.FORGE_TOKEN }}}}
{given}"""
        )
        identity = {
            name: value
            for name, value in world.environment.items()
            if name.startswith(("ACTIONS_", "GITHUB_API"))
        }
        arguments = ["push", "-s", f"FORGE_TOKEN={TOKEN}"]
        first = repository.run(*arguments, environment=identity)
        assert first.job("publish") == "success", first.log("publish")
        told = first.outputs("publish", "release")
        assert told["result"] == "success"
        assert len(world.attested) == FILES
        assert all(world.attested.values())
        signed = json.loads(told["attestations"])
        assert len(signed) == FILES
        (statement,) = world.github.attestations
        assert "https://github.com/acme/widgets/attestations/1001" in first.summary(
            "publish", "release"
        )
        assert len(Bundle.parse(json.dumps(statement).encode()).subjects) == FILES
        entries = len(world.sigstore.entries)
        assert entries == FILES + 1

        second = repository.run(*arguments, environment=identity)
        told = second.outputs("publish", "release")
        assert told["result"] == "noop"
        assert len(json.loads(told["already-published-packages"])) == len(PYTHON) + len(NODE)
        assert (len(world.sigstore.entries), len(world.github.attestations)) == (entries, 1)
        assert TOKEN not in first.shown
        assert TOKEN not in second.shown
