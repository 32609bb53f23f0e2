"""What a plan says of crates before they are built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.cargo import CargoOptions
from releasekit.ecosystems.cargo.destination import Destination
from releasekit.ecosystems.cargo.discover import Crate, Need
from releasekit.ecosystems.cargo.target import Cargo, CargoTarget, CargoWorkspace
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.model import Action, Dependency, PackageId, PlannedPackage

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("verify", "action", "is_prebuilt", "is_said"),
    [
        (False, Action.PUBLISH, False, True),
        (True, Action.PUBLISH, False, False),
        (False, Action.PUBLISH, True, False),
        (False, Action.KEEP, False, False),
    ],
)
def test_a_plan_says_that_crates_are_not_compiled(
    tmp_path: Path, verify: bool, action: Action, is_prebuilt: bool, is_said: bool
) -> None:
    services = fakes.services(fakes.config(tmp_path), None)
    cargo = Cargo("auto", CargoOptions(verify=verify), services, Destination(), {})
    crate = fakes.package("a")
    if is_prebuilt:
        crate = replace(crate, prebuilt=(fakes.artifact(tmp_path / "a-1.0.0.crate", b""),))
    workspace = CargoWorkspace(packages=(crate,), crates={}, root=tmp_path, cargo=cargo)
    target = CargoTarget(workspace, fakes.FakeRegistry())
    notes = target.plan_notes([PlannedPackage(package=crate, action=action, reason="")])
    said = "cargo: `[cargo] verify` is false: no crate is compiled before it is published"
    assert notes == (said if is_said else "")


CORP = "sparse+https://corp.example/index/"


@pytest.mark.parametrize(
    ("seen", "config", "registry", "calls"),
    [
        (True, "", "", 2),
        (True, "", CORP, 2),
        (False, "", CORP, 1),
        (True, "", "sparse+https://third.example/index/", 1),
        (True, '[source.crates-io]\nreplace-with = "vendored"\n', "", 1),
    ],
    ids=["none named", "its own", "private", "another", "vendored"],
)
def test_where_cargo_may_not_find_what_was_packaged_before_one_call_does_it_all(
    tmp_path: Path, *, seen: bool, config: str, registry: str, calls: int
) -> None:
    """R65: the other crates would be compiled again for each call that needs them."""
    if config:
        (tmp_path / ".cargo").mkdir()
        (tmp_path / ".cargo" / "config.toml").write_text(config)
    services = fakes.services(fakes.config(tmp_path), None)
    services = replace(services, processes=Processes(environment={}))
    index = CORP.removeprefix("sparse+")
    files: dict[str, bytes | None] = {f"{index}1/a": None} if seen else {}
    destination = Destination(index=index, stands_for=index)
    cargo = Cargo("auto", CargoOptions(), services, destination, files)
    elsewhere = Need(name="x", path=None, requirement="^1", kind="normal", registry=registry)
    crates = {
        name: Crate(
            name=name,
            version="1.0.0",
            manifest=tmp_path / name / "Cargo.toml",
            workspace=tmp_path,
            publish=None,
            needs=(elsewhere,),
        )
        for name in "ab"
    }
    first, second = (replace(fakes.package(name), id=PackageId("cargo", name)) for name in "ab")
    second = replace(second, dependencies=(Dependency(on=first.id),))
    workspace = CargoWorkspace(packages=(first, second), crates=crates, root=tmp_path, cargo=cargo)
    target = CargoTarget(workspace, fakes.FakeRegistry())
    assert len(workspace.batches([first, second])) == calls
    # One call may have to package both.
    assert target.list_pinned([first], [first, second]) == [first, second]
    assert target.list_pinned([first], []) == [first]
