"""Steps as packages: whose version they have, what it says of them, and where they may run."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

import fakes
from fakes import FakeRegistry, FakeTarget, FakeWorkspace
from releasekit.aio import Group
from releasekit.ecosystems import ECOSYSTEMS, folders
from releasekit.errors import ConfigError, MissingCredentials, ReleasekitError, Transient
from releasekit.host.edits import Edits
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Package, PackageId
from releasekit.plan.make import join_targets
from releasekit.problems import Problem
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Target

OWN = {"path": "Chart.yaml", "match": "^version: (.+)$"}
COMMANDS = {"check": "true", "publish": "true"}


def others(root: Path) -> dict[str, Target]:
    """Packages of other ecosystems, of which one has no version yet, and one is private."""
    found: dict[str, list[Package]] = {}
    for name, version, why in (
        ("npm:@acme/core", "1.4.0", ""),
        ("npm:app", "2.0.0", "its package.json says private: true"),
        ("npm:early", "", "it has no version"),
        ("go:acme.dev/mono", "v1.2.0", ""),
    ):
        package = Package(
            id=PackageId.parse(name),
            version=version,
            directory=root,
            manifest=root / "manifest",
            unpublishable=why,
        )
        found.setdefault(package.id.ecosystem, []).append(package)
    return {
        name: FakeTarget(FakeWorkspace(packages), FakeRegistry())
        for name, packages in found.items()
    }


def discover(
    root: Path,
    tables: object,
    environment: Mapping[str, str] | None = None,
    use: Callable[[Target], object] = lambda _: None,
    /,
    **changes: object,
) -> Target:
    """As a run does it, steps alone; `use` gets the target while all is open."""

    async def main() -> Target:
        config = fakes.config(root, ecosystem_tables={"step": tables}, **changes)
        given = {"HOME": str(root), "PATH": os.environ["PATH"], **(environment or {})}
        credentials = Credentials(snapshot(given), mask=lambda _: None)
        async with (
            Processes(environment=given) as processes,
            http_client() as http,
            Group() as group,
        ):
            services = fakes.make_services(config, http, processes, credentials)
            discovery = await folders.discovery(ECOSYSTEMS["step"], config, services).opened_in(
                group
            )
            target = await discovery.discover(root)
            joined = join_targets({**others(root), "step": target})["step"]
            if asyncio.iscoroutine(waiting := use(joined)):
                await waiting
            return joined

    return asyncio.run(main())


def find(root: Path, version: object, **changes: object) -> Package:
    step = {"version": version, **COMMANDS}
    (package,) = discover(root, {"image": step}, dry_run=True, **changes).workspace.packages
    return package


@pytest.mark.parametrize(
    ("on", "version"),
    [("npm:@acme/core", "1.4.0"), ("npm:app", "2.0.0"), ("go:acme.dev/mono", "1.2.0")],
)
def test_it_has_the_version_of_another_package(tmp_path: Path, on: str, version: str) -> None:
    """That of a private one too; and of a Go module without the `v` of its tags."""
    package = find(tmp_path, on)
    assert (str(package), package.follows) == (f"step:image {version}", PackageId.parse(on))
    assert not package.unpublishable
    assert not package.gets_version


def test_without_a_version_there_is_nothing_to_publish(tmp_path: Path) -> None:
    assert find(tmp_path, "npm:early").unpublishable == "npm:early: it has no version"


def test_one_that_is_not_here_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleasekitError) as raised:
        find(tmp_path, "npm:@acme/cor")
    assert str(raised.value) == (
        "releasekit.toml: [steps.image] version: npm:@acme/cor is not a package here, did you mean "
        "'npm:@acme/core'?"
    )


def test_it_has_a_version_of_its_own(tmp_path: Path) -> None:
    """And is versioned like any package: read at another time, and written."""
    chart = tmp_path / "chart"
    chart.mkdir()
    (chart / "Chart.yaml").write_text("name: app\nversion: 0.3.1\nappVersion: 9\n")
    step = {"version": OWN, "directory": "chart", **COMMANDS}
    target = discover(tmp_path, {"chart": step}, dry_run=True)
    (package,) = target.workspace.packages
    assert (str(package), package.directory) == ("step:chart 0.3.1", chart)
    assert package.gets_version
    versioning = target.versioning
    assert versioning.read_version(package, lambda _: b"version: 0.2.0\n") == "0.2.0"
    assert versioning.read_version(package, lambda _: None) == ""
    edits = Edits(tmp_path)
    versioning.edit({"chart": "0.4.0"}, edits, "raise")
    changed = {path: data.decode() for path, data in edits.list_changes().items() if data}
    assert changed == {chart / "Chart.yaml": "name: app\nversion: 0.4.0\nappVersion: 9\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`match` has to fit in one place"),
        ("version: 1.0.0\nversion: 1.0.0\n", "`match` has to fit in one place"),
        ("version: $(id)\n", "'$(id)' is not a version"),
    ],
)
def test_a_version_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "Chart.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"^releasekit.toml: .steps.image. version: ") as raised:
        find(tmp_path, OWN)
    assert said in str(raised.value)


def test_no_change_asks_for_a_version_that_it_has_from_another(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("version: 1.0.0\n")
    steps = {"image": {"version": "npm:app", **COMMANDS}, "chart": {"version": OWN, **COMMANDS}}
    target = discover(tmp_path, steps, dry_run=True)
    counts = {
        each.id.name: target.composition.make_filter(each, ["x"])("x")
        for each in target.workspace.packages
    }
    assert counts == {"image": False, "chart": True}


def test_a_run_that_publishes_nothing_asks_no_step(tmp_path: Path) -> None:
    async def ask(target: Target) -> None:
        (package,) = target.workspace.packages
        with pytest.raises(Transient, match="not asked"):
            await target.registry.lookup(package)

    step = {"version": "npm:app", **COMMANDS}
    discover(tmp_path, {"image": step}, {}, ask, dry_run=True)


def test_it_is_asked_all_the_same_where_that_is_wanted(tmp_path: Path) -> None:
    """R66: from the checkout, and without its secrets."""
    (tmp_path / "is-there").write_text('#!/bin/sh\ntest -z "$LOGIN" && test $1 = 2.0.0\n')
    (tmp_path / "is-there").chmod(0o755)

    async def ask(target: Target) -> None:
        (package,) = target.workspace.packages
        assert await target.registry.lookup(package)

    step = {"version": "npm:app", **COMMANDS, "check": "./is-there {version}", "secrets": ["LOGIN"]}
    environment = {"LOGIN": "a secret"}
    discover(tmp_path, {"image": step}, environment, ask, dry_run=True, ask_steps=True)


def committed(root: Path) -> None:
    (root / "script").write_text("#!/bin/sh\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")


@pytest.mark.parametrize(
    ("step", "environment", "kind", "said"),
    [
        (
            {},
            {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request"},
            ConfigError,
            "this is a job of a pull request",
        ),
        ({"secrets": ["LOGIN"]}, {}, MissingCredentials, "secrets: LOGIN is not set"),
        ({"secrets": ["LOGIN"]}, {"LOGIN": "x" * 20}, ConfigError, "builds of this run could read"),
        ({"identity": "https://x.example"}, {}, MissingCredentials, "identity: this job has no ID"),
        (
            {"check": "./nowhere"},
            {},
            ConfigError,
            "./nowhere is no file of the commit, below the root",
        ),
        ({"check": "./script"}, {}, ConfigError, "./script is not executable in the commit"),
        ({"publish": "no-such-tool"}, {}, ConfigError, "no-such-tool is not on PATH"),
    ],
)
def test_where_it_cannot_run_nothing_is_published(
    tmp_path: Path,
    step: Mapping[str, object],
    environment: Mapping[str, str],
    kind: type[ReleasekitError],
    said: str,
) -> None:
    """R69."""
    committed(tmp_path)
    with pytest.raises(kind) as raised:
        discover(tmp_path, {"image": {"version": "npm:app", **COMMANDS, **step}}, environment)
    assert said in str(raised.value)


def test_what_no_commit_has_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: this is no git repository$") as raised:
        discover(tmp_path, {"image": {"version": "npm:app", **COMMANDS}})
    assert raised.value.problem is Problem.STEP


def test_a_directory_takes_a_record_in_the_place_of_a_run(tmp_path: Path) -> None:
    """Nothing is run, and the next rehearsal finds it there."""

    async def publish(target: Target) -> None:
        (package,) = target.workspace.packages
        assert await target.registry.lookup(package) is None
        built = await target.workspace.build([package], lambda _: tmp_path / "built")
        files = built[package.id]
        assert isinstance(files, tuple)
        await target.registry.upload(package, files)
        assert await target.registry.lookup(package)
        assert target.is_repeatable

    step = {"version": "npm:app", "check": "false", "publish": "false"}
    registries = fakes.registries(step=f"dir:{tmp_path / 'registry'}")
    discover(tmp_path, {"image": step}, {}, publish, registries=registries)
    assert (tmp_path / "registry/image-2.0.0").read_text().startswith('{"step": "image"')


def test_an_address_is_no_place_for_steps(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="write dir:PATH"):
        find(tmp_path, "npm:app", registries=fakes.registries(step="https://x.example/"))


def test_a_group_that_takes_no_part_is_no_version(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("version:\n")
    with pytest.raises(ConfigError, match="fit in one place"):
        find(tmp_path, {"path": "Chart.yaml", "match": "^version:(?: ([0-9].+))?"})


def test_one_that_is_left_out_may_have_a_version_of_nothing_here(tmp_path: Path) -> None:
    why = find(tmp_path, "npm:nowhere", exclude_packages=("step:*",)).unpublishable
    assert why == "npm:nowhere is not a package here"
