"""Crates that cargo packages once others are on the registry, and cycles that it publishes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from integration import crates
from integration.test_cargo_publish import cargo, machine, publish, toolchain
from integration.tools import require_tool
from workspaces import Program, git

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from integration.crates import CrateServer

# As tokio has them: tied by versions and [patch], with development dependencies in a circle.
PATCH = """[patch.crates-io]
demo-syntax = { path = "demo-syntax" }
demo-rt = { path = "demo-rt" }
demo-util = { path = "demo-util" }
"""
TIED = {
    "demo-syntax": '[dev-dependencies]\ndemo-rt = "1"\n',
    "demo-rt": "[target.'cfg(unix)'.dependencies]\n"
    'syntax = { package = "demo-syntax", version = "~VERSION", optional = true }\n'
    '[dev-dependencies]\ndemo-util = "1"\n',
    "demo-util": "[build-dependencies]\ndemo-rt = { workspace = true }\n",
}
SHARED = '[workspace.dependencies]\ndemo-rt = "1"\n'

# As tracing has them: with paths, and the circle is of a development dependency alone.
CIRCLE = {
    "demo-attributes": "[dev-dependencies]\n"
    'demo-spans = { path = "../demo-spans", version = "1" }\n',
    "demo-spans": "[dependencies]\n"
    'demo-attributes = { path = "../demo-attributes", version = "VERSION" }\n',
    "demo-log": '[dependencies]\ndemo-spans = { path = "../demo-spans", version = "VERSION" }\n',
}


@pytest.fixture(autouse=True)
def tools() -> None:
    require_tool("cargo")


@pytest.fixture
def program(tmp_path: Path, crate_server: CrateServer) -> Program:
    return machine(tmp_path / "home", crate_server)


def write(root: Path, version: str, members: dict[str, str], rest: str = "") -> Path:
    """A git repository of them at this version."""
    root.mkdir()
    names = ", ".join(f'"{name}"' for name in members)
    (root / "Cargo.toml").write_text(f'[workspace]\nmembers = [{names}]\nresolver = "2"\n{rest}')
    (root / "releasekit.toml").write_text("[cargo]\nverify = false\n")
    for name, needs in members.items():
        source = root / name / "src"
        source.mkdir(parents=True)
        (source / "lib.rs").write_text("pub fn count() -> u32 { 1 }\n")
        (root / name / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n'
            f'license = "MIT"\ndescription = "Of a demo"\n{needs.replace("VERSION", version)}'
        )
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def hold_earlier(server: CrateServer, names: Iterable[str]) -> None:
    for name in names:
        server.crates.hold(name, "1.0.0")


def uploaded(server: CrateServer) -> list[str]:
    return [upload.filename for upload in server.recorder.uploads]


def test_crates_tied_by_versions_go_one_after_the_other(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R1, R48: and what is sent is to the byte what cargo makes, now that all is there."""
    hold_earlier(crate_server, TIED)
    crate_server.crates.index_lag_s = 0.2
    root = write(tmp_path / "workspace", "1.1.0", TIED, PATCH + SHARED)
    run = publish(program, root, crate_server)
    assert run.code == 0, run.out + run.err
    order = ["demo-syntax-1.1.0.crate", "demo-rt-1.1.0.crate", "demo-util-1.1.0.crate"]
    assert uploaded(crate_server) == order
    assert git(root, "status", "--porcelain") == ""
    home = tmp_path / "home"
    environment = {**os.environ, **toolchain(home), "CARGO_TARGET_DIR": str(home / "target")}
    package = ["package", "--no-verify", "--manifest-path", str(root / "Cargo.toml")]
    cargo(*package, "--package", "demo-util", environment=environment)
    theirs = home / "target" / "package" / "demo-util-1.1.0.crate"
    assert theirs.read_bytes() == crate_server.crates.files["demo-util-1.1.0.crate"]
    consume(crate_server, tmp_path, "demo-util@1.1.0")


def test_crates_that_only_the_registry_can_build_keep_no_upload_back(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """The plan counts them."""
    hold_earlier(crate_server, TIED)
    root = write(tmp_path / "workspace", "1.1.0", TIED, PATCH + SHARED)
    run = publish(program, root, crate_server, "--start-uploads=built")
    assert run.code == 0, run.out + run.err
    assert (
        "`start-uploads: built` does not wait for 2 packages that can be built only once the "
        "registry shows others of this release: cargo:demo-rt, cargo:demo-util"
    ) in " ".join(run.out.split())
    assert len(uploaded(crate_server)) == len(TIED)


def consume(server: CrateServer, tmp_path: Path, name: str) -> None:
    """A cargo that knows nothing yet gets it with all it needs."""
    home = tmp_path / "fresh"
    server.cargo_config(home / "cargo")
    environment = {**os.environ, **toolchain(home)}
    dependent = tmp_path / "dependent"
    cargo("init", "--quiet", "--name", "dependent", dependent, environment=environment)
    manifest = ["--manifest-path", str(dependent / "Cargo.toml")]
    cargo("add", "--quiet", *manifest, name, environment=environment)
    cargo("fetch", "--quiet", *manifest, environment=environment)


def test_a_dry_run_packages_what_the_registry_allows(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """demo-rt asks for a demo-syntax that only the release will bring."""
    hold_earlier(crate_server, TIED)
    root = write(tmp_path / "workspace", "1.1.0", TIED, PATCH + SHARED)
    run = publish(program, root, crate_server, "--dry-run")
    assert run.code == 0, run.out + run.err
    reasons = {name: run.row(name)["reason"] for name in TIED}
    assert reasons == {
        "demo-syntax": "built, and not uploaded: a dry run",
        "demo-rt": "not built in a dry run, as it can be only once the registry has demo-syntax",
        "demo-util": "built, and not uploaded: a dry run",
    }
    assert uploaded(crate_server) == []


def test_a_circle_of_development_dependencies_is_published(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R48: cargo publishes the one that is needed for more than that first."""
    hold_earlier(crate_server, CIRCLE)
    root = write(tmp_path / "workspace", "1.1.0", CIRCLE)
    run = publish(program, root, crate_server)
    assert run.code == 0, run.out + run.err
    assert uploaded(crate_server) == [
        "demo-attributes-1.1.0.crate",
        "demo-spans-1.1.0.crate",
        "demo-log-1.1.0.crate",
    ]
    assert "demo-attributes -> demo-spans (dev)" in run.out + run.err
    _, line = crate_server.crates.lines["demo_attributes"][-1]
    assert [(it["name"], it["registry"]) for it in line["deps"]] == [("demo-spans", None)]
    consume(crate_server, tmp_path, "demo-log@1.1.0")


def test_a_circle_that_cargo_cannot_publish_says_what_to_leave_out(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R6: nothing of it was ever published, and the rest of the release goes on."""
    root = write(tmp_path / "workspace", "1.0.0", {**CIRCLE, "demo-lone": ""})
    run = publish(program, root, crate_server)
    assert run.code == 1, run.out + run.err
    assert run.outcomes == {
        "demo-attributes": "failed",
        "demo-spans": "blocked",
        "demo-log": "blocked",
        "demo-lone": "published",
    }
    assert "Leave its version out" in run.row("demo-attributes")["hint"]


@pytest.mark.parametrize("verify", ["true", "false"])
@pytest.mark.parametrize("kind", ["directory", "url"])
def test_a_circle_finds_what_the_registry_of_the_release_has(
    crate_server: CrateServer, tmp_path: Path, kind: str, verify: str
) -> None:
    """R6, R48, R65: cargo's own settings know nothing of it, and what is kept there is there for
    it, also where it compiles.
    """
    home = tmp_path / "home"
    home.mkdir()
    program = Program(home, {**toolchain(home), "RELEASEKIT_CARGO_TOKEN": crates.TOKEN})
    members = {
        "demo-a": '[dev-dependencies]\ndemo-b = { path = "../demo-b" }\n',
        "demo-b": '[dependencies]\ndemo-a = { path = "../demo-a", version = "1" }\n',
    }
    root = write(tmp_path / "workspace", "1.0.0", members, "")
    (root / "releasekit.toml").write_text(f"[cargo]\nverify = {verify}\n")
    places = {"directory": f"dir:{tmp_path / 'registry'}", "url": crate_server.index_url}
    where = ["--cargo-registry", places[kind]]
    first = program.run("publish", root, *where)
    assert first.code == 0, first.out + first.err
    manifest = root / "demo-a" / "Cargo.toml"
    text = manifest.read_text().replace('version = "1.0.0"', 'version = "1.1.0"')
    manifest.write_text(text.replace('path = "../demo-b"', 'path = "../demo-b", version = "1"'))
    second = program.run("publish", root, *where)
    assert second.code == 0, second.out + second.err
    assert second.outcomes == {"demo-a": "published", "demo-b": "already-published"}


@pytest.mark.parametrize("compiles", [True, False])
def test_what_is_needed_by_version_alone_is_compiled_from_a_directory(
    tmp_path: Path, *, compiles: bool
) -> None:
    """R65: as the root of tokio has it. What then does not compile is said as rustc says it."""
    home = tmp_path / "home"
    home.mkdir()
    members = {"demo-a": "", "demo-b": '[dependencies]\ndemo-a = "1"\n'}
    patch = '[patch.crates-io]\ndemo-a = { path = "demo-a" }\n'
    root = write(tmp_path / "workspace", "1.0.0", members, patch)
    (root / "releasekit.toml").unlink()
    called = "count" if compiles else "discount"
    (root / "demo-b" / "src" / "lib.rs").write_text(f"pub fn b() {{ demo_a::{called}(); }}\n")
    program = Program(home, toolchain(home))
    run = program.run("publish", root, "--cargo-registry", f"dir:{tmp_path / 'registry'}")
    last = "published" if compiles else "failed"
    assert run.outcomes == {"demo-a": "published", "demo-b": last}, run.out + run.err
    assert compiles or "cannot find function `discount`" in run.row("demo-b")["reason"]
    kept = tmp_path.glob("**/registry/cache/127.0.0.1-*")
    assert [*kept] == []


def test_a_circle_of_build_dependencies_is_named(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R7: a version alone would be met by an older release, a path by the member only."""
    members = {
        "demo-a": '[build-dependencies]\ndemo-b = { path = "../demo-b", version = "1" }\n',
        "demo-b": '[dependencies]\ndemo-a = { path = "../demo-a", version = "1" }\n',
    }
    run = publish(program, write(tmp_path / "workspace", "1.0.0", members, ""), crate_server)
    assert run.code == 3, run.out + run.err
    assert "cargo:demo-a needs cargo:demo-b (build)" in run.err
    assert "cargo:demo-b needs cargo:demo-a (runtime)" in run.err
    assert "Remove one of these dependencies" in run.err
