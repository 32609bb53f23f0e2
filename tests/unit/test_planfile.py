from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import config, package, plan
from releasekit.errors import ConfigError, PlanError
from releasekit.plan.file import PlanFile
from releasekit.report import plan_json

if TYPE_CHECKING:
    from releasekit.model import Plan


def planned() -> Plan:
    made = plan(package("core"), package("app", "core"))
    steps = (
        replace(step, fingerprint=f"print of {step.package.id.name}") for step in made.packages
    )
    return replace(made, packages=tuple(steps))


@pytest.fixture
def file(tmp_path: Path) -> PlanFile:
    path = tmp_path / "plan.json"
    path.write_text(plan_json(planned(), Path("/workspace")))
    return PlanFile.read(path)


def test_the_same_sources_are_what_was_planned(file: PlanFile) -> None:
    file.check(planned())


def test_another_commit_is_refused(file: PlanFile) -> None:
    """R20"""
    with pytest.raises(PlanError, match="was planned at c0ffee, the sources are at deadbeef"):
        file.check(replace(planned(), commit="deadbeef"))


def test_another_package_is_refused_by_name(file: PlanFile) -> None:
    """R20"""
    core, app = planned().packages
    changed = replace(planned(), packages=(core, replace(app, fingerprint="another")))
    with pytest.raises(PlanError, match="fake:app is not what was planned"):
        file.check(changed)


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, ("fake:core", "fake:app")),
        ({"packages": ("a*",)}, ("fake:app",)),
        ({"exclude_packages": ("app",)}, ("fake:core",)),
        ({"ecosystems": ("fake",)}, ("fake:core", "fake:app")),
    ],
)
def test_a_job_takes_its_part(
    file: PlanFile, changes: dict[str, object], chosen: tuple[str, ...]
) -> None:
    narrowed = file.narrowed(replace(config(Path("/workspace")), **changes))  # type: ignore[arg-type]
    assert (narrowed.packages, narrowed.exclude_packages) == (chosen, ())


def test_a_part_without_packages_is_a_mistake(file: PlanFile) -> None:
    with pytest.raises(ConfigError, match="none of its packages is chosen"):
        file.narrowed(config(Path("/workspace"), ecosystems=("other",)))


def test_a_plan_file_gives_back_the_graph(file: PlanFile) -> None:
    assert file.plan().edges() == planned().edges()
    assert [step.package.version for step in file.plan().packages] == ["1.0", "1.0"]
    assert file.plan().digest == planned().digest


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": 1}', '{"schema": 1, "commit": "", "digest": "", "packages": [7]}'],
)
def test_what_is_no_plan_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"plan\.json: is not a plan file"):
        PlanFile.read(path)


def test_a_newer_plan_is_refused(file: PlanFile) -> None:
    document = json.loads(file.path.read_text()) | {"schema": 99}
    file.path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="plan schema 99"):
        PlanFile.read(file.path)


def test_a_missing_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json: cannot be read"):
        PlanFile.read(tmp_path / "gone.json")
