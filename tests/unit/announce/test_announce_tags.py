"""Which tags versions get, and how they come to a real remote: once, and never moved."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

import fakes
from fakes import FakeTarget
from raising import raises
from releasekit.announce.tags import plan_tags, push_tags
from releasekit.announced import Status, Tag
from releasekit.config.tag_options import TagOptions
from releasekit.ecosystems.npm.discover import Found
from releasekit.ecosystems.npm.versioning import NpmVersioning
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.host.forges import Pages
from releasekit.host.process import Processes
from releasekit.http.client import RetryPolicy
from releasekit.model import (
    Action,
    Artifact,
    Outcome,
    Package,
    PackageId,
    Plan,
    PlannedPackage,
    Published,
    Result,
)
from releasekit.problems import Problem
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from releasekit.announce.tags import Tagging
    from releasekit.ecosystems.interface import Registry, Target, Workspace

ONCE = RetryPolicy(max_retries=0, base_delay_s=0.0, deadline_s=60.0)
PAGE = "https://github.com/acme/mono"
PAGES = Pages("github", PAGE)


def no_tag(_: Package) -> str:
    return ""


def go_tag(package: Package) -> str:
    return f"{package.directory.name}/v{package.version}"


def target(own_tag: Callable[[Package], str] | None = None) -> Target:
    return FakeTarget(
        cast("Workspace", None),
        cast("Registry", None),
        read_version=NpmVersioning(Found({}, (), {}), "auto").read_version,
        find_registry_tag=own_tag,
    )


TARGETS = {"npm": target(), "pypi": target(), "go": target(go_tag), "maven": target(no_tag)}


@dataclass
class Place:
    """A repository with a remote beside it."""

    root: Path
    remote: Path

    @property
    def head(self) -> str:
        return git(self.root, "rev-parse", "HEAD").strip()

    def commit(self, version: str, *names: str) -> str:
        for name in names:
            path = self.root / name / "package.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"name": name, "version": version}))
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", "Work")
        git(self.root, "push", "--quiet", "origin", "HEAD:main")
        return self.head

    def package(self, name: str, version: str = "1.0.0", *, ecosystem: str = "npm") -> Package:
        directory = self.root / name
        return Package(
            id=PackageId(ecosystem, name),
            version=version,
            directory=directory,
            manifest=directory / "package.json",
        )

    def tags(self) -> dict[str, str]:
        """Each with the commit it names."""
        form = "--format=%(refname:strip=2) %(objectname) %(*objectname)"
        rows = git(self.remote, "for-each-ref", form, "refs/tags").splitlines()
        return {row.split()[0]: row.split()[-1] for row in rows}

    def objects(self) -> dict[str, str]:
        form = "--format=%(refname:strip=2) %(objectname)"
        rows = git(self.remote, "for-each-ref", form, "refs/tags").splitlines()
        return dict(row.split() for row in rows)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "a repository", tmp_path / "remote.git")
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch", "main", str(found.remote))
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", str(found.root))
    git(found.root, "remote", "add", "origin", str(found.remote))
    found.commit("1.0.0", "core", "cli")
    return found


def planned(package: Package, action: Action = Action.PUBLISH, **more: object) -> PlannedPackage:
    return PlannedPackage(package=package, action=action, reason="", **more)  # type: ignore[arg-type]


def plan(place: Place, *packages: PlannedPackage, commit: str | None = None) -> Plan:
    found = place.head if commit is None else commit
    return Plan(packages=packages, private=(), commit=found, digest="")


def asked(
    place: Place,
    made: Plan,
    *,
    options: Mapping[str, object] | None = None,
    done: Callable[[Plan, Tagging], None] | None = None,
    tag: bool = True,
    fails: tuple[str, ...] = (),
) -> tuple[Plan, dict[str, Tag | None]]:
    """The plan with its tags, and what the tags are once they are pushed."""

    async def main() -> tuple[Plan, dict[str, Tag | None]]:
        config = fakes.config(
            place.root, tag=tag, announce=not tag, tagging=TagOptions.from_table(options or {})
        )
        async with Processes(environment={"PATH": "/usr/bin:/bin"}) as processes:
            services = replace(fakes.services(config, processes), retries=ONCE)
            there, tagging = await plan_tags(
                made, config, TARGETS, services, pages=Pages("github", PAGE)
            )
            if done is not None:
                done(there, tagging)
            results = tuple(
                Result(
                    package=each.package,
                    outcome=Outcome.FAILED
                    if each.package.id.name in fails
                    else Outcome.ALREADY_PUBLISHED
                    if each.action is Action.KEEP
                    else Outcome.PUBLISHED,
                    reason="",
                    tag=each.tag,
                )
                for each in there.packages
            )
            pushed = await push_tags(there, results, tagging, processes, ONCE)
            return there, {result.package.id.name: result.tag for result in pushed}

    return asyncio.run(main())


def test_what_is_published_gets_an_annotated_tag_on_the_commit_it_was_built_from(
    place: Place,
) -> None:
    before = place.head
    place.commit("2.0.0", "core")
    core = planned(place.package("core", "2.0.0"))
    digests = {"sha256": "0" * 64}
    file = Artifact(path=place.root / "cli.tgz", size=1, digests=digests)
    theirs = Published(files={"cli.tgz": f"sha256:{'0' * 64}"})
    cli = planned(
        place.package("cli"), Action.KEEP, built_from=before, artifacts=(file,), published=theirs
    )
    there, tags = asked(place, plan(place, core, cli))
    assert there.announcing == "2 to tag"
    assert place.tags() == {"core-v2.0.0": place.head, "cli-v1.0.0": before}
    assert git(place.remote, "cat-file", "-t", "core-v2.0.0") == "tag\n"
    assert git(place.remote, "tag", "--list", "--format=%(contents)", "cli-v1.0.0") == (
        "cli 1.0.0\n\n"
    )
    made = tags["core"]
    assert made is not None
    assert (made.status, made.commit) == (Status.CREATED, place.head)
    assert made.object == place.objects()["core-v2.0.0"]
    assert made.url == f"{PAGE}/releases/tag/core-v2.0.0"


def test_every_run_makes_the_same_tag_and_the_second_one_nothing(place: Place) -> None:
    made = plan(place, planned(place.package("core")))
    asked(place, made)
    first = place.objects()
    there, tags = asked(place, made)
    assert there.announcing == "1 tagged already"
    assert tags["core"] is not None
    assert tags["core"].status is Status.EXISTING
    git(place.remote, "tag", "--delete", "core-v1.0.0")
    asked(place, made)
    assert place.objects() == first


def test_a_fresh_machine_tags_the_commit_that_brought_the_version(place: Place) -> None:
    """Nothing is known of the run that published it."""
    bump = place.commit("1.1.0", "core")
    place.commit("1.0.0", "other")
    asked(place, plan(place, planned(place.package("core", "1.1.0"), Action.KEEP)))
    assert place.tags() == {"core-v1.1.0": bump}


def test_what_nobody_knows_is_owed_with_what_to_do(place: Place) -> None:
    """The history is named only where there is more of it."""
    cut = place.root.with_name("cut")
    git(place.root, "commit", "--quiet", "--allow-empty", "--message", "Later")
    git(place.root.parent, "clone", "--quiet", "--depth=1", place.root.as_uri(), str(cut))
    git(cut, "remote", "set-url", "origin", str(place.remote))
    for here, told in ((place, False), (Place(cut, place.remote), True)):
        names = ["core", "cli"]
        kept = (planned(here.package(name, "7.0.0"), Action.KEEP) for name in names)
        _, tags = asked(here, plan(here, *kept))
        owed = [tag for tag in tags.values() if tag is not None]
        assert {(tag.status, tag.problem) for tag in owed} == {(Status.PENDING, "RK-133")}
        assert len({(tag.note, tag.hint) for tag in owed}) == 1  # so it is told once
        assert ("fetch-depth: 0" in owed[0].hint) is told
        assert "tag it by hand" in owed[0].hint
    assert place.tags() == {}


def test_what_an_earlier_run_built_and_somebody_else_published_says_nothing(place: Place) -> None:
    bump = place.head
    later = place.commit("1.0.0", "other")
    digests = {"sha256": "0" * 64}
    file = Artifact(path=place.root / "core.tgz", size=1, digests=digests)
    theirs = Published(files={"core.tgz": f"sha256:{'1' * 64}"})
    core = planned(
        place.package("core"), Action.KEEP, built_from=later, artifacts=(file,), published=theirs
    )
    asked(place, plan(place, core))
    assert place.tags() == {"core-v1.0.0": bump}


def test_a_tag_on_another_version_is_foreign_without_any_state(place: Place) -> None:
    first = place.head
    place.commit("1.1.0", "core")
    git(place.root, "tag", "core-v1.1.0", first)
    git(place.root, "tag", "cli-v1.0.0", place.head)
    git(place.root, "push", "--quiet", "origin", "core-v1.1.0", "cli-v1.0.0")
    core = planned(place.package("core", "1.1.0"), Action.KEEP)
    cli = planned(place.package("cli"), Action.KEEP)
    _, tags = asked(place, plan(place, core, cli))
    foreign = tags["core"]
    assert foreign is not None
    assert foreign.status is Status.FOREIGN
    assert f"on {first}, where the version is 1.0.0" in foreign.note
    assert tags["cli"] is not None
    assert tags["cli"].status is Status.EXISTING


def push(place: Place, *tags: str) -> None:
    for tag in tags:
        git(place.root, "tag", tag)
    git(place.root, "push", "--quiet", "origin", *tags)


@pytest.mark.parametrize(
    ("names", "others", "template"),
    [
        (["core"], ["core@1.0.0"], "{name}@{version}"),
        (["core"], ["v1.0.0", "v0.9.0"], "v{version}"),
        (["core", "cli"], ["v1.0.0"], "v{version}"),
        (["@acme/core", "cli"], ["core/v1.0.0", "cli/v1.0.0"], "{component}/v{version}"),
        (["@acme/core", "cli"], ["core-v1.0.0"], "{component}-v{version}"),
        (["@acme/core", "cli"], ["@acme/core@1.0.0"], "{name}@{version}"),
        (["@acme/core"], ["@acme/core/v1.0.0"], "{name}/v{version}"),
    ],
)
def test_tags_of_another_tool_are_found_and_their_name_is_told(
    place: Place, names: list[str], others: list[str], template: str
) -> None:
    push(place, *others)
    made = plan(place, *(planned(place.package(name)) for name in names))
    there, _ = asked(place, made, tag=False)
    (note,) = there.notes
    assert f"by other names ({', '.join(others[: len(names)])}): to go on with those, " in note
    assert note.endswith(f'write [tag] name = "{template}" in releasekit.toml')
    there, _ = asked(place, made, options={"name": template})
    assert there.notes == ()


@pytest.mark.parametrize(
    ("versions", "others"),
    [
        ({"core": "1.0.0", "cli": "1.0.0"}, ["core@1.0.0", "cli/v1.0.0"]),
        ({"core": "1.0.0", "cli": "2.0.0"}, ["v1.0.0"]),
        ({"core": "1.0.0", "cli": "1.0.0"}, ["core@1.0.0", "cli-v1.0.0"]),
    ],
)
def test_a_name_that_would_make_other_tags_than_there_are_is_told_to_nobody(
    place: Place, versions: dict[str, str], others: list[str]
) -> None:
    push(place, *others)
    made = plan(place, *(planned(place.package(*each)) for each in versions.items()))
    there, _ = asked(place, made)
    (note,) = there.notes
    told = ", ".join(each for each in others if each != "cli-v1.0.0")
    assert f"by other names ({told}): no one [tag] name gives them all" in note


def test_sources_that_no_commit_has_are_tagged_by_nobody(place: Place) -> None:
    dirty = f"{place.head}+dirty.0123"
    _, tags = asked(place, plan(place, planned(place.package("core")), commit=dirty))
    assert tags["core"] is not None
    assert tags["core"].status is Status.PENDING
    assert "no commit has" in tags["core"].note


def test_a_tag_of_somebody_else_stays_and_both_ids_are_named(place: Place) -> None:
    first = place.head
    git(place.root, "tag", "core-v1.0.0", first)
    git(place.root, "push", "--quiet", "origin", "core-v1.0.0")
    before = place.objects()
    place.commit("1.0.0", "other")
    core, cli = planned(place.package("core")), planned(place.package("cli"))
    there, tags = asked(place, plan(place, core, cli))
    assert there.announcing == "1 to tag, 1 with another tag of that name"
    foreign = tags["core"]
    assert foreign is not None
    assert (foreign.status, foreign.problem) == (Status.FOREIGN, "RK-132")
    assert first in foreign.note
    assert place.head in foreign.note
    assert before.items() <= place.objects().items()
    assert place.tags()["cli-v1.0.0"] == place.head


def test_a_tag_that_was_pushed_meanwhile_stays(place: Place) -> None:
    first = place.head
    place.commit("1.0.0", "other")

    def meanwhile(_: Plan, __: Tagging) -> None:
        git(place.root, "tag", "core-v1.0.0", first)
        git(place.root, "tag", "cli-v1.0.0", place.head)
        git(place.root, "push", "--quiet", "origin", "core-v1.0.0", "cli-v1.0.0")

    made = plan(place, planned(place.package("core")), planned(place.package("cli")))
    _, tags = asked(place, made, done=meanwhile)
    assert {name: tag and tag.status for name, tag in tags.items()} == {
        "core": Status.FOREIGN,
        "cli": Status.EXISTING,
    }
    assert place.tags()["core-v1.0.0"] == first


def test_only_what_is_published_is_tagged(place: Place) -> None:
    made = plan(place, planned(place.package("core")), planned(place.package("cli")))
    _, tags = asked(place, made, fails=("cli",))
    assert tags["core"] is not None
    assert tags["cli"] is None or tags["cli"].status is Status.WANTED
    assert set(place.tags()) == {"core-v1.0.0"}


def test_a_shared_tag_waits_for_all_that_share_it(place: Place) -> None:
    made = plan(place, planned(place.package("core")), planned(place.package("cli")))
    shared = {"name": "v{version}"}
    _, tags = asked(place, made, options=shared, fails=("cli",))
    assert tags["core"] is not None
    assert (tags["core"].status, place.tags()) == (Status.PENDING, {})
    assert "npm:cli" in tags["core"].note
    asked(place, made, options=shared)
    assert place.tags() == {"v1.0.0": place.head}


def test_a_shared_tag_has_one_commit(place: Place) -> None:
    first = place.head
    place.commit("1.0.0", "other")
    core = planned(place.package("core"), Action.KEEP)
    _, tags = asked(
        place, plan(place, core, planned(place.package("cli"))), options={"name": "v{version}"}
    )
    assert tags["core"] is not None
    assert first in tags["core"].note
    assert place.tags() == {}


@pytest.mark.parametrize(("at_a_time", "pushes"), [(0, [7]), (3, [3, 3, 1])])
def test_as_many_at_a_time_as_start_workflows(
    place: Place, tmp_path: Path, at_a_time: int, pushes: list[int]
) -> None:
    """https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#push"""
    log = tmp_path / "pushes"
    hook = place.remote / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nwc -l >> '{log}'\n")
    hook.chmod(0o755)
    names = [f"p{number}" for number in range(7)]
    made = plan(place, *(planned(place.package(name)) for name in names))
    asked(place, made, options={"at-a-time": at_a_time})
    assert [int(line) for line in log.read_text().split()] == pushes
    assert set(place.tags()) == {f"{name}-v1.0.0" for name in names}


def test_where_the_remote_refuses_one_nothing_is_pushed_and_its_words_are_told(
    place: Place,
) -> None:
    hook = place.remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\n"
        'case "$1" in *cli*) echo "GH013: Repository rule violations found for $1"; exit 1;; esac\n'
    )
    hook.chmod(0o755)
    made = plan(place, planned(place.package("core")), planned(place.package("cli")))
    _, tags = asked(place, made)
    assert place.tags() == {}
    for tag in tags.values():
        assert tag is not None
        assert tag.status is Status.PENDING
        assert "GH013" in tag.note
        assert tag.problem == "RK-130"


def test_what_a_registry_tags_is_looked_for_and_never_pushed(place: Place) -> None:
    core = planned(place.package("core", ecosystem="go"))
    made = plan(place, core)

    def published(_: Plan, __: Tagging) -> None:
        git(place.root, "tag", "core/v1.0.0")
        git(place.root, "push", "--quiet", "origin", "core/v1.0.0")

    _, missing = asked(place, made)
    assert missing["core"] is not None
    assert (missing["core"].status, place.tags()) == (Status.PENDING, {})
    _, tags = asked(place, made, done=published)
    assert tags["core"] is not None
    assert (tags["core"].status, tags["core"].commit) == (Status.CREATED, place.head)
    there, _ = asked(place, made)
    assert there.announcing == "1 tagged already"


def test_what_has_no_tag_of_its_own_gets_none(place: Place) -> None:
    there, tags = asked(place, plan(place, planned(place.package("core", ecosystem="maven"))))
    assert (there.announcing, tags, place.tags()) == ("", {"core": None}, {})


def test_without_the_input_a_missing_tag_is_owed(place: Place) -> None:
    _, tags = asked(place, plan(place, planned(place.package("core"))), tag=False)
    assert tags["core"] is not None
    assert (tags["core"].status, place.tags()) == (Status.PENDING, {})
    assert "`tag` is not true" in tags["core"].note


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{version}", None),
        ("{ecosystem}/{version}", None),
        ("{name}@{version}", "would both have the tag 'core@1.0.0'"),
    ],
)
def test_two_packages_share_a_tag_only_where_that_is_meant(
    place: Place, template: str, expected: str | None
) -> None:
    other = place.package("core", ecosystem="pypi")
    made = plan(place, planned(place.package("core")), planned(other))
    if expected is None:
        asked(place, made, options={"name": template})
        return
    with raises(Problem.SAME_TAG, match=expected):
        asked(place, made, options={"name": template})


def test_packages_whose_versions_differ_only_today_share_no_name(place: Place) -> None:
    other = place.package("core", "1.0.1", ecosystem="pypi")
    made = plan(place, planned(place.package("core")), planned(other))
    with raises(
        Problem.SAME_TAG, match=r"npm:core and pypi:core would both have the tag 'core@\{version\}'"
    ):
        asked(place, made, options={"name": "{name}@{version}"})
    there, _ = asked(place, made, options={"name": "{ecosystem}/{name}@{version}"})
    assert there.announcing == "2 to tag"
    there, _ = asked(place, made, options={"name": "v{version}"})
    assert there.announcing == "2 to tag"


def test_names_that_git_cannot_keep_are_refused_before_anything_else(place: Place) -> None:
    made = plan(place, planned(place.package("core", "1.0.0 beta")))
    with raises(
        Problem.TAG_NAME, match=r"npm:core 1\.0\.0 beta: its tag would be 'core-v1.0.0 beta'"
    ):
        asked(place, made)


@pytest.mark.parametrize(
    ("there", "ours"), [("core", "core/1.0.0"), ("core/1.0.0/x", "core/1.0.0")]
)
def test_a_tag_is_no_directory_of_tags(place: Place, there: str, ours: str) -> None:
    git(place.root, "tag", there)
    git(place.root, "push", "--quiet", "origin", there)
    with raises(Problem.SAME_TAG, match=f"git can keep no tag '{ours}' beside the tag '{there}'"):
        asked(
            place, plan(place, planned(place.package("core"))), options={"name": "{name}/{version}"}
        )


def test_outside_of_a_repository_there_is_nothing_to_tag(tmp_path: Path) -> None:
    lone = Place(tmp_path / "lone", tmp_path)
    lone.root.mkdir()
    made = plan(lone, planned(lone.package("core")), commit="")
    with pytest.raises(ConfigError, match="is in no git repository"):
        asked(lone, made)
