"""Registries by their own names: what one of twelve packages lacks keeps all of them back before
the first upload, and with it the same command publishes (R38).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness import public_names
from harness.npm.documents import pack
from harness.npm.npmjs import Npmjs
from harness.npm.registry import serving
from integration import crates
from integration.test_cargo_publish import cargo_workspace, toolchain
from integration.tools import require_tool
from trusted_index import TrustedIndex, served
from workspaces import TWELVE, Program, npm_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from integration.crates import CrateServer

COMMAND = ("publish", "--attestations", "off", "--retry-base-delay", "0.05s")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    # Its own program is not to be installed from the doubles.
    assert Program(tmp_path / "home").run("--version").code == 0
    return tmp_path / "home"


@pytest.mark.parametrize("trusting", [False, True])
def test_one_crate_that_crates_io_would_refuse(
    tmp_path: Path, home: Path, crate_server: CrateServer, trusting: bool
) -> None:
    """A job that crates.io trusts creates no crate; a token publishes none that takes no tokens."""
    require_tool("cargo")
    workspace = cargo_workspace(tmp_path / "workspace")
    first, *others = TWELVE
    held = crate_server.crates
    for name in others if trusting else TWELVE:
        held.hold(name, "0.0.1")
    held.trusting_only = set() if trusting else {first}
    github = TrustedIndex()
    doubles = {
        "index.crates.io": crate_server.index_url.rstrip("/"),
        "crates.io": crate_server.index_url.removesuffix("/index/"),
    }
    with (
        served(github) as origin,
        public_names.answering(doubles, tmp_path / "certificates") as names,
    ):
        held.id_tokens = github.id_tokens
        crate_server.cargo_config(home / "cargo")
        token = {"RELEASEKIT_CARGO_TOKEN": crates.TOKEN}
        login = github.environment(origin) if trusting else token
        program = Program(home, {**toolchain(home), **login, **names})
        run = program.run(*COMMAND, workspace)
        assert run.code == 3, run.out + run.err
        assert f"error: cargo:{first}: " in run.err
        why = "trusted publishing creates no crate on" if trusting else "by trusted publishing only"
        assert why in run.err
        assert run.err.count("nothing was sent [RK-324]") == 1
        assert held.requests == {}
        held.trusting_only.clear()
        held.hold(first, "0.0.1")
        run = program.run(*COMMAND, workspace)
        assert run.code == 0, run.out + run.err
        assert set(run.outcomes.values()) == {"published"}
    assert len(held.requests) == 12
    listings = [it for it in crate_server.recorder.exchanges if "/api/v1/crates?" in it.path]
    assert len(listings) == (0 if trusting else 2)  # one a run, for all of them


def test_a_token_that_npm_does_not_know(tmp_path: Path, home: Path) -> None:
    require_tool("npm")
    workspace, npm = npm_workspace(tmp_path / "workspace", version="1.1.0"), Npmjs()
    with serving(npm) as registry:
        for name in TWELVE:
            npm.publish(pack({"name": f"@acme/{name}", "version": "1.0.0"}))
        doubles = {"registry.npmjs.org": npm.origin}
        with public_names.answering(doubles, tmp_path / "certificates") as names:
            program = Program(home, {**names, "RELEASEKIT_NPM_TOKEN": "npm_dead"})
            run = program.run(*COMMAND, workspace)
            assert run.code == 3, run.out + run.err
            assert "does not know the token; nothing was sent [RK-324]" in run.err
            assert npm.publishings == []
            program = Program(home, {**names, "RELEASEKIT_NPM_TOKEN": "npm_bypass"})
            run = program.run(*COMMAND, workspace)
            assert run.code == 0, run.out + run.err
        assert len(registry.seen("GET", "/-/whoami")) == 2
    assert sorted(npm.publishings) == sorted(f"@acme/{name}@1.1.0" for name in TWELVE)
