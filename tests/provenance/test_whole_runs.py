"""Whole releases by ./entrypoint.sh, in a job of GitHub Actions as its doubles make one: what is
built is signed, and the registries verify it before they store it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import javascript
from harness.npm import registry
from harness.npm.npmjs import Npmjs
from integration.tools import require_tool
from provenance.npmjs import Examiner
from provenance.warehouse import Warehouse
from releasekit.provenance.statement import PUBLISH
from trusted_index import served
from workspaces import Program, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from provenance.sigstore_double import Sigstore

PAIR = {"demo-base": (), "demo-io": ("demo-base",)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_a_workspace_goes_to_pypi_with_what_it_verifies(
    sigstore: Sigstore, tmp_path: Path, home: Path
) -> None:
    """R14, R38: one identity signs and uploads, and no secret is given."""
    workspace = uv_workspace(tmp_path / "workspace", PAIR)
    warehouse = Warehouse(sigstore=sigstore)
    with served(warehouse) as origin:
        arguments = (
            *("--pypi-registry", f"{origin}/legacy/", "--trusted-publishing", "always"),
            *("--attestations", "required", "--trust-config", sigstore.trust_config),
        )
        program = Program(home, sigstore.environment)
        run = program.run("publish", workspace, *arguments)
        assert run.code == 0, run.out + run.err
        assert run.outcomes == {"demo-base": "published", "demo-io": "published"}
        assert program.run("publish", workspace, *arguments).results["result"] == "noop"
    assert len(warehouse.stored) == 4
    assert warehouse.attested == {name: [PUBLISH] for name in warehouse.stored}


def test_a_token_service_that_is_down_for_a_moment_ends_no_release(
    sigstore: Sigstore, tmp_path: Path, home: Path
) -> None:
    """Not while the plan is made, either, when it is asked who this job is."""
    workspace = uv_workspace(tmp_path / "workspace", PAIR)
    sigstore.fail("tokens", 503)
    run = Program(home, sigstore.environment).run(
        *("plan", workspace, "--registry", f"dir:{tmp_path / 'registry'}"),
        *("--trust-config", sigstore.trust_config, "--retry-base-delay", "0"),
    )
    assert run.code == 0, run.out + run.err
    assert len(sigstore.seen("tokens")) == 2


def test_a_server_that_the_public_instance_does_not_know_is_not_asked(
    sigstore: Sigstore, tmp_path: Path, home: Path
) -> None:
    """Its tokens may lack what those of github.com say."""
    workspace = uv_workspace(tmp_path / "workspace", PAIR)
    environment = {**sigstore.environment, "GITHUB_SERVER_URL": "https://github.acme.example"}
    del sigstore.claims["repository_visibility"]
    run = Program(home, environment).run(
        "plan", workspace, "--registry", f"dir:{tmp_path / 'registry'}"
    )
    assert run.code == 0, run.out + run.err
    assert "knows jobs of github.com and gitlab.com, and this is github.acme.example" in run.out
    assert sigstore.requests == []


def test_a_dry_run_enters_nothing_into_the_log(
    sigstore: Sigstore, tmp_path: Path, home: Path
) -> None:
    """Nor does it send GitHub anything: there is no release to tell of."""
    workspace = uv_workspace(tmp_path / "workspace", PAIR)
    api = {"GITHUB_API_URL": sigstore.url, "RELEASEKIT_FORGE_TOKEN": "ghs_of_the_job"}
    run = Program(home, {**sigstore.environment, **api}).run(
        *("publish", workspace, "--dry-run", "--registry", f"dir:{tmp_path / 'registry'}"),
        *("--trust-config", sigstore.trust_config),
    )
    assert run.code == 0, run.out + run.err
    assert {request.service for request in sigstore.requests} == {"tokens"}
    assert sigstore.entries == []
    assert not (workspace / ".releasekit" / "provenance.jsonl").exists()


def test_a_workspace_goes_to_npm_with_what_it_verifies(
    sigstore: Sigstore, tmp_path: Path, home: Path
) -> None:
    require_tool("npm")
    workspace = tmp_path / "workspace"
    said = {"version": "1.0.0", "repository": "acme/widgets", "publishConfig": {"access": "public"}}
    needs = {"dependencies": {"@acme/base": "^1.0.0"}}
    javascript.write(
        workspace,
        {
            "package.json": {"private": True, "workspaces": ["base", "io"]},
            "base/package.json": {"name": "@acme/base", **said},
            "io/package.json": {"name": "@acme/io", **said, **needs},
        },
    )
    with registry.serving(Npmjs()) as npm:
        examiner = npm.before = Examiner(sigstore)
        environment = {**sigstore.environment, "RELEASEKIT_NPM_TOKEN": "npm_bypass"}
        run = Program(home, environment).run(
            *("publish", workspace, "--npm-registry", npm.url),
            *("--attestations", "required", "--trust-config", sigstore.trust_config),
        )
        assert run.code == 0, run.out + run.err
        assert run.outcomes == {"@acme/base": "published", "@acme/io": "published"}
    assert [str(release) for release in examiner.taken] == ["@acme/base@1.0.0", "@acme/io@1.0.0"]
