"""The double of GitHub holds to what GitHub documents, or has been seen to do; the sources are in
harness/github.py, beside each rule.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from harness.bare_repository import NO_COMMIT
from harness.github import BOT, MAX_PULL_BODY, NODE, OWNER, TOKEN, serving_github
from harness.http_server import HangUp
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.github import GitHubDouble

BRANCH = "releasekit/main"
ADA = {"name": "Ada", "email": "ada@example.invalid"}
MUTATION = "mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }"


class Forge:
    """The double with one commit on main, a.txt and b.txt, and a client of its API."""

    def __init__(self, world: GitHubDouble, client: httpx.Client) -> None:
        self.world, self._client = world, client
        tree = self.make("trees", {"tree": [write("a.txt", "1\n"), write("b.txt", "1\n")]})
        self.start = self.make("commits", {"message": "Start", "tree": tree, "parents": []})
        world.set_branch("main", self.start)

    def ask(self, method: str, path: str, document: object = None) -> httpx.Response:
        return self._client.request(
            method, f"{self.world.api}/repos/acme/mono{path}", json=document
        )

    def make(self, kind: str, document: object) -> str:
        answer = self.ask("POST", f"/git/{kind}", document)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["sha"])

    def commit(self, on: str, files: Mapping[str, str], message: str = "Edit") -> str:
        entries = [write(path, content) for path, content in files.items()]
        tree = self.make("trees", {"base_tree": self.tree(on), "tree": entries})
        return self.make("commits", {"message": message, "tree": tree, "parents": [on]})

    def tree(self, commit: str) -> str:
        return self.world.git("rev-parse", f"{commit}^{{tree}}").strip()

    def show(self, path: str, commit: str = "main") -> str:
        return self.world.git("cat-file", "blob", f"{commit}:{path}")

    def mutate(self, *updates: dict[str, Any], query: str = MUTATION, node: str = NODE) -> Any:
        variables = {"input": {"repositoryId": node, "refUpdates": list(updates)}}
        document = {"query": query, "variables": variables}
        answer = self._client.post(f"{self.world.origin}/api/graphql", json=document)
        assert answer.status_code == 200
        return answer.json()

    def open(self, commit: str, **more: str) -> dict[str, Any]:
        """A pull request of a branch at this commit."""
        self.world.set_branch(BRANCH, commit)
        wanted = {"title": "Release", "body": "Notes", "head": BRANCH, "base": "main"}
        answer = self.ask("POST", "/pulls", wanted | more)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def look(self, number: int) -> dict[str, Any]:
        return dict(self.ask("GET", f"/pulls/{number}").json())


def write(path: str, content: str, mode: str = "100644") -> dict[str, Any]:
    return {"path": path, "mode": mode, "type": "blob", "content": content}


def drop(path: str) -> dict[str, Any]:
    return {"path": path, "mode": "100644", "type": "blob", "sha": None}


def move(
    after: str, before: str | None = None, *, name: str = BRANCH, **more: Any
) -> dict[str, Any]:
    return {"name": f"refs/heads/{name}", "beforeOid": before, "afterOid": after, **more}


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with (
        serving_github(tmp_path) as world,
        httpx.Client(headers=headers, trust_env=False) as client,
    ):
        yield Forge(world, client)


def test_a_repository_has_a_node_and_a_default_branch(forge: Forge) -> None:
    assert forge.ask("GET", "").json() == {
        "node_id": NODE,
        "full_name": "acme/mono",
        "default_branch": "main",
    }


def test_a_tree_is_its_base_with_what_is_written_and_without_what_is_dropped(forge: Forge) -> None:
    content = base64.b64encode(b"\xff\n").decode()
    blob = forge.make("blobs", {"content": content, "encoding": "base64"})
    entries = [
        write("dir/run", "#!/bin/sh\n", "100755"),
        write("link", "a.txt", "120000"),
        {"path": "*", "mode": "100644", "type": "blob", "sha": blob},
        drop("b.txt"),
    ]
    tree = forge.make("trees", {"base_tree": forge.tree(forge.start), "tree": entries})
    listed = forge.world.git("ls-tree", "-r", "--format=%(objectmode) %(path)", tree)
    assert listed.splitlines() == ["100644 *", "100644 a.txt", "100755 dir/run", "120000 link"]
    assert forge.world.git("cat-file", "-s", blob) == "2\n"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (drop("c.txt"), "GitRPC::BadObjectState"),
        (drop("*"), "GitRPC::BadObjectState"),
        (write("../a.txt", ""), "malformed path component"),
        (write("dir//a.txt", ""), "malformed path component"),
        (write(".git/config", ""), "malformed path component"),
        (write("/a.txt", ""), "cannot start with a slash"),
        (write("a.txt", "", "100664"), "tree.mode"),
        ({"path": "a.txt", "mode": "100644", "type": "blob"}, "either tree.sha or tree.content"),
        (write("a.txt", "") | {"sha": NO_COMMIT}, "either tree.sha or tree.content"),
        (drop("a.txt") | {"sha": NO_COMMIT}, "is not a valid blob"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(forge: Forge, entry: dict[str, Any], said: str) -> None:
    wanted = {"base_tree": forge.tree(forge.start), "tree": [entry]}
    answer = forge.ask("POST", "/git/trees", wanted)
    assert (answer.status_code, said in answer.json()["message"]) == (422, True), answer.text


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("trees", {"base_tree": NO_COMMIT, "tree": []}),
        ("blobs", {"content": "?", "encoding": "base64"}),
        ("blobs", {"content": "", "encoding": "latin-1"}),
        ("commits", {"message": "Edit", "tree": NO_COMMIT, "parents": []}),
    ],
)
def test_what_is_made_of_nothing_is_refused(
    forge: Forge, kind: str, wanted: dict[str, Any]
) -> None:
    assert forge.ask("POST", f"/git/{kind}", wanted).status_code == 422


def test_a_commit_has_parents_that_are_commits(forge: Forge) -> None:
    tree = forge.tree(forge.start)
    wanted = {"message": "Edit", "tree": tree, "parents": [tree]}
    assert forge.ask("POST", "/git/commits", wanted).status_code == 422


@pytest.mark.parametrize(
    ("personal", "more", "verified"),
    [
        (False, {}, True),
        (False, {"author": ADA}, False),
        (False, {"committer": ADA}, False),
        (True, {}, False),
    ],
)
def test_a_commit_is_signed_where_a_bot_makes_it_and_names_nobody(
    forge: Forge, personal: bool, more: dict[str, Any], verified: bool
) -> None:
    forge.world.personal = personal
    wanted = {"message": "Edit", "tree": forge.tree(forge.start), "parents": [forge.start], **more}
    answer = forge.ask("POST", "/git/commits", wanted).json()
    assert answer["verification"]["verified"] is verified
    assert (answer["sha"] in forge.world.signed) is verified
    if "author" in more:
        assert forge.world.git("log", "-1", "--format=%an", answer["sha"]) == "Ada\n"


def test_a_branch_moves_if_it_still_is_where_it_was_seen(forge: Forge) -> None:
    first = forge.commit(forge.start, {"a.txt": "2\n"})
    second = forge.commit(forge.start, {"a.txt": "3\n"})
    forge.world.states.clear()
    assert forge.mutate(move(first, NO_COMMIT)) == {
        "data": {"updateRefs": {"clientMutationId": None}}
    }
    for refused in (
        move(second, NO_COMMIT, force=True),
        move(second, forge.start, force=True),
        move(second, first),
        move(second, first, force=False),
        move(forge.tree(second), first, force=True),
        move(NO_COMMIT, NO_COMMIT, name="nowhere"),
        move(second, name="a") | {"name": "a"},
    ):
        (error,) = forge.mutate(refused)["errors"]
        assert error["path"] == ["updateRefs"]
    assert forge.world.branches[BRANCH] == first
    assert "errors" not in forge.mutate(move(second, first, force=True))
    assert "errors" not in forge.mutate(move(NO_COMMIT, second))
    assert forge.world.states == [(BRANCH, first), (BRANCH, second), (BRANCH, NO_COMMIT)]
    assert set(forge.world.branches) == {"main"}


def test_a_branch_that_nobody_compares_moves_forward(forge: Forge) -> None:
    commit = forge.commit(forge.start, {"a.txt": "2\n"})
    assert "errors" not in forge.mutate(move(commit, name="main"))
    assert "errors" in forge.mutate(move(forge.start, name="main"))
    assert forge.world.branches == {"main": commit}


def test_all_branches_move_or_none(forge: Forge) -> None:
    commit = forge.commit(forge.start, {"a.txt": "2\n"})
    answer = forge.mutate(move(commit, NO_COMMIT), move(commit, NO_COMMIT, name="main"))
    assert answer["data"] == {"updateRefs": None}
    assert forge.world.branches == {"main": forge.start}


def test_rules_for_signatures_refuse_what_is_not_signed(forge: Forge) -> None:
    forge.world.requires_signatures = True
    tree = forge.tree(forge.start)
    wanted = {"message": "Edit", "tree": tree, "parents": [forge.start], "author": ADA}
    (error,) = forge.mutate(move(forge.make("commits", wanted), NO_COMMIT))["errors"]
    assert "Commits must have verified signatures." in error["message"]
    signed = forge.commit(forge.start, {"a.txt": "2\n"})
    assert "errors" not in forge.mutate(move(signed, NO_COMMIT))


def test_a_mutation_is_refused_with_status_200(forge: Forge) -> None:
    update = move(forge.start, NO_COMMIT)
    kinds = []
    for given in ({"node": "R_2"}, {"query": "mutation { deleteRef }"}):
        (error,) = forge.mutate(update, **given)["errors"]
        kinds.append(error["type"])
    forge.world.read_only = True
    (error,) = forge.mutate(update)["errors"]
    assert [*kinds, error["type"]] == ["NOT_FOUND", "undefinedField", "FORBIDDEN"]
    assert set(forge.world.branches) == {"main"}


def test_a_pull_request_is_found_by_its_branches_and_its_state(forge: Forge) -> None:
    pull = forge.open(forge.commit(forge.start, {"a.txt": "2\n"}))
    assert (pull["state"], pull["user"]["login"], pull["mergeable_state"]) == (
        "open",
        BOT,
        "unknown",
    )

    def find(query: str) -> list[int]:
        return [each["number"] for each in forge.ask("GET", f"/pulls?{query}").json()]

    assert find(f"head=acme:{BRANCH}&base=main&state=open") == [pull["number"]]
    assert find("head=acme:main") == find("base=other") == find("state=closed") == []
    closed = forge.ask("PATCH", f"/pulls/{pull['number']}", {"title": "No", "state": "closed"})
    assert (closed.json()["title"], find("state=closed")) == ("No", [pull["number"]])
    assert find("state=open") == []
    other = forge.open(forge.world.branches[BRANCH])
    assert find("state=all") == [other["number"], pull["number"]]
    assert find("state=all&per_page=1&page=2") == [pull["number"]]
    assert forge.ask("GET", "/pulls/1").status_code == 404


def test_a_pull_request_that_cannot_be_is_refused(forge: Forge) -> None:
    commit = forge.commit(forge.start, {"a.txt": "2\n"})
    forge.open(commit)
    forge.world.set_branch("same", forge.start)

    def refuse(**more: str) -> dict[str, Any]:
        wanted = {"title": "Release", "head": BRANCH, "base": "main", **more}
        answer = forge.ask("POST", "/pulls", wanted)
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        return dict(error)

    exists = "A pull request already exists for acme:releasekit/main."
    assert refuse() == {"resource": "PullRequest", "code": "custom", "message": exists}
    assert refuse(head="gone") == {"resource": "PullRequest", "code": "invalid", "field": "head"}
    assert refuse(base="gone")["field"] == "base"
    assert refuse(head="same")["message"] == "No commits between main and same"
    long = "body is too long (maximum is 65536 characters)"
    assert refuse(body="x" * (MAX_PULL_BODY + 1))["message"] == long
    assert refuse(title="x" * 257)["message"] == "title is too long (maximum is 256 characters)"


def test_a_setting_forbids_jobs_to_open_pull_requests(forge: Forge) -> None:
    forge.world.may_open = False
    forge.world.set_branch(BRANCH, forge.commit(forge.start, {"a.txt": "2\n"}))
    wanted = {"title": "Release", "head": BRANCH, "base": "main"}
    refused = forge.ask("POST", "/pulls", wanted)
    assert refused.status_code == 403
    assert "is not permitted to create or approve" in refused.json()["message"]
    forge.world.personal = True
    assert forge.ask("POST", "/pulls", wanted).json()["user"] == {"login": OWNER}


def test_the_state_of_merging_is_that_of_the_branches(forge: Forge) -> None:
    number = forge.open(forge.commit(forge.start, {"a.txt": "2\n"}))["number"]
    assert forge.look(number)["mergeable_state"] == "clean"
    later = forge.commit(forge.start, {"b.txt": "2\n"})
    forge.world.set_branch("main", later)
    assert forge.look(number)["mergeable_state"] == "clean"
    forge.world.strict = True
    assert forge.look(number)["mergeable_state"] == "behind"
    forge.world.set_branch("main", forge.commit(later, {"a.txt": "3\n"}))
    assert forge.look(number)["mergeable_state"] == "dirty"


@pytest.mark.parametrize("after", ["", "main"], ids=["deleted", "emptied"])
def test_a_pull_request_without_commits_is_closed_for_good(forge: Forge, after: str) -> None:
    commit = forge.commit(forge.start, {"a.txt": "2\n"})
    number = forge.open(commit)["number"]
    last = forge.world.branches.get(after, NO_COMMIT)
    assert "errors" not in forge.mutate(move(last, commit, force=True))
    assert (forge.look(number)["state"], forge.look(number)["merged"]) == ("closed", False)
    refused = forge.ask("PATCH", f"/pulls/{number}", {"state": "open"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"].startswith("state cannot be changed. ")
    forge.world.set_branch(BRANCH, commit)
    assert forge.ask("PATCH", f"/pulls/{number}", {"state": "open"}).json()["state"] == "open"


def test_what_is_pushed_to_its_base_is_merged(forge: Forge, tmp_path: Path) -> None:
    number = forge.open(forge.commit(forge.start, {"a.txt": "2\n"}))["number"]
    git(tmp_path, "clone", "--quiet", forge.world.url, "person")
    person = tmp_path / "person"
    git(person, "push", "--quiet", "origin", f"origin/{BRANCH}:refs/heads/main")
    git(person, "push", "--quiet", "origin", f":{BRANCH}")
    pull = forge.world.find_pull(number)
    assert (pull["state"], pull["merged"]) == ("closed", True)
    assert forge.ask("PATCH", f"/pulls/{number}", {"state": "open"}).status_code == 422


def open_two_commits(forge: Forge) -> int:
    """On a main that has gone on."""
    first = forge.commit(forge.start, {"a.txt": "2\n"}, "Write a\n\nMore of it.\n")
    number = forge.open(forge.commit(first, {"a.txt": "3\n"}, "Write a again"))["number"]
    forge.world.set_branch("main", forge.commit(forge.start, {"b.txt": "2\n"}, "Go on"))
    return int(number)


@pytest.mark.parametrize(
    ("how", "said", "parents"),
    [
        ("merge", "Merge pull request #57 from acme/releasekit/main\n\nRelease", 2),
        ("squash", "Release (#57)\n\n* Write a\n\nMore of it.\n\n* Write a again", 1),
        ("rebase", "Write a again", 1),
    ],
)
def test_merging_writes_what_github_writes(forge: Forge, how: str, said: str, parents: int) -> None:
    number = open_two_commits(forge)
    before = forge.world.branches
    forge.world.merge(number, how)
    assert forge.world.git("log", "-1", "--format=%B", "main").strip() == said
    assert (forge.show("a.txt"), forge.show("b.txt")) == ("3\n", "2\n")
    commit = forge.world.branches["main"]
    assert len(forge.world.git("log", "-1", "--format=%P", "main").split()) == parents
    made = forge.world.list_commits(commit, "--not", *before.values())
    assert len(made) == (2 if how == "rebase" else 1)
    assert (commit in forge.world.signed) is (how != "rebase")
    assert forge.look(number)["merged"]
    assert set(forge.world.branches) == {"main"}


def test_one_commit_is_squashed_with_its_own_words(forge: Forge) -> None:
    commit = forge.commit(forge.start, {"a.txt": "2\n"}, "Write a\n\nReleaseKit-Base: 1\n")
    forge.world.merge(forge.open(commit)["number"], "squash", deletes=False)
    said = forge.world.git("log", "-1", "--format=%B", "main").strip()
    assert said == "Write a (#57)\n\nReleaseKit-Base: 1"
    assert forge.world.branches[BRANCH] == commit


def test_rebasing_makes_each_commit_anew_and_keeps_its_author(forge: Forge) -> None:
    tree = forge.tree(forge.commit(forge.start, {"a.txt": "2\n"}))
    wanted = {"message": "Edit", "tree": tree, "parents": [forge.start], "author": ADA}
    commit = forge.make("commits", wanted)
    forge.world.merge(forge.open(commit)["number"], "rebase")
    assert forge.world.branches["main"] != commit
    assert forge.world.git("log", "-1", "--format=%an", "main") == "Ada\n"


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_updating_a_branch_brings_what_its_base_has(forge: Forge, how: str) -> None:
    number = open_two_commits(forge)
    forge.world.strict = True
    forge.world.update_branch(number, how)
    assert forge.look(number)["mergeable_state"] == "clean"
    assert (forge.show("a.txt", BRANCH), forge.show("b.txt", BRANCH)) == ("3\n", "2\n")
    subject = "Merge branch 'main' into releasekit/main" if how == "merge" else "Write a again"
    assert forge.world.git("log", "-1", "--format=%s", BRANCH).strip() == subject


def test_what_conflicts_is_not_merged(forge: Forge) -> None:
    number = forge.open(forge.commit(forge.start, {"a.txt": "2\n"}))["number"]
    main = forge.commit(forge.start, {"a.txt": "3\n"})
    forge.world.set_branch("main", main)
    with pytest.raises(AssertionError, match="conflicts with its base"):
        forge.world.merge(number, "merge")
    assert forge.world.branches["main"] == main


def test_each_issue_has_comments_of_its_own(forge: Forge) -> None:
    for number in (7, 57):
        answer = forge.ask("POST", f"/issues/{number}/comments", {"body": f"On {number}"})
        assert (answer.status_code, answer.json()["user"]["login"]) == (201, BOT)
    (comment,) = forge.ask("GET", "/issues/57/comments").json()
    assert comment["body"] == "On 57"
    long = {"body": "x" * (MAX_PULL_BODY + 1)}
    assert forge.ask("POST", "/issues/57/comments", long).status_code == 422
    assert forge.ask("PATCH", f"/issues/comments/{comment['id']}", long).status_code == 422
    assert forge.world.comments[1] == comment


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_request_that_is_lost_has_been_done_or_not(forge: Forge, moment: str) -> None:
    commit = forge.commit(forge.start, {"a.txt": "2\n"})

    def lose(at: str, what: str) -> None:
        if (at, what) == (moment, "POST /api/graphql"):
            raise HangUp

    forge.world.around = lose
    with pytest.raises(httpx.TransportError):
        forge.mutate(move(commit, NO_COMMIT))
    assert (BRANCH in forge.world.branches) is (moment == "after")
