"""The release pull request, from pushes to releases, on a forge over a real repository."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from effort import SEARCHING
from harness.github import BOT, MERGED, TOKEN, serving_github
from harness.http_server import HangUp
from harness.killing import Killing
from integration.tools import require_tool
from releasekit.__main__ import main
from releasekit.report.release_pr import DONE
from versions.test_version_command import PYTHON, PYTHON_TAGS, member, write
from workspaces import Program, git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.github import GitHubDouble

BRANCH = "releasekit/main"
FEATURE = {"packages/core/src/parquet.py": "1\n"}
FIX = {"packages/cli/src/exit.py": "1\n"}
NUMBER = 57


@dataclass
class Job:
    """What one has told, besides its exit code."""

    code: int
    outputs: dict[str, str]
    summary: str
    out: str
    err: str

    @property
    def operation(self) -> str:
        return self.outputs["operation"]


class Place:
    """A clone with three packages, and jobs in it."""

    def __init__(
        self,
        tmp_path: Path,
        world: GitHubDouble,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.world = world
        self.root = tmp_path / "a clone"
        self._tmp_path, self._monkeypatch, self._capsys = tmp_path, monkeypatch, capsys
        write(self.root, PYTHON)
        for name in ("core", "cli", "web"):
            write(self.root, {f"packages/{name}/src/acme_{name}/__init__.py": "\n"})
        git(self.root, "init", "--quiet", "--initial-branch=main")
        git(self.root, "remote", "add", "origin", world.url)
        self.push("chore: start", {})
        for tag in PYTHON_TAGS:
            git(self.root, "tag", tag)
        git(self.root, "push", "--quiet", "--tags", "origin")

    def push(self, message: str, files: Mapping[str, str]) -> str:
        write(self.root, files)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", message)
        git(self.root, "push", "--quiet", "origin", "HEAD:main")
        return git(self.root, "rev-parse", "HEAD").strip()

    def pull(self, commit: str = "origin/main") -> None:
        """As a job checks out."""
        git(self.root, "fetch", "--quiet", "--tags", "--prune", "origin")
        git(self.root, "switch", "--quiet", "--detach", commit)

    def run(self, mode: str = "release-pr", *flags: str, **variables: str) -> Job:
        environment = {
            **self.world.environment,
            "GITHUB_ACTIONS": "true",
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_OUTPUT": str(self._tmp_path / "out"),
            "GITHUB_STEP_SUMMARY": str(self._tmp_path / "summary"),
            "RUNNER_TEMP": str(self._tmp_path),
            "RELEASEKIT_MODE": mode,
            "RELEASEKIT_WORKING_DIRECTORY": str(self.root),
            "RELEASEKIT_RETRY_BASE_DELAY": "0s",
            **variables,
        }
        with self._monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            for name in ("out", "summary"):
                (self._tmp_path / name).write_text("")
            self._capsys.readouterr()
            code = main([mode, str(self.root), *flags] if flags else [])
        said = self._capsys.readouterr()
        assert TOKEN not in (said.out + said.err).replace(f"::add-mask::{TOKEN}\n", "")
        assert git(self.root, "status", "--porcelain") == ""
        told = (self._tmp_path / "out").read_text().splitlines()
        outputs = {
            line.partition("<<")[0]: told[at + 1] for at, line in enumerate(told) if "<<" in line
        }
        summary = (self._tmp_path / "summary").read_text()
        return Job(code, outputs, summary, said.out, said.err)

    @property
    def head(self) -> str:
        return self.world.git("rev-parse", BRANCH).strip()

    def show(self, path: str, commit: str = BRANCH) -> str:
        return self.world.git("show", f"{commit}:{path}")

    @property
    def open(self) -> list[dict[str, Any]]:
        return [each for each in self.world.pulls if each["state"] == "open"]


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("RELEASEKIT_REGISTRY", f"dir:{tmp_path / 'registry'}")
    with serving_github(tmp_path) as world:
        yield Place(tmp_path, world, monkeypatch, capsys)
        assert world.defects == []


def test_pushes_keep_one_pull_request_up_to_date(place: Place) -> None:
    """A push without anything to release does not move it, so that approvals stay."""
    assert place.run().operation == "none"
    base = place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run()
    (pull,) = place.open
    assert (job.code, job.operation) == (0, "created"), job.err
    assert job.out.splitlines()[-1] == f"created {pull['html_url']}: 2 packages, base {base[:7]}"
    assert job.outputs["pull-request"] == str(pull["number"])
    assert job.outputs["pull-request-url"] == pull["html_url"]
    assert pull["title"] == "chore: release acme-core 1.3.0 and 1 more"
    assert pull["body"].endswith(f"ReleaseKit-Base: {base}")
    assert "feat: read parquet files (#41)" in pull["body"]
    assert place.world.git("rev-parse", f"{BRANCH}^").strip() == base
    assert 'version = "1.3.0"' in place.show("packages/core/pyproject.toml")
    assert "read parquet files" in place.show("packages/core/CHANGELOG.md")
    assert place.head in place.world.signed
    assert len(place.world.states) == 1

    before = place.head
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    place.world.asked.clear()
    assert place.run().operation == "current"
    assert place.head == before
    assert place.world.writes == []

    later = place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "updated"
    assert [each["number"] for each in place.open] == [pull["number"]]
    assert place.world.git("rev-parse", f"{BRANCH}^").strip() == later
    assert len(place.world.states) == 2
    assert place.open[0]["title"] == "chore: release acme-core 1.3.0 and 2 more"


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_what_is_merged_is_published_tagged_and_followed_by_the_next(
    place: Place, how: str
) -> None:
    assert place.run("publish").code == 0
    place.push("feat: read parquet files (#41)", FEATURE)
    assert place.run().operation == "created"
    # It lands between the run and the merge: part of what is published, and told of next.
    place.push("fix: exit 1 (#44)", FIX)
    place.world.merge(place.open[0]["number"], how)
    place.pull()
    published = place.run("publish", RELEASEKIT_TAG="true", RELEASEKIT_ANNOUNCE="true")
    assert published.code == 0, published.err
    assert "acme-core-v1.3.0" in place.world.tags
    place.pull()
    job = place.run()
    assert (job.code, job.operation) == (0, "created"), job.err
    text = place.show("packages/cli/CHANGELOG.md")
    assert "exit 1" in text
    assert (
        "read parquet files" not in place.show("packages/core/CHANGELOG.md").partition("1.3.0")[0]
    )
    place.world.merge(place.open[0]["number"], how)
    place.pull()
    assert place.run("publish", RELEASEKIT_TAG="true").code == 0
    place.pull()
    assert place.run().operation == "none"
    assert place.open == []


def test_nothing_is_read_but_the_branch(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    before, (pull,) = place.head, place.open
    body = pull["body"]
    pull |= {"title": "chore: release nothing", "body": "ReleaseKit-Base: " + "0" * 40}
    pull["labels"] = [{"name": "autorelease: pending"}]
    assert place.run().operation == "updated"
    assert (place.head, place.open[0]["body"]) == (before, body)


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
    assert job.outputs["pull-request"] == str(place.open[0]["number"])
    assert f"{BRANCH} has commits of somebody else" in job.summary.replace("&#95;", "_")
    assert place.head == edited
    git(person, "push", "--quiet", "origin", f":{BRANCH}")
    assert place.run().operation == "created"
    assert "By hand" not in place.show("packages/core/CHANGELOG.md")


@pytest.mark.parametrize("how", ["squash", "rebase"])
def test_a_branch_that_somebody_has_edited_is_nobodys_once_it_is_merged(
    place: Place, tmp_path: Path, how: str
) -> None:
    """GitHub leaves branches where they are, unless a setting says otherwise."""
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    person = edit_by_hand(place, tmp_path)
    git(person, "commit", "--quiet", "--all", "--message", "docs: words")
    git(person, "push", "--quiet")
    place.world.find_pull(NUMBER)["state"] = "closed"
    assert place.run().operation == "edited"
    place.world.find_pull(NUMBER)["state"] = "open"
    place.world.merge(NUMBER, how, deletes=False)
    place.pull()
    for tag in ("acme-core-v1.3.0", "acme-web-v0.3.1"):
        git(place.root, "tag", tag)
    assert place.run().operation == "none"
    place.push("fix: exit 1 (#44)", FIX)
    assert place.run().operation == "created"


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_a_branch_that_github_has_updated_is_still_ours(place: Place, how: str) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    place.push("docs: say it (#43)", {"README.md": "text\n"})
    place.world.update_branch(place.open[0]["number"], how)
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
    place.world.merge(place.open[0]["number"], "squash")
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
    (pull,) = place.open
    first = {"head": place.head, "title": pull["title"], "body": pull["body"]}
    older = place.push("fix: exit 1 (#44)", FIX)
    place.push("fix: web (#45)", {"packages/web/src/acme_web/more.py": "1\n"})
    assert place.run().operation == "updated"
    newest = {"head": place.head, "title": pull["title"], "body": pull["body"]}
    assert newest["body"] != first["body"]

    def become(state: dict[str, str]) -> None:
        place.world.git("update-ref", f"refs/heads/{BRANCH}", state["head"])
        pull.update({"title": state["title"], "body": state["body"]})
        pull["head"]["sha"] = state["head"]

    def overtake(when: str, what: str) -> None:
        place.world.git("update-ref", f"refs/heads/{BRANCH}", newest["head"])
        if (when, what.partition(" ")[0]) == ("after", "PATCH"):
            return
        pull.update({"title": newest["title"], "body": newest["body"]})

    wanted = {
        "before the look": ("after", "POST /api/graphql"),
        "before the write": ("before", f"PATCH /api/v3/repos/acme/mono/pulls/{NUMBER}"),
        "after the write": ("after", f"PATCH /api/v3/repos/acme/mono/pulls/{NUMBER}"),
    }[moment]

    def watch(when: str, what: str) -> None:
        if (when, what) == wanted:
            place.world.around = lambda when, what: None
            overtake(when, what)

    become(first)
    place.pull(older)
    place.world.around = watch
    job = place.run()
    assert job.operation == "newer", job.err
    assert {"head": place.head, "title": pull["title"], "body": pull["body"]} == newest


@pytest.mark.parametrize("moment", ["move", "write"])
@pytest.mark.parametrize("ends", [MERGED, {"state": "closed"}], ids=["merged", "closed"])
def test_a_request_that_ends_meanwhile_keeps_its_name(
    place: Place, moment: str, ends: dict[str, Any]
) -> None:
    """R68: what it did not hold is not written over it."""
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    (pull,) = place.open
    said = pull["title"], pull["body"]
    place.push("fix: exit 1 (#44)", FIX)
    wanted = (
        "POST /api/graphql" if moment == "move" else f"PATCH /api/v3/repos/acme/mono/pulls/{NUMBER}"
    )

    def end(when: str, what: str) -> None:
        if (when, what) == ("before", wanted):
            place.world.around = lambda when, what: None
            pull.update(ends)

    place.world.around = end
    job = place.run()
    assert job.code == 0, job.err
    assert (pull["title"], pull["body"]) == said
    (opened,) = place.open
    assert opened["number"] != pull["number"]


def test_an_older_run_that_could_not_catch_up_moves_nothing(place: Place) -> None:
    """Where rules want branches up to date, and the run on the newest commit is still to come."""
    place.world.strict = True
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
    git(place.root, "revert", "--no-edit", "HEAD")
    place.push("chore: nothing", {})
    job = place.run()
    assert job.operation == "closed"
    assert place.open == []
    assert "releasekit" not in place.world.git("for-each-ref")
    assert place.world.pulls[0]["body"] == DONE
    assert place.run().operation == "none"


def test_a_person_who_pushes_in_between_is_not_overwritten(place: Place, tmp_path: Path) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.run()
    git(tmp_path, "clone", "--quiet", "--branch", BRANCH, place.world.url, "person")
    person = tmp_path / "person"
    write(person, {"packages/core/CHANGELOG.md": "By hand.\n"})
    git(person, "commit", "--quiet", "--all", "--message", "Edit")
    commit = git(person, "rev-parse", "HEAD").strip()
    place.push("fix: exit 1 (#44)", FIX)

    def edit_in_between(moment: str, what: str) -> None:
        if (moment, what) == ("before", "POST /api/graphql"):
            place.world.around = lambda moment, what: None
            place.world.git("fetch", "--quiet", str(person), f"+HEAD:{BRANCH}")

    place.world.around = edit_in_between
    assert place.run().operation == "edited"
    assert place.head == commit


def test_a_setting_that_forbids_it_is_named_and_the_next_run_goes_on(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.world.may_open = False
    job = place.run()
    assert job.code == 3
    assert "does not let this job open pull requests in acme/mono [RK-336]" in job.err
    assert "Allow GitHub Actions to create and approve pull requests" in job.err
    place.world.may_open = True
    before = place.head
    assert place.run().operation == "created"
    assert place.head == before


@pytest.mark.parametrize("request_", ["trees", "commits", "graphql", "pulls"])
def test_an_answer_that_is_lost_costs_nothing(place: Place, request_: str) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    lost: list[str] = []

    def lose(moment: str, what: str) -> None:
        if moment == "after" and what.startswith("POST") and what.endswith(request_) and not lost:
            lost.append(what)
            raise HangUp

    place.world.around = lose
    job = place.run()
    assert job.code == 0, job.err
    assert lost
    (pull,) = place.open
    assert pull["user"]["login"] == BOT
    assert len(place.world.states) == 1


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
        ((422, {"message": "Validation Failed"}, {}), "GitHub would say no again"),
    ],
)
def test_a_refusal_ends_with_what_github_says_and_what_to_do(
    place: Place, answer: tuple[int, Any, dict[str, str]], said: str
) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    place.world.failing += [answer] * 9
    job = place.run()
    assert job.code == 1
    assert said in job.err


def test_a_long_title_is_cut_and_a_reason_of_github_is_told(place: Place) -> None:
    title = f'title = "chore: release {{packages}} {"and more " * 60}"'
    config = {"releasekit.toml": f"[version]\n{title}\n"}
    place.push("chore: title", config)
    place.push("feat: read parquet files (#41)", FEATURE)
    errors = [{"resource": "PullRequest", "code": "custom", "message": "No commits between"}]
    place.world.failing += [(422, {"message": "Validation Failed", "errors": errors}, {})] * 9
    job = place.run()
    assert "Validation Failed: No commits between" in job.err
    place.world.failing.clear()
    assert place.run().operation == "created"
    assert len(place.open[0]["title"]) == 256


def test_limits_are_waited_for(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    limited = {"message": "You have exceeded a secondary rate limit."}
    place.world.failing += [(403, limited, {"Retry-After": "0"}), (502, {}, {})]
    assert place.run().operation == "created"


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
    changed = json.loads(job.outputs["changed-files"])
    different = place.world.git("diff", "--name-only", f"{BRANCH}^", BRANCH).splitlines()
    assert sorted(changed) == different
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
    assert place.world.pulls == []


def test_what_others_have_written_notifies_nobody(place: Place) -> None:
    title = "feat: @everyone, fixes #1 and </details><script>alert(1)</script> (#41)"
    place.push(title, FEATURE)
    text = '---\n"acme-cli": patch\n---\nThanks to @octocat, closes #2.\n'
    place.push("chore: say it", {".changeset/a.md": text})
    assert place.run().operation == "created"
    body = place.open[0]["body"]
    for said in ("@everyone", "fixes #1", "</details><script", "@octocat", "closes #2"):
        assert said not in body


@pytest.mark.parametrize(
    "variables",
    [
        {"GITHUB_REF": "refs/pull/7/merge"},
        {"GITHUB_REF": "refs/tags/v1"},
        {"GITHUB_REF": f"refs/heads/{BRANCH}"},
    ],
)
def test_it_is_made_for_branches_that_are_released_from(
    place: Place, variables: dict[str, str]
) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run(**variables)
    assert job.code == 2
    assert "a release pull request is made for a branch" in job.err
    assert place.world.pulls == []


def test_a_commit_that_is_checked_out_is_of_the_branch_that_is_named(place: Place) -> None:
    """R68"""
    config = {"releasekit.toml": '[version]\nbranches = { main = "rc" }\n'}
    place.push("feat: read parquet files (#41)", FEATURE | config)
    git(place.root, "switch", "--quiet", "--detach")
    job = place.run(GITHUB_REF="")
    assert job.code == 3
    assert "RK-339" in job.err
    assert place.run("release-pr", "--branch", "main", GITHUB_REF="").operation == "created"
    assert "1.3.0rc1" in place.open[0]["title"]


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
        "url.http://127.0.0.1:9/.insteadOf": place.world.origin,
        "core.alternateRefsCommand": "false",
    }.items():
        git(place.root, "config", name, value)
    assert place.run().operation == "updated"


def test_it_needs_a_token(place: Place) -> None:
    place.push("feat: read parquet files (#41)", FEATURE)
    job = place.run(RELEASEKIT_FORGE_TOKEN="")
    assert job.code == 3
    assert "there is no token for GitHub, and `release-pr` needs one" in job.err


def test_a_repository_elsewhere_is_refused_before_a_token_is_wanted(place: Place) -> None:
    git(place.root, "remote", "set-url", "origin", "git@gitlab.com:acme/tools/kit.git")
    run = place.run(RELEASEKIT_FORGE_TOKEN="", GITHUB_ACTIONS="")
    assert run.code == 2
    assert "keeps a pull request at GitHub, and https://gitlab.com/acme/tools/kit is" in run.err


def test_it_asks_for_no_token_where_it_would_not_help(place: Place) -> None:
    elsewhere = "gitea:https://git.example.com/acme/mono"
    job = place.run(RELEASEKIT_FORGE_TOKEN="", RELEASEKIT_FORGE=elsewhere)
    assert job.code == 2
    assert "forge names gitea:https://git.example.com/acme/mono" in job.err


def test_killed_at_every_request_the_next_run_goes_on(place: Place, tmp_path: Path) -> None:
    """R14: with what a file over 1 MiB takes, when it opens, updates and closes it."""
    write(place.root, {"packages/core/CHANGELOG.md": f"# Changelog\n\n{'x' * 1_100_000}\n"})
    place.push("feat: read parquet files (#41)", FEATURE)
    home = tmp_path / "home"
    home.mkdir()
    path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
    program = Program(home, {**place.world.environment, "PATH": path})
    killing = Killing(
        lambda: program.start("release-pr", place.root, "--max-retries=0"),
        place.root,
        program.log.read_text,
    )

    def may_die(moment: str, what: str) -> None:
        if SEARCHING or not what.startswith("GET"):
            killing.die_once(moment, what.partition("?")[0])

    place.world.around = may_die
    killing.finish(most=60)
    made = {what.rpartition("/")[2] for moment, what in killing.killed if moment == "after"}
    assert made >= {"blobs", "trees", "commits", "graphql", "pulls"}
    (pull,) = place.open
    assert len(place.world.states) == 1
    assert git(place.root, "status", "--porcelain") == ""
    commit = git(place.root, "rev-parse", "HEAD").strip()
    place.world.around = lambda moment, what: None
    git(place.root, "revert", "--no-edit", commit)
    place.push("chore: nothing", {})
    place.world.around = may_die
    killing.killed.clear()
    killing.finish(most=killing.runs + 60)
    assert {what for _, what in killing.killed} >= {"POST /api/graphql"}
    assert pull["state"] == "closed"
    assert BRANCH not in place.world.branches


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
    assert len(place.open[0]["body"]) < 65_536
