"""A repository at GitHub: its releases, the comments of a pull request and its attestations as the
API has them, over a real bare repository that git's own HTTP backend serves, all behind one token.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from harness.git_server import http_backend
from harness.http_server import Handler, HangUp, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REPOSITORY = "acme/mono"
PULL_REQUEST = 7
BOT = "github-actions[bot]"
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

_WHO = ("AUTHOR", "COMMITTER")
_WHAT = ("NAME", "EMAIL")
NO_COMMIT = "0" * 40
# Of a body: https://github.com/orgs/community/discussions/27190
MAX_PULL_BODY = 65_536

Answer = tuple[int, Any]


@dataclass
class GitHubDouble:
    """`around` is told "before" and "after" of each request and what it was, and may raise HangUp:
    before it, nothing has happened; after it, the answer is lost. `failing` are answers to the next
    requests that write, with headers; `strange` is the content of every answer of the API. A job
    that may not open pull requests has a setting that says so; where rules are `strict`, those that
    lack commits of their base are behind. `signed` are commits that GitHub has made and signed, and
    `states` each branch that the API has moved, with the commit that it was moved to.
    """

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
    def tags(self) -> dict[str, str]:
        """The object of each."""
        said = self.git("for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/tags")
        return dict(line.split(" ") for line in said.split("\n") if line)

    @property
    def writes(self) -> list[str]:
        return [
            each for each in self.asked if not each.startswith("GET ") and "upload-pack" not in each
        ]

    def protect_tags(self) -> None:
        hook = self.bare / "hooks" / "pre-receive"
        hook.write_text(PROTECTED)
        hook.chmod(0o755)

    def git(self, *arguments: str, stdin: bytes = b"", index: str = "") -> str:
        names = {f"GIT_{who}_{what}": f"{BOT}@example.invalid" for who in _WHO for what in _WHAT}
        done = subprocess.run(
            ["git", "-C", self.bare, *arguments],
            capture_output=True,
            check=True,
            input=stdin,
            env={**os.environ, **names, **({"GIT_INDEX_FILE": index} if index else {})},
        )
        return done.stdout.decode(errors="replace")

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
        if method != "GET" and self.read_only:
            return 403, NOT_ALLOWED
        if found := re.fullmatch(
            rf"/api/uploads/repos/{self.repository}/releases/(\d+)/assets", url.path
        ):
            return self._upload(int(found[1]), query["name"], body)
        if url.path == "/api/graphql" and method == "POST":
            return 200, self._update_refs(json.loads(body))
        if method == "GET" and url.path == repository:
            return 200, {"node_id": "R_1", "full_name": self.repository, "default_branch": "main"}
        if method == "POST" and url.path.startswith(f"{repository}/git/"):
            return self._make(url.path.removeprefix(f"{repository}/git/"), json.loads(body))
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

    def add_comment(self, body: str, login: str = BOT) -> dict[str, Any]:
        """https://docs.github.com/en/rest/issues/comments#create-an-issue-comment"""
        comment = {"id": 100 + len(self.comments), "user": {"login": login}, "body": body}
        self.comments.append(comment)
        return comment

    def comments_of_the_bot(self) -> list[str]:
        return [each["body"] for each in self.comments if each["user"]["login"] == BOT]

    def _comment(self, method: str, rest: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "GET" and rest == f"{PULL_REQUEST}/comments":
            return 200, _page(self.comments, query)
        if method == "POST" and rest == f"{PULL_REQUEST}/comments":
            return 201, self.add_comment(json.loads(body)["body"])
        for comment in self.comments:
            if method == "PATCH" and rest == f"comments/{comment['id']}":
                comment["body"] = json.loads(body)["body"]
                return 200, comment
        return 404, {"message": "Not Found"}

    def _make(self, kind: str, wanted: dict[str, Any]) -> Answer:
        """Blobs, trees and commits. https://docs.github.com/en/rest/git"""
        if kind == "blobs":
            data = base64.b64decode(wanted["content"])
            return 201, {"sha": self.git("hash-object", "-w", "--stdin", stdin=data).strip()}
        if kind == "commits":
            parents = [each for parent in wanted["parents"] for each in ("-p", parent)]
            message = wanted["message"].encode()
            oid = self.git("commit-tree", wanted["tree"], *parents, stdin=message).strip()
            if not wanted.keys() & {"author", "committer"}:
                # https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
                self.signed.add(oid)
            return 201, {"sha": oid}
        if kind != "trees":
            return 404, {"message": "Not Found"}
        with tempfile.TemporaryDirectory() as directory:
            index = f"{directory}/index"
            self.git("read-tree", wanted["base_tree"], index=index)
            for entry in wanted["tree"]:
                path, oid = entry["path"], entry.get("sha")
                there = self.git("ls-files", "--stage", "--", path, index=index)
                if "content" in entry:
                    data = entry["content"].encode()
                    oid = self.git("hash-object", "-w", "--stdin", stdin=data).strip()
                elif oid is None and not there:
                    return 422, {"message": "GitRPC::BadObjectState"}
                mode = entry["mode"] if oid else "0"
                info = f"{mode} {oid or NO_COMMIT}\t{path}\0".encode()
                self.git("update-index", "-z", "--index-info", stdin=info, index=index)
            return 201, {"sha": self.git("write-tree", index=index).strip()}

    def _update_refs(self, asked: dict[str, Any]) -> dict[str, Any]:
        """https://docs.github.com/en/graphql/reference/git#updaterefs"""
        given = asked["variables"]["input"]
        assert "updateRefs" in asked["query"]
        assert given["repositoryId"] == "R_1"
        for update in given["refUpdates"]:
            branch = update["name"].removeprefix("refs/heads/")
            now = self.branches.get(branch, NO_COMMIT)
            if update["beforeOid"] != now:
                said = f"{update['name']} is at {now} but expected {update['beforeOid']}"
                return {"data": {"updateRefs": None}, "errors": [{"message": said}]}
        for update in given["refUpdates"]:
            self.set_branch(update["name"].removeprefix("refs/heads/"), update["afterOid"])
        return {"data": {"updateRefs": {"clientMutationId": None}}}

    @property
    def branches(self) -> dict[str, str]:
        said = self.git("for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/heads")
        return dict(line.split(" ") for line in said.split("\n") if line)

    def set_branch(self, branch: str, commit: str) -> None:
        self.states.append((branch, commit))
        if commit == NO_COMMIT:
            self.git("update-ref", "-d", f"refs/heads/{branch}")
        else:
            self.git("update-ref", f"refs/heads/{branch}", commit)

    def _pull(
        self, method: str, rest: str, query: dict[str, str], wanted: dict[str, Any]
    ) -> Answer:
        """https://docs.github.com/en/rest/pulls/pulls"""
        owner = self.repository.partition("/")[0]
        for pull in self.pulls:
            # One is closed when its branch goes.
            if pull["head"]["ref"] not in self.branches:
                pull["state"] = "closed"
        if method == "GET" and not rest:
            found = [
                each
                for each in self.pulls
                if each["state"] == query["state"]
                and f"{owner}:{each['head']['ref']}" == query["head"]
                and each["base"]["ref"] == query["base"]
            ]
            return 200, _page(found, query)
        if len(wanted.get("body", "")) > MAX_PULL_BODY:
            return _invalid("body", "custom", "body is too long (maximum is 65536 characters)")
        if method == "POST" and not rest:
            if not self.may_open:
                said = "GitHub Actions is not permitted to create or approve pull requests."
                return 403, {"message": said}
            if wanted["head"] not in self.branches:
                return _invalid("head", "invalid")
            if any(
                each["head"]["ref"] == wanted["head"] and each["state"] == "open"
                for each in self.pulls
            ):
                said = f"A pull request already exists for {owner}:{wanted['head']}."
                return _invalid("", "custom", said)
            number = 57 + len(self.pulls)
            pull = {
                "number": number,
                "html_url": f"{self.origin}/{self.repository}/pull/{number}",
                "state": "open",
                "title": wanted["title"],
                "body": wanted["body"],
                "user": {"login": BOT},
                "head": {"ref": wanted["head"]},
                "base": {"ref": wanted["base"]},
            }
            self.pulls.append(pull)
            return 201, pull | {"mergeable_state": "unknown"}
        for pull in self.pulls:
            if rest == f"/{pull['number']}":
                if method == "PATCH":
                    pull.update(wanted)
                return 200, pull | {"mergeable_state": self._find_state(pull)}
        return 404, {"message": "Not Found"}

    def _find_state(self, pull: dict[str, Any]) -> str:
        head, base = pull["head"]["ref"], pull["base"]["ref"]
        if pull["state"] != "open":
            return "unknown"
        lacking = self.git("rev-list", "--count", base, f"^{head}").strip() != "0"
        return "behind" if self.strict and lacking else "clean"

    def merge(self, number: int, how: str) -> None:
        """As the button does, with GitHub's own messages; the branch goes.

        https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges
        """
        pull = next(each for each in self.pulls if each["number"] == number)
        head, base = pull["head"]["ref"], pull["base"]["ref"]
        named = f"{pull['title']} (#{number})"
        whole = self.git("log", "-1", "--format=%b", head)
        message = {
            "merge": f"Merge pull request #{number} from acme/{head}\n\n{pull['title']}",
            "squash": f"{named}\n\n{whole}",
            "rebase": self.git("log", "-1", "--format=%B", head),
        }[how]
        tree = self.git("merge-tree", "--write-tree", base, head).strip()
        parents = [base, head] if how == "merge" else [base]
        flags = [each for parent in parents for each in ("-p", parent)]
        commit = self.git("commit-tree", tree, *flags, stdin=message.encode()).strip()
        self.git("update-ref", f"refs/heads/{base}", commit)
        pull["state"] = "closed"
        self.git("update-ref", "-d", f"refs/heads/{head}")

    def update_branch(self, number: int, how: str) -> None:
        """As the button `Update branch` does."""
        pull = next(each for each in self.pulls if each["number"] == number)
        head, base = pull["head"]["ref"], pull["base"]["ref"]
        tree = self.git("merge-tree", "--write-tree", head, base).strip()
        said = {
            "merge": f"Merge branch '{base}' into {head}",
            "rebase": self.git("log", "-1", "--format=%B", head),
        }[how]
        parents = [head, base] if how == "merge" else [base]
        flags = [each for parent in parents for each in ("-p", parent)]
        commit = self.git("commit-tree", tree, *flags, stdin=said.encode()).strip()
        self.git("update-ref", f"refs/heads/{head}", commit)

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


def _invalid(name: str, code: str, message: str = "") -> Answer:
    """https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api"""
    error = {"resource": "Release", "code": code, "field": name}
    return 422, {"message": "Validation Failed", "errors": [error | {"message": message}]}


class _Handler(Handler):
    world: GitHubDouble

    def do_GET(self) -> None:
        received = self.received()
        if received is None:
            return
        headers, body = received
        what = f"{self.command} {self.path}"
        with self.world.turn:
            try:
                self.world.around("before", what)
                self.world.asked.append(what)
                answered = self._answered(headers, body)
                self.world.around("after", what)
            except HangUp:
                self.hang_up()
                return
        self.send(*answered)

    do_POST = do_PATCH = do_DELETE = do_GET

    def _answered(
        self, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        if not self.path.startswith("/api/"):
            return self._git(headers, body)
        kind = [("Content-Type", "application/json; charset=utf-8")]
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, kind, b'{"message":"Bad credentials"}'
        if self.world.strange is not None:
            return 200, kind, self.world.strange
        if self.command != "GET" and self.world.failing:
            status, document, more = self.world.failing.pop(0)
            return status, [*kind, *more.items()], json.dumps(document).encode()
        status, document = self.world.answer(self.command, self.path, body)
        return status, kind, b"" if document is None else json.dumps(document).encode()

    def _git(
        self, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        account = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        if headers.get("authorization") != f"Basic {account}":
            return 401, [("WWW-Authenticate", 'Basic realm="GitHub"')], b""
        if self.world.read_only and "receive-pack" in self.path:
            said = f"Permission to {self.world.repository}.git denied to github-actions[bot]."
            return 403, [("Content-Type", "text/plain")], said.encode()
        root = self.world.bare.parents[1]
        return http_backend(root, self.command, self.path, headers, body, "x-access-token")


@contextlib.contextmanager
def serving_github(directory: Path, repository: str = REPOSITORY) -> Iterator[GitHubDouble]:
    """An empty repository, which only the token may read or write."""
    bare = directory / "forge" / f"{repository}.git"
    bare.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", bare], check=True)
    world = GitHubDouble(bare, repository)
    with serving(_Handler, world=world) as world.origin:
        yield world
