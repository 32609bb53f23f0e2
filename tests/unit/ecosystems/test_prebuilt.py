"""Files that were built elsewhere, of an ecosystem whose files say of themselves who they are."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import pytest

import fakes
from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, package_id
from releasekit.config.declaration import Declaration, EcosystemDeclaration
from releasekit.config.tables import OptionTable
from releasekit.config.values import Dist
from releasekit.ecosystems.interface import Contained, Target
from releasekit.ecosystems.prebuilt import with_prebuilt
from releasekit.ecosystems.shared.artifacts import copied
from releasekit.errors import (
    BuildFailed,
    ConfigError,
    PackageError,
    PlanError,
    ReleasekitError,
    Transient,
)
from releasekit.fields import replace
from releasekit.model import Action, Dependency, DependencyKind, Outcome, Package
from releasekit.plan.make import make_plan
from releasekit.state.journal import History, read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import PackageId, Plan

CORE = package("core")
APP = package("app", "core")


def declaration(name: str, *suffixes: str) -> EcosystemDeclaration:
    return EcosystemDeclaration(
        name=name,
        folder="",
        title="",
        registry=Declaration.registry(f"{name}-registry", ""),
        options=OptionTable,
        suffixes=suffixes,
    )


ECOSYSTEMS = {"fake": declaration("fake", ".pkg"), "other": declaration("other", ".oth")}


@dataclass
class FakePrebuilt:
    """A file is JSON: name, version, and what it needs."""

    completed: list[str] = field(default_factory=list)
    algorithms: Sequence[str] = ("sha256",)

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        try:
            said = json.load(file)
        except ValueError as error:
            raise PackageError(f"{path}: not a readable archive") from error
        needs = tuple(
            Dependency(on=package_id(name), kind=DependencyKind.OPTIONAL, requirement=wanted)
            for name, wanted in said.get("needs", {}).items()
        )
        return Contained(name=said["name"], version=said["version"], dependencies=needs)

    def admits(self, requirement: str, version: str) -> bool:
        if requirement == "?":
            raise ValueError("'?' is no requirement")
        return requirement in {"*", version}

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        self.completed += [package.id.name for package in packages]
        return {each.id: copied(each.prebuilt, into(each), "sha256") for each in packages}


def bring(directory: Path, filename: str, name: str, version: str = "1.0", **more: object) -> Path:
    path = directory / filename
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"name": name, "version": version, **more}))
    return path


@dataclass
class Case:
    """A workspace below `root`, with `dist` beside it."""

    root: Path
    packages: Sequence[Package] = (CORE, APP)
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    prebuilt: FakePrebuilt | None = field(default_factory=FakePrebuilt)
    dist: Sequence[Dist] = ()

    def targets(self, **changes: object) -> dict[str, Target]:
        workspace = FakeWorkspace([self._placed(each) for each in self.packages])
        target = FakeTarget(workspace, self.registry, prebuilt=self.prebuilt)
        places = tuple(self.dist) or (Dist(self.root / "dist", "dist"),)
        config = fakes.config(self.root, **changes)
        return asyncio.run(
            with_prebuilt({"fake": target}, places, config.package_filter, ECOSYSTEMS)
        )

    def found(self, **changes: object) -> dict[str, Package]:
        return {each.id.name: each for each in self.targets(**changes)["fake"].workspace.packages}

    def refusal(self, kind: type[ReleasekitError] = PlanError, **changes: object) -> str:
        with pytest.raises(kind) as caught:
            self.targets(**changes)
        assert "\n" not in str(caught.value)
        assert caught.value.hint
        return str(caught.value)

    def plan(self) -> Plan:
        config = fakes.config(self.root)
        return asyncio.run(make_plan(config, self.targets(), History(), commit="c0ffee"))

    def _placed(self, package: Package) -> Package:
        (self.root / package.id.name).write_text("")
        return replace(package, manifest=self.root / package.id.name, directory=self.root)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    root = tmp_path.resolve()
    (root / "dist").mkdir()
    return Case(root)


def test_without_dist_nothing_changes(tmp_path: Path) -> None:
    target = FakeTarget(FakeWorkspace([CORE]), FakeRegistry())
    config = fakes.config(tmp_path)
    assert asyncio.run(
        with_prebuilt({"fake": target}, config.dist, config.package_filter, ECOSYSTEMS)
    ) == {"fake": target}


def test_files_reach_their_packages_at_any_depth(case: Case) -> None:
    one = bring(case.root / "dist", "core-a.pkg", "core")
    other = bring(case.root / "dist" / "deep" / "er", "core-b.pkg", "core", extra="other")
    bring(case.root / "dist", "theirs.oth", "what nobody reads")
    found = case.found()
    assert [artifact.path for artifact in found["core"].prebuilt] == [one, other]
    assert found["core"].prebuilt[0].sha256 == hashlib.sha256(one.read_bytes()).hexdigest()
    assert found["core"].prebuilt[0].size == one.stat().st_size
    assert found["app"].prebuilt == ()
    assert len({*found.values()}) == 2


def test_what_came_is_sent_as_it_is_and_the_rest_is_built(case: Case) -> None:
    """R1, R17"""
    path = bring(case.root / "dist", "core-a.pkg", "core")
    made, targets = case.plan(), case.targets()
    assert [step.reason for step in made.packages] == [
        "not on the registry; 1 file built elsewhere",
        "not on the registry",
    ]
    ended = fakes.released(case.root, targets["fake"], made)
    assert {result.outcome for result in ended.values()} == {Outcome.PUBLISHED}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert case.registry.files["core"] == {"core-a.pkg": f"sha256:{digest}"}
    assert [*case.registry.files["app"]] == ["app-1.0.pkg"]
    assert case.prebuilt is not None
    assert case.prebuilt.completed == ["core"]


def test_one_batch_takes_both(case: Case) -> None:
    bring(case.root / "dist", "core-a.pkg", "core")
    target = case.targets()["fake"]
    assert target.workspace.pin("@core", {"core": "1"}) == "core==1"
    into = case.root / "into"
    packages = target.workspace.packages
    assert len(target.workspace.batches(packages)) == 2
    built = asyncio.run(target.workspace.build(packages, lambda each: into / each.id.name))
    assert {each.name: [*map(str, result)] != [] for each, result in built.items()} == {  # type: ignore[arg-type]
        "core": True,
        "app": True,
    }


def test_a_file_that_changes_after_the_plan_is_not_sent(case: Case) -> None:
    """R17"""
    path = bring(case.root / "dist", "core-a.pkg", "core")
    target = case.targets()["fake"]
    (core, _) = target.workspace.packages
    path.write_text(path.read_text().replace("core", "curl"))
    into = case.root / "into"
    (built,) = asyncio.run(target.workspace.build([core], lambda _: into)).values()
    assert isinstance(built, BuildFailed)
    assert str(built) == f"{path}: it is not what it was when it was planned"
    assert not into.exists()


def test_an_upload_that_was_begun_is_completed_with_its_own_bytes(case: Case) -> None:
    """R18, R21: whatever another build has put into dist since."""
    path = bring(case.root / "dist", "core-a.pkg", "core")
    first = hashlib.sha256(path.read_bytes()).hexdigest()
    case.packages = (CORE,)
    case.registry.faults["core"] = [Transient("cut off", ambiguous=True)]
    targets = case.targets()
    ended = fakes.released(case.root, targets["fake"], case.plan(), max_retries=0)
    assert ended["core"].outcome is Outcome.UNKNOWN
    bring(case.root / "dist", "core-a.pkg", "core", other=1)
    history = read_history(case.root / ".releasekit", seal=fakes.SEAL)
    config = fakes.config(case.root)
    made = asyncio.run(make_plan(config, case.targets(), history, commit=""))
    assert made.packages[0].action is Action.UPLOAD
    fakes.released(case.root, case.targets()["fake"], made)
    assert case.registry.files["core"] == {"core-a.pkg": f"sha256:{first}"}


def test_a_plan_is_about_the_very_bytes(case: Case) -> None:
    """R20"""
    bring(case.root / "dist", "core-a.pkg", "core")
    first = case.plan()
    bring(case.root / "dist", "core-a.pkg", "core", other=1)
    assert case.plan().digest != first.digest


def test_other_bytes_on_the_registry_are_refused_in_the_plan(case: Case) -> None:
    """R17"""
    bring(case.root / "dist", "core-a.pkg", "core")
    case.registry.files["core"] = {"core-a.pkg": "sha256:00"}
    step = case.plan().packages[0]
    assert step.action is Action.REFUSE
    assert "the registry holds core-a.pkg with sha256:00" in step.reason


def test_what_only_the_file_needs_goes_first(case: Case) -> None:
    """R1: napi writes the native packages into the main one when it is packed."""
    bring(case.root / "dist", "core-a.pkg", "core", needs={"native": "1.0", "elsewhere": "9"})
    case.packages = (CORE, package("native"))
    assert case.found()["core"].dependencies == (
        Dependency(on=package_id("native"), kind=DependencyKind.OPTIONAL, requirement="1.0"),
        Dependency(on=package_id("elsewhere"), kind=DependencyKind.OPTIONAL, requirement="9"),
    )


def test_what_the_manifest_takes_from_the_registry_a_file_may_take_too(case: Case) -> None:
    """R1: what is built of the same manifest would go out."""
    older = Dependency(on=package_id("core"), requirement="0.9")
    case.packages = (CORE, replace(package("app"), elsewhere=(older,)))
    bring(case.root / "dist", "app.pkg", "app", needs={"core": "0.9"})
    assert case.found()["app"].dependencies == ()


def test_what_the_manifest_says_already_is_not_said_twice(case: Case) -> None:
    bring(case.root / "dist", "app.pkg", "app", needs={"core": "1.0", "app": "1.0"})
    assert case.found()["app"].dependencies == APP.dependencies


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"version": "0.9"}, "{path} is fake:core 0.9, but 1.0 is planned"),
        (
            {"name": "cor"},
            "{path} is fake:cor 1.0, and no package here has that name, did you mean 'core'?",
        ),
        (
            {"name": "hidden"},
            "{path} is fake:hidden 1.0, which is never published: it is private",
        ),
        (
            {"needs": {"app": "2.0"}},
            "{path} requires app 2.0, but the workspace has app 1.0",
        ),
        ({"needs": {"app": "?"}}, "{path}: it requires app: '?' is no requirement"),
    ],
)
def test_what_is_not_planned_is_named_with_what_is(
    case: Case, said: dict[str, object], words: str
) -> None:
    """One line has the file, what it says of itself, and what is planned."""
    path = bring(case.root / "dist", "a.pkg", "core")
    path.write_text(json.dumps({"name": "core", "version": "1.0", **said}))
    case.packages = (CORE, APP, package("hidden", unpublishable="it is private"))
    assert case.refusal() == words.format(path=path)


def test_a_damaged_file_is_one_line(case: Case) -> None:
    """What its ecosystem says of it ends the plan."""
    path = case.root / "dist" / "core.pkg"
    path.write_bytes(b"PK")
    assert case.refusal() == f"{path}: not a readable archive"


def test_two_files_of_one_name_are_the_same(case: Case) -> None:
    one = bring(case.root / "dist" / "a", "core.pkg", "core")
    two = bring(case.root / "dist" / "b", "core.pkg", "core")
    assert len(case.found()["core"].prebuilt) == 1
    bring(case.root / "dist" / "b", "core.pkg", "core", other=1)
    assert case.refusal() == f"{two} and {one} are two files of one name with different bytes"


def test_a_directory_may_be_for_one_package(case: Case) -> None:
    path = bring(case.root / "dist", "core.pkg", "core")
    case.dist = (Dist(case.root / "dist", "[dist]", "fake:core"),)
    assert case.found()["core"].prebuilt
    case.dist = (Dist(case.root / "dist", "[dist]", "fake:app"),)
    assert case.refusal() == (
        f"{path} is fake:core 1.0, and releasekit.toml says that its directory is for fake:app"
    )
    case.dist = (Dist(case.root / "dist", '[dist] "fake:cor"', "fake:cor"),)
    assert case.refusal(ConfigError) == (
        "[dist] \"fake:cor\" is not a package here, did you mean 'core'?"
    )


def test_where_nothing_is_built_there_is_no_file(case: Case) -> None:
    path = bring(case.root / "dist", "core.pkg", "core")
    case.prebuilt = None
    assert case.refusal(ConfigError).startswith(f"{path}: nothing is built for fake")


def test_files_of_ecosystems_that_the_run_is_not_about_are_left_alone(case: Case) -> None:
    bring(case.root / "dist", "core.pkg", "unknown")
    assert case.found(ecosystem=("other",))["core"].prebuilt == ()
    case.refusal()


def test_a_file_that_vanishes_is_one_line(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bring(case.root / "dist", "core.pkg", "core")

    def gone(*_: object) -> object:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("releasekit.ecosystems.prebuilt.durable.opened", gone)
    with pytest.raises(ConfigError, match="cannot be read \\(No such file"):
        case.targets()
    assert path.exists()
