from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import fakes
from fakes import (
    FakeRegistry,
    FakeTarget,
    FakeWorkspace,
    config,
    extra_edge,
    package,
    package_id,
    target,
)
from raising import raises
from releasekit.config.package_filter import PackageFilter
from releasekit.ecosystems.interface import Discovery, Target
from releasekit.errors import ConfigError, Cycle, PlanError, Transient
from releasekit.fields import replace
from releasekit.model import Action, DependencyKind, Package, PackageId, Plan
from releasekit.plan.holdings import NO_TREE
from releasekit.plan.make import discover, make_plan, suggest_way_out, with_doubt
from releasekit.problems import Problem
from releasekit.state.journal import History

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CORE = package("core")
APP = package("app", "core")
CLI = package("cli", "app")


def plan_of(
    root: Path,
    *packages: Package,
    registry: FakeRegistry | None = None,
    is_new: Callable[[PackageId], bool] | None = None,
    **changes: object,
) -> Plan:
    placed = [replace(p, manifest=root / p.id.name, directory=root) for p in packages]
    for p in placed:
        if not p.manifest.exists():
            p.manifest.write_text(f"{p.id.name} needs @core\n")
    workspace = FakeWorkspace(packages=placed)
    targets = {"fake": FakeTarget(workspace, registry or FakeRegistry(), is_new=is_new)}
    settings = config(root, **changes)
    return asyncio.run(make_plan(settings, targets, History(), commit="c0ffee"))


class Meeting:
    """An ecosystem whose discovery ends once all of them are under way."""

    def __init__(self, name: str, together: asyncio.Barrier) -> None:
        self.name = name
        self.together = together

    async def discover(self, root: Path) -> FakeWorkspace:
        await self.together.wait()
        return FakeWorkspace(packages=[package(f"{self.name} in {root.name}")])


def test_ecosystems_are_looked_for_side_by_side(tmp_path: Path) -> None:
    async def main() -> dict[str, Target]:
        together, registry = asyncio.Barrier(2), FakeRegistry()
        discoveries = {
            name: Discovery.joining(Meeting(name, together), registry) for name in ("pypi", "npm")
        }
        return await discover(tmp_path, discoveries, NO_TREE)

    targets = asyncio.run(main())
    assert {name: target.workspace.packages[0].id.name for name, target in targets.items()} == {
        name: f"{name} in {tmp_path.name}" for name in ("pypi", "npm")
    }


def names(plan: Plan) -> list[str]:
    return [step.package.id.name for step in plan.packages]


def registry_with(*names: str) -> FakeRegistry:
    return FakeRegistry(files={name: {f"{name}-1.0.pkg": "sha256:00"} for name in names})


def test_what_is_kept_is_not_pending_and_nobody_waits_for_it() -> None:
    made = fakes.plan(CORE, APP, CLI, actions={"core": Action.KEEP})
    app, cli = package_id("app"), package_id("cli")
    assert made.pending() == {app: frozenset(), cli: frozenset({app})}


def test_dependencies_come_first_and_ties_by_name(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, CLI, package("zoo"), APP, CORE, package("art"))
    assert names(plan) == ["art", "core", "app", "cli", "zoo"]


def test_what_the_registry_has_is_kept(tmp_path: Path) -> None:
    """R19"""
    plan = plan_of(tmp_path, APP, CORE, registry=registry_with("core"))
    assert [step.action for step in plan.packages] == [Action.KEEP, Action.PUBLISH]


def test_the_digest_follows_the_sources_not_the_registry(tmp_path: Path) -> None:
    """R20"""
    first = plan_of(tmp_path, APP, CORE)
    assert plan_of(tmp_path, CORE, APP, registry=registry_with("core")).digest == first.digest
    assert plan_of(tmp_path, replace(CORE, version="2.0"), APP).digest != first.digest
    (tmp_path / "core").write_text("changed\n")
    assert plan_of(tmp_path, APP, CORE).digest != first.digest


def test_a_cycle_is_named_whole(tmp_path: Path) -> None:
    """R7"""
    with pytest.raises(Cycle) as caught:
        plan_of(tmp_path, package("a", "b"), package("b", "c"), package("c", "a"))
    assert all(f"fake:{name}" in str(caught.value) for name in "abc")


def test_a_name_may_stand_once_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the name 'core' is taken by"):
        plan_of(tmp_path, CORE, replace(CORE, version="2.0"))


@pytest.mark.parametrize("public_first", [True, False])
def test_a_name_may_stand_again_in_private(tmp_path: Path, public_first: bool) -> None:
    private = replace(CORE, version="2.0", unpublishable="it says so")
    both = [CORE, private] if public_first else [private, CORE]
    made = plan_of(tmp_path, APP, *both)
    assert [str(step.package) for step in made.packages] == ["fake:core 1.0", "fake:app 1.0"]


def test_who_means_the_private_one_of_that_name_is_refused(tmp_path: Path) -> None:
    edge = replace(APP.dependencies[0], private="it says so")
    with pytest.raises(PlanError, match=r"app needs core .*never published: it says so"):
        plan_of(tmp_path, replace(APP, dependencies=(edge,)), CORE)


def test_an_empty_workspace_says_how_to_name_another(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no package here") as caught:
        plan_of(tmp_path)
    assert "working-directory" in caught.value.hint


def test_private_packages_are_listed_not_planned(tmp_path: Path) -> None:
    private = package("tools", unpublishable="it says so")
    plan = plan_of(tmp_path, CORE, private)
    assert names(plan) == ["core"]
    assert [p.id.name for p in plan.private] == ["tools"]


@pytest.mark.parametrize(
    ("name", "where", "doubt"),
    [
        ("app", "app-integration-tests", "lies in a directory called `app-integration-tests`"),
        ("app-tests", "app", "has the name of tests"),
        ("app-test", "app-test", ""),
        ("attests", "tests-app", ""),
    ],
)
def test_what_ends_in_tests_is_hardly_meant(
    tmp_path: Path, name: str, where: str, doubt: str
) -> None:
    """R1: unlike what helps others to test."""
    found = with_doubt(replace(package(name), directory=tmp_path / where), tmp_path)
    assert found.doubt == doubt


def test_what_lies_among_examples_is_published_and_named(tmp_path: Path) -> None:
    """R1: it is a member, and nothing calls it private."""
    below = tmp_path / "examples"
    below.mkdir()
    hello = replace(package("hello"), directory=below, manifest=tmp_path / "hello")
    hello.manifest.write_text("hello needs @core\n")
    core = replace(CORE, directory=tmp_path, manifest=hello.manifest)
    targets = target(FakeWorkspace(packages=[core, hello]), FakeRegistry())
    made = asyncio.run(make_plan(config(tmp_path), targets, History(), commit="c0ffee"))
    assert names(made) == ["core", "hello"]
    (note,) = [note for note in made.notes if "examples" in note]
    assert "fake:hello" in note
    assert "core" not in note


@pytest.mark.parametrize("kind", [DependencyKind.RUNTIME, DependencyKind.BUILD])
def test_needing_a_private_package_is_an_error(tmp_path: Path, kind: DependencyKind) -> None:
    private = package("tools", unpublishable="it says so")
    with pytest.raises(PlanError, match=r"app needs tools .*never published: it says so"):
        plan_of(tmp_path, package("app", "tools", kind=kind), private)


def test_one_run_names_all_that_has_to_be_left_out(tmp_path: Path) -> None:
    """R40: a chain took one run for each of its packages."""
    chain = [package(f"p{number}", f"p{number - 1}") for number in range(1, 5)]
    with raises(Problem.NEEDS_PRIVATE, match="p1 needs p0") as caught:
        plan_of(tmp_path, package("p0", unpublishable="it says so"), package("alone"), *chain)
    assert (
        "leave p1 and what needs it (p2, p3, p4) out with `exclude-packages`" in caught.value.hint
    )
    with raises(Problem.NEEDS_LEFT_OUT, match="p2 needs p1") as caught:
        plan_of(tmp_path, package("p1"), *chain[1:], exclude_packages=("p1",))
    assert "or leave p2 and what needs it (p3, p4) out" in caught.value.hint


def test_what_needs_another_ecosystem_may_be_left_out_too(tmp_path: Path) -> None:
    """R40: an ecosystem is left out where its tool is missing."""
    about = PackageFilter(known=("cargo", "npm"), only=("npm",))
    hint = suggest_way_out(PackageId("cargo", "core"), "cargo:core", "app", about)
    assert "`ecosystem: cargo,npm`" in hint
    assert hint.endswith("or leave app out with `exclude-packages`.")


@pytest.mark.parametrize("there", [False, True])
def test_what_no_run_publishes_has_to_be_on_the_registry(tmp_path: Path, there: bool) -> None:
    """R48: between two tags, a sibling is taken from the registry, if that has any version."""
    draft = package("core", version="1.1.dev0", unpublishable="it is between two tags")
    app = replace(package("app"), elsewhere=APP.dependencies)

    def planned(registry: FakeRegistry) -> list[str]:
        return names(plan_of(tmp_path, app, draft, registry=registry, is_new=lambda _: not there))

    if not there:
        with raises(
            Problem.NEEDS_LEFT_OUT,
            match="app needs core, which is left out and not published yet: it is between",
        ):
            planned(FakeRegistry())
        # What is published is so for good.
        assert planned(registry_with("app")) == ["app"]
    else:
        assert planned(FakeRegistry()) == ["app"]


def optional(name: str, on: str) -> Package:
    """As pip's extras and npm's optionalDependencies make it."""
    made = package(name, on, kind=DependencyKind.OPTIONAL)
    return replace(made, dependencies=(replace(made.dependencies[0], soft=True),))


def test_an_optional_private_dependency_is_dropped_by_name(tmp_path: Path) -> None:
    """R68"""
    private = package("tools", unpublishable="it says so")
    plan = plan_of(tmp_path, optional("app", "tools"), private)
    assert plan.edges() == {package_id("app"): frozenset()}
    assert plan.notes == (
        (
            "fake:app is published without optional dependencies: tools (never published: it says "
            "so); users can install it, but not the parts that need these"
        ),
    )
    assert (
        plan_of(tmp_path, optional("app", "tools"), private, registry=registry_with("app")).notes
        == ()
    )


def test_an_optional_dependency_may_be_left_out_by_name(tmp_path: Path) -> None:
    """R65: pip, uv and npm install what an extra alone needs for those who ask for it."""
    above = package("above", "app")
    without = ("core",)
    plan = plan_of(tmp_path, optional("app", "core"), CORE, above, exclude_packages=without)
    assert names(plan) == ["app", "above"]
    assert "app is published without optional dependencies: core (left out and not" in plan.notes[0]
    there = registry_with("core")
    assert (
        plan_of(
            tmp_path, optional("app", "core"), CORE, exclude_packages=without, registry=there
        ).notes
        == ()
    )
    # Whoever asks for the extra needs all that it names.
    asking = package("above", "app", "core")
    with raises(Problem.NEEDS_LEFT_OUT, match="above needs core") as caught:
        plan_of(tmp_path, optional("app", "core"), CORE, asking, exclude_packages=without)
    assert "leave above out" in caught.value.hint


def test_an_optional_dependency_between_two_tags_may_be_nowhere(tmp_path: Path) -> None:
    """R65"""
    draft = package("core", version="1.1.dev0", unpublishable="it is between two tags")
    app = replace(package("app"), elsewhere=optional("app", "core").dependencies)
    plan = plan_of(tmp_path, app, draft, is_new=lambda _: True)
    assert "core (never published: it is between two tags)" in plan.notes[0]
    assert plan_of(tmp_path, app, draft, is_new=lambda _: False).notes == ()


@pytest.mark.parametrize("pattern", ["app", "fake:app", "a*"])
def test_patterns_choose_packages(tmp_path: Path, pattern: str) -> None:
    plan = plan_of(tmp_path, APP, CORE, packages=(pattern,), registry=registry_with("core"))
    assert names(plan) == ["app"]
    assert plan.versions == {"fake": {"app": "1.0", "core": "1.0"}}


def test_a_pattern_that_matches_nothing_is_a_typo(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="packages: 'cor' matches no package") as caught:
        plan_of(tmp_path, CORE, packages=("cor",))
    assert caught.value.hint == "Did you mean 'core'?"
    with pytest.raises(ConfigError, match="packages: 'core app' matches") as caught:
        plan_of(tmp_path, CORE, APP, packages=("core app",))
    assert caught.value.hint == "Write commas between names: core,app"
    with pytest.raises(ConfigError, match="exclude-packages: 'x'"):
        plan_of(tmp_path, CORE, exclude_packages=("x",))


@pytest.mark.parametrize(("only", "without"), [(("app",), ()), ((), ("core",))])
def test_leaving_out_an_unpublished_dependency_is_refused(
    tmp_path: Path, only: tuple[str, ...], without: tuple[str, ...]
) -> None:
    with pytest.raises(PlanError, match="app needs core, which is left out") as caught:
        plan_of(tmp_path, APP, CORE, packages=only, exclude_packages=without)
    assert "Add core to `packages`" in caught.value.hint


@pytest.mark.parametrize("only", ["app", "core"])
@pytest.mark.parametrize(
    "kind", [DependencyKind.RUNTIME, DependencyKind.PEER, DependencyKind.OPTIONAL]
)
def test_none_of_a_cycle_is_published_without_the_others(
    tmp_path: Path, only: str, kind: DependencyKind
) -> None:
    """R56: whichever dependency was set aside so that one of them can go first; it would be pinned
    to a version that is nowhere.
    """
    ring = [
        replace(made, dependencies=(replace(made.dependencies[0], soft=True),))
        for made in (package("app", "core", kind=kind), package("core", "app", kind=kind))
    ]
    assert sorted(names(plan_of(tmp_path, *ring))) == ["app", "core"]
    if kind is DependencyKind.OPTIONAL:
        alone = plan_of(tmp_path, *ring, packages=(only,))
        assert f"{only} is published without optional dependencies" in alone.notes[-1]
        return
    with pytest.raises(PlanError, match=f"{only} needs .*, which is left out"):
        plan_of(tmp_path, *ring, packages=(only,))
    there = registry_with("app", "core")
    assert names(plan_of(tmp_path, *ring, packages=(only,), registry=there)) == [only]


def test_what_a_plan_file_does_not_publish_is_left_out_where_the_registry_lacks_it(
    tmp_path: Path,
) -> None:
    """R20"""
    app = frozenset({package_id("app")})
    made = plan_of(tmp_path, CORE, APP, not_to_publish=app)
    assert names(made) == ["core"]
    assert made.notes == ("not published, as the plan file says: fake:app",)
    there = plan_of(tmp_path, CORE, APP, registry=registry_with("app"), not_to_publish=app)
    assert [(each.package.id.name, each.action) for each in there.packages] == [
        ("core", Action.PUBLISH),
        ("app", Action.KEEP),
    ]
    assert there.notes == ()


def test_what_needs_a_package_that_the_plan_file_leaves_out_is_refused(tmp_path: Path) -> None:
    core = frozenset({package_id("core")})
    with pytest.raises(PlanError, match="app needs core, which is left out") as caught:
        plan_of(tmp_path, CORE, APP, not_to_publish=core)
    assert caught.value.hint == "The plan file does not publish core: plan again with it."
    made = plan_of(tmp_path, CORE, APP, registry=registry_with("core"), not_to_publish=core)
    assert [each.action for each in made.packages] == [Action.KEEP, Action.PUBLISH]


def test_extra_edges_order_packages(tmp_path: Path) -> None:
    extra = (extra_edge("fake:art", "fake:zoo"),)
    plan = plan_of(tmp_path, package("zoo"), package("art"), extra_edges=extra)
    assert names(plan) == ["zoo", "art"]


def test_extra_edges_name_real_packages(tmp_path: Path) -> None:
    """R7"""
    with pytest.raises(PlanError, match="'fake:cor', which is not a package") as caught:
        plan_of(tmp_path, CORE, APP, extra_edges=(extra_edge("fake:app", "fake:cor"),))
    assert "'fake:core'" in caught.value.hint


class Choosy(FakeWorkspace):
    def pin(self, manifest: str, versions: object) -> str:
        raise PlanError("app asks for core>=2, the workspace has 1.0")


@pytest.mark.parametrize(("published", "refused"), [((), True), (("app", "core"), False)])
def test_unsatisfied_pins_fail_the_plan_of_what_is_built(
    tmp_path: Path, published: tuple[str, ...], refused: bool
) -> None:
    (tmp_path / "app").write_text("app\n")
    placed = replace(package("app"), manifest=tmp_path / "app")
    targets = target(Choosy(packages=[placed]), registry_with(*published))

    async def run() -> Plan:
        return await make_plan(config(tmp_path), targets, History(), commit="")

    if refused:
        with pytest.raises(PlanError, match="asks for core>=2"):
            asyncio.run(run())
    else:
        assert asyncio.run(run()).packages[0].action is Action.KEEP


class Down(FakeRegistry):
    async def lookup(self, package: Package) -> None:
        raise Transient(f"{self.url} does not answer.")


def test_a_registry_that_is_down_stops_the_plan(tmp_path: Path) -> None:
    """R16"""
    with pytest.raises(Transient, match="does not answer"):
        plan_of(tmp_path, CORE, APP, registry=Down())


@pytest.mark.parametrize(("mode", "dry_run"), [("plan", False), ("publish", True)])
def test_what_uploads_nothing_goes_on_without_it(tmp_path: Path, mode: str, dry_run: bool) -> None:
    """Also where a package needs one that was left out, which may be there."""
    plan = plan_of(
        tmp_path,
        *(CORE, APP),
        registry=Down(),
        exclude_packages=("core",),
        mode=mode,
        dry_run=dry_run,
    )
    (app,) = plan.packages
    assert (app.action, app.reason) == (Action.PUBLISH, "unknown whether it is published")
    (note,) = plan.notes
    assert note.startswith("fake: what is published is not known, and `publish` would end here: ")
    assert note.endswith(" does not answer.")
