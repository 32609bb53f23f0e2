"""The double of GitLab holds to what GitLab documents, or its source says; the sources are in
harness/gitlab.py, beside each rule.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any, Literal

import pytest
from gitlab import Gitlab, GitlabAuthenticationError, GitlabError
from gitlab.v4.objects import ProjectMergeRequest

from harness.gitlab import MAX_TITLE, PERSONAL_TOKEN, TOKEN, USER, serving_gitlab
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gitlab.v4.objects import Project

    from harness.gitlab import GitLabDouble


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitLabDouble]:
    with serving_gitlab(tmp_path) as served:
        tree = served.git("mktree").strip()
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        commit = served.git(*who, "commit-tree", tree, "-m", "Start").strip()
        served.git("update-ref", "refs/heads/main", commit)
        served.git("tag", "v1", "main")
        yield served


BRANCH = "releasekit/main"


def commit(world: GitLabDouble, message: str, branch: str, on: str, **files: str) -> str:
    """On a commit, with these files and no others."""
    lines = "".join(
        f"100644 blob {world.git('hash-object', '-w', '--stdin', stdin=text.encode()).strip()}"
        f"\t{name}\n"
        for name, text in files.items()
    )
    tree = world.git("mktree", stdin=lines.encode()).strip()
    oid = world.write_commit(message, tree, *([on] if on else []))
    world.set_ref(f"refs/heads/{branch}", oid)
    world.look_at_branches()
    return oid


def propose(world: GitLabDouble, **more: object) -> ProjectMergeRequest:
    """The request of a branch with one commit."""
    commit(world, "chore: release 1.0.0\n\nBase: 1\n", BRANCH, world.branches["main"], a="1\n")
    wanted = {"source_branch": BRANCH, "target_branch": "main", "title": "chore: release 1.0.0"}
    made = project_of(world).mergerequests.create({**wanted, **more})
    assert isinstance(made, ProjectMergeRequest)
    return made


def project_of(world: GitLabDouble, token: str = PERSONAL_TOKEN) -> Project:
    client = Gitlab(world.origin, private_token=token)
    return client.projects.get(world.repository, lazy=True)


def refuse(status: int, ask: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(GitlabError) as refused:
        ask(*arguments, **named)
    assert refused.value.response_code == status
    return str(refused.value.error_message)


def test_a_tag_has_one_release_and_without_a_ref_none_is_made(world: GitLabDouble) -> None:
    releases = project_of(world).releases
    releases.create({"tag_name": "v1", "description": "One."})
    assert refuse(409, releases.create, {"tag_name": "v1"}) == "Release already exists"
    assert refuse(422, releases.create, {"tag_name": "v2"}) == "Ref is not specified"
    assert world.defects == []
    releases.create({"tag_name": "v2", "ref": "main"})
    assert [each.tag_name for each in releases.list(get_all=True)] == ["v2", "v1"]
    assert world.defects == ["GitLab had to make the tag v2"]


def test_links_of_a_release_are_unlike_one_another_and_lead_somewhere(world: GitLabDouble) -> None:
    releases = project_of(world).releases
    link = {"name": "a", "url": f"{world.project}/packages/generic/releases/v1/a.txt"}
    twice = {"tag_name": "v1", "assets": {"links": [link, {**link, "name": "b"}]}}
    assert "duplicate values (url)" in refuse(400, releases.create, twice)
    plus = {"tag_name": "v1", "assets": {"links": [{**link, "direct_asset_path": "/a+b.txt"}]}}
    assert "invalid format" in refuse(400, releases.create, plus)
    assert world.defects == []
    releases.create({"tag_name": "v1", "assets": {"links": [link]}})
    assert world.defects == ["a of v1 leads nowhere"]


@pytest.mark.parametrize(
    "place", ["re@leases/v1/a", "releases/@a/a", "releases/v..1/a", "releases/v1/a@b"]
)
def test_some_names_are_none_of_packages(world: GitLabDouble, place: str) -> None:
    package, version, name = place.split("/")
    upload = project_of(world).generic_packages.upload
    refuse(400, upload, package, version, name, data=b"1")
    assert world.files == []


def test_a_file_may_be_there_twice_unless_that_is_off(world: GitLabDouble) -> None:
    packages = project_of(world).generic_packages
    for content in (b"1", b"2"):
        packages.upload("releases", "v1", "a", data=content)
    assert packages.download("releases", "v1", "a") == b"2"
    assert world.defects == ["a was uploaded twice"]
    world.allows_duplicates = False
    said = refuse(400, packages.upload, "releases", "v1", "a", data=b"3")
    assert "Duplicate package is not allowed" in said


def test_a_job_may_ask_for_little_and_a_wrong_token_for_nothing(world: GitLabDouble) -> None:
    job = Gitlab(world.origin, job_token=TOKEN).projects.get(world.repository, lazy=True)
    assert job.releases.list(get_all=True) == []
    assert [each.name for each in job.tags.list(get_all=True, search="^V1$")] == ["v1"]
    refuse(404, job.tags.get, "v1")
    world.read_only = True
    refuse(403, job.releases.create, {"tag_name": "v1"})
    wrong = project_of(world, "glpat-other")
    with pytest.raises(GitlabAuthenticationError):
        wrong.releases.list(get_all=True)


def test_a_branch_has_one_open_request_which_is_listed_and_read(world: GitLabDouble) -> None:
    requests = project_of(world).mergerequests
    request = propose(world, description="Text.")
    assert (request.state, request.sha) == ("opened", world.branches[BRANCH])
    wanted = {"source_branch": BRANCH, "target_branch": "main", "title": "Another"}
    said = refuse(409, requests.create, wanted)
    assert (
        f"Another open merge request already exists for this source branch: !{request.iid}" in said
    )
    commit(world, "Other", "other", world.branches["main"], b="1\n")
    other = requests.create({**wanted, "source_branch": "other"})
    assert [each.iid for each in requests.list(get_all=True)] == [other.iid, request.iid]
    ends: dict[str, Any] = {"source_branch": BRANCH, "target_branch": "main"}
    (found,) = requests.list(get_all=True, state="opened", **ends)
    assert (found.iid, found.title, found.description) == (request.iid, request.title, "Text.")
    assert requests.list(get_all=True, source_branch=BRANCH, target_branch="old") == []
    assert [each.iid for each in requests.list(per_page=1, page=2)] == [request.iid]
    assert requests.get(other.iid).web_url.endswith(f"/-/merge_requests/{other.iid}")
    refuse(404, requests.get, 1)


def test_what_opens_no_request(world: GitLabDouble) -> None:
    requests = project_of(world).mergerequests
    wanted = {"source_branch": BRANCH, "target_branch": "main", "title": "Release"}
    assert "does not exist" in refuse(400, requests.create, wanted)
    assert "same project/branch" in refuse(422, requests.create, wanted | {"source_branch": "main"})
    commit(world, "Release", BRANCH, world.branches["main"], a="1\n")
    assert "does not exist" in refuse(400, requests.create, wanted | {"target_branch": "old"})
    long = {"title": "x" * (MAX_TITLE + 1)}
    assert "is too long (maximum is 255 characters)" in refuse(400, requests.create, wanted | long)
    world.unknown_for = 1
    assert "does not exist" in refuse(400, requests.create, wanted)
    assert requests.create(wanted).state == "opened"


def test_a_request_is_changed_closed_and_opened_again(world: GitLabDouble) -> None:
    request = propose(world)
    request.title, request.description = "chore: release 2.0.0", "More."
    request.save()
    held = world.branches[BRANCH]
    request.state_event = "close"
    request.save()
    assert request.state == "closed"
    commit(world, "Next", BRANCH, world.branches["main"], a="2\n")
    now = project_of(world).mergerequests.get(request.iid)
    assert (now.title, now.description, now.sha) == ("chore: release 2.0.0", "More.", held)
    other = propose(world)
    now.state_event = "reopen"
    assert "Another open merge request" in refuse(409, now.save)
    other.state_event = "close"
    other.save()
    now.save()
    assert (now.state, now.detailed_merge_status) == ("opened", "mergeable")


def test_a_request_follows_its_branch_and_ends_with_it(world: GitLabDouble) -> None:
    """Of a branch that is at its target, it stays open."""
    request, requests = propose(world), project_of(world).mergerequests
    moved = commit(world, "Next", BRANCH, world.branches["main"], a="2\n")
    assert requests.get(request.iid).sha == moved
    world.set_ref(f"refs/heads/{BRANCH}", world.branches["main"])
    now = requests.get(request.iid)
    assert (now.state, now.detailed_merge_status) == ("opened", "commits_status")
    world.set_ref(f"refs/heads/{BRANCH}", moved)
    assert requests.get(request.iid).sha == moved
    world.set_ref(f"refs/heads/{BRANCH}", "")
    now = requests.get(request.iid)
    assert (now.state, now.sha) == ("closed", moved)


def test_a_request_whose_head_is_pushed_to_its_target_was_merged(world: GitLabDouble) -> None:
    request = propose(world)
    world.set_ref("refs/heads/main", world.branches[BRANCH])
    assert project_of(world).mergerequests.get(request.iid).state == "merged"


@pytest.mark.parametrize("method", ["merge", "rebase_merge", "ff"])
@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_requests_are_merged_with_the_messages_of_templates(
    world: GitLabDouble, method: Literal["merge", "rebase_merge", "ff"], how: str
) -> None:
    start = world.branches["main"]
    request, world.merge_method = propose(world), method
    later = commit(world, "Later", "main", start, b="1\n")
    requests = project_of(world).mergerequests
    status = requests.get(request.iid).detailed_merge_status
    assert status == ("mergeable" if method == "merge" else "need_rebase")
    world.merge(request.iid, how)
    now = requests.get(request.iid)
    assert (now.state, now.detailed_merge_status) == ("merged", "not_open")
    assert BRANCH not in world.branches
    assert set(world.git("ls-tree", "--name-only", "main").split()) == {"a", "b"}
    head = world.git("log", "-1", "--format=%B", "main").strip()
    title = "chore: release 1.0.0"
    own = title if how == "squash" else f"{title}\n\nBase: 1"
    if method == "ff" or how == "rebase":
        assert head == own
        assert world.list_commits("main", f"^{later}") == [world.branches["main"]]
        assert now.merge_commit_sha is None
    else:
        assert head == (
            f"Merge branch '{BRANCH}' into 'main'\n\n{title}\n\n"
            f"See merge request {world.repository}!{request.iid}"
        )
        assert world.git("log", "-1", "--format=%B", "main^2").strip() == own
        assert now.merge_commit_sha == world.branches["main"]
    assert (now.squash_commit_sha is not None) == (how == "squash")


def test_what_a_squash_says_and_what_stays_is_set(world: GitLabDouble) -> None:
    request = propose(world, description="Text.")
    world.merge_method, world.squash_template = "ff", "%{title} (%{reference})\n\n%{description}"
    world.merge(request.iid, "squash", deletes=False)
    said = world.git("log", "-1", "--format=%B", "main").strip()
    assert said == f"chore: release 1.0.0 ({world.repository}!{request.iid})\n\nText."
    assert BRANCH in world.branches


def test_a_job_may_only_read_requests_and_other_scopes_less(world: GitLabDouble) -> None:
    request = propose(world)
    job = Gitlab(world.origin, job_token=TOKEN).projects.get(world.repository, lazy=True)
    assert [each.iid for each in job.mergerequests.list(get_all=True)] == [request.iid]
    assert job.mergerequests.get(request.iid).title == request.title
    wanted = {"source_branch": BRANCH, "target_branch": "main", "title": "Release"}
    refuse(404, job.mergerequests.create, wanted)
    refuse(404, job.mergerequests.update, request.iid, {"title": "Release"})
    person = project_of(world).mergerequests
    world.scope = "read_api"
    assert person.get(request.iid).title == request.title
    assert "insufficient_scope" in refuse(403, person.update, request.iid, {"title": "Release"})
    world.scope = "write_repository"
    refuse(403, person.get, request.iid)


def push(world: GitLabDouble, directory: Path, account: str, *what: str) -> str:
    """What git says to one that is refused; empty where it is not."""
    url = world.origin.replace("://", f"://{account}@")
    try:
        git(directory, "push", "--quiet", f"{url}/{world.repository}.git", *what)
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return ""


def test_pushes_need_a_token_that_may(world: GitLabDouble, tmp_path: Path) -> None:
    person = tmp_path / "person"
    git(tmp_path, "clone", "--quiet", world.url, str(person))
    git(person, "commit", "--quiet", "--allow-empty", "--message", "Next")
    here = f"HEAD:{BRANCH}"
    assert "Authentication failed" in push(world, person, f"{USER}:glpat-other", here)
    assert "Authentication failed" in push(world, person, f"{USER}:", here)
    assert push(world, person, f"anybody:{PERSONAL_TOKEN}", here) == ""
    head = git(person, "rev-parse", "HEAD").strip()
    assert world.branches[BRANCH] == head
    assert world.states == [(BRANCH, head)]
    world.may_push = False
    assert "403" in push(world, person, f"{USER}:{TOKEN}", "HEAD:main")
    assert push(world, person, f"{USER}:{PERSONAL_TOKEN}", "HEAD:main") == ""
    world.scope = "read_repository"
    assert "403" in push(world, person, f"{USER}:{PERSONAL_TOKEN}", f":{BRANCH}")
    world.scope = "write_repository"
    assert push(world, person, f"{USER}:{PERSONAL_TOKEN}", f":{BRANCH}") == ""
    assert world.states[-1] == (BRANCH, "0" * 40)


def test_a_protected_branch_is_neither_forced_nor_deleted(
    world: GitLabDouble, tmp_path: Path
) -> None:
    person, account = tmp_path / "person", f"{USER}:{PERSONAL_TOKEN}"
    git(tmp_path, "clone", "--quiet", world.url, str(person))
    git(person, "commit", "--quiet", "--allow-empty", "--message", "Next")
    world.protect_branch("releasekit/*")
    assert push(world, person, account, f"HEAD:{BRANCH}") == ""
    git(person, "commit", "--quiet", "--allow-empty", "--message", "More")
    assert push(world, person, account, f"HEAD:{BRANCH}") == ""
    git(person, "commit", "--quiet", "--allow-empty", "--amend", "--message", "Other")
    said = push(world, person, account, "--force", f"HEAD:{BRANCH}")
    assert "GitLab: You are not allowed to force push code to a protected branch" in said
    said = push(world, person, account, f":{BRANCH}")
    assert "GitLab: You can only delete protected branches using the web interface." in said
    assert push(world, person, account, "--force", "HEAD:main") == ""
