from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Self

import pytest

from fakes import (
    FakeRegistry,
    FakeTarget,
    FakeWorkspace,
    artifact,
    config,
    package,
    package_id,
    plan,
    released,
)
from releasekit.config.levels import Levels, WarningLevel
from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.host.sandbox import UNCONFINED, Sandbox
from releasekit.model import (
    Action,
    Artifact,
    Dependency,
    DependencyKind,
    Outcome,
    PackageWarning,
    Published,
    Report,
    Result,
    WarningName,
)
from releasekit.plan.holdings import read_tree
from releasekit.plan.source import read_checkout
from releasekit.plan.warnings import refuse_errors, with_warnings
from releasekit.problems import Problem
from releasekit.report import plan_json, plan_summary, plan_table, results_table, summary
from releasekit.report.remarks import warning_annotations, warning_lines
from releasekit.report.results import load_results, results_json
from releasekit.state.history import History, HistoryEntry
from releasekit.text.escape import code, markdown
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Plan

CORE, APP = package("core"), package("app", "core")
UNBUMPED = "but its version did not: bump it"
EMPTY = PackageWarning(name=WarningName.EMPTY_PACKAGE, message="there is nothing in it")


def warned(
    root: Path,
    made: Plan,
    target: Target,
    history: History | None = None,
    *,
    sandbox: Sandbox = UNCONFINED,
    tags: Mapping[PackageId, str] | None = None,
    **changes: object,
) -> Plan:
    async def main() -> Plan:
        async with Processes(environment=dict(os.environ), sandbox=sandbox) as processes:
            settings = config(root, **changes)
            checkout = await read_checkout(root, processes)
            return await with_warnings(
                replace(made, commit=made.commit and checkout.commit),
                root,
                settings.levels,
                {"fake": target},
                history or History(),
                processes,
                tree=await read_tree(root, processes),
                uncommitted=checkout.uncommitted,
                tags=tags or {},
            )

    return asyncio.run(main())


def names(made: Plan) -> dict[str, list[str]]:
    return {
        each.package.id.name: [warning.name.value for warning in each.warnings]
        for each in made.packages
    }


@pytest.mark.parametrize(
    ("action", "lacking", "level", "found"),
    [
        (Action.PUBLISH, "macOS has no Landlock", WarningLevel.WARN, ["unsandboxed"]),
        (Action.PUBLISH, "macOS has no Landlock", WarningLevel.IGNORE, []),
        (Action.PUBLISH, "", WarningLevel.WARN, []),
        (Action.UPLOAD, "macOS has no Landlock", WarningLevel.WARN, []),
    ],
)
def test_who_builds_without_a_sandbox_is_warned(
    tmp_path: Path, action: Action, lacking: str, level: WarningLevel, found: list[str]
) -> None:
    """R50: not who wrote `off`, nor for what is built already."""
    made = plan(CORE, actions={"core": action})
    levels = Levels({WarningName.UNSANDBOXED: level})
    workspace = FakeWorkspace((CORE,))
    target = FakeTarget(workspace=workspace, registry=FakeRegistry())
    within = Sandbox(words="", lacking=lacking)
    warned_of = warned(tmp_path, made, target, sandbox=within, levels=levels)
    assert names(warned_of) == {"core": found}
    for each in warned_of.packages[0].warnings:
        assert each.message.startswith(lacking)
    brought = replace(CORE, prebuilt=(artifact(tmp_path / "core.tgz", b"1"),))
    assert names(warned(tmp_path, plan(brought), target, sandbox=within)) == {"core": []}


async def empty(_package: Package, artifacts: Sequence[Artifact]) -> list[PackageWarning]:
    return [EMPTY] if artifacts else []


async def foreseen(package: Package, artifacts: Sequence[Artifact]) -> list[PackageWarning]:
    return [EMPTY] if package == CORE and not artifacts else []


def placed(made: Plan, root: Path) -> Plan:
    """`made` with a directory for each package, in git."""
    steps = []
    for step in made.packages:
        directory = (root / step.package.id.name).resolve()
        directory.mkdir()
        (directory / "a.py").write_text("1")
        steps.append(replace(step, package=replace(step.package, directory=directory)))
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return replace(made, packages=tuple(steps))


def moved(made: Plan, root: Path) -> Plan:
    """The packages of `made` in another clone."""
    packages = (
        replace(each, package=replace(each.package, directory=root / each.package.id.name))
        for each in made.packages
    )
    return replace(made, packages=tuple(packages))


def with_prebuilt_files(made: Plan, name: str) -> Plan:
    packages = (
        replace(each, package=replace(each.package, prebuilt=(artifact(Path(name), b""),)))
        if each.package.id.name == name
        else each
        for each in made.packages
    )
    return replace(made, packages=tuple(packages))


def test_a_name_that_is_new_is_said(tmp_path: Path) -> None:
    """R49: not of what is kept, nor of what an earlier run has begun to send."""
    made = plan(CORE, APP, package("cli"), actions={"app": Action.KEEP, "cli": Action.UPLOAD})
    begun = replace(made.packages[2], begun=True)
    made = replace(made, packages=(*made.packages[:2], begun), commit="")
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), is_new=lambda _: True)
    assert names(warned(tmp_path, made, target)) == {"core": ["new-name"], "app": [], "cli": []}


@pytest.mark.parametrize(
    ("given", "is_error"), [(None, True), (WarningLevel.WARN, False), (WarningLevel.ERROR, True)]
)
def test_a_new_name_that_is_hardly_meant_is_an_error(
    tmp_path: Path, given: WarningLevel | None, is_error: bool
) -> None:
    """R49: a name is taken for good; releasekit.toml may say that all of them are meant."""
    doubtful = replace(CORE, doubt="lies in a directory called `examples`")
    levels = Levels({} if given is None else {WarningName.NEW_NAME: given})
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), is_new=lambda _: True)
    made = replace(plan(doubtful, APP), commit="")
    core, app = warned(tmp_path, made, target, levels=levels).packages
    (found,) = core.warnings
    assert found.error is is_error
    assert "it lies in a directory called `examples`: leave it out with" in found.message
    assert [each.error for each in app.warnings] == [given is WarningLevel.ERROR]


@pytest.mark.parametrize(
    ("needs", "known", "is_error"),
    [((), {"core"}, True), ((), set(), False), (("core",), {"core"}, False)],
)
def test_a_new_root_of_known_packages_is_an_error(
    tmp_path: Path, needs: tuple[str, ...], known: set[str], *, is_error: bool
) -> None:
    """R49: it is there for the tools, unless it needs them, or all are new."""
    root = replace(package("dev", *needs), directory=tmp_path)
    core = replace(CORE, directory=tmp_path / "core")
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), is_new=lambda each: each.name not in known)
    made = replace(plan(core, root, actions={"core": Action.KEEP}), commit="")
    (warning,) = warned(tmp_path, made, target).packages[1].warnings
    assert warning.error is is_error
    assert ("the root of a workspace whose core is known" in warning.message) is is_error


def test_no_two_directories_are_compared(tmp_path: Path) -> None:
    """R49: what lies below a new package is found without looking at all others for each."""
    looks = 0

    class Directory(PosixPath):
        @property
        def parents(self) -> Sequence[Self]:
            nonlocal looks
            looks += 1
            return super().parents

    each = [replace(package(f"p{n}"), directory=Directory(tmp_path / f"p{n}")) for n in range(9)]
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), is_new=lambda _: True)
    warned(tmp_path, replace(plan(*each), commit=""), target)
    assert looks == len(each)


@pytest.mark.parametrize(
    ("exact", "core", "expected"),
    [
        (True, Action.PUBLISH, ["older-sibling"]),
        (True, Action.UPLOAD, ["older-sibling"]),
        (True, Action.KEEP, []),
        (False, Action.PUBLISH, []),
    ],
)
def test_a_kept_package_pinned_to_an_older_sibling_is_said(
    tmp_path: Path, *, exact: bool, core: Action, expected: list[str]
) -> None:
    """R49: nobody can install both."""
    app = replace(APP, dependencies=tuple(replace(d, exact=exact) for d in APP.dependencies))
    made = replace(plan(CORE, app, actions={"core": core, "app": Action.KEEP}), commit="")
    found = warned(tmp_path, made, FakeTarget(FakeWorkspace(), FakeRegistry()))
    assert names(found)["app"] == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [({"core": "==1.0"}, []), ({"core": "==0.9"}, ["older-sibling"]), ({}, ["older-sibling"])],
)
def test_a_registry_is_asked_what_a_kept_package_requires(
    tmp_path: Path, told: dict[str, str], expected: list[str]
) -> None:
    """R65: once, and where neither files of an earlier run nor a tag tell."""
    asked: list[Package] = []

    async def read_asked(package: Package) -> Mapping[str, str]:
        asked.append(package)
        return told

    app = replace(APP, dependencies=tuple(replace(d, exact=True) for d in APP.dependencies))
    made = replace(plan(CORE, app, actions={"app": Action.KEEP}), commit="")
    there = Published(files={"app.pkg": "sha256:00"})
    made = replace(made, packages=(made.packages[0], replace(made.packages[1], published=there)))
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), read_asked=read_asked)
    assert names(warned(tmp_path, made, target))["app"] == expected
    assert asked == [app]


@pytest.mark.parametrize(
    ("asks", "requirement", "tagged", "expected"),
    [
        ({"core": "=1.0"}, "=1.0", False, []),
        ({"core": "1.0"}, "=1.0", False, []),
        ({"core": "=0.9"}, "=1.0", True, ["older-sibling"]),
        ({"core": "=1.0.1"}, "=1.0", True, ["older-sibling"]),
        ({}, "core == 1.0 ; python_version > '3'", True, []),
        ({}, "core==1.0", False, ["older-sibling"]),
        ({}, "workspace:*", True, ["older-sibling"]),
    ],
)
def test_a_kept_package_may_be_pinned_to_what_this_release_brings(
    tmp_path: Path, asks: dict[str, str], requirement: str, expected: list[str], *, tagged: bool
) -> None:
    """R65: somebody published it first; its registry says so, or its manifest of then."""
    for name in ("app", "core"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    if tagged:
        git(tmp_path, "tag", "app-1.0")
    need = replace(APP.dependencies[0], exact=True, requirement=requirement)
    core = package("core", root=tmp_path)
    app = replace(package("app", "core", root=tmp_path), dependencies=(need,))
    made = plan(core, app, actions={"app": Action.KEEP})
    there = Published(files={"app.pkg": "sha256:00"}, asks=asks)
    made = replace(made, packages=(made.packages[0], replace(made.packages[1], published=there)))
    target = FakeTarget(FakeWorkspace(packages=[core, app]), FakeRegistry())
    found = warned(tmp_path, made, target, tags={app.id: "app-1.0"})
    assert [each for each in names(found)["app"] if each == "older-sibling"] == expected


@pytest.mark.parametrize(
    ("later", "action", "told"),
    [
        ((), Action.PUBLISH, False),
        (("Completed",), Action.PUBLISH, False),
        (("Completed", "Another"), Action.PUBLISH, True),
        (("Completed", "Another"), Action.KEEP, False),
    ],
)
def test_a_tag_of_another_commit_is_named(
    tmp_path: Path, later: Sequence[str], action: Action, *, told: bool
) -> None:
    """R68: of a Go module in a `dir:` registry, the go command also finds what has the tag."""
    core = package("core", root=tmp_path)
    core.directory.mkdir()
    (core.directory / "manifest").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    for message in later:
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", message)
    git(tmp_path, "tag", "--annotate", "--message", "core", "core/v1.0")
    git(tmp_path, "reset", "--quiet", "--hard", head)
    workspace = FakeWorkspace(packages=[core])
    target = FakeTarget(workspace, FakeRegistry(), find_source_tag=lambda _: "core/v1.0")
    found = warned(tmp_path, plan(core, actions={"core": action}), target)
    assert (
        any("these versions are on other commits: core/v1.0;" in it for it in found.notes) is told
    )


@pytest.mark.parametrize("apart", [[], ["core"]])
def test_the_files_of_an_earlier_run_say_what_they_are_pinned_to(
    tmp_path: Path, apart: list[str]
) -> None:
    """R49: whatever the manifest says today."""
    app = replace(APP, dependencies=tuple(replace(d, exact=not apart) for d in APP.dependencies))
    made = replace(plan(CORE, app, actions={"app": Action.KEEP}), commit="")
    stored = (Artifact(path=tmp_path / "app.pkg", size=1, digests={"sha256": "00"}),)
    made = replace(made, packages=(made.packages[0], replace(made.packages[1], artifacts=stored)))
    asked = []

    def pinned_apart(artifacts: Sequence[Artifact], versions: Mapping[str, str]) -> list[str]:
        asked.append((tuple(artifacts), dict(versions)))
        return apart

    found = warned(
        tmp_path, made, FakeTarget(FakeWorkspace(), FakeRegistry(), find_pinned_apart=pinned_apart)
    )
    assert names(found)["app"] == ["older-sibling"] * len(apart)
    assert asked == [(stored, {"core": CORE.version})]


def test_what_excludes_the_workspaces_version_is_said_and_no_edge(tmp_path: Path) -> None:
    """R49: it is published all the same, as the ecosystem's own tools do it."""
    need = Dependency(on=CORE.id, requirement="^2")
    gone = Dependency(on=package_id("gone"), requirement="gone>=3")
    outside = replace(package("old"), elsewhere=(need, gone))
    kept = replace(package("kept"), elsewhere=(need,))
    made = replace(plan(CORE, outside, kept, actions={"kept": Action.KEEP}), commit="")
    found = warned(tmp_path, made, FakeTarget(FakeWorkspace(), FakeRegistry()))
    assert names(found) == {"core": [], "old": ["excluded-sibling"], "kept": []}
    message = found.packages[1].warnings[0].message
    assert message.startswith("it requires core ^2 (here 1.0), gone >=3: its users get a version")
    assert not found.packages[1].warnings[0].error


@pytest.mark.parametrize(
    ("kind", "known", "core", "given", "is_error"),
    [
        (DependencyKind.RUNTIME, set(), Action.PUBLISH, None, True),
        (DependencyKind.PEER, set(), Action.PUBLISH, None, True),
        (DependencyKind.OPTIONAL, set(), Action.PUBLISH, None, False),
        (DependencyKind.RUNTIME, {"core"}, Action.PUBLISH, None, False),
        (DependencyKind.RUNTIME, set(), Action.KEEP, None, False),
        (DependencyKind.RUNTIME, set(), Action.PUBLISH, WarningLevel.WARN, False),
    ],
)
def test_what_nobody_could_install_is_an_error(
    tmp_path: Path,
    kind: DependencyKind,
    known: set[str],
    core: Action,
    given: WarningLevel | None,
    *,
    is_error: bool,
) -> None:
    """R49: this release brings the first version of a sibling, and the range excludes it."""
    app = replace(package("app"), elsewhere=(Dependency(on=CORE.id, kind=kind, requirement="^2"),))
    levels = Levels(
        {WarningName.NEW_NAME: WarningLevel.IGNORE}
        | ({} if given is None else {WarningName.EXCLUDED_SIBLING: given})
    )
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), is_new=lambda each: each.name not in known)
    made = replace(plan(CORE, app, actions={"core": core}), commit="")
    (warning,) = warned(tmp_path, made, target, levels=levels).packages[1].warnings
    assert warning.error is is_error
    assert ("no version of core yet, so nobody could install it" in warning.message) is (
        is_error or given is WarningLevel.WARN
    )


def test_files_added_to_a_published_version_make_no_older_sibling(tmp_path: Path) -> None:
    """R49: a wheel for one more platform leaves the version what it was."""
    app = replace(APP, dependencies=tuple(replace(d, exact=True) for d in APP.dependencies))
    made = replace(plan(CORE, app, actions={"app": Action.KEEP}), commit="")
    core = replace(made.packages[0], published=Published(files={"core.tar.gz": "sha256:00"}))
    made = replace(made, packages=(core, *made.packages[1:]))
    found = warned(tmp_path, made, FakeTarget(FakeWorkspace(), FakeRegistry()))
    assert names(found) == {"core": [], "app": []}


def test_sources_that_changed_without_a_new_version_are_said(tmp_path: Path) -> None:
    """R49: by the commit that the journal has, else by the tag of the version."""
    root = tmp_path.resolve()
    actions = dict.fromkeys(["core", "app", "cli"], Action.KEEP)
    made = placed(plan(CORE, APP, package("cli"), actions=actions), root)
    built = git(root, "rev-parse", "HEAD").strip()
    git(root, "tag", "app-v1.0")
    for name in ("core", "app", "cli"):
        (root / name / "a.py").write_text("2")
    git(root, "commit", "--quiet", "--all", "--message", "Change")
    file = Artifact(path=root / "core.pkg", size=1, digests={"sha256": "00"})
    first = replace(made.packages[0], artifacts=(file,))
    made = replace(made, packages=(first, *made.packages[1:]))
    key = (first.package.id, first.package.version)
    history = History(entries={key: HistoryEntry(version="1.0", commit=built)})

    found = warned(root, made, FakeTarget(FakeWorkspace(), FakeRegistry()), history)
    assert [[warning.message for warning in step.warnings] for step in found.packages] == [
        [f"a.py changed since 1.0 was published (commit {built[:12]}), {UNBUMPED}"],
        [f"a.py changed since 1.0 was published (tag app-v1.0), {UNBUMPED}"],
        [],
    ]


def said(made: Plan) -> dict[str, list[str]]:
    return {
        each.package.id.name: [warning.message for warning in each.warnings]
        for each in made.packages
    }


def test_what_goes_out_without_a_commit_is_said(tmp_path: Path) -> None:
    """R49: not of what is built elsewhere, and not what belongs to a package further down."""
    root = tmp_path.resolve()
    made = placed(plan(CORE, APP, package("cli")), root)
    head = git(root, "rev-parse", "HEAD")[:12]
    made = with_prebuilt_files(made, "cli")
    target = FakeTarget(
        FakeWorkspace([each.package for each in made.packages]),
        FakeRegistry(),
        make_filter=lambda _package, _names: lambda name: not name.startswith("test"),
    )
    assert said(warned(root, made, target)) == {"core": [], "app": [], "cli": []}
    for name in ("core/a.py", "core/new.py", "app/test.py", "cli/a.py"):
        (root / name).write_text("2")
    told = (
        f"it goes out with changes to a.py, new.py that commit {head} does not have: commit them, "
        "unless an earlier step wrote them"
    )
    assert said(warned(root, made, target)) == {"core": [told], "app": [], "cli": []}
    own = target.composition.make_filter
    from_commit = FakeTarget(
        target.workspace, target.registry, make_filter=own, builds_from_commit=True
    )
    left = (
        f"it is built from commit {head}, so changes to a.py, new.py do not go out with it: "
        "commit them, or drop them"
    )
    assert said(warned(root, made, from_commit)) == {"core": [left], "app": [], "cli": []}
    with pytest.raises(PlanError, match="RK-512"):
        refuse_errors(warned(root, made, target, levels=Levels(strict=True)), Levels(strict=True))


def test_an_edit_of_what_is_published_is_said_before_it_is_committed(tmp_path: Path) -> None:
    """R49: but not where a step of the job has written the version, nor what it was built with."""
    root = tmp_path.resolve()
    actions = dict.fromkeys(["core", "app", "cli"], Action.KEEP)
    made = placed(plan(CORE, APP, package("cli"), actions=actions), root)
    git(root, "tag", "app-v1.0")
    head = git(root, "rev-parse", "HEAD")[:12]
    for name in ("core", "app", "cli"):
        (root / name / "a.py").write_text("2")
        (root / name / "left-by-a-build").write_text("2")
    target = FakeTarget(
        FakeWorkspace([each.package for each in made.packages]),
        FakeRegistry(),
        read_version=lambda package, _read: "0.9" if package.id.name == "cli" else "1.0",
    )
    assert said(warned(root, made, target)) == {
        "core": [
            f"a.py changed since 1.0 was published (commit {head}, or an earlier one), {UNBUMPED}"
        ],
        "app": [f"a.py changed since 1.0 was published (tag app-v1.0), {UNBUMPED}"],
        "cli": [],
    }
    built = warned(root, made, target).commit
    keys = [(each.package.id, each.package.version) for each in made.packages]
    history = History(entries={key: HistoryEntry(version="1.0", commit=built) for key in keys})
    found = warned(root, made, target, history)
    assert said(found) == {"core": [], "app": [], "cli": []}
    assert found.notes == ()


def test_a_tag_that_the_repository_calls_its_own_way_tells(tmp_path: Path) -> None:
    """R49: `[tag] name` may be anything; of two packages with one name, it tells of neither."""
    root = tmp_path.resolve()
    cli = package("cli")
    kept = dict.fromkeys(["core", "app", "cli"], Action.KEEP)
    made = placed(plan(CORE, APP, cli, actions=kept), root)
    called = {CORE.id: "fake/core-v1.0", APP.id: "ours-1.0", cli.id: "ours-1.0"}
    for name in set(called.values()):
        git(root, "tag", name)
    for name in kept:
        (root / name / "a.py").write_text("2")
    git(root, "commit", "--quiet", "--all", "--message", "Change")
    found = warned(root, made, FakeTarget(FakeWorkspace(), FakeRegistry()), tags=called)
    assert said(found) == {
        "core": [f"a.py changed since 1.0 was published (tag fake/core-v1.0), {UNBUMPED}"],
        "app": [],
        "cli": [],
    }
    (note,) = found.notes
    assert note.startswith("no tag tells from which commit fake:app, fake:cli went out")


def test_what_no_tag_tells_is_said_in_one_line(tmp_path: Path) -> None:
    """R49: `actions/checkout` fetches one commit and no tag unless it is told to."""
    origin = tmp_path.resolve() / "origin"
    origin.mkdir()
    made = placed(plan(CORE, APP, actions=dict.fromkeys(["core", "app"], Action.KEEP)), origin)
    target = FakeTarget(FakeWorkspace(), FakeRegistry())
    told = (
        "no tag tells from which commit fake:core, fake:app went out, nor what has changed since: "
    )
    assert warned(origin, made, target).notes == (
        f"{told}tag what is released, as `tag: true` does",
    )
    git(tmp_path, "clone", "--quiet", "--depth=1", origin.as_uri(), "clone")
    clone = tmp_path.resolve() / "clone"
    fetching = f"{told}check out with `fetch-depth: 0`, or `GIT_DEPTH: 0` at GitLab"
    assert warned(clone, moved(made, clone), target).notes == (fetching,)
    git(origin, "tag", "v1.0")
    assert warned(origin, made, target).notes == ()


def test_a_manifest_that_offers_the_same_has_not_changed(tmp_path: Path) -> None:
    """R49: what cannot be compared counts."""
    root = tmp_path.resolve()
    offers = {"core": ("same # 1", "same # 2"), "app": ("old", "new"), "cli": ("", "new")}
    made = placed(plan(CORE, APP, package("cli"), actions=dict.fromkeys(offers, Action.KEEP)), root)
    for moment in (0, 1):
        for name, texts in offers.items():
            (root / name / "manifest").write_text(texts[moment])
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Change")
        if moment == 0:
            git(root, "tag", "v1.0")

    def read_offered(package: Package, read: Callable[[Path], bytes | None]) -> str:
        text = read(package.directory / "manifest") or b""
        return text.decode().partition(" #")[0]

    found = warned(
        root, made, FakeTarget(FakeWorkspace(), FakeRegistry(), read_offered=read_offered)
    )
    changed = ["changed-without-bump"]
    assert names(found) == {"core": [], "app": changed, "cli": changed}


def test_what_changed_in_a_package_that_is_compiled_in_is_said(tmp_path: Path) -> None:
    """R49: nobody else brings it to its users; what no source leads to is not there."""
    root = tmp_path.resolve()
    inner, tools = package("inner"), package("tools")
    everything = [APP, package("mid"), inner, tools]
    actions = dict.fromkeys(["app", "mid", "inner", "tools"], Action.KEEP)
    made = placed(plan(*everything, actions=actions), root)
    app, mid, inner, tools = (
        next(each.package for each in made.packages if each.package.id.name == name)
        for name in ("app", "mid", "inner", "tools")
    )
    kept = tuple(each for each in made.packages if each.package == app)
    git(root, "tag", "v1.0")
    for name in ("inner", "tools"):
        (root / name / "a.py").write_text("2")
        (root / name / "b.py").write_text("2")
        (root / name / "README.md").write_text("2")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Change")

    def said(*imports: tuple[Package, Package]) -> list[str]:
        target = FakeTarget(
            FakeWorkspace([app, mid, inner, tools]),
            FakeRegistry(),
            find_parts=lambda _: {mid: [app], inner: [mid], tools: [app, tools]},
            follow_imports=lambda taker, part, _: (
                "a.py".__eq__ if (taker, part) in imports else None
            ),
        )
        found = warned(root, replace(made, packages=kept), target)
        return [warning.message for warning in found.packages[0].warnings]

    assert said() == said((mid, inner)) == said((app, mid)) == []
    message = f"inner/a.py changed since 1.0 was published (tag v1.0), {UNBUMPED}"
    assert said((app, mid), (mid, inner)) == [message]


def test_what_a_package_takes_in_from_elsewhere_is_its_own(tmp_path: Path) -> None:
    """R64: by a link or by its manifest, committed or not."""
    root = tmp_path.resolve()
    cli = package("cli")
    actions = {"core": Action.KEEP, "app": Action.KEEP, "cli": Action.PUBLISH}
    made = placed(plan(CORE, APP, cli, actions=actions), root)
    (root / "shared").mkdir()
    for name in ("shared/s.py", "LICENSE", "README.md"):
        (root / name).write_text("1")
    for name in ("core", "cli"):
        (root / name / "shared").symlink_to("../shared")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Share")
    git(root, "tag", "v1.0")
    target = FakeTarget(
        FakeWorkspace([each.package for each in made.packages]),
        FakeRegistry(),
        list_outside=lambda each: [root / "LICENSE"] if each.id.name == "app" else [],
    )
    assert said(warned(root, made, target)) == {"core": [], "app": [], "cli": []}
    for name in ("shared/s.py", "LICENSE", "README.md"):
        (root / name).write_text("2")
    head = git(root, "rev-parse", "HEAD")[:12]
    goes_out = f"it goes out with changes to shared/s.py that commit {head} does not have"
    [message] = said(warned(root, made, target))["cli"]
    assert message.startswith(goes_out)
    git(root, "commit", "--quiet", "--all", "--message", "Change")
    assert said(warned(root, made, target)) == {
        "core": [f"shared/s.py changed since 1.0 was published (tag v1.0), {UNBUMPED}"],
        "app": [f"LICENSE changed since 1.0 was published (tag v1.0), {UNBUMPED}"],
        "cli": [],
    }


def test_what_is_compiled_in_without_a_commit_is_said(tmp_path: Path) -> None:
    """R64: it goes out too."""
    root = tmp_path.resolve()
    inner = package("inner")
    made = placed(plan(APP, inner), root)
    app, inner = (each.package for each in made.packages)
    (root / "inner/a.py").write_text("2")
    target = FakeTarget(
        FakeWorkspace([app, inner]),
        FakeRegistry(),
        find_parts=lambda each: {inner: [app]} if each == app else {},
        follow_imports=lambda *_: lambda _name: True,
    )
    found = warned(root, replace(made, packages=made.packages[:1]), target)
    [warning] = found.packages[0].warnings
    assert warning.name is WarningName.UNCOMMITTED
    assert "changes to inner/a.py that" in warning.message


def test_what_is_not_checked_out_refuses_the_plan(tmp_path: Path) -> None:
    """R64: before anything is built."""
    root = tmp_path.resolve()
    made = placed(plan(CORE, actions={"core": Action.PUBLISH}), root)
    target = FakeTarget(FakeWorkspace([made.packages[0].package]), FakeRegistry())
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!a.py")
    with pytest.raises(PlanError, match=r"the sparse checkout leaves out core/a\.py") as raised:
        warned(root, made, target)
    assert raised.value.problem is Problem.NOT_CHECKED_OUT


def test_what_changed_in_a_package_left_out_is_not_its_parents(tmp_path: Path) -> None:
    """R49: whatever of the workspace is chosen."""
    root = tmp_path.resolve()
    made = placed(plan(CORE, APP, actions=dict.fromkeys(["core", "app"], Action.KEEP)), root)
    git(root, "tag", "v1.0")
    (root / "app/a.py").write_text("2")
    git(root, "commit", "--quiet", "--all", "--message", "Change")
    packages = [each.package for each in made.packages]
    top = replace(made.packages[0], package=replace(packages[0], directory=root))
    target = FakeTarget(FakeWorkspace([top.package, packages[1]]), FakeRegistry())
    assert names(warned(tmp_path, replace(made, packages=(top,)), target)) == {"core": []}


def test_what_an_earlier_run_built_is_examined_again(tmp_path: Path) -> None:
    made = replace(plan(CORE, APP, actions={"core": Action.UPLOAD}), commit="")
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), find_warnings=foreseen)
    assert names(warned(tmp_path, made, target)) == {"core": ["empty-package"], "app": []}


def test_what_is_foreseen_of_a_build_is_said_before_it(tmp_path: Path) -> None:
    """R63"""
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), find_warnings=foreseen)
    found = warned(tmp_path, replace(plan(CORE, APP), commit=""), target)
    assert names(found) == {"core": ["empty-package"], "app": []}


def test_what_came_from_elsewhere_is_examined_in_the_plan(tmp_path: Path) -> None:
    """R49: before anything is built; and the run does not say it a second time."""
    file = tmp_path / "core.whl"
    file.write_bytes(b"w")
    brought = Artifact(path=file, size=1, digests={"sha256": "00"})
    core = replace(CORE, prebuilt=(brought,))
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), find_warnings=empty)
    found = warned(tmp_path, replace(plan(core, APP), commit=""), target)
    assert names(found) == {"core": ["empty-package"], "app": []}
    assert released(tmp_path, target, found)["core"].warnings == (EMPTY,)
    kept = replace(plan(core, actions={"core": Action.KEEP}), commit="")
    assert names(warned(tmp_path, kept, target)) == {"core": []}


def test_an_error_is_told_once_as_the_reason() -> None:
    """Neither a plan nor a run says it again as a warning."""
    made, report = told()
    error = replace(EMPTY, error=True)
    made = replace(made, packages=tuple(replace(p, warnings=(error,)) for p in made.packages))
    report = replace(report, results=tuple(replace(r, warnings=(error,)) for r in report.results))
    assert "there is nothing in it" not in plan_table(made)
    assert "there is nothing in it" not in results_table(report)
    assert warning_annotations([(CORE, (error,))]) == []
    with pytest.raises(PlanError, match=r"^empty-package: fake:core, fake:app: there is nothing"):
        refuse_errors(made, Levels())


def test_strict_refuses_the_plan_with_everything_in_one_line(tmp_path: Path) -> None:
    made = replace(plan(CORE, APP), commit="")
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), is_new=lambda _: True)
    refuse_errors(warned(tmp_path, made, target), Levels())
    found = warned(tmp_path, made, target, levels=Levels(strict=True))
    with pytest.raises(PlanError, match=r"^new-name: fake:core, fake:app: .*no package") as caught:
        refuse_errors(found, Levels(strict=True))
    assert caught.value.exit_code == 3
    assert "drop `strict`" in caught.value.hint
    ignored = Levels({WarningName.NEW_NAME: WarningLevel.IGNORE}, strict=True)
    refuse_errors(warned(tmp_path, made, target, levels=ignored), ignored)
    given = Levels({WarningName.NEW_NAME: WarningLevel.ERROR})
    with pytest.raises(PlanError, match=r"^new-name") as caught:
        refuse_errors(warned(tmp_path, made, target, levels=given), given)
    assert "strict" not in caught.value.hint
    assert "give the warning another level below [warnings]" in caught.value.hint
    # What is hardly meant is an error without them, and what the registry would refuse.
    with pytest.raises(PlanError, match=r"^new-name") as caught:
        refuse_errors(warned(tmp_path, made, target, levels=given), Levels())
    assert caught.value.hint == "Correct it in one of the ways that the message names."
    refused = replace(EMPTY, error=True)
    made = replace(made, packages=tuple(replace(p, warnings=(refused,)) for p in made.packages))
    with pytest.raises(PlanError, match=r"^empty-package") as caught:
        refuse_errors(made, Levels())
    assert caught.value.hint == "Correct it: no setting lets the registry take it."


def test_built_files_are_examined_before_anything_is_sent(tmp_path: Path) -> None:
    """R49: a warning goes along with the result; as an error it ends the package, unsent."""
    strict, lenient = tmp_path / "strict", tmp_path / "lenient"
    for directory in (strict, lenient):
        directory.mkdir()
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), find_warnings=empty)
    results = released(lenient, target, plan(CORE, APP))
    assert [each.outcome for each in results.values()] == [Outcome.PUBLISHED] * 2
    assert results["core"].warnings == (EMPTY,)

    registry = FakeRegistry()
    target = FakeTarget(FakeWorkspace(), registry, find_warnings=empty)
    results = released(strict, target, plan(CORE, APP), levels=Levels(strict=True))
    assert [each.outcome for each in results.values()] == [Outcome.FAILED] * 2
    assert results["core"].reason == "empty-package: there is nothing in it"
    assert "strict" in results["core"].hint
    assert registry.uploads == []


def told() -> tuple[Plan, Report]:
    made = plan(CORE, APP)
    steps = tuple(replace(step, warnings=(EMPTY,)) for step in made.packages)
    report = Report(
        run_id="r",
        plan_digest="d" * 64,
        commit="",
        started_at="2026-11-20T12:00:00+00:00",
        duration_s=1.0,
    )
    results = released_results()
    return replace(made, packages=steps), replace(report, results=results)


def released_results() -> tuple[Result, ...]:
    return tuple(
        Result(package=each, outcome=Outcome.PUBLISHED, reason="", warnings=(EMPTY,))
        for each in (CORE, APP)
    )


def test_packages_with_the_same_trouble_share_a_line() -> None:
    """In every place where people read of them; and the JSON has them for each package."""
    made, report = told()
    line = "empty-package: fake:core, fake:app: there is nothing in it"
    assert f"warning: {line} [RK-502]\n" in plan_table(made)
    assert f"warning: {line} [RK-502]\n" in results_table(report)
    names = markdown("fake:core, fake:app")
    linked = f"[{code('empty-package')}]({Problem.EMPTY_PACKAGE.url}) RK-502"
    row = f"| {linked} | {names} | there is nothing in it |"
    assert row in plan_summary(made)
    assert row in summary(report)
    warned = [(result.package, result.warnings) for result in report.results]
    assert warning_lines(warned) == [f"{line} [RK-502]"]
    assert warning_annotations(warned) == [
        ("empty-package: fake:core, fake:app [RK-502]", "there is nothing in it")
    ]
    expected = [
        {
            "name": "empty-package",
            "problem": "RK-502",
            "message": "there is nothing in it",
            "error": False,
        }
    ]
    assert all(
        package["warnings"] == expected
        for document in (plan_json(made, CORE.directory), results_json(report))
        for package in json.loads(document)["packages"]
    )


def test_results_are_read_with_their_warnings() -> None:
    _, report = told()
    assert [each.warnings for each in load_results(results_json(report)).results] == [(EMPTY,)] * 2
