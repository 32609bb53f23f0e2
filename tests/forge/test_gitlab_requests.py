"""What is GitLab's own about the release request, read back by python-gitlab."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

import pytest
from gitlab import Gitlab

from forge.requests import BRANCH, MAIN, WORLDS, AtGitLab, Place, interrupt
from harness.forge_server import ForgeHandler
from harness.git_server import http_backend
from harness.gitlab import PERSONAL_TOKEN, SQUASH_TEMPLATE, TOKEN
from harness.http_server import Handler, HangUp, serving
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gitlab.v4.objects import ProjectMergeRequest

    from forge.requests import How, Request
    from harness.forge_server import Response
    from harness.gitlab import GitLabDouble

FEATURE = {"packages/core/src/parquet.py": "1\n"}
FIX = {"packages/cli/src/exit.py": "1\n"}


class GitLabPlace(Place):
    world: AtGitLab

    @property
    def double(self) -> GitLabDouble:
        return self.world.double

    def read(self, **filters: Any) -> list[ProjectMergeRequest]:
        """By a client that others have written."""
        client = Gitlab(self.double.origin, private_token=PERSONAL_TOKEN)
        project = client.projects.get(self.double.repository, lazy=True)
        found: list[ProjectMergeRequest] = project.mergerequests.list(get_all=True, **filters)
        return found


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[GitLabPlace]:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_", "CI_", "GITLAB_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RELEASEKIT_REGISTRY", f"dir:{tmp_path / 'registry'}")
    with WORLDS["gitlab"](tmp_path) as world:
        assert isinstance(world, AtGitLab)
        yield GitLabPlace(tmp_path, world, monkeypatch, capsys)
        assert list(world.defects) == []


def test_one_request_is_read_back_and_none_is_open_once_it_is_merged(place: GitLabPlace) -> None:
    base = place.push("feat: read parquet files (!41)", FEATURE)
    job = place.run()
    assert (job.code, job.operation) == (0, "created"), job.err
    (request,) = place.read(state="opened")
    assert (request.source_branch, request.target_branch) == (BRANCH, "main")
    assert request.title == "chore: release acme-core 1.3.0 and 1 more"
    assert request.description.endswith(f"ReleaseKit-Base: {base}")
    assert request.sha == place.world.git("rev-parse", BRANCH).strip()
    assert request.squash is False
    assert job.outputs["pull-request"] == str(request.iid)
    assert job.outputs["pull-request-url"] == request.web_url
    place.world.merge(request.iid, "merge")
    assert place.read(state="opened") == []
    place.pull()
    for tag in ("acme-core-v1.3.0", "acme-web-v0.3.1"):
        git(place.root, "tag", tag)
    assert place.run().operation == "none"
    assert [each.iid for each in place.read()] == [request.iid]


def test_one_that_is_closed_says_why(place: GitLabPlace) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    place.run()
    git(place.root, "revert", "--no-edit", "HEAD")
    place.push("chore: nothing", {})
    assert place.run().operation == "closed"
    (request,) = place.read()
    assert request.state == "closed"
    assert "nothing to release any more" in request.description


def test_the_token_of_a_job_is_not_enough(place: GitLabPlace) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    for token in ("", TOKEN):
        job = place.run(RELEASEKIT_FORGE_TOKEN=token)
        assert job.code == (1 if token else 3), job.err
        assert "RELEASEKIT_FORGE_TOKEN" in job.err
        assert "the scope `api`" in job.err
    assert place.read() == []


@pytest.mark.parametrize("scope", ["read_api", "write_repository", "read_repository"])
def test_a_token_with_another_scope_is_told_which_it_needs(place: GitLabPlace, scope: str) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    place.double.scope = scope
    job = place.run()
    assert job.code == 1
    assert "the scope `api`" in job.err
    place.double.scope = "api"
    assert place.read() == []
    assert place.run().operation == "created"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {"message": "401 Unauthorized"}, {}), "the scope `api`"),
        ((403, {"message": "403 Forbidden"}, {}), "the role Developer"),
        ((404, {"message": "404 Not Found"}, {}), "those who may not see the project"),
        ((422, {"message": ["Target project has disabled merge requests"]}, {}), "has disabled"),
    ],
)
def test_a_refusal_ends_with_what_gitlab_says_and_what_to_do(
    place: GitLabPlace, answer: tuple[int, Any, dict[str, str]], said: str
) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    place.world.failing += [answer] * 9
    job = place.run()
    assert job.code == 1
    assert said in job.err


def test_a_branch_that_gitlab_does_not_know_yet_is_proposed_again(place: GitLabPlace) -> None:
    """It learns of a push in a job of its own, seconds later where it is busy."""
    place.push("feat: read parquet files (!41)", FEATURE)
    place.double.unknown_for = 3
    job = place.run()
    assert (job.code, job.operation) == (0, "created"), job.err
    assert len(place.read(state="opened")) == 1
    assert len(place.moves) == 1


def test_a_request_that_another_run_has_opened_meanwhile_is_taken(place: GitLabPlace) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    wanted = {"source_branch": BRANCH, "target_branch": "main", "title": "Another"}
    client = Gitlab(place.double.origin, private_token=PERSONAL_TOKEN)
    project = client.projects.get(place.double.repository, lazy=True)

    def open_another() -> None:
        status, _ = place.double.open_request(wanted)
        assert status == 201

    met = interrupt(place.world, "before", "open", open_another)
    job = place.run()
    assert met
    assert (job.code, job.operation) == (0, "updated"), job.err
    (request,) = project.mergerequests.list(get_all=True, state="opened")
    assert request.title == "chore: release acme-core 1.3.0 and 1 more"


def test_one_that_is_being_merged_is_waited_for(place: GitLabPlace) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    place.run()
    (request,) = place.open
    place.push("fix: exit 1 (!44)", FIX)
    held = place.double.find_request(request.number)
    held["state"] = "locked"

    def end() -> None:
        held["state"] = "opened"
        place.world.merge(request.number, "merge")

    met = interrupt(place.world, "after", "find", end)
    place.pull()
    job = place.run()
    assert met
    assert job.code == 0, job.err
    assert place.find(request.number).title == request.title
    assert place.find(request.number).state == "merged"


def test_a_branch_that_may_not_be_forced_is_named(place: GitLabPlace) -> None:
    place.double.protect_branch("releasekit/*")
    place.push("feat: read parquet files (!41)", FEATURE)
    assert place.run().operation == "created"
    place.push("fix: exit 1 (!44)", FIX)
    before = place.head
    job = place.run()
    assert job.code == 1
    assert "You are not allowed to force push code to a protected branch" in job.err
    assert f"have to allow that {BRANCH} is forced" in job.err
    assert place.head == before


@pytest.mark.parametrize("asked", ["info/refs?service=git-receive-pack", "git-receive-pack"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_push_that_is_cut_is_made_again(place: GitLabPlace, moment: str, asked: str) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    cut: list[str] = []

    def hang_up(when: str, what: str) -> None:
        if when == moment and what.endswith(asked) and len(cut) < 2:
            cut.append(what)
            raise HangUp

    place.world.around = hang_up
    job = place.run()
    assert cut
    assert (job.code, job.operation) == (0, "created"), job.err
    assert len(place.moves) == 1


def test_a_push_is_made_again_as_often_as_a_request(place: GitLabPlace) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    cut: list[str] = []

    def hang_up(when: str, what: str) -> None:
        if when == "before" and what.endswith("git-receive-pack") and len(cut) < 3:
            cut.append(what)
            raise HangUp

    place.world.around = hang_up
    job = place.run()
    assert (job.code, job.operation) == (0, "created"), job.err


def test_a_branch_that_somebody_has_deleted_is_proposed_anew(place: GitLabPlace) -> None:
    """GitLab has closed its request then."""
    place.push("feat: read parquet files (!41)", FEATURE)
    place.run()
    place.world.set_ref(f"refs/heads/{BRANCH}", "")
    assert place.open == []
    assert place.run().operation == "created"
    assert [each.state for each in place.world.requests] == ["closed", "open"]


def test_a_request_of_a_fork_is_not_ours(place: GitLabPlace) -> None:
    """Whose branch has the same name."""
    place.push("feat: read parquet files (!41)", FEATURE)
    place.run()
    (request,) = place.open
    fork = place.double.find_request(request.number) | {
        "iid": 7,
        "title": "Mine",
        "source_project_id": 4,
    }
    place.double.merge_requests.append(fork)
    place.push("fix: exit 1 (!44)", FIX)
    assert place.run().operation == "updated"
    assert place.find(7).title == "Mine"
    assert place.find(request.number).title == "chore: release acme-core 1.3.0 and 2 more"


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("method", ["merge", "rebase_merge", "ff"])
def test_it_is_published_and_followed_by_the_next_whatever_the_method(
    place: GitLabPlace, method: Literal["merge", "rebase_merge", "ff"], how: How
) -> None:
    """Of the project; and what lands between the run and the merge is told of next."""
    place.double.merge_method = method
    assert place.run("publish").code == 0
    place.push("feat: read parquet files (!41)", FEATURE)
    assert place.run().operation == "created"
    place.push("fix: exit 1 (!44)", FIX)
    place.world.merge(place.open[0].number, how)
    place.pull()
    published = place.run("publish", RELEASEKIT_TAG="true")
    assert published.code == 0, published.err
    assert "acme-core-v1.3.0" in place.world.git("tag")
    place.pull()
    assert place.run().operation == "created"
    assert "exit 1" in place.show("packages/cli/CHANGELOG.md")
    core = place.show("packages/core/CHANGELOG.md")
    assert core.count("read parquet files") == 1


def test_a_squash_that_says_the_title_alone_is_published_too(place: GitLabPlace) -> None:
    """As it does by default. What has landed meanwhile is in no changelog, and the request says
    how to prevent that.
    """
    place.double.squash_template = SQUASH_TEMPLATE
    assert place.run("publish").code == 0
    place.push("feat: read parquet files (!41)", FEATURE)
    place.run()
    (request,) = place.open
    assert "and `%{description}`" in request.body
    place.push("fix: exit 1 (!44)", FIX)
    place.world.merge(request.number, "squash")
    place.pull()
    assert place.run("publish", RELEASEKIT_TAG="true").code == 0
    assert "acme-core-v1.3.0" in place.world.git("tag")
    place.pull()
    job = place.run()
    assert (job.code, job.operation) in {(0, "none"), (0, "created")}, job.err
    place.push("feat: write parquet files (!45)", {"packages/core/src/write.py": "1\n"})
    assert place.run().operation in {"created", "updated"}
    core = place.show("packages/core/CHANGELOG.md")
    assert core.count("read parquet files") == core.count("write parquet files") == 1


def test_a_pipeline_of_a_request_or_of_its_branch_makes_none(place: GitLabPlace) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    assert place.run(ref=MAIN).operation == "created"
    (request,) = place.open
    place.world.asked.clear()
    for ref in (f"refs/pull/{request.number}/merge", f"refs/heads/{BRANCH}"):
        assert place.run(ref=ref).code == 2
    assert place.writes == []


def open_request(place: GitLabPlace) -> Request:
    place.push("feat: read parquet files (!41)", FEATURE)
    assert place.run().operation == "created"
    (request,) = place.open
    return request


@pytest.mark.parametrize("prefix", ["Draft: ", "[WIP] "])
def test_a_draft_stays_a_draft(place: GitLabPlace, prefix: str) -> None:
    """A person holds it back by its title."""
    request = open_request(place)
    place.world.say(request.number, title=f"{prefix}{request.title}", body=request.body)
    assert place.run().operation == "current"
    place.push("fix: exit 1 (!44)", FIX)
    assert place.run().operation == "updated"
    (now,) = place.open
    assert now.title == f"{prefix}chore: release acme-core 1.3.0 and 2 more"
    assert place.world.git("log", "-1", "--format=%s", BRANCH).strip() in now.title


def test_a_commit_of_a_person_counts_even_if_it_changes_nothing(place: GitLabPlace) -> None:
    open_request(place)
    git(place.root, "fetch", "--quiet", "origin", BRANCH)
    git(place.root, "switch", "--quiet", "--detach", "FETCH_HEAD")
    git(place.root, "commit", "--quiet", "--allow-empty", "--message", "ci: again")
    git(place.root, "push", "--quiet", "origin", f"HEAD:{BRANCH}")
    git(place.root, "switch", "--quiet", "main")
    before = place.head
    place.push("fix: exit 1 (!44)", FIX)
    assert place.run().operation == "edited"
    assert place.head == before


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("deletes", [True, False])
def test_what_is_merged_between_two_looks_is_not_proposed_again(
    place: GitLabPlace, how: How, *, deletes: bool
) -> None:
    request = open_request(place)
    place.push("docs: say it", {"README.md": "x\n"})
    met = interrupt(
        place.world,
        "before",
        "find",
        lambda: place.world.merge(request.number, how, deletes=deletes),
    )
    job = place.run()
    assert met
    assert job.code == 0, job.err
    assert place.open == []


def test_an_open_request_whose_branch_is_merged_is_closed(place: GitLabPlace) -> None:
    """As where it was merged by hand, and the forge has not seen it."""
    assert place.run("publish", RELEASEKIT_TAG="true").code == 0
    request = open_request(place)
    place.world.merge(request.number, "merge", deletes=False)
    place.double.find_request(request.number)["state"] = "opened"
    place.pull()
    assert place.run("publish", RELEASEKIT_TAG="true").code == 0
    place.pull()
    job = place.run()
    assert (job.code, job.operation) == (0, "closed"), job.err
    assert place.open == []


def test_a_scope_in_a_title_mentions_nobody(place: GitLabPlace) -> None:
    manifest = {"name": "@acme/site", "version": "1.0.0", "files": ["index.js"]}
    place.push("feat: site (!50)", {"package.json": json.dumps(manifest), "index.js": "1\n"})
    git(place.root, "tag", "@acme/site@1.0.0")
    git(place.root, "push", "--quiet", "--tags", "origin")
    place.push("feat: more (!51)", {"index.js": "2\n"})
    assert place.run().operation == "created"
    (request,) = place.open
    assert "@\u200bacme/site" in request.title
    assert place.run().operation == "current"


class Elsewhere(Handler):
    """Another server, which answers as the first one would."""

    bare: Path
    logins: list[str]

    def do_GET(self) -> None:
        received = self.received()
        assert received is not None
        headers, body = received
        self.logins += [headers[name] for name in ("authorization",) if name in headers]
        root = self.bare.parents[2]
        self.send(*http_backend(root, self.command, self.path, headers, body, "x"))

    do_POST = do_GET


@pytest.mark.parametrize("service", ["git-upload-pack", "git-receive-pack"])
def test_the_token_follows_no_redirect_of_git(
    place: GitLabPlace, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    """R22"""
    place.push("feat: read parquet files (!41)", FEATURE)
    logins: list[str] = []
    answer = ForgeHandler._git
    with serving(Elsewhere, bare=place.double.bare, logins=logins) as origin:
        other = origin.replace("127.0.0.1", "localhost")

        def redirect(self: ForgeHandler, headers: dict[str, str], body: bytes) -> Response:
            if self.command == "GET" and f"service={service}" in self.path:
                return 302, [("Location", f"{other}{self.path}")], b""
            return answer(self, headers, body)

        monkeypatch.setattr(ForgeHandler, "_git", redirect)
        assert place.run().code == 1
    assert logins == []


def test_a_wrong_token_leaves_the_login_of_the_user(
    place: GitLabPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    host = place.double.origin.removeprefix("http://")
    login = f"http://gitlab-ci-token:{TOKEN}@{host}\n"
    store, config = tmp_path / "logins", tmp_path / "git config"
    store.write_text(login)
    config.write_text(f"[credential]\n\thelper = store --file={store}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert place.run(RELEASEKIT_FORGE_TOKEN="glpat-expired").code == 1
    assert store.read_text() == login


def test_addresses_that_the_user_has_rewritten_are_not_pushed_to(
    place: GitLabPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.push("feat: read parquet files (!41)", FEATURE)
    config = tmp_path / "git config"
    config.write_text(f'[url "http://127.0.0.1:9/"]\n\tpushInsteadOf = {place.double.origin}/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert place.run().operation == "created"
