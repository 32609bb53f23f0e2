"""A repository at GitHub: its releases, the comments of a pull request and its attestations as the
API has them, over a real bare repository that git's own HTTP backend serves, all behind one token.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import re
import tempfile
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from harness.bare_repository import NO_COMMIT, BareRepository
from harness.forge_server import ForgeHandler, Response, make_bare
from harness.http_server import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REPOSITORY = "acme/mono"
PULL_REQUEST = 7
BOT = "github-actions[bot]"
OWNER = "ada"
TOKEN = "ghs_of_the_job"
MAX_BODY = 125_000
NOT_ALLOWED = {"message": "Resource not accessible by integration"}
# https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/troubleshooting-rules
PROTECTED = """#!/bin/sh
while read old new ref; do
  case "$ref" in
    refs/tags/*)
      echo "GH013: Repository rule violations found for $ref." >&2
      echo "- Cannot create ref due to creations being restricted." >&2
      exit 1 ;;
  esac
done
"""

NODE = "R_1"
NOT_FOUND = {"message": "Not Found"}
MERGED = {"state": "closed", "merged": True, "merged_at": "2026-11-21T09:30:00Z"}
# Of a pull request and of a comment: https://github.com/renovatebot/renovate/issues/2032
MAX_PULL_BODY = 65_536
# https://github.com/dead-claudia/github-limits
MAX_TITLE = 256
# What may be an entry of a tree; nobody here sends whole trees.
# https://docs.github.com/en/rest/git/trees#create-a-tree
KINDS = {"100644": "blob", "100755": "blob", "120000": "blob", "160000": "commit"}

Answer = tuple[int, Any]


@dataclass
class GitHubDouble(BareRepository):
    """`around` is told "before" and "after" of each request and what it was, and may raise HangUp:
    before it, nothing has happened; after it, the answer is lost. `failing` are answers to the next
    requests that write, with headers; `strange` is the content of every answer of the API. A job
    that may not open pull requests has a setting that says so; where rules are `strict`, those that
    lack commits of their base are behind. A `personal` token speaks for OWNER. `signed` are commits
    that GitHub has made and signed, and `states` each branch that the API has moved, with the
    commit that it was moved to.
    """

    committer = f"{BOT}@example.invalid"
    owner = OWNER
    bare: Path
    repository: str = REPOSITORY
    origin: str = ""
    around: Callable[[str, str], None] = lambda moment, what: None
    read_only: bool = False
    immutable: bool = False
    digests: bool = True
    failing: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    strange: bytes | None = None
    uploads: str = ""
    releases: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    attestations: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    may_open: bool = True
    strict: bool = False
    personal: bool = False
    requires_signatures: bool = False
    signed: set[str] = field(default_factory=set)
    states: list[tuple[str, str]] = field(default_factory=list)
    latest: int = 0
    turn: threading.RLock = field(default_factory=threading.RLock)
    _numbers: int = 1000

    @property
    def url(self) -> str:
        """Of the repository, with the token in it, as a checkout leaves it."""
        return f"{self.origin.replace('://', f'://x-access-token:{TOKEN}@')}/{self.repository}.git"

    @property
    def api(self) -> str:
        return f"{self.origin}/api/v3"

    @property
    def environment(self) -> dict[str, str]:
        """Of a job of GitHub Enterprise Server."""
        return {
            "GITHUB_API_URL": self.api,
            "GITHUB_SERVER_URL": self.origin,
            "GITHUB_REPOSITORY": self.repository,
            "RELEASEKIT_FORGE_TOKEN": TOKEN,
        }

    @property
    def writes(self) -> list[str]:
        return [
            each for each in self.asked if not each.startswith("GET ") and "upload-pack" not in each
        ]

    @property
    def _rule(self) -> Path:
        return self.bare / "hooks" / "pre-receive"

    def protect_tags(self) -> None:
        self._rule.write_text(PROTECTED)
        self._rule.chmod(0o755)

    def release_tags(self) -> None:
        self._rule.unlink()

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def add(self, tag: str, **more: Any) -> dict[str, Any]:
        """A release, as it is in answers. https://docs.github.com/en/rest/releases/releases"""
        number = self.number()
        release = {
            "id": number,
            "tag_name": tag,
            "name": tag,
            "body": "",
            "draft": False,
            "prerelease": False,
            "immutable": False,
            "html_url": f"{self.origin}/{self.repository}/releases/tag/{tag}",
            "upload_url": f"{self.uploads or self.origin}/api/uploads/repos/{self.repository}"
            f"/releases/{number}/assets{{?name,label}}",
            "assets": [],
            **more,
        }
        self.releases.insert(0, release)
        return release

    def add_asset(
        self, release: dict[str, Any], name: str, content: bytes, state: str = "uploaded"
    ) -> dict[str, Any]:
        asset: dict[str, Any] = {
            "id": self.number(),
            "name": name,
            "size": len(content),
            "state": state,
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}"
            if state == "uploaded" and self.digests
            else None,
        }
        release["assets"].append(asset)
        self.contents[asset["id"]] = content
        return asset

    def answer(self, method: str, target: str, body: bytes) -> Answer:
        """Of the API, to whoever has the token."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        repository = f"/api/v3/repos/{self.repository}"
        place = f"{repository}/releases"
        if url.path == "/api/graphql" and method == "POST":
            return 200, self._update_refs(json.loads(body))
        if method != "GET" and self.read_only:
            return 403, NOT_ALLOWED
        if found := re.fullmatch(
            rf"/api/uploads/repos/{self.repository}/releases/(\d+)/assets", url.path
        ):
            return self._upload(int(found[1]), query["name"], body)
        if method == "GET" and url.path == repository:
            return 200, {"node_id": NODE, "full_name": self.repository, "default_branch": "main"}
        if method == "POST" and url.path.startswith(f"{repository}/git/"):
            return self._make(url.path.removeprefix(f"{repository}/git/"), json.loads(body))
        if method == "GET" and url.path.startswith(blobs := f"{repository}/git/blobs/"):
            return self._read_blob(url.path.removeprefix(blobs))
        if url.path.startswith(f"{repository}/pulls"):
            rest = url.path.removeprefix(f"{repository}/pulls")
            return self._pull(method, rest, query, json.loads(body or b"{}"))
        if url.path.startswith(f"{repository}/issues/"):
            rest = url.path.removeprefix(f"{repository}/issues/")
            return self._comment(method, rest, query, body)
        if url.path.startswith(f"{repository}/attestations"):
            return self._attest(method, url.path.removeprefix(f"{repository}/attestations"), body)
        tags = f"{repository}/git/ref/tags/"
        if method == "GET" and url.path.startswith(tags):
            return self._tag(unquote(url.path.removeprefix(tags)))
        if not url.path.startswith(place):
            return 404, {"message": "Not Found"}
        rest = url.path.removeprefix(place)
        if method == "GET" and rest == "":
            shown = [each for each in self.releases if not (self.read_only and each["draft"])]
            return 200, _page(shown, query)
        if method == "GET" and rest == "/latest":
            return self._latest()
        if method == "POST" and rest == "":
            return self._create(json.loads(body))
        if method == "PATCH":
            return self._update(int(rest[1:]), json.loads(body))
        if method == "DELETE" and rest.startswith("/assets/"):
            return self._drop(int(rest.removeprefix("/assets/")))
        return 404, {"message": "Not Found"}

    def add_comment(
        self, body: str, login: str = BOT, number: int = PULL_REQUEST
    ) -> dict[str, Any]:
        """https://docs.github.com/en/rest/issues/comments#create-an-issue-comment"""
        comment = {
            "id": 100 + len(self.comments),
            "issue_url": f"{self.api}/repos/{self.repository}/issues/{number}",
            "user": {"login": login},
            "body": body,
        }
        self.comments.append(comment)
        return comment

    def comments_of_the_bot(self) -> list[str]:
        return [each["body"] for each in self.comments if each["user"]["login"] == BOT]

    def _comment(self, method: str, rest: str, query: dict[str, str], body: bytes) -> Answer:
        said = json.loads(body)["body"] if body else ""
        if len(said) > MAX_PULL_BODY:
            return _refuse_long_body("IssueComment")
        if found := re.fullmatch(r"(\d+)/comments", rest):
            if method == "POST":
                return 201, self.add_comment(said, self.login, int(found[1]))
            of = [each for each in self.comments if each["issue_url"].endswith(f"/{found[1]}")]
            return 200, _page(of, query)
        for comment in self.comments:
            if method == "PATCH" and rest == f"comments/{comment['id']}":
                comment["body"] = said
                return 200, comment
        return 404, NOT_FOUND

    @property
    def login(self) -> str:
        """Whom the token speaks for."""
        return OWNER if self.personal else BOT

    def _make(self, kind: str, wanted: dict[str, Any]) -> Answer:
        """https://docs.github.com/en/rest/git"""
        make = {"blobs": self._make_blob, "trees": self._make_tree, "commits": self._make_commit}
        return make[kind](wanted) if kind in make else (404, NOT_FOUND)

    def _make_blob(self, wanted: dict[str, Any]) -> Answer:
        """https://docs.github.com/en/rest/git/blobs#create-a-blob"""
        content, encoding = wanted["content"].encode(), wanted.get("encoding", "utf-8")
        if encoding == "base64":
            try:
                content = base64.b64decode(content, validate=True)
            except binascii.Error:
                return 422, {"message": "content is not valid Base64"}
        elif encoding != "utf-8":
            return 422, {"message": "encoding must be utf-8 or base64"}
        return 201, {"sha": self.write_blob(content)}

    def _read_blob(self, oid: str) -> Answer:
        """https://docs.github.com/en/rest/git/blobs#get-a-blob"""
        if self.find_type(oid) != "blob":
            return 404, NOT_FOUND
        content = self.git("cat-file", "blob", oid).encode()
        return 200, {
            "sha": oid,
            "content": base64.encodebytes(content).decode(),
            "encoding": "base64",
        }

    def write_blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content).strip()

    def _make_tree(self, wanted: dict[str, Any]) -> Answer:
        """https://docs.github.com/en/rest/git/trees#create-a-tree"""
        base = wanted.get("base_tree")
        # https://github.com/sigmavirus24/github3.py/issues/522
        if base is not None and self.find_type(base) != "tree":
            return 422, {"message": "base_tree is not a valid tree oid"}
        with tempfile.TemporaryDirectory() as directory:
            index = f"{directory}/index"
            self.git("read-tree", *([base] if base else ["--empty"]), index=index)
            there = set(self.git("ls-files", "-z", index=index).split("\0"))
            lines = b""
            for entry in wanted["tree"]:
                if refusal := self._refuse_entry(entry, there):
                    return 422, {"message": refusal}
                mode, oid = entry["mode"], entry.get("sha")
                if "content" in entry:
                    oid = self.write_blob(entry["content"].encode())
                lines += f"{mode if oid else 0} {oid or NO_COMMIT}\t{entry['path']}\0".encode()
            self.git("update-index", "-z", "--index-info", stdin=lines, index=index)
            return 201, {"sha": self.git("write-tree", index=index).strip()}

    def _refuse_entry(self, entry: dict[str, Any], there: set[str]) -> str:
        path, oid = entry["path"], entry.get("sha")
        if entry["mode"] not in KINDS:
            return "tree.mode must be one of the modes of files"
        # https://github.com/hub4j/github-api/issues/1217
        if path.startswith("/"):
            return "tree.path cannot start with a slash"
        # https://github.com/joshcai/leetcode-sync/issues/22
        if not {"", ".", "..", ".git"}.isdisjoint(path.lower().split("/")):
            return "tree.path contains a malformed path component"
        # https://github.com/octokit/octokit.net/issues/2836
        if ("sha" in entry) == ("content" in entry):
            return (
                "Must supply either tree.sha or tree.content. Request will be rejected if both are "
                "present."
            )
        # "Returns an error if you try to delete a file that does not exist."
        # https://github.com/mckaywrigley/buildware-ai/issues/29
        if "sha" in entry and oid is None and path not in there:
            return "GitRPC::BadObjectState"
        kind = KINDS[entry["mode"]]
        if oid and kind == "blob" and self.find_type(oid) != kind:
            return f"tree.sha {oid} is not a valid {kind}"
        return ""

    def _make_commit(self, wanted: dict[str, Any]) -> Answer:
        """https://docs.github.com/en/rest/git/commits#create-a-commit"""
        if self.find_type(wanted["tree"]) != "tree":
            return 422, {"message": "Tree SHA does not exist or is not a tree object"}
        if any(self.find_type(each) != "commit" for each in wanted["parents"]):
            return 422, {"message": "Parent SHA does not exist or is not a commit object"}
        author = wanted.get("author", {})
        names = {f"GIT_AUTHOR_{name.upper()}": value for name, value in author.items()}
        oid = self.write_commit(wanted["message"], wanted["tree"], *wanted["parents"], **names)
        # "Signature verification for bots will only work if the request is verified and
        # authenticated as the GitHub App or bot and contains no custom author information,
        # custom committer information, and no custom signature information".
        # https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
        verified = not self.personal and not wanted.keys() & {"author", "committer", "signature"}
        if verified:
            self.signed.add(oid)
        reason = "valid" if verified else "unsigned"
        return 201, {"sha": oid, "verification": {"verified": verified, "reason": reason}}

    def _update_refs(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Errors come with status 200. https://docs.github.com/en/graphql/reference/git#updaterefs"""
        if "updateRefs" not in asked["query"]:
            return _refuse_mutation("undefinedField", "No such mutation here")
        variables = asked["variables"]
        given = variables.get("input", variables)
        if self.read_only:
            return _refuse_mutation("FORBIDDEN", NOT_ALLOWED["message"])
        if (node := given["repositoryId"]) != NODE:
            said = f"Could not resolve to a node with the global id of '{node}'"
            return _refuse_mutation("NOT_FOUND", said)
        # All or nothing: every one is looked at before the first is moved.
        for update in given["refUpdates"]:
            if refusal := self._refuse_update(update):
                return _refuse_mutation("UNPROCESSABLE", refusal)
        for update in given["refUpdates"]:
            self.set_branch(update["name"].removeprefix("refs/heads/"), update["afterOid"])
        return {"data": {"updateRefs": {"clientMutationId": given.get("clientMutationId")}}}

    def _refuse_update(self, update: dict[str, Any]) -> str:
        """Of a branch. The words are not documented."""
        name, after = update["name"], update["afterOid"]
        if not name.startswith("refs/heads/"):
            return f"{name} is not the qualified name of a branch"
        now = self.branches.get(name.removeprefix("refs/heads/"), NO_COMMIT)
        before = update.get("beforeOid") or now
        if before != now:
            return f"{name} is at {now} but expected {before}"
        if after == NO_COMMIT:
            return f"{name} does not exist" if now == NO_COMMIT else ""
        if self.find_type(after) != "commit":
            return f"{after} is not a commit"
        if now != NO_COMMIT and not update.get("force") and self.list_commits(now, f"^{after}"):
            return f"{name} is not a fast forward of {now}"
        unsigned = set(self.list_commits(after, "--not", "--branches")) - self.signed
        # https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/available-rules-for-rulesets#require-signed-commits
        if self.requires_signatures and unsigned:
            return "Repository rule violations found\n\nCommits must have verified signatures.\n\n"
        return ""

    def set_branch(self, branch: str, commit: str) -> None:
        self.states.append((branch, commit))
        self.set_ref(f"refs/heads/{branch}", "" if commit == NO_COMMIT else commit)
        self.look_at_branches()

    def look_at_branches(self) -> None:
        """What GitHub does with pull requests once a branch has moved: one whose commits are in its
        base was merged, and one that has no branch or no commits left is closed.

        https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges#indirect-merges,
        https://github.com/dimikot/git-grok/pull/30
        """
        branches = self.branches
        for pull in self.pulls:
            if pull["state"] != "open" or pull["base"]["ref"] not in branches:
                continue
            head, base = branches.get(pull["head"]["ref"]), branches[pull["base"]["ref"]]
            if not self.list_commits(pull["head"]["sha"], f"^{base}"):
                pull.update(MERGED)
            elif head is None or not self.list_commits(head, f"^{base}"):
                pull["state"] = "closed"
            else:
                pull["head"]["sha"] = head

    def _pull(
        self, method: str, rest: str, query: dict[str, str], wanted: dict[str, Any]
    ) -> Answer:
        """https://docs.github.com/en/rest/pulls/pulls"""
        self.look_at_branches()
        if method == "GET" and not rest:
            owner = self.repository.partition("/")[0]
            asked = {"state": "open"} | query
            found = [
                each
                for each in reversed(self.pulls)
                if asked["state"] in {"all", each["state"]}
                and asked.get("head") in {None, f"{owner}:{each['head']['ref']}"}
                and asked.get("base") in {None, each["base"]["ref"]}
            ]
            return 200, _page(found, query)
        if len(wanted.get("body") or "") > MAX_PULL_BODY:
            return _refuse_long_body("Issue")
        if len(wanted.get("title", "")) > MAX_TITLE:
            said = f"title is too long (maximum is {MAX_TITLE} characters)"
            return _invalid("title", "custom", said, resource="Issue")
        if method == "POST" and not rest:
            return self._open_pull(wanted)
        for pull in self.pulls:
            if rest == f"/{pull['number']}":
                if method == "PATCH":
                    if wanted.get("state") == "open" and (refusal := self._refuse_reopening(pull)):
                        return _invalid("state", "custom", refusal, resource="PullRequest")
                    pull.update(wanted)
                return 200, pull | {"mergeable_state": self._find_state(pull)}
        return 404, NOT_FOUND

    def _open_pull(self, wanted: dict[str, Any]) -> Answer:
        owner, branches = self.repository.partition("/")[0], self.branches
        head, base = wanted["head"].removeprefix(f"{owner}:"), wanted["base"]
        # https://github.blog/changelog/2022-05-03-github-actions-prevent-github-actions-from-creating-and-approving-pull-requests
        if not self.may_open and not self.personal:
            said = "GitHub Actions is not permitted to create or approve pull requests."
            return 403, {"message": said}
        # https://github.com/spdx/spdx-online-tools/issues/425
        for name, branch in {"head": head, "base": base}.items():
            if branch not in branches:
                return _invalid(name, "invalid", resource="PullRequest")
        # https://github.com/peter-evans/create-pull-request/issues/4088
        if not self.list_commits(branches[head], f"^{branches[base]}"):
            said = f"No commits between {base} and {head}"
            return _invalid("", "custom", said, resource="PullRequest")
        ends = (head, base)
        # https://github.com/google/go-github/issues/1441
        if any(
            (each["head"]["ref"], each["base"]["ref"], each["state"]) == (*ends, "open")
            for each in self.pulls
        ):
            said = f"A pull request already exists for {owner}:{head}."
            return _invalid("", "custom", said, resource="PullRequest")
        number = 57 + len(self.pulls)
        pull = {
            "number": number,
            "html_url": f"{self.origin}/{self.repository}/pull/{number}",
            "state": "open",
            "merged": False,
            "merged_at": None,
            "title": wanted["title"],
            "body": wanted.get("body"),
            "user": {"login": self.login},
            "head": {"ref": head, "sha": branches[head]},
            "base": {"ref": base},
        }
        self.pulls.append(pull)
        return 201, pull | {"mergeable_state": "unknown"}

    def _refuse_reopening(self, pull: dict[str, Any]) -> str:
        """https://github.com/pytorch/pytorch/pull/114423, https://github.com/isaacs/github/issues/361"""
        branch, held = pull["head"]["ref"], pull["head"]["sha"]
        now = self.branches.get(branch)
        if pull["state"] == "open":
            return ""
        if pull["merged"]:
            return "state cannot be changed. The pull request was merged."
        if now is None:
            return f"state cannot be changed. The {branch} branch has been deleted."
        if self.list_commits(held, f"^{now}"):
            return f"state cannot be changed. The {branch} branch was force-pushed or recreated."
        return ""

    def _find_state(self, pull: dict[str, Any]) -> str:
        """https://docs.github.com/en/graphql/reference/enums#mergestatestatus"""
        if pull["state"] != "open":
            return "unknown"
        branches = self.branches
        head, base = branches[pull["head"]["ref"]], branches[pull["base"]["ref"]]
        if self.merge_trees(base, head) is None:
            return "dirty"
        return "behind" if self.strict and self.list_commits(base, f"^{head}") else "clean"

    def find_pull(self, number: int) -> dict[str, Any]:
        return next(each for each in self.pulls if each["number"] == number)

    def merge(self, number: int, how: str, *, deletes: bool = True) -> None:
        """As the button does, with GitHub's own messages, and a signature but on what is rebased;
        the branch goes, where that is set.

        https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges
        """
        pull, branches = self.find_pull(number), self.branches
        head, base = branches[pull["head"]["ref"]], branches[pull["base"]["ref"]]
        if how == "rebase":
            commit = self.rebase(head, base)
        else:
            tree = self.merge_trees(base, head)
            assert tree is not None, f"{pull['head']['ref']} conflicts with its base"
            owner = self.repository.partition("/")[0]
            if how == "merge":
                said = f"Merge pull request #{number} from {owner}/{pull['head']['ref']}"
                commit = self.write_commit(f"{said}\n\n{pull['title']}", tree, base, head)
            else:
                commit = self.write_commit(self._write_squashed(pull, head, base), tree, base)
            self.signed.add(commit)
        self.git("update-ref", f"refs/heads/{pull['base']['ref']}", commit)
        pull |= {**MERGED, "merge_commit_sha": commit}
        if deletes:
            self.git("update-ref", "-d", f"refs/heads/{pull['head']['ref']}")
        self.look_at_branches()

    def _write_squashed(self, pull: dict[str, Any], head: str, base: str) -> str:
        """By default: what the only commit says, or the title and what all of them say."""
        commits = self.list_commits("--no-merges", head, f"^{base}")
        said = [self.git("log", "-1", "--format=%B", each).strip() for each in commits]
        if len(said) == 1:
            subject, _, body = said[0].partition("\n")
            return f"{subject} (#{pull['number']})\n{body}"
        text = "\n\n".join(f"* {each}" for each in said)
        return f"{pull['title']} (#{pull['number']})\n\n{text}"

    def update_branch(self, number: int, how: str) -> None:
        """As the button `Update branch` does, and signed where that merges.

        https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/proposing-changes-to-your-work-with-pull-requests/keeping-your-pull-request-in-sync-with-the-base-branch
        """
        pull, branches = self.find_pull(number), self.branches
        branch, into = pull["head"]["ref"], pull["base"]["ref"]
        head, base = branches[branch], branches[into]
        if how == "rebase":
            commit = self.rebase(head, base)
        else:
            tree = self.merge_trees(head, base)
            assert tree is not None, f"{branch} conflicts with its base"
            commit = self.write_commit(f"Merge branch '{into}' into {branch}", tree, head, base)
            self.signed.add(commit)
        self.git("update-ref", f"refs/heads/{branch}", commit)
        self.look_at_branches()

    def _attest(self, method: str, rest: str, body: bytes) -> Answer:
        """https://docs.github.com/en/rest/repos/attestations"""
        if method == "GET" and rest.startswith("/sha256:"):
            found = [
                {"bundle": bundle, "repository_id": 1}
                for bundle in self.attestations
                if any(each["digest"]["sha256"] == rest[8:] for each in _subjects(bundle))
            ]
            return (200, {"attestations": found}) if found else (404, {"message": "Not Found"})
        if (method, rest) != ("POST", ""):
            return 404, {"message": "Not Found"}
        bundle = json.loads(body)["bundle"]
        if refusal := _refusal(bundle):
            return 422, {"message": refusal}
        self.attestations.append(bundle)
        return 201, {"id": 1000 + len(self.attestations)}

    def _tag(self, name: str) -> Answer:
        """https://docs.github.com/en/rest/git/refs#get-a-reference"""
        if name not in self.tags:
            return 404, {"message": "Not Found"}
        return 200, {"ref": f"refs/tags/{name}", "object": {"sha": self.tags[name]}}

    def _latest(self) -> Answer:
        for each in self.releases:
            if each["id"] == self.latest:
                return 200, each
        return 404, {"message": "Not Found"}

    def _create(self, wanted: dict[str, Any]) -> Answer:
        """There may be several drafts of a tag, and one release."""
        if len(wanted.get("body", "")) > MAX_BODY:
            return _invalid("body", "custom", "body is too long (maximum is 125000 characters)")
        draft = wanted.get("draft", False)
        if not draft:
            self.defects.append(f"{wanted['tag_name']} was published before it was whole")
        return 201, self.add(**{"tag": wanted.pop("tag_name"), **wanted})

    def _update(self, number: int, wanted: dict[str, Any]) -> Answer:
        release = self._release(number)
        if release is None:
            return 404, {"message": "Not Found"}
        latest = wanted.pop("make_latest", "true")
        publishes = release["draft"] and wanted.get("draft") is False
        same = [each for each in self.releases if each["tag_name"] == release["tag_name"]]
        if publishes and any(not each["draft"] for each in same):
            return _invalid("tag_name", "already_exists")
        if publishes and release["tag_name"] not in self.tags:
            self.defects.append(f"GitHub had to make the tag {release['tag_name']}")
            self.git("tag", release["tag_name"], "HEAD")
        release.update(wanted)
        release["immutable"] = self.immutable and not release["draft"]
        if publishes and latest == "true" and not release["prerelease"]:
            self.latest = number
        return 200, release

    def _upload(self, number: int, name: str, body: bytes) -> Answer:
        release = self._release(number)
        if release is None:
            return 404, {"message": "Not Found"}
        if release["immutable"]:
            return 422, {"message": "Cannot upload assets to an immutable release."}
        if any(each["name"] == name for each in release["assets"]):
            return _invalid("name", "already_exists")
        if not release["draft"]:
            self.defects.append(f"{name} was uploaded to what was published")
        return 201, self.add_asset(release, name, body)

    def _drop(self, number: int) -> Answer:
        for release in self.releases:
            for asset in release["assets"]:
                if asset["id"] == number:
                    if asset["state"] == "uploaded":
                        self.defects.append(f"{asset['name']} was whole, and was deleted")
                    release["assets"].remove(asset)
                    return 204, None
        return 404, {"message": "Not Found"}

    def _release(self, number: int) -> dict[str, Any] | None:
        return next((each for each in self.releases if each["id"] == number), None)


def _page(rows: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
    size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
    return rows[size * (page - 1) : size * page]


def _refusal(bundle: dict[str, Any]) -> str:
    """https://github.com/actions/attest#attestation-limits"""
    if bundle["mediaType"] != "application/vnd.dev.sigstore.bundle.v0.3+json":
        return "unknown bundle"
    subjects = _subjects(bundle)
    names = {each["name"] for each in subjects}
    return "" if len(names) == len(subjects) <= 1024 else "too many subjects, or one twice"


def _subjects(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    return list(statement["subject"])


def _invalid(name: str, code: str, message: str = "", *, resource: str = "Release") -> Answer:
    """https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api"""
    more = {"field": name, "message": message}
    error = {"resource": resource, "code": code, **{key: more[key] for key in more if more[key]}}
    return 422, {"message": "Validation Failed", "errors": [error]}


def _refuse_long_body(resource: str) -> Answer:
    said = f"body is too long (maximum is {MAX_PULL_BODY} characters)"
    return _invalid("body", "custom", said, resource=resource)


def _refuse_mutation(kind: str, message: str) -> dict[str, Any]:
    """https://spec.graphql.org/October2021/#sec-Errors"""
    error = {"type": kind, "path": ["updateRefs"], "message": message}
    return {"data": {"updateRefs": None}, "errors": [error]}


class _Handler(ForgeHandler):
    world: GitHubDouble
    realm = "GitHub"
    account = "x-access-token", TOKEN
    json_type = "application/json; charset=utf-8"

    do_POST = do_PATCH = do_DELETE = ForgeHandler.do_GET

    def refuse_login(self, headers: dict[str, str]) -> bytes | None:
        is_known = headers.get("authorization") == f"Bearer {TOKEN}"
        return None if is_known else b'{"message":"Bad credentials"}'

    def answer_api(self, _headers: dict[str, str], body: bytes) -> Answer:
        return self.world.answer(self.command, self.path, body)

    def refuse_push(self) -> bytes | None:
        if not self.world.read_only:
            return None
        said = f"Permission to {self.world.repository}.git denied to github-actions[bot]."
        return said.encode()

    def _git(self, headers: dict[str, str], body: bytes) -> Response:
        answer = super()._git(headers, body)
        if "receive-pack" in self.path and answer[0] not in {401, 403}:
            self.world.look_at_branches()
        return answer


@contextlib.contextmanager
def serving_github(directory: Path, repository: str = REPOSITORY) -> Iterator[GitHubDouble]:
    """An empty repository, which only the token may read or write."""
    world = GitHubDouble(make_bare(directory, repository), repository)
    with serving(_Handler, world=world) as world.origin:
        yield world
