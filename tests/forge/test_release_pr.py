"""The release pull request, from pushes to releases, on a forge over a real repository."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

import pytest

from effort import SEARCHING
from forge.requests import BRANCH, WORLDS, AtGitHub, Place, interrupt
from harness.github import BOT
from harness.http_server import HangUp
from harness.killing import Killing
from integration.tools import require_tool
from releasekit.report.release_pr import DONE
from versions.test_version_command import PYTHON_TAGS, member, write
from workspaces import Program, git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forge.requests import How, Moment, State
    from harness.github import GitHubDouble

FEATURE = {"packages/core/src/parquet.py": "1\n"}
FIX = {"packages/cli/src/exit.py": "1\n"}


class GitHubPlace(Place):
    world: AtGitHub

    @property
    def double(self) -> GitHubDouble:
        return self.world.double


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_", "CI_", "GITLAB_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("RELEASEKIT_REGISTRY", f"dir:{tmp_path / 'registry'}")


@pytest.fixture(params=WORLDS)
def place(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Place]:
    """At each forge."""
    with WORLDS[request.param](tmp_path) as world:
        yield Place(tmp_path, world, monkeypatch, capsys)
        assert list(world.defects) == []


@pytest.fixture
def at_github(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[GitHubPlace]:
    with WORLDS["github"](tmp_path) as world:
        assert isinstance(world, AtGitHub)
        yield GitHubPlace(tmp_path, world, monkeypatch, capsys)
        assert list(world.defects) == []


def test_pushes_keep_one_pull_request_up_to_date(place: Place) -> None:
    """A push without anything to release does not move it, so that approvals stay."""
    assert place.run().operation == "none"
    base = place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run()
    (pull,) = place.open
    assert (job.code, job.operation) == (0, "created"), job.err
    assert job.out.splitlines()[-1] == f"created {pull.url}: 2 packages, base {base[:7]}"
    assert job.outputs["pull-request"] == str(pull.number)
    assert job.outputs["pull-request-url"] == pull.url
    assert pull.title == "chore: release acme-core 1.3.0 and 1 more"
    assert pull.body.endswith(f"ReleaseKit-Base: {base}")
    assert "feat: read parquet files (#41)" in pull.body
    assert pull.head == place.head
    assert place.world.git("rev-parse", f"{BRANCH}^").strip() == base
    assert 'version = "1.3.0"' in place.show("packages/core/pyproject.toml")
    assert "read parquet files" in place.show("packages/core/CHANGELOG.md")
    assert len(place.moves) == 1

    before = place.head
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    place.world.asked.clear()
    assert place.run().operation == "current"
    assert place.head == before
    assert place.writes == []

    later = place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "updated"
    (updated,) = place.open
    assert updated.number == pull.number
    assert place.world.git("rev-parse", f"{BRANCH}^").strip() == later
    assert len(place.moves) == 2
    assert updated.title == "chore: release acme-core 1.3.0 and 2 more"
    assert updated.head == place.head


def test_what_a_job_of_github_commits_is_signed(at_github: GitHubPlace) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    assert at_github.run().operation == "created"
    assert at_github.head in at_github.double.signed


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_what_is_merged_is_published_tagged_and_followed_by_the_next(
    place: Place, how: How
) -> None:
    assert place.run("publish").code == 0
    place.push("feat: read parquet files (#41)", FEATURE)
    assert place.run().operation == "created"
    # It lands between the run and the merge: part of what is published, and told of next.
    place.push("fix: exit 1 (#44)", FIX)
    place.world.merge(place.open[0].number, how)
    place.pull()
    published = place.run("publish", RELEASEKIT_TAG="true", RELEASEKIT_ANNOUNCE="true")
    assert published.code == 0, published.err
    assert "acme-core-v1.3.0" in place.world.git("tag")
    place.pull()
    job = place.run()
    assert (job.code, job.operation) == (0, "created"), job.err
    text = place.show("packages/cli/CHANGELOG.md")
    assert "exit 1" in text
    assert (
        "read parquet files" not in place.show("packages/core/CHANGELOG.md").partition("1.3.0")[0]
    )
    place.world.merge(place.open[0].number, how)
    place.pull()
    assert place.run("publish", RELEASEKIT_TAG="true").code == 0
    place.pull()
    assert place.run().operation == "none"
    assert place.open == []


def test_what_comes_late_is_told_although_a_person_has_edited_the_branch(
    place: Place, tmp_path: Path
) -> None:
    """R68: the line that says what the versions were decided on is not in the newest commit."""
    assert place.run("publish").code == 0
    place.push("feat: read parquet files (#41)", FEATURE)
    assert place.run().operation == "created"
    person = edit_by_hand(place, tmp_path)
    git(person, "commit", "--quiet", "--all", "--message", "docs: words")
    git(person, "push", "--quiet")
    place.push("fix: exit 1 (#44)", {"packages/core/src/exit.py": "1\n"})
    assert place.run().operation == "edited"
    place.world.merge(place.open[0].number, "merge")
    place.pull()
    published = place.run("publish", RELEASEKIT_TAG="true")
    assert published.code == 0, published.err
    place.pull()
    place.push("feat: write parquet files (#45)", {"packages/core/src/write.py": "1\n"})
    job = place.run()
    assert (job.code, job.operation) == (0, "created"), job.err
    assert "exit 1 (#44) *(already in 1.3.0)*" in place.show("packages/core/CHANGELOG.md")


def test_nothing_is_read_but_the_branch(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    before, (pull,) = place.head, place.open
    said = "ReleaseKit-Base: " + "0" * 40
    place.world.say(pull.number, title="chore: release nothing", body=said)
    assert place.run().operation == "updated"
    assert (place.head, place.open[0].body) == (before, pull.body)


def edit_by_hand(place: Place, tmp_path: Path) -> Path:
    """A clone of the release branch, with a change that is not committed."""
    git(tmp_path, "clone", "--quiet", "--branch", BRANCH, place.world.url, "person")
    person = tmp_path / "person"
    write(person, {"packages/core/CHANGELOG.md": "# Changelog\n\n## 1.3.0\n\nBy hand.\n"})
    return person


def test_a_branch_that_somebody_has_edited_is_left_alone(place: Place, tmp_path: Path) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    person = edit_by_hand(place, tmp_path)
    git(person, "commit", "--quiet", "--all", "--amend", "--no-edit")
    git(person, "push", "--quiet", "--force")
    edited = place.head
    place.push("fix: exit 1 (#44)", FIX)
    job = place.run()
    assert (job.code, job.operation) == (0, "edited")
    assert job.outputs["pull-request"] == str(place.open[0].number)
    assert f"{BRANCH} has commits of somebody else" in job.out
    assert not job.summary or "has commits of somebody else" in job.summary
    assert place.head == edited
    git(person, "push", "--quiet", "origin", f":{BRANCH}")
    assert place.run().operation == "created"
    assert "By hand" not in place.show("packages/core/CHANGELOG.md")


@pytest.mark.parametrize("how", ["squash", "rebase"])
def test_a_branch_that_somebody_has_edited_is_nobodys_once_it_is_merged(
    place: Place, tmp_path: Path, how: How
) -> None:
    """Forges leave branches where they are, unless a setting says otherwise."""
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    person = edit_by_hand(place, tmp_path)
    git(person, "commit", "--quiet", "--all", "--message", "docs: words")
    git(person, "push", "--quiet")
    number = place.open[0].number
    place.world.end_as(number, "closed")
    assert place.run().operation == "edited"
    place.world.end_as(number, "open")
    place.world.merge(number, how, deletes=False)
    place.pull()
    for tag in ("acme-core-v1.3.0", "acme-web-v0.3.1"):
        git(place.root, "tag", tag)
    assert place.run().operation == "none"
    place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "created"


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_a_branch_that_the_forge_has_updated_is_still_ours(
    place: Place, how: Literal["merge", "rebase"]
) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    place.world.update_branch(place.open[0].number, how)
    before = place.head
    assert place.run().operation == "current"
    assert place.head == before
    place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "updated"


def test_an_older_run_that_comes_last_changes_nothing(place: Place) -> None:
    older = place.push("feat: read parquet files (#41)", FEATURE)
    place.push("fix: exit 1 (#44)", FIX)
    place.run()
    before = place.head
    place.pull(older)
    assert place.run().operation == "newer"
    assert place.head == before
    place.pull()
    place.world.merge(place.open[0].number, "squash")
    place.pull(older)
    assert place.run().operation == "newer"
    assert place.open == []


@pytest.mark.parametrize("moment", ["before the look", "before the write", "after the write"])
def test_an_older_run_that_is_held_leaves_what_the_newer_one_says(
    place: Place, moment: str
) -> None:
    """R68: whenever a newer run moves the branch and writes, its title and text stay."""
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    first = place.hold()
    older = place.push("fix: exit 1 (#44)", FIX)
    place.push("fix: web (#45)", {"packages/web/src/acme_web/more.py": "1\n"})
    assert place.run().operation == "updated"
    newest = place.hold()
    assert newest["body"] != first["body"]
    when = "before" if moment == "before the write" else "after"
    asked: Moment = "move" if moment == "before the look" else "say"
    place.become(first)
    place.pull(older)
    # After its write, the newer run is about to write over it.
    says = moment != "after the write"
    met = interrupt(place.world, when, asked, lambda: place.become(newest, says=says))
    job = place.run()
    assert met
    assert job.operation == "newer", job.err
    assert place.hold() == newest


@pytest.mark.parametrize("moment", ["move", "say"])
@pytest.mark.parametrize("ends", ["merged", "closed"])
def test_a_request_that_ends_meanwhile_keeps_its_name(
    place: Place, moment: Moment, ends: State
) -> None:
    """R68: what it did not hold is not written over it."""
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    (pull,) = place.open
    place.push("fix: exit 1 (#44)", FIX)
    met = interrupt(place.world, "before", moment, lambda: place.world.end_as(pull.number, ends))
    job = place.run()
    assert met
    assert job.code == 0, job.err
    ended = place.find(pull.number)
    assert (ended.title, ended.body, ended.state) == (pull.title, pull.body, ends)
    (opened,) = place.open
    assert opened.number != pull.number


def test_an_older_run_that_could_not_catch_up_moves_nothing(place: Place) -> None:
    """Where rules want branches up to date, and the run on the newest commit is still to come."""
    place.world.be_strict()
    older = place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    before = place.head
    place.pull(older)
    assert place.run().operation == "current"
    assert place.head == before
    place.pull()
    assert place.run().operation == "updated"


def test_it_is_closed_once_there_is_nothing_to_release(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    (pull,) = place.open
    git(place.root, "revert", "--no-edit", "HEAD")
    place.push("chore: nothing", {})
    job = place.run()
    assert job.operation == "closed"
    assert "releasekit" not in place.world.git("for-each-ref")
    ended = place.find(pull.number)
    assert (ended.state, ended.body) == ("closed", DONE)
    assert place.run().operation == "none"


def test_a_person_who_pushes_in_between_is_not_overwritten(place: Place, tmp_path: Path) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    git(tmp_path, "clone", "--quiet", "--branch", BRANCH, place.world.url, "person")
    person = tmp_path / "person"
    write(person, {"packages/core/CHANGELOG.md": "By hand.\n"})
    git(person, "commit", "--quiet", "--all", "--message", "Edit")
    git(person, "push", "--quiet", "origin", "HEAD:beside")
    commit = git(person, "rev-parse", "HEAD").strip()
    place.push("fix: exit 1 (#44)", FIX)
    name = f"refs/heads/{BRANCH}"
    met = interrupt(place.world, "before", "move", lambda: place.world.set_ref(name, commit))
    assert place.run().operation == "edited"
    assert met
    assert place.head == commit


def test_a_setting_that_forbids_it_is_named_and_the_next_run_goes_on(
    at_github: GitHubPlace,
) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    at_github.double.may_open = False
    job = at_github.run()
    assert job.code == 3
    assert "does not let this job open pull requests in acme/mono [RK-336]" in job.err
    assert "Allow GitHub Actions to create and approve pull requests" in job.err
    at_github.double.may_open = True
    before = at_github.head
    assert at_github.run().operation == "created"
    assert at_github.head == before


@pytest.mark.parametrize("moment", ["find", "move", "open", "say"])
def test_an_answer_that_is_lost_costs_nothing(place: Place, moment: Moment) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    if moment == "say":
        place.run()
        place.push("fix: exit 1 (#44)", FIX)
    lost = interrupt(place.world, "after", moment, hang_up)
    job = place.run()
    assert job.code == 0, job.err
    assert lost
    (pull,) = place.open
    assert pull.head == place.head
    assert len(place.moves) == (2 if moment == "say" else 1)
    assert place.run().operation == "current"


def hang_up() -> None:
    raise HangUp


@pytest.mark.parametrize("request_", ["trees", "commits", "graphql", "pulls"])
def test_an_answer_of_github_that_is_lost_costs_nothing(
    at_github: GitHubPlace, request_: str
) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    lost: list[str] = []

    def lose(moment: str, what: str) -> None:
        if moment == "after" and what.startswith("POST") and what.endswith(request_) and not lost:
            lost.append(what)
            raise HangUp

    at_github.double.around = lose
    job = at_github.run()
    assert job.code == 0, job.err
    assert lost
    (pull,) = at_github.open
    assert pull.author == BOT
    assert len(at_github.moves) == 1


@pytest.mark.parametrize("mode", ["release-pr", "publish"])
def test_a_connection_of_git_that_is_cut_is_made_again(
    place: Place, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R12: as often as a request, each time that git reads."""
    monkeypatch.setenv("RELEASEKIT_DRY_RUN", "false")
    monkeypatch.setenv("RELEASEKIT_TAG", "true")
    if mode == "release-pr":
        place.push("feat: read parquet files (#41)", FEATURE)
    cut: list[str] = []

    def hang_up(moment: str, what: str) -> None:
        if moment == "before" and "git-upload-pack" in what and len(cut) < 2:
            cut.append(what)
            raise HangUp

    place.world.around = hang_up
    job = place.run(mode)
    assert job.code == 0, job.err
    assert len(cut) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {"message": "Bad credentials"}, {}), "`forge-token` has to be a token of this"),
        (
            (403, {"message": "Resource not accessible by integration"}, {}),
            "`pull-requests: write`",
        ),
        ((404, {"message": "Not Found"}, {}), "GITHUB_API_URL"),
        ((422, {"message": "Validation Failed"}, {}), "It would say no again"),
    ],
)
def test_a_refusal_ends_with_what_github_says_and_what_to_do(
    at_github: GitHubPlace, answer: tuple[int, Any, dict[str, str]], said: str
) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    at_github.double.failing += [answer] * 9
    job = at_github.run()
    assert job.code == 1
    assert said in job.err


def test_a_reason_of_github_is_told(at_github: GitHubPlace) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    errors = [{"resource": "PullRequest", "code": "custom", "message": "No commits between"}]
    at_github.double.failing += [(422, {"message": "Validation Failed", "errors": errors}, {})] * 9
    assert "Validation Failed: No commits between" in at_github.run().err
    at_github.double.failing.clear()
    assert at_github.run().operation == "created"


def test_a_long_title_is_cut(place: Place) -> None:
    title = f'title = "chore: release {{packages}} {"and more " * 60}"'
    place.push("chore: title", {"releasekit.toml": f"[version]\n{title}\n"})
    place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run()
    assert job.operation == "created", job.err
    (pull,) = place.open
    assert 240 < len(pull.title) <= place.world.longest_title
    assert place.run().operation == "current"


def test_limits_are_waited_for(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    limited = {"message": "You have exceeded a secondary rate limit."}
    place.world.failing.extend([(429, limited, {"Retry-After": "0"}), (502, {}, {})])
    assert place.run().operation == "created"
    assert place.world.failing == []


def test_a_secondary_limit_of_github_is_waited_for(at_github: GitHubPlace) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    limited = {"message": "You have exceeded a secondary rate limit."}
    at_github.double.failing.append((403, limited, {"Retry-After": "0"}))
    assert at_github.run().operation == "created"


def test_files_keep_their_modes_links_and_bytes(place: Place) -> None:
    """GitHub is sent what is not text, or long, apart from the tree."""
    long = "x" * 1_100_000
    write(place.root, {"packages/core/long.md": f"# Changelog\n\n## 1.2.0\n\n{long}\n"})
    (place.root / "packages/core/CHANGELOG.md").symlink_to("long.md")
    (place.root / "packages/web/CHANGELOG.md").write_bytes(b"# Changelog\n\n## 0.3.0\n\n\xff\n")
    (place.root / "packages/core/pyproject.toml").chmod(0o755)
    place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run()
    assert job.operation == "created", job.err
    listed = place.world.git("ls-tree", "-r", BRANCH)
    modes = {line.partition("\t")[2]: line[:6] for line in listed.splitlines()}
    assert modes["packages/core/pyproject.toml"] == "100755"
    assert modes["packages/core/CHANGELOG.md"] == "120000"
    assert modes["packages/core/long.md"] == "100644"
    assert place.show("packages/core/long.md").endswith(f"{long}\n")
    said = place.world.git("cat-file", "blob", f"{BRANCH}:packages/web/CHANGELOG.md")
    assert "0.3.1" in said
    different = place.world.git("diff", "--name-only", f"{BRANCH}^", BRANCH).splitlines()
    if "changed-files" in job.outputs:  # a list of these has no place in the file of GitLab
        assert sorted(json.loads(job.outputs["changed-files"])) == different
    assert place.run().operation == "current"


def test_what_is_ignored_comes_into_no_commit(place: Place) -> None:
    """As code that is generated, in which imports change with the major version of a module."""
    ignored = "packages/core/CHANGELOG.md"
    write(place.root, {".gitignore": f"{ignored}\n", ignored: "# Changelog\n"})
    place.push("feat: read parquet files (#41)", FEATURE)
    assert place.run().operation == "created"
    different = place.world.git("diff", "--name-only", f"{BRANCH}^", BRANCH).splitlines()
    assert "packages/web/CHANGELOG.md" in different
    assert ignored not in different
    assert (place.root / ignored).read_text() == "# Changelog\n"
    assert place.run().operation == "current"


def test_what_git_changes_on_its_way_is_refused(place: Place) -> None:
    write(place.root, {".gitattributes": "pyproject.toml text eol=crlf\n"})
    place.push("feat: read parquet files (#41)", FEATURE)
    git(place.root, "rm", "--quiet", "-r", "--cached", ".")
    git(place.root, "reset", "--quiet", "--hard")
    job = place.run()
    assert job.code == 3
    assert "pyproject.toml is not what HEAD has" in job.err
    assert place.world.requests == []


def test_what_others_have_written_notifies_nobody(place: Place) -> None:
    title = "feat: @everyone, fixes #1 and </details><script>alert(1)</script> (#41)"
    place.push(title, FEATURE)
    text = '---\n"acme-cli": patch\n---\nThanks to @octocat, closes #2.\n'
    place.push("chore: say it", {".changeset/a.md": text})
    assert place.run().operation == "created"
    body = place.open[0].body
    for said in ("@everyone", "fixes #1", "</details><script", "@octocat", "closes #2"):
        assert said not in body


@pytest.mark.parametrize("ref", ["refs/pull/7/merge", "refs/tags/v1", f"refs/heads/{BRANCH}"])
def test_it_is_made_for_branches_that_are_released_from(place: Place, ref: str) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run(ref=ref)
    assert job.code == 2
    assert "a release pull request is made for a branch" in job.err
    assert place.world.requests == []


def test_a_commit_that_is_checked_out_is_of_the_branch_that_is_named(place: Place) -> None:
    """R68"""
    config = {"releasekit.toml": '[version]\nbranches = { main = "rc" }\n'}
    place.push("feat: read parquet files (#41)", FEATURE | config)
    git(place.root, "switch", "--quiet", "--detach")
    nowhere = {"GITHUB_REF": "", "CI_COMMIT_BRANCH": ""}
    job = place.run(**nowhere)
    assert job.code == 3
    assert "RK-339" in job.err
    assert place.run("release-pr", "--branch", "main", **nowhere).operation == "created"
    assert "1.3.0rc1" in place.open[0].title


def test_what_is_not_pushed_is_not_proposed(place: Place) -> None:
    write(place.root, FEATURE)
    git(place.root, "add", "--all")
    git(place.root, "commit", "--quiet", "--message", "feat: read parquet files")
    job = place.run()
    assert job.code == 2
    assert "HEAD is not on the branch main of the remote" in job.err


def test_a_shallow_clone_that_reaches_back_will_do(place: Place, tmp_path: Path) -> None:
    for number in range(3):
        place.push(f"docs: {number}", {"README.md": f"{number}\n"})
    for tag in PYTHON_TAGS:
        git(place.root, "push", "--quiet", "--force", "origin", f"HEAD:refs/tags/{tag}")
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    place.push("fix: exit 1 (#44)", FIX)
    git(tmp_path, "clone", "--quiet", "--depth=3", place.world.url, "shallow")
    place.root = tmp_path / "shallow"
    git(place.root, "fetch", "--quiet", "--depth=3", "--tags", "origin")
    job = place.run()
    assert job.operation == "updated", job.err


def test_settings_of_the_clone_do_not_say_where_the_token_goes(place: Place) -> None:
    """Builds can write them."""
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    place.push("fix: exit 1 (#44)", FIX)
    for name, value in {
        "http.proxy": "http://127.0.0.1:9",
        "url.http://127.0.0.1:9/.insteadOf": place.world.page.rpartition("/acme/")[0],
        "core.alternateRefsCommand": "false",
    }.items():
        git(place.root, "config", name, value)
    assert place.run().operation == "updated"


def test_it_needs_a_token(at_github: GitHubPlace) -> None:
    at_github.push("feat: read parquet files (#41)", FEATURE)
    job = at_github.run(RELEASEKIT_FORGE_TOKEN="")
    assert job.code == 3
    assert "there is no token for GitHub, and `release-pr` needs one" in job.err


def test_it_asks_for_no_token_where_it_would_not_help(at_github: GitHubPlace) -> None:
    elsewhere = "gitea:https://git.example.com/acme/mono"
    job = at_github.run(RELEASEKIT_FORGE_TOKEN="", RELEASEKIT_FORGE=elsewhere)
    assert job.code == 2
    assert "forge names gitea:https://git.example.com/acme/mono" in job.err


def test_killed_at_every_request_the_next_run_goes_on(place: Place, tmp_path: Path) -> None:
    """R14: with what a file over 1 MiB takes, when it opens, updates and closes it."""
    world = place.world
    write(place.root, {"packages/core/CHANGELOG.md": f"# Changelog\n\n{'x' * 1_100_000}\n"})
    place.push("feat: read parquet files (#41)", FEATURE)
    home = tmp_path / "home"
    home.mkdir()
    path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
    program = Program(home, {**world.environment(), "PATH": path})
    killing = Killing(
        lambda: program.start("release-pr", place.root, "--max-retries=0"),
        place.root,
        program.log.read_text,
    )

    def may_die(moment: str, what: str) -> None:
        if SEARCHING or not what.startswith("GET"):
            killing.die_once(moment, what.partition("?")[0])

    def finish(*, runs: int) -> set[str]:
        """What it was killed after."""
        killing.killed.clear()
        world.around = may_die
        killing.finish(most=runs + 60)
        world.around = lambda moment, what: None
        return {what for moment, what in killing.killed if moment == "after"}

    def name_all(made: set[str]) -> set[Moment | None]:
        return {world.name_moment(what) for what in made}

    made = finish(runs=0)
    assert name_all(made) >= {"move", "open"}
    if world.name == "GitHub":
        assert {what.rpartition("/")[2] for what in made} >= {"blobs", "trees", "commits"}
    (pull,) = place.open
    assert pull.head == place.head
    assert len(place.moves) == 1
    assert git(place.root, "status", "--porcelain") == ""
    start = git(place.root, "rev-parse", "HEAD").strip()
    place.push("fix: exit 1 (#44)", FIX)
    assert name_all(finish(runs=killing.runs)) >= {"move", "say"}
    (updated,) = place.open
    assert (updated.number, updated.head) == (pull.number, place.head)
    assert updated.title == "chore: release acme-core 1.3.0 and 2 more"
    assert len(place.moves) == 2
    git(place.root, "revert", "--no-edit", "HEAD")
    git(place.root, "revert", "--no-edit", start)
    place.push("chore: nothing", {})
    assert "move" in name_all(finish(runs=killing.runs))
    assert place.find(pull.number).state == "closed"
    assert len(world.requests) == 1
    assert "releasekit" not in world.git("for-each-ref")


def test_it_asks_little_however_many_packages_there_are(place: Place) -> None:
    """Git tells all that it can."""
    for number in range(60):
        files = {
            f"packages/p{number}/pyproject.toml": member(f"acme-p{number}", "1.0.0"),
            f"packages/p{number}/src/p.py": "1\n",
        }
        write(place.root, files)
    place.push("feat: read parquet files (#41)", FEATURE)
    place.world.asked.clear()
    assert place.run().operation == "created"
    assert len([each for each in place.world.asked if "/api/" in each]) <= 9
    assert len(place.open[0].body) < 65_536
