"""What cargo itself sends, packages and builds from, beside what is done here in its place."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

import fakes
from integration import crates
from integration.servers import static_server
from integration.test_cargo_publish import cargo, machine, toolchain
from integration.tools import require_tool
from releasekit.aio import Group
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.cargo import crate_file
from releasekit.ecosystems.folders import discovery
from releasekit.errors import BuildFailed
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.state.directory import built_directory
from workspaces import Program, git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from integration.crates import CrateServer
    from releasekit.model import Artifact, Package, PackageId

MEMBERS: Mapping[str, str] = {
    "plain": "",
    "macros": '[lib]\nproc-macro = true\n[dependencies]\nplain = { path = "../plain" }\n',
    "words": "",
    "every-kind": """
[features]
default = ["std"]
std = []
fast = ["dep:renamed", "plain?/turbo"]

[dependencies]
plain = { path = "../plain", default-features = false, optional = true }
renamed = { path = "../words", package = "words", version = ">=0.1, <2", optional = true }

[target.'cfg(unix)'.dependencies]
macros = { path = "../macros", features = [] }

[build-dependencies]
plain = { path = "../plain" }

[dev-dependencies]
top = { path = "../top" }
""",
    "top": '[dependencies]\nevery-kind = { path = "../every-kind", features = ["fast"] }\n',
    "tool": 'publish = ["elsewhere"]\n',
    "private": "publish = false\n",
}


@pytest.fixture(autouse=True)
def tools() -> None:
    require_tool("cargo")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for name, rest in MEMBERS.items():
        source = root / "crates" / name / "src"
        source.mkdir(parents=True)
        (source / "lib.rs").write_text("//! Of a demo.\n")
        (root / "crates" / name / "README.md").write_text(f"# {name}: “ours”\n")
        (root / "crates" / name / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion.workspace = true\nedition = "2021"\n'
            'license.workspace = true\ndescription = "Of a demo"\nreadme = "README.md"\n'
            'authors = ["A <a@example.org>"]\nkeywords = ["demo"]\ncategories = ["no-std"]\n'
            f'homepage = "https://example.org"\nrust-version = "1.70"\n{rest}'
        )
    plain = root / "crates" / "plain" / "Cargo.toml"
    plain.write_text(plain.read_text() + "[features]\nturbo = []\n")
    (root / "Cargo.toml").write_text(
        '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/none"]\nresolver = "2"\n'
        'default-members = ["crates/plain"]\n'
        '[workspace.package]\nversion = "1.2.3"\nlicense = "MIT OR Apache-2.0"\n'
    )
    (root / "releasekit.toml").write_text("[cargo]\nverify = false\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


@dataclass(frozen=True)
class Built:
    packages: Sequence[Package]
    artifacts: Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]


def built(workspace: Path, home: Path, *, state: str = "s") -> Built:
    """Discovered and built as a run would, but for the pins, which stay in the tree."""

    async def main() -> Built:
        environment = {**os.environ, **toolchain(home)}
        config = fakes.config(
            workspace,
            ecosystem_tables={"cargo": {"verify": False}},
            registries=fakes.registries(cargo=f"dir:{home / 'registry'}"),
            state_directory=home / state,
        )
        taken = snapshot(environment)
        credentials = Credentials(taken, mask=lambda _: None)
        async with (
            Processes(environment=taken.environment, variables=fakes.TOOL_VARIABLES) as processes,
            http_client() as http,
            Group() as group,
        ):
            services = fakes.make_services(config, http, processes, credentials)
            made = discovery(ECOSYSTEMS["cargo"], config, services)
            opened = await made.opened_in(group)
            found = (await opened.discover(workspace)).workspace
            packages = [package for package in found.packages if not package.unpublishable]
            versions = {package.id.name: package.version for package in packages}
            for manifest in {path for package in packages for path in package.manifests}:
                manifest.write_text(found.pin(manifest.read_text(), versions))
            artifacts: dict[PackageId, tuple[Artifact, ...] | BuildFailed] = {}
            into = partial(built_directory, state_directory=config.state_directory)
            for batch in found.batches(packages):
                artifacts |= await found.build(batch, into)
            return Built(packages, artifacts)

    return asyncio.run(main())


def test_the_graph_is_the_one_cargo_publishes_by_and_crates_are_always_the_same_bytes(
    workspace: Path, tmp_path: Path
) -> None:
    """Renamed, optional, target-specific and build dependencies count; what cargo strips does
    not, nor do packages that may not go there. The manifests that cargo publishes name the same.

    R18 would hold without the same bytes; but then a machine that was lost could not be replaced.
    """
    found = built(workspace, tmp_path)
    edges = {it.id.name: {edge.on.name for edge in it.dependencies} for it in found.packages}
    assert edges == {
        "plain": set(),
        "macros": {"plain"},
        "words": set(),
        "every-kind": {"plain", "macros", "words"},
        "top": {"every-kind"},
    }
    again = built(workspace, tmp_path, state="another").artifacts
    assert again.keys() == found.artifacts.keys()
    for package, made in found.artifacts.items():
        others = again[package]
        assert not isinstance(made, BuildFailed), made
        assert not isinstance(others, BuildFailed), others
        assert [it.sha256 for it in made] == [it.sha256 for it in others]
        name = made[0].filename.removesuffix("-1.2.3.crate")
        assert published_needs(made[0].path, name) & edges.keys() == edges[name]


def published_needs(path: Path, name: str) -> set[str]:
    """The packages that a .crate depends on, in whatever way."""
    with path.open("rb") as file:
        manifest = crate_file.read_crate(file, name, "1.2.3").manifest
    needs = set()
    for tables in (manifest, *manifest.get("target", {}).values()):
        for kind in ("dependencies", "build-dependencies", "dev-dependencies"):
            for key, entry in tables.get(kind, {}).items():
                needs.add(entry.get("package", key) if isinstance(entry, dict) else key)
    return needs


def test_the_upload_says_what_cargo_publish_says(
    workspace: Path, tmp_path: Path, crate_server: CrateServer
) -> None:
    """The same document but for the order of its lists, and the same bytes behind it."""
    home = tmp_path / "home"
    program = machine(home, crate_server)
    run = program.run("publish", workspace, "--cargo-registry", crate_server.index_url)
    assert run.code == 0, run.out + run.err
    ours, files = dict(crate_server.crates.requests), dict(crate_server.crates.files)
    assert len(ours) == 5
    built(workspace, home)  # leaves the pins in the tree, for cargo needs them too
    with crates.crate_server() as other:
        other.cargo_config(home / "cargo")
        publish = ["publish", "--workspace", "--no-verify", "--allow-dirty", "--exclude", "tool"]
        where = ["--manifest-path", str(workspace / "Cargo.toml"), "--registry", "local"]
        environment = {**os.environ, **toolchain(home)}
        cargo(*publish, *where, environment=environment)
        theirs = other.crates.requests
        assert theirs.keys() == ours.keys()
        for filename, document in theirs.items():
            assert _comparable(ours[filename]) == _comparable(document)
        assert other.crates.files == files


def _comparable(document: Mapping[str, object]) -> dict[str, object]:
    """Without order, and without the home of dependencies: cargo takes a registry with a name for
    another one than crates.io, which is what stands in the manifests.
    """
    dependencies = document["deps"]
    assert isinstance(dependencies, list)
    for dependency in dependencies:
        assert dependency.pop("registry") in {None, "https://github.com/rust-lang/crates.io-index"}
        dependency["target"] = str(dependency["target"]).replace(" ", "")
        for nightly in ("artifact", "bindep_target", "lib"):
            assert not dependency.pop(nightly, None)
    ordered = sorted(dependencies, key=lambda it: (it["name"], it["kind"], it["target"]))
    return {**document, "deps": ordered}


def test_a_private_registry_with_a_name_of_its_own(
    tmp_path: Path, alternate_crate_server: CrateServer
) -> None:
    """Named by .cargo/config.toml. Its index is for those with a token only, so that somebody has
    to log cargo in: a build never sees ours.
    """
    root = tmp_path / "workspace"
    for name, need in (("lower", ""), ("upper", 'lower = { path = "../lower" REGISTRY }')):
        directory = root / name
        (directory / "src").mkdir(parents=True)
        (directory / "src" / "lib.rs").write_text("pub fn count() -> u32 { 1 }\n")
        (directory / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\n'
            'description = "Of a demo"\npublish = ["local"]\n[dependencies]\n'
            + need.replace(" REGISTRY", ', registry = "local"')
        )
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["lower", "upper"]\nresolver = "2"\n')
    index = f"sparse+{alternate_crate_server.index_url}"
    crates.write_config(root / ".cargo", index, replace=False)
    (root / "releasekit.toml").write_text('[cargo]\nregistry = "local"\n')
    home = tmp_path / "home"
    alternate_crate_server.cargo_config(home / "cargo", replace=False)
    # Beside the token: this home lies in /tmp, where a build could have written cargo's settings.
    named = {"RELEASEKIT_CARGO_TOKEN": crates.TOKEN, "CARGO_REGISTRIES_LOCAL_INDEX": index}
    program = Program(home, {**toolchain(home), **named})
    run = program.run("publish", root)
    assert run.code == 0, run.out + run.err
    assert run.outcomes == dict.fromkeys(("lower", "upper"), "published")
    assert program.run("publish", root).results["result"] == "noop"
    (line,) = (line for _, line in alternate_crate_server.crates.lines["upper"])
    assert line["deps"][0]["registry"] is None

    environment = {**os.environ, **toolchain(home), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    dependent = tmp_path / "dependent"
    cargo("init", "--quiet", "--name", "dependent", dependent, environment=environment)
    manifest = ["--manifest-path", str(dependent / "Cargo.toml")]
    cargo("add", "--quiet", *manifest, "--registry", "local", "upper", environment=environment)
    cargo("build", "--quiet", *manifest, environment=environment)


def test_a_directory_names_the_address_it_is_served_at(workspace: Path, tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    with static_server(served) as url:
        (workspace / "releasekit.toml").write_text(
            f'[cargo]\nverify = false\ndirectory-url = "{url}/"\n'
        )
        program = Program(home, toolchain(home))
        run = program.run("publish", workspace, "--cargo-registry", f"dir:{served}")
        assert run.code == 0, run.out + run.err
        assert url in (served / "config.json").read_text()
        fresh = tmp_path / "fresh"
        crates.write_config(fresh / "cargo", f"sparse+{url}/", replace=True)
        environment = {**os.environ, **toolchain(fresh), "CARGO_TARGET_DIR": str(fresh / "target")}
        dependent = tmp_path / "dependent"
        cargo("init", "--quiet", "--name", "dependent", dependent, environment=environment)
        manifest = ["--manifest-path", str(dependent / "Cargo.toml")]
        cargo("add", "--quiet", *manifest, "top@1", environment=environment)
        cargo("build", "--quiet", *manifest, environment=environment)
