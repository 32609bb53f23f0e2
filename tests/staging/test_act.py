"""A whole staged release, through the real action: CI stages, a person approves, CI goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from harness.act import PROJECT, Repository, git
from harness.npm.documents import pack
from integration.tools import require_tool
from integration.verdaccio import NODE, tools

if TYPE_CHECKING:
    from pathlib import Path

    from harness.npm.registry import Registry

NPM = {"@acme/core": (), "@acme/text": ("@acme/core",), "@acme/cli": ("@acme/core", "@acme/text")}


@pytest.fixture
def polyglot(tmp_path: Path) -> Repository:
    """Three npm packages, and a Python one that goes out after the last of them."""
    root = tmp_path / "user repo"
    for name, needs in NPM.items():
        directory = root / "packages" / name.partition("/")[2]
        directory.mkdir(parents=True)
        manifest = {
            "name": name,
            "version": "1.0.0",
            "dependencies": dict.fromkeys(needs, "^1.0.0"),
            "repository": {"type": "git", "url": "https://github.com/acme/widgets.git"},
        }
        (directory / "package.json").write_text(json.dumps(manifest))
        (directory / "index.js").write_text(f"// {name}\n")
    workspaces = {"private": True, "workspaces": ["packages/*"]}
    (root / "package.json").write_text(json.dumps(workspaces))
    (root / "wheel" / "acme_wheel").mkdir(parents=True)
    (root / "wheel" / "acme_wheel" / "__init__.py").touch()
    (root / "wheel" / "pyproject.toml").write_text(
        '[project]\nname = "acme-wheel"\nversion = "1.0.0"\n'
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    )
    (root / "releasekit.toml").write_text(
        '[pypi]\npackages = ["wheel"]\n[dependencies]\n"pypi:acme-wheel" = ["npm:@acme/cli"]\n'
    )
    git(root, "init", "--quiet", "--initial-branch=main")
    return Repository(root, tmp_path)


@pytest.mark.parametrize("stage", ["always", "auto"] if SEARCHING else ["always"])
def test_stage_approve_publish_the_rest_and_then_nothing(
    stage: str, polyglot: Repository, registry: Registry
) -> None:
    """R1, R4, R14, R19: what waits for a person blocks what needs it, and nothing else.

    The example as it stands; in a search, also where only npm knows that nobody may publish
    directly.
    """
    npm = registry.npm
    for name in NPM:
        npm.publish(pack({"name": name, "version": "0.9.0"}))
    pypi = polyglot.beside / "index"
    example = (PROJECT / "docs/examples/staged.yml").read_text(encoding="utf-8")
    assert example.count("stage: always") == 1
    # Beside the identity: it goes to no registry that only releasekit.toml names.
    inputs = f"stage: {stage}\n          npm-registry: {registry.url}"
    polyglot.workflow(example.replace("stage: always", inputs))
    settings = f"pypi-registry = 'dir:{pypi}'\n"
    path = polyglot.root / "releasekit.toml"
    path.write_text(f"trusted-publishing = 'always'\n{settings}{path.read_text()}")
    program = require_tool("npm")
    polyglot.add_programs(node=tools() / NODE / "bin" / "node", npm=program)

    first = polyglot.run("push", environment=registry.runner)
    assert first.job("publish") == "success", first.log("publish")
    told = first.outputs("publish", "1")
    assert (told["result"], told["published"]) == ("staged", "false")
    staged = json.loads(told["staged-packages"])
    assert [row["name"] for row in staged] == ["@acme/core", "@acme/text", "@acme/cli"]
    assert {row["stage-id"] for row in staged} == set(npm.staged)
    (blocked,) = json.loads(told["blocked-packages"])
    assert blocked["reason"] == "needs npm:@acme/cli, which is staged"
    assert not (pypi / "simple").exists()
    assert npm.publishings == []
    assert "releasekit approve" in first.summary("publish", "1")

    results = polyglot.beside / "artifacts/releasekit-results/results.json"
    approved = _on_a_laptop(polyglot.beside / "laptop", results, registry)
    assert approved.returncode == 0, approved.stdout + approved.stderr
    assert npm.approvals == ["@acme/core@1.0.0", "@acme/text@1.0.0", "@acme/cli@1.0.0"]
    assert npm.staged == {}

    second = polyglot.run("push", environment=registry.runner)
    assert second.job("publish") == "success", second.log("publish")
    told = second.outputs("publish", "1")
    assert told["result"] == "success"
    assert [row["name"] for row in json.loads(told["published-packages"])] == ["acme-wheel"]
    assert (pypi / "simple/acme-wheel").is_dir()

    third = polyglot.run("push", environment=registry.runner)
    assert third.outputs("publish", "1")["result"] == "noop"
    assert len(npm.stagings) == len(NPM)


def _on_a_laptop(home: Path, results: Path, registry: Registry) -> subprocess.CompletedProcess[str]:
    home.mkdir()
    place = registry.url.partition(":")[2]
    (home / ".npmrc").write_text(f"{place}:_authToken=npm_session\n")
    return subprocess.run(
        [
            *(sys.executable, "-m", "releasekit", "approve", str(results), "--yes"),
            *("--npm-registry", registry.url),
        ],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "RELEASEKIT_NPM_OTP": "123456"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
