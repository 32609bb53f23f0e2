"""The release request on a real Gitea: every order in which people, runs and the server can act."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import pytest

from effort import SEARCHING
from forge.gitea_world import make_token, serving_world
from forge.requests import BRANCH, Place, interrupt
from harness.gitea import ACTION, serving_gitea
from harness.http_server import HangUp
from harness.killing import Killing
from integration import reactor
from integration.polyglot import NEEDS
from integration.servers import free_port
from integration.test_cargo_publish import toolchain
from integration.tools import require_tool
from outside import make_outside
from releasekit.__main__ import main
from releasekit.report.release_pr import DONE
from versions.test_version_command import PYTHON, PYTHON_TAGS, member, write
from workspaces import PROJECT, Program, git

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from forge.gitea_world import GiteaWorld
    from forge.requests import How, Moment, Request
    from harness.gitea import Gitea

HEADS: Final = f"refs/heads/{BRANCH}"
FEATURE: Final = {"packages/core/src/parquet.py": "1\n"}
FIX: Final = {"packages/cli/src/exit.py": "1\n"}
ADDED: Final = {
    "packages/new/pyproject.toml": member("acme-new", "0.1.0"),
    "packages/new/src/acme_new/__init__.py": "\n",
}
BY_HAND: Final = {"packages/core/CHANGELOG.md": "# Changelog\n\n## 1.3.0\n\nBy hand.\n"}
# What a run does to the request, and how it writes that.
WRITES: Final[Mapping[str, tuple[Moment, ...]]] = {
    "created": ("move", "open"),
    "updated": ("move", "say"),
    "closed": ("move", "say"),
}
HELD: Final = [
    (operation, when, moment)
    for operation, moments in WRITES.items()
    for moment in moments
    for when in ("before", "after")
]
# What a person does next, and whether the next run takes place in another clone.
AFTER_A_KILL: Final = [
    (act, fresh)
    for number, act in enumerate(
        ("merge", "squash", "rebase", "edited", "amended", "closed", "deleted")
    )
    for fresh in ((False, True) if SEARCHING else (number % 2 == 0,))
]


class GiteaPlace(Place):
    world: GiteaWorld

    def revert(self) -> None:
        """Leave nothing to release."""
        (feature,) = git(self.root, "log", "--format=%H", "--grep=read parquet").split()
        git(self.root, "revert", "--no-edit", feature)
        git(self.root, "push", "--quiet", "origin", "HEAD:main")

    def clone(self, name: str, branch: str = "main") -> Path:
        """Past the proxy."""
        url = self.world.gitea.url(self.world.repository)
        git(self.tmp_path, "clone", "--quiet", "--branch", branch, url, name)
        return self.tmp_path / name

    def edit_branch(self, *flags: str) -> str:
        """What a person commits there, and pushes."""
        person = self.clone("person", BRANCH)
        write(person, BY_HAND)
        git(person, "commit", "--quiet", "--all", "--message", "docs: words", *flags)
        git(person, "push", "--quiet", "--force")
        return git(person, "rev-parse", "HEAD").strip()

    def start(self, root: Path, *, origin: str = "") -> Program:
        """What runs the program itself, at this address of the server."""
        home = self.tmp_path / f"home of {root.name}"
        home.mkdir(exist_ok=True)
        variables = {
            "RELEASEKIT_RETRY_BASE_DELAY": "0s",
            "RELEASEKIT_REGISTRY": f"dir:{self.tmp_path / 'registry'}",
        }
        return Program(home, {**self.world.environment(origin=origin), **variables})

    def require_one(self, said: str = "") -> Request:
        """One request, which stands at one commit on the newest of the base, and says what that
        does; also once the server has done what it had put off.
        """
        self.world.settle()
        (request,) = self.open
        assert request.head == self.head
        tip = self.world.git("rev-parse", "main").strip()
        assert self.world.git("rev-list", f"main..{HEADS}").split() == [request.head]
        assert self.world.git("rev-parse", f"{HEADS}^").strip() == tip, said
        title = self.world.git("log", "-1", "--format=%s", HEADS).strip()
        assert request.title == title
        assert request.body.endswith(f"ReleaseKit-Base: {tip}")
        return request

    def require_none(self) -> None:
        """Neither a request, nor its branch."""
        self.world.settle()
        assert self.open == []
        assert "refs/heads/releasekit" not in self.world.git("for-each-ref")


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    with serving_gitea(tmp_path_factory.mktemp("a gitea")) as server:
        yield server


@pytest.fixture
def place(
    gitea: Gitea,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[GiteaPlace]:
    """Something is to release, and there is no request yet."""
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "GITEA_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("RELEASEKIT_REGISTRY", f"dir:{tmp_path / 'registry'}")
    with serving_world(gitea) as world:
        place = GiteaPlace(tmp_path, world, monkeypatch, capsys)
        place.push("feat: read parquet files (#41)", FEATURE)
        yield place


def test_pushes_keep_one_request_up_to_date(place: GiteaPlace) -> None:
    ended = place.run()
    assert (ended.code, ended.operation) == (0, "created"), ended.err
    first = place.require_one()
    assert f"created {first.url}: 2 packages" in ended.out
    assert "feat: read parquet files (#41)" in first.body
    assert 'version = "1.3.0"' in place.show("packages/core/pyproject.toml")
    before = list(place.world.states)
    assert place.run().operation == "current"
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    assert place.run().operation == "current"
    assert [each for each in place.world.states if each[0] == BRANCH] == before[-1:]
    place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "updated"
    assert place.require_one().number == first.number


@pytest.mark.parametrize(
    ("how", "bare"), [("merge", False), ("squash", False), ("squash", True), ("rebase", False)]
)
def test_what_is_merged_is_published_once_and_followed_by_the_next(
    place: GiteaPlace, how: How, bare: bool
) -> None:
    """What lands between the run and the merge is told of next; a branch that stays is no matter.
    A package that comes between is none of what was proposed.
    """
    place.pull(PYTHON_TAGS[0])
    assert place.run("publish").code == 0
    git(place.root, "switch", "--quiet", "main")
    assert place.run().operation == "created"
    place.push("fix: exit 1 (#44)", {**FIX, **ADDED})
    place.world.merge(place.open[0].number, how, deletes=not bare, bare=bare)
    place.pull()
    ended = place.run("publish", RELEASEKIT_TAG="true")
    assert ended.code == 0, ended.err
    assert "acme-core-v1.3.0" in place.world.git("tag").split()
    place.pull()
    ended = place.run()
    assert (ended.code, ended.operation) == (0, "created"), ended.err
    place.require_one()
    assert "exit 1" in place.show("packages/cli/CHANGELOG.md")
    text = place.show("packages/core/CHANGELOG.md")
    assert text.count("read parquet files") == 1
    assert "read parquet files" not in text.partition("1.3.0")[0]
    place.world.merge(place.open[0].number, how, bare=bare)
    place.pull()
    assert place.run("publish", RELEASEKIT_TAG="true").code == 0
    place.pull()
    assert place.run().operation == "none"
    place.require_none()


@pytest.mark.parametrize("flags", [(), ("--amend",)])
@pytest.mark.parametrize("ends", ["squash", "rebase", "merge", "deleted"])
def test_what_a_person_commits_is_left_alone_until_it_is_merged_or_deleted(
    place: GiteaPlace, flags: tuple[str, ...], ends: How | Literal["deleted"]
) -> None:
    place.run()
    edited = place.edit_branch(*flags)
    place.push("fix: exit 1 (#44)", FIX)
    ended = place.run()
    assert (ended.code, ended.operation) == (0, "edited"), ended.err
    assert place.head == edited
    number = place.open[0].number
    if ends == "deleted":
        place.world.set_ref(HEADS, "")
        assert place.run().operation == "created"
        assert place.require_one().number != number
        assert "By hand" not in place.show("packages/core/CHANGELOG.md")
        return
    place.world.merge(number, ends, deletes=False)
    assert "By hand" in place.show("packages/core/CHANGELOG.md", "main")
    place.pull()
    for tag in ("acme-core-v1.3.0", "acme-web-v0.3.1"):
        git(place.root, "tag", tag)
    ended = place.run()
    assert (ended.code, ended.operation) == (0, "created"), ended.err
    place.require_one()


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_branch_that_is_edited_and_closed_is_not_taken_for_what_was_merged_before(
    place: GiteaPlace, how: How
) -> None:
    """Gitea shows what was merged at the commit that the branch of that name is at now."""
    place.run()
    place.world.merge(place.open[0].number, how, deletes=False)
    place.pull()
    for tag in ("acme-core-v1.3.0", "acme-web-v0.3.1"):
        git(place.root, "tag", tag)
    git(place.root, "switch", "--quiet", "--force-create", "main")
    place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "created"
    edited = place.edit_branch()
    place.world.end_as(place.open[0].number, "closed")
    assert place.run().operation == "edited"
    assert place.head == edited
    place.world.end_as(2, "open")
    assert place.run().operation == "edited"
    assert place.head == edited


def test_nothing_is_read_but_the_branch(place: GiteaPlace) -> None:
    place.run()
    (request,) = place.open
    place.world.say(request.number, title="mine", body="ReleaseKit-Base: " + "0" * 40)
    assert place.run().operation == "updated"
    assert place.require_one() == request
    assert place.run().operation == "current"


def test_a_draft_stays_a_draft(place: GiteaPlace) -> None:
    place.run()
    (request,) = place.open
    place.world.say(request.number, title=f"[WIP] {request.title}", body=request.body)
    assert place.run().operation == "current"
    place.push("feat: exit 1 (#44)", FIX)
    assert place.run().operation == "updated"
    (after,) = place.open
    assert after.title.startswith("[WIP] chore: release")
    assert after.body != request.body


def test_what_a_person_closes_is_opened_as_another_one(place: GiteaPlace) -> None:
    place.run()
    place.world.end_as(place.open[0].number, "closed")
    assert place.run().operation == "created"
    assert place.require_one().number == 2


@pytest.mark.parametrize("waits", [True, False])
def test_a_branch_that_a_person_deletes_is_made_again(place: GiteaPlace, waits: bool) -> None:
    """Gitea closes its request some time later, and also if there is such a branch again then."""
    place.run()
    git(place.root, "push", "--quiet", "origin", f":{BRANCH}")
    if waits:
        place.world.settle()
    ended = place.run(RELEASEKIT_RETRY_BASE_DELAY="1s")
    assert ended.code == 0, ended.err
    place.require_one()


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_a_branch_that_gitea_has_updated_is_still_ours(
    place: GiteaPlace, how: Literal["merge", "rebase"]
) -> None:
    place.run()
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    place.world.update_branch(place.open[0].number, how)
    before = place.head
    assert place.run().operation == "current"
    assert place.head == before
    place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "updated"
    place.require_one()


def test_a_title_is_no_longer_than_gitea_keeps_it(place: GiteaPlace) -> None:
    """It counts most characters twice, and cuts what is longer."""
    for number, more in enumerate(("and more " * 60, "版本" * 120, "é" * 254)):
        title = f'title = "{number}: release {{packages}} {more}"'
        place.push("chore: title", {"releasekit.toml": f"[version]\n{title}\n"})
        assert place.run().operation == ("updated" if number else "created")
        assert place.run().operation == "current", title
        (request,) = place.open
        assert request.title.startswith(f"{number}: release acme-core 1.3.0 and 1 more {more[:50]}")


def test_it_is_closed_once_there_is_nothing_to_release(place: GiteaPlace) -> None:
    prepare(place, "closed")
    assert place.run().operation == "closed"
    place.require_none()
    assert [each.body for each in place.world.requests] == [DONE]
    assert place.run().operation == "none"


def prepare(place: GiteaPlace, operation: str) -> None:
    """The next run is to do that."""
    if operation == "updated":
        place.run()
        place.push("fix: exit 1 (#44)", FIX)
    elif operation == "closed":
        place.run()
        place.revert()


def require_done(place: GiteaPlace, operation: str) -> None:
    if operation == "closed":
        place.require_none()
    else:
        place.require_one()


@pytest.mark.parametrize(("operation", "when", "moment"), HELD)
def test_an_older_run_that_is_held_leaves_what_a_newer_one_has_made(
    place: GiteaPlace, operation: str, when: str, moment: Moment
) -> None:
    """R68: the newer one begins and ends while the older one waits for this request."""
    prepare(place, operation)
    newer = place.clone("newer")
    program = place.start(newer, origin=place.world.gitea.origin)
    write(newer, {"packages/web/src/acme_web/more.py": "1\n"})
    git(newer, "add", "--all")
    git(newer, "commit", "--quiet", "--message", "fix: web (#45)")
    overtaken: list[str] = []

    def overtake(at: str, what: str) -> None:
        if (at, place.world.name_moment(what)) == (when, moment) and not overtaken:
            git(newer, "push", "--quiet", "origin", "HEAD:main")
            run = program.run("release-pr", newer)
            overtaken.append(run.out)
            assert run.code == 0, run.err

    place.world.around = overtake
    ended = place.run()
    place.world.around = lambda at, what: None
    assert ended.code == 0, ended.err
    assert overtaken
    place.require_one()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("operation", WRITES)
def test_killed_before_and_after_each_write_the_next_run_goes_on(
    place: GiteaPlace, operation: str, fresh: bool
) -> None:
    """R14: from the same clone, or from one that knows of nothing."""
    prepare(place, operation)
    roots = (place.clone(f"clone {number}") for number in itertools.count()) if fresh else None
    started: list[Program] = []

    def start() -> subprocess.Popen[bytes]:
        root = next(roots) if roots else place.root
        started.append(place.start(root))
        return started[-1].start("release-pr", root, "--max-retries=0")

    def read_log() -> str:
        return started[-1].log.read_text()

    killing = Killing(start, place.root, read_log)

    def may_die(when: str, what: str) -> None:
        if place.world.name_moment(what) in WRITES[operation]:
            killing.die_once(when, what)

    place.world.around = may_die
    killing.finish(most=12)
    place.world.around = lambda when, what: None
    killed = {(when, place.world.name_moment(what)) for when, what in killing.killed}
    assert killed >= {("before", "move"), ("after", "move")}
    # Gitea closes what has no branch any more, and nothing is left to say.
    assert operation == "closed" or ("before", WRITES[operation][1]) in killed
    require_done(place, operation)


def kill_between(place: GiteaPlace) -> None:
    """The next run, between its two writes."""
    program = place.start(place.root)

    def start() -> subprocess.Popen[bytes]:
        return program.start("release-pr", place.root, "--max-retries=0")

    killing = Killing(start, place.root, program.log.read_text)
    met = interrupt(place.world, "after", "move", lambda: killing.die("after", "move"))
    assert killing.run() == -9
    assert met


@pytest.mark.parametrize(("act", "fresh"), AFTER_A_KILL)
def test_what_a_person_does_after_a_kill_is_kept(
    place: GiteaPlace, act: How | Literal["edited", "amended", "closed", "deleted"], fresh: bool
) -> None:
    """R14, R68: the branch has moved, and its request does not say so yet."""
    place.pull(PYTHON_TAGS[0])
    assert place.run("publish").code == 0
    git(place.root, "switch", "--quiet", "main")
    prepare(place, "updated")
    kill_between(place)
    moved, (request,) = place.head, place.open
    assert "exit 1" not in request.body
    assert "exit 1" in place.show("packages/cli/CHANGELOG.md")
    expected = "none"
    match act:
        case "edited" | "amended":
            moved, expected = (
                place.edit_branch(*(["--amend"] if act == "amended" else [])),
                "edited",
            )
        case "closed":
            place.world.end_as(request.number, "closed")
            expected = "created"
        case "deleted":
            place.world.set_ref(HEADS, "")
            expected = "created"
        case _:
            place.world.merge(request.number, act)
    if fresh:
        place.root = place.clone("fresh")
        git(place.root, "remote", "set-url", "origin", place.world.url)
    if act in {"merge", "squash", "rebase"}:
        place.pull()
        published = place.run("publish", RELEASEKIT_TAG="true")
        assert published.code == 0, published.err
        place.pull()
    ended = place.run()
    assert (ended.code, ended.operation) == (0, expected), ended.err
    if expected == "none":
        place.require_none()
        assert "acme-cli-v0.4.2" in place.world.git("tag").split()
        for name, change in (("core", "read parquet files"), ("cli", "exit 1")):
            assert place.show(f"packages/{name}/CHANGELOG.md", "main").count(change) == 1
    elif expected == "edited":
        assert place.head == moved
        (after,) = place.open
        assert (after.number, after.body) == (request.number, request.body)
    else:
        assert "exit 1" in place.require_one().body


@pytest.mark.parametrize("operation", WRITES)
def test_a_server_that_stops_at_any_request_costs_nothing(
    place: GiteaPlace, operation: str
) -> None:
    """Before it and after it, and is back for the next run."""
    prepare(place, operation)
    stopped: set[tuple[str, str]] = set()

    def stop(at: str, what: str) -> None:
        """For good, at the first thing at which no run was stopped yet; what is read is no other
        thing once it was.
        """
        wanted = at == "before" or place.world.name_moment(what) in WRITES[operation]
        if going[-1] and (at, what) not in stopped and wanted:
            stopped.add((at, what))
            going.append(False)
        if not going[-1]:
            raise HangUp

    going = [True]
    place.world.around = stop
    while (ended := place.run(RELEASEKIT_MAX_RETRIES="0")).code:
        assert ended.code == 1, ended.err
        assert len(place.open) <= 1
        going.append(True)
    place.world.around = lambda at, what: None
    assert {place.world.name_moment(what) for at, what in stopped if at == "after"} >= {"move"}
    require_done(place, operation)


def test_a_server_that_is_not_there_is_named(place: GiteaPlace) -> None:
    ended = place.run(
        RELEASEKIT_MAX_RETRIES="0",
        GITHUB_SERVER_URL=(gone := f"http://127.0.0.1:{free_port()}"),
        GITHUB_API_URL=f"{gone}/api/v1",
    )
    assert ended.code == 1
    place.require_none()


@pytest.mark.parametrize("operation", WRITES)
def test_a_token_that_may_only_read_changes_nothing_and_says_so(
    place: GiteaPlace, operation: str
) -> None:
    prepare(place, operation)
    before = (place.world.git("for-each-ref"), place.world.requests)
    ended = place.run(RELEASEKIT_FORGE_TOKEN=make_token(place.world.gitea, "read:repository"))
    assert ended.code == 1, ended.err
    assert "write:repository" in ended.err
    assert (place.world.git("for-each-ref"), place.world.requests) == before


# How each is merged, and whether by the API's own messages.
ROUNDS: Final[tuple[tuple[How, bool], ...]] = (
    ("merge", False),
    ("squash", False),
    ("rebase", False),
    ("squash", True),
    ("merge", True),
)


COMMENTS: Final = {
    ".go": "// {}",
    ".js": "// {}",
    ".py": "# {}",
    ".rs": "// {}",
    ".xml": "<!-- {} -->",
}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a plan says of a package."""

    version: str
    directory: str
    tag: str


def read_plan(place: GiteaPlace, capsys: pytest.CaptureFixture[str]) -> dict[str, Planned]:
    """Of the commit that is checked out."""
    capsys.readouterr()
    flags = ["--tag", "--format", "json", "--registry", f"dir:{place.tmp_path / 'registry'}"]
    assert main(["plan", str(place.root), *flags]) == 0
    document = json.loads(capsys.readouterr().out)
    return {
        f"{each['ecosystem']}:{each['name']}": Planned(
            version=each["version"],
            directory=each["directory"],
            # Into a directory, Go modules go without tags of their own.
            tag=f"{re.sub('/v[0-9]+$', '', each['directory'])}/{each['version']}"
            if each["ecosystem"] == "go"
            else each["tag"]["name"],
        )
        for each in document["packages"]
    }


def find_source(package: Path) -> Path:
    """A file that is part of what is published, whatever the ecosystem."""
    return min(
        (each for each in package.rglob("*") if each.suffix in COMMENTS),
        key=lambda each: (each.suffix != ".xml", len(each.parts), each.name),
    )


def read_section(text: str, version: str) -> str:
    """What a change log says of one version."""
    found = re.search(rf"(?ms)^## \[?{re.escape(version)}\b.*?(?=^## |\Z)", text)
    return found[0] if found else ""


def test_five_rounds_in_five_ecosystems_tell_each_change_once(
    gitea: Gitea,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Into a directory; those of Go modules have their tags from here."""
    for tool in ("npm", "cargo", "go", "mvn"):
        require_tool(tool)
    registry = {"RELEASEKIT_REGISTRY": f"dir:{tmp_path / 'registry'}"}
    known = {**toolchain(tmp_path / "home"), **reactor.environment(), **registry}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    with serving_world(gitea) as world:
        root = tmp_path / "a clone"
        ignored = shutil.ignore_patterns(".releasekit", "__pycache__", "node_modules", "target")
        shutil.copytree(PROJECT / "examples" / "polyglot", root, ignore=ignored)
        with (root / "releasekit.toml").open("a") as settings:
            settings.write('\n[tag]\nname = "{ecosystem}/{name}-v{version}"\n')
        place = GiteaPlace(tmp_path, world, monkeypatch, capsys, begun=root)
        plan = read_plan(place, capsys)
        assert plan.keys() == NEEDS.keys()
        told: dict[str, Planned] = {}  # each change, and what was released by it
        tags = dict.fromkeys(each.tag for each in plan.values())
        place.tag(tags)
        assert place.run("publish").code == 0
        for number, (how, bare) in enumerate(ROUNDS):
            changed = [name for at, name in enumerate(sorted(plan)) if at % 5 == number]
            for at, name in enumerate(changed):
                file = find_source(root / plan[name].directory)
                sign = COMMENTS[file.suffix]
                text = f"{file.read_text()}{sign.format(number)}\n"
                path = file.relative_to(root).as_posix()
                place.commit(f"feat: round {number} of {plan[name].directory}", {path: text})
                if at in {0, len(changed) - 1}:
                    git(root, "push", "--quiet", "origin", "HEAD:main")
                    ended = place.run()
                    assert ended.operation == ("updated" if at else "created"), ended.err
                    place.require_one(ended.err)
            world.merge(place.open[0].number, how, bare=bare)
            place.pull()
            git(root, "switch", "--quiet", "--force-create", "main")
            before, plan = plan, read_plan(place, capsys)
            new = {name: each for name, each in plan.items() if each != before[name]}
            assert new.keys() >= set(changed)
            assert not {each.tag for each in new.values()} & tags.keys()
            tags |= dict.fromkeys(each.tag for each in new.values())
            published = place.run("publish", RELEASEKIT_TAG="true")
            assert published.code == 0, published.err
            place.pull()
            git(root, "switch", "--quiet", "--force-create", "main")
            place.tag([each.tag for name, each in new.items() if name.startswith("go:")])
            told |= {
                f"- round {number} of {each.directory}\n": each
                for each in (plan[name] for name in changed)
            }
            assert place.open == []
        assert place.run().operation == "none"
        for change, package in told.items():
            text = (root / package.directory / "CHANGELOG.md").read_text()
            assert text.count(change) == 1, (change, text)
            assert change in read_section(text, package.version.removeprefix("v"))


def read_workflow(gitea: Gitea) -> str:
    """That of the page, with a directory in place of the registry."""
    page = (PROJECT / "docs/gitea.md").read_text(encoding="utf-8")
    (workflow,) = re.findall(r"```yaml\n((?:(?!```).)*mode: release-pr\n)```", page, re.DOTALL)
    action = "https://github.com/org/releasekit-action@v1"
    assert workflow.count(action) == 2
    workflow = workflow.replace(action, f"{gitea.origin}/{ACTION}@v1")
    registry = f"          registry: dir:{make_outside('registry')}\n"
    workflow, count = re.subn(r"(?: {10}pypi-.*\n)+", registry, workflow)
    assert count == 1
    return workflow


def test_the_workflow_opens_publishes_and_opens_the_next(gitea: Gitea, tmp_path: Path) -> None:
    """With the token of the job, on the runner of Gitea."""
    root, home = tmp_path / "a workspace", tmp_path / "home"
    home.mkdir()
    write(root, PYTHON)
    for name in ("core", "cli", "web"):
        write(root, {f"packages/{name}/src/acme_{name}/__init__.py": "\n"})
    write(root, {".gitea/workflows/release.yml": read_workflow(gitea)})
    git(root, "init", "--quiet", "--initial-branch=main")
    path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
    machine = Program(home, {"PATH": path}).full_environment
    with serving_world(gitea) as world, gitea.runner(machine) as runner:
        name = world.repository

        def push(message: str, files: Mapping[str, str]) -> None:
            write(root, files)
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "--message", message)
            gitea.push(root, name, "HEAD:main")

        def run() -> str:
            """Both jobs of one push; what the second says."""
            jobs = []
            for _ in range(2):  # the second one does not begin where the first fails
                jobs.append(runner.run_job(name))
                assert jobs[-1].conclusion == "success", jobs[-1].log
            return jobs[1].log

        push("chore: start", {})
        assert "there is nothing to release" in run()
        push("feat: read parquet files (#41)", FEATURE)
        assert "created" in run()
        (request,) = world.open
        assert request.author == "gitea-actions"
        world.merge(request.number, "squash")
        assert "there is nothing to release" in run()
        assert "acme-core-v1.3.0" in gitea.tags_of(name)
        assert {each["tag_name"] for each in gitea.releases_of(name)} == set(gitea.tags_of(name))
        git(root, "pull", "--quiet", "--rebase", gitea.url(name), "main")
        push("fix: exit 1 (#44)", FIX)
        assert "created" in run()
        (request,) = world.open
        assert request.number == 2
        # Neither what its branch is moved by, nor what it is opened by, starts jobs.
        assert len(gitea.ask("GET", f"/repos/{name}/actions/runs")["workflow_runs"]) == 4
