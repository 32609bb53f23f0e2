from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import config, package, package_id, plan
from releasekit.errors import ConfigError, PlanError
from releasekit.fields import replace
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
    with pytest.raises(
        PlanError, match=r"fake:app is not what was planned: .* files that were built elsewhere, or"
    ):
        file.check(changed)


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, ("fake:core", "fake:app")),
        ({"packages": ("a*",)}, ("fake:app",)),
        ({"exclude_packages": ("app",)}, ("fake:core",)),
        ({"ecosystem": ("fake",)}, ("fake:core", "fake:app")),
    ],
)
def test_a_job_takes_its_part(
    file: PlanFile, changes: dict[str, object], chosen: tuple[str, ...]
) -> None:
    narrowed = file.narrowed(replace(config(Path("/workspace")), **changes))  # type: ignore[arg-type]
    assert (narrowed.packages, narrowed.exclude_packages) == (chosen, ())


def test_a_part_without_packages_is_a_mistake(file: PlanFile) -> None:
    with pytest.raises(ConfigError, match="none of its packages is chosen"):
        file.narrowed(config(Path("/workspace"), ecosystem=("other",)))


@pytest.mark.parametrize("action", ["keep", "await", "refuse"])
def test_what_it_does_not_publish_is_named(file: PlanFile, action: str) -> None:
    document = json.loads(file.path.read_text())
    document["packages"][1]["action"] = action
    file.path.write_text(json.dumps(document))
    narrowed = PlanFile.read(file.path).narrowed(config(Path("/workspace")))
    assert narrowed.packages == ("fake:core", "fake:app")
    assert narrowed.not_to_publish == {package_id("app")}


def test_nobody_waits_for_what_it_does_not_publish(file: PlanFile) -> None:
    document = json.loads(file.path.read_text())
    document["packages"][0]["action"] = "keep"
    file.path.write_text(json.dumps(document))
    core, app = planned().packages
    alone = replace(planned(), packages=(app,), foreign=(core.package,))
    with pytest.raises(PlanError, match="fake:core would be waited for, and this plan does not"):
        PlanFile.read(file.path).check(alone)


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


@pytest.mark.parametrize(("key", "value"), [("name", "a*"), ("name", "[a]pp"), ("ecosystem", "f*")])
def test_no_row_chooses_packages_by_a_pattern(file: PlanFile, key: str, value: str) -> None:
    """R20: it would publish what the plan and `exclude-packages` leave out."""
    document = json.loads(file.path.read_text())
    document["packages"][0][key] = value
    file.path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="is the name of no package"):
        PlanFile.read(file.path)


def test_a_newer_plan_is_refused(file: PlanFile) -> None:
    document = json.loads(file.path.read_text()) | {"schema": 99}
    file.path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="plan schema 99"):
        PlanFile.read(file.path)


def test_a_missing_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json: cannot be read"):
        PlanFile.read(tmp_path / "gone.json")
