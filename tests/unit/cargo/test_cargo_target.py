"""What a plan says of crates before they are built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.cargo import CargoOptions
from releasekit.ecosystems.cargo.destination import Destination
from releasekit.ecosystems.cargo.target import Cargo, CargoTarget, CargoWorkspace
from releasekit.fields import replace
from releasekit.model import Action, PlannedPackage

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
