"""A project at GitLab: its releases, generic packages and merge requests as the API has them, over
a real bare repository that git's own HTTP backend serves, all behind the token of a job or of a
person.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit

from harness.bare_repository import NO_COMMIT, BareRepository
from harness.forge_server import ForgeHandler, Response, make_bare, read_account
from harness.http_server import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROJECT = "acme/tools/mono"
TOKEN = "glcbt-64_of_the_job"
PERSONAL_TOKEN = "glpat-of_a_person"
# https://docs.gitlab.com/ci/jobs/ci_job_token/#to-git-clone-a-private-projects-repository
USER = "gitlab-ci-token"
# Whom PERSONAL_TOKEN speaks for.
PERSON = "ada"
AUTHOR = {"id": 4711, "username": PERSON}
PROJECT_ID = 278964
FORBIDDEN = {"message": "403 Forbidden"}
NOT_FOUND = {"message": "404 Not Found"}
# Of a token with other scopes: https://docs.gitlab.com/security/tokens/access_token_scopes/
INSUFFICIENT = {
    "error": "insufficient_scope",
    "error_description": "The request requires higher privileges than provided by the access "
    "token.",
    "scope": "api",
}
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/models/concerns/issuable.rb
MERGED_AT = "2026-11-21T09:30:00.000Z"
MAX_TITLE = 255
MAX_DESCRIPTION = 1024 * 1024
# https://docs.gitlab.com/user/project/merge_requests/commit_templates/
MERGE_TEMPLATE = """\
Merge branch '%{source_branch}' into '%{target_branch}'

%{title}

See merge request %{reference}"""
SQUASH_TEMPLATE = "%{title}"
# Gitlab::Database::MAX_TEXT_SIZE_LIMIT
MAX_BODY = 1_000_000
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/regex/packages.rb
PACKAGE_NAME = re.compile(r"[A-Za-z0-9._+-]+")
PACKAGE_VERSION = re.compile(r"(?!.*\.\.)[\w+.-]+", re.ASCII)
FILE_NAME = re.compile(r"(?!~)[A-Za-z0-9._+~-]+(?<!~)")
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/models/releases/link.rb
FILEPATH = re.compile(r"/[^/](?!.*//.*)[-.\w/]+[\da-zA-Z]+", re.ASCII)
# What a job token may ask; of the rest it learns nothing.
# https://docs.gitlab.com/ci/jobs/ci_job_token/#job-token-access
OF_JOBS = re.compile(r"/(?:releases|packages)(?:/.*)?|/repository/tags")
READ_BY_JOBS = re.compile(r"/merge_requests(?:/\d+)?")
# Of branches, one more case for each.
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/checks/tag_check.rb
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/checks/branch_check.rb
_HOOK = """#!/bin/sh
refuse() {
  echo "GitLab: $1" >&2
  exit 1
}
while read old new ref; do
  case "$ref" in
%s  esac
done
"""
_PROTECTED_TAGS = """\
    refs/tags/*)
      refuse "You are not allowed to create this tag as it is protected." ;;
"""
_PROTECTED_BRANCH = """\
    refs/heads/%s)
      case "$new" in *[!0]*) ;; *)
        refuse "You can only delete protected branches using the web interface." ;;
      esac
      case "$old" in *[!0]*)
        git merge-base --is-ancestor "$old" "$new" ||
          refuse "You are not allowed to force push code to a protected branch on this project." ;;
      esac ;;
"""

Answer = tuple[int, Any]


@dataclass
class GitLabDouble(BareRepository):
    """`around` is told "before" and "after" of each request and what it was, and may raise HangUp:
    before it, nothing has happened; after it, the answer is lost. `failing` are answers to the next
    requests that write, with headers; `strange` is the content of every answer of the API, or of
    those to what has `strange_to` in it. Where the user may only read who has started the job, it
    is `read_only`, and one who may not create protected tags may not release them either:
    `is_protected`. A personal token has a `scope`, and all rights with "api".

    With the `merge_method` of the project, a request may have to be rebased first. A branch that
    was pushed is not known yet to the next requests to open one, as many as `unknown_for`. `states`
    are branches that were pushed, each with the commit that it was moved to.
    """

    committer = "a@b.invalid"
    owner = PERSON
    bare: Path
    repository: str = PROJECT
    origin: str = ""
    around: Callable[[str, str], None] = lambda moment, what: None
    read_only: bool = False
    may_push: bool = True
    allows_duplicates: bool = True
    is_protected: bool = False
    failing: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    scope: str = "api"
    merge_method: Literal["merge", "rebase_merge", "ff"] = "merge"
    merge_template: str = MERGE_TEMPLATE
    squash_template: str = SQUASH_TEMPLATE
    unknown_for: int = 0
    merge_requests: list[dict[str, Any]] = field(default_factory=list)
    states: list[tuple[str, str]] = field(default_factory=list)
    strange: bytes | None = None
    strange_to: str = ""
    releases: list[dict[str, Any]] = field(default_factory=list)
    packages: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)
    _numbers: int = 1000
    _seen: dict[str, str] = field(default_factory=dict)
    _rules: dict[str, str] = field(default_factory=dict)

    @property
    def page(self) -> str:
        return f"{self.origin}/{self.repository}"

    @property
    def url(self) -> str:
        """Of the repository, with the token in it, as a runner leaves it by default."""
        return f"{self.page.replace('://', f'://{USER}:{TOKEN}@')}.git"

    @property
    def api(self) -> str:
        return f"{self.origin}/api/v4"

    @property
    def project(self) -> str:
        """https://docs.gitlab.com/api/rest/#namespaced-paths"""
        return f"{self.api}/projects/{quote(self.repository, safe='')}"

    @property
    def environment(self) -> dict[str, str]:
        """Of a job, as far as it says where that is.

        https://docs.gitlab.com/ci/variables/predefined_variables/
        """
        return {
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.api,
            "CI_SERVER_URL": self.origin,
            "CI_PROJECT_PATH": self.repository,
            "CI_PROJECT_URL": self.page,
            "CI_JOB_TOKEN": TOKEN,
        }

    @property
    def writes(self) -> list[str]:
        return [
            each for each in self.asked if not each.startswith("GET ") and "upload-pack" not in each
        ]

    def protect_tags(self) -> None:
        """From whoever the tokens speak for."""
        self._protect("tags", _PROTECTED_TAGS)
        self.is_protected = True

    def release_tags(self) -> None:
        self._protect("tags", "")
        self.is_protected = False

    def protect_branch(self, pattern: str) -> None:
        """From force and deletion, also by those who may push to it.

        https://docs.gitlab.com/user/project/repository/branches/protected/
        """
        self._protect(pattern, _PROTECTED_BRANCH % pattern)

    def _protect(self, name: str, rule: str) -> None:
        self._rules[name] = rule
        hook = self.bare / "hooks" / "pre-receive"
        hook.write_text(_HOOK % "".join(self._rules.values()))
        hook.chmod(0o755)

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def add(self, tag: str, body: str = "", **more: Any) -> dict[str, Any]:
        """A release, as it is in answers, newest first.

        https://docs.gitlab.com/api/releases/#list-releases
        """
        release = {
            "tag_name": tag,
            "name": tag,
            "description": body,
            "upcoming_release": False,
            "commit": {"id": self.git("rev-parse", f"{tag}^{{commit}}").strip()}
            if tag in self.tags
            else None,
            "assets": {"count": 4, "sources": [], "links": []},
            "_links": {"self": f"{self.page}/-/releases/{quote(tag, safe='')}"},
            **more,
        }
        self.releases.insert(0, release)
        return release

    def add_file(self, version: str, name: str, content: bytes, package: str = "releases") -> None:
        """As if it had been uploaded. https://docs.gitlab.com/api/packages/#list-package-files"""
        found = self._find_package(package, version)
        if found is None:
            found = {
                "id": self.number(),
                "name": package,
                "version": version,
                "package_type": "generic",
                "status": "default",
            }
            self.packages.append(found)
        file = {
            "id": self.number(),
            "package_id": found["id"],
            "file_name": name,
            "size": len(content),
            "file_md5": None,
            "file_sha1": None,
            "file_sha256": hashlib.sha256(content).hexdigest(),
        }
        self.files.append(file)
        self.contents[file["id"]] = content

    def answer(self, method: str, target: str, body: bytes, *, is_job: bool) -> Answer:
        """Of the API, to whoever has a token."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        place = urlsplit(self.project).path
        rest = url.path.removeprefix(place)
        if method == "GET" and url.path == "/api/v4/user" and not is_job:
            return 200, AUTHOR
        of_jobs = OF_JOBS.fullmatch(rest) or (method == "GET" and READ_BY_JOBS.fullmatch(rest))
        if rest == url.path or (is_job and not of_jobs):
            return 404, NOT_FOUND
        if not is_job and self.scope != "api" and (method, self.scope) != ("GET", "read_api"):
            return 403, INSUFFICIENT
        if method != "GET" and is_job and self.read_only:
            return 403, FORBIDDEN
        if method == "GET" and rest == "":
            named = {"id": PROJECT_ID, "path_with_namespace": self.repository}
            return 200, named | {"merge_method": self.merge_method, "squash_option": "default_off"}
        if rest.startswith("/packages/generic/") and method in {"GET", "PUT"}:
            if method == "GET":
                content = self.find_link(f"{self.origin}{url.path}")
                return (200, content) if content else (404, NOT_FOUND)
            package, version, name = map(unquote, rest.split("/")[3:])
            return self._upload(package, version, name, body, query)
        if method == "GET" and (found := re.fullmatch(r"/packages/(\d+)/package_files", rest)):
            of = [each for each in self.files if each["package_id"] == int(found[1])]
            return 200, _page(of, query)
        if method == "GET" and rest == "/packages":
            return 200, _page(self._list_packages(query), query)
        if method == "GET" and rest == "/repository/tags":
            return 200, _page(self._list_tags(query["search"]), query)
        if method == "GET" and rest == "/releases":
            return 200, _page(self.releases, query)
        if method == "GET" and (found := re.fullmatch(r"/releases/([^/]+)", rest)):
            release = self.find_release(unquote(found[1]))
            return (200, release) if release else (404, NOT_FOUND)
        if method == "POST" and rest == "/releases":
            return self._create(json.loads(body))
        if found := re.fullmatch(r"/merge_requests/(\d+)/notes(?:/(\d+))?", rest):
            return _answer_note(self, method, found, query, body)
        if rest.startswith("/merge_requests"):
            number = rest.removeprefix("/merge_requests").removeprefix("/")
            return self._request(method, number, query, json.loads(body or b"{}"))
        return 404, NOT_FOUND

    def find_release(self, tag: str) -> dict[str, Any] | None:
        return next((each for each in self.releases if each["tag_name"] == tag), None)

    def find_link(self, url: str) -> bytes:
        """The file that a link leads to, the newest of its name; empty without one.

        https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/finders/packages/package_file_finder.rb
        """
        place = f"{self.project}/packages/generic/"
        package, version, name = map(unquote, url.removeprefix(place).split("/"))
        found = self._find_package(package, version)
        same = [each for each in self._files_of(found) if each["file_name"] == name]
        return self.contents[same[-1]["id"]] if same and url.startswith(place) else b""

    def _find_package(self, name: str, version: str) -> dict[str, Any] | None:
        return next(
            (each for each in self.packages if (each["name"], each["version"]) == (name, version)),
            None,
        )

    def _files_of(self, package: dict[str, Any] | None) -> list[dict[str, Any]]:
        return [each for each in self.files if package and each["package_id"] == package["id"]]

    def _list_packages(self, query: dict[str, str]) -> list[dict[str, Any]]:
        """Names are searched for, and versions compared.

        https://docs.gitlab.com/api/packages/#for-a-project
        """
        name, version = query.get("package_name", ""), query.get("package_version")
        return [
            each for each in self.packages if name in each["name"] and each["version"] == version
        ]

    def _list_tags(self, search: str) -> list[dict[str, Any]]:
        """`target` is the tag object, and case does not count.

        https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/finders/git_refs_finder.rb
        """
        assert search.startswith("^")
        assert search.endswith("$")
        return [
            {"name": name, "target": oid, "message": "", "protected": self.is_protected}
            for name, oid in self.tags.items()
            if name.lower() == search[1:-1].lower()
        ]

    def _create(self, wanted: dict[str, Any]) -> Answer:
        """https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/services/releases/create_service.rb"""
        tag = wanted["tag_name"]
        if self.is_protected:
            return 403, {"message": "You are not allowed to create this tag as it is protected."}
        if self.find_release(tag):
            return 409, {"message": "Release already exists"}
        if tag not in self.tags:
            if "ref" not in wanted:
                return 422, {"message": "Ref is not specified"}
            self.defects.append(f"GitLab had to make the tag {tag}")
            self.git("tag", tag, wanted["ref"])
        if len(wanted.get("description", "")) > MAX_BODY:
            return _refuse(f"Description is too long (maximum is {MAX_BODY} characters)")
        links = wanted.get("assets", {}).get("links", [])
        for each in ("name", "url", "direct_asset_path"):
            values = [link[each] for link in links if each in link]
            if len(set(values)) < len(values):
                return _refuse(f"Links have duplicate values ({each})")
        paths = [each["direct_asset_path"] for each in links if "direct_asset_path" in each]
        if not all(map(FILEPATH.fullmatch, paths)):
            return _refuse("Links filepath is in an invalid format")
        for each in links:
            if not self.find_link(each["url"]):
                self.defects.append(f"{each['name']} of {tag} leads nowhere")
        release = self.add(tag, wanted.get("description", ""), name=wanted.get("name") or tag)
        release["assets"]["links"] = [{"id": self.number(), **each} for each in links]
        return 201, release

    def _request(
        self, method: str, number: str, query: dict[str, str], wanted: dict[str, Any]
    ) -> Answer:
        """https://docs.gitlab.com/api/merge_requests/"""
        self.look_at_branches()
        if method == "GET" and not number:
            found = [
                self._show(each)
                for each in reversed(self.merge_requests)
                if query.get("state", "all") in {"all", each["state"]}
                and query.get("source_branch", each["source_branch"]) == each["source_branch"]
                and query.get("target_branch", each["target_branch"]) == each["target_branch"]
            ]
            return 200, _page(found, query)
        if method == "POST" and not number:
            return self.open_request(wanted)
        for request in self.merge_requests:
            if number == str(request["iid"]):
                if method == "PUT" and (refusal := self._update(request, wanted)):
                    return refusal
                return 200, self._show(request)
        return 404, NOT_FOUND

    def open_request(self, wanted: dict[str, Any]) -> Answer:
        """https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/api/merge_requests.rb"""
        needed = ("title", "source_branch", "target_branch")
        if missing := [each for each in needed if each not in wanted]:
            return 400, {"error": ", ".join(f"{each} is missing" for each in missing)}
        source, target = wanted["source_branch"], wanted["target_branch"]
        if source == target:
            said = "You can't use same project/branch for source and target"
            return 422, {"message": [said]}
        # What it knows of branches is brought up to date by a job of its own after each push.
        # https://github.com/yaoyuannnn/gerritlab/pull/87
        is_known = self.unknown_for == 0 and source in self.branches
        self.unknown_for = max(0, self.unknown_for - 1)
        if not is_known:
            return 400, {"message": {"source_branch": ["does not exist"]}}
        if target not in self.branches:
            return 400, {"message": {"target_branch": ["does not exist"]}}
        if refusal := _refuse_words(wanted):
            return refusal
        if (other := self._find_open(source, target)) is not None:
            return _refuse_another(other)
        number = 38 + len(self.merge_requests)
        request = {
            "id": self.number(),
            "iid": number,
            "web_url": f"{self.page}/-/merge_requests/{number}",
            "reference": f"!{number}",
            "references": {"short": f"!{number}", "full": f"{self.repository}!{number}"},
            "state": "opened",
            "title": wanted["title"],
            "description": wanted.get("description"),
            "source_branch": source,
            "target_branch": target,
            "source_project_id": PROJECT_ID,
            "target_project_id": PROJECT_ID,
            "sha": self.branches[source],
            "author": {"username": PERSON},
            "labels": [],
            "squash": wanted.get("squash", False),
            "force_remove_source_branch": wanted.get("remove_source_branch"),
            "merged_at": None,
            "merge_commit_sha": None,
            "squash_commit_sha": None,
        }
        self.merge_requests.append(request)
        return 201, self._show(request)

    def _update(self, request: dict[str, Any], wanted: dict[str, Any]) -> Answer | None:
        """https://docs.gitlab.com/api/merge_requests/#update-mr"""
        names = ("title", "description")
        changes: dict[str, Any] = {each: wanted[each] for each in names if each in wanted}
        event = wanted.get("state_event", "")
        if not (changes or event):
            return 400, {"error": "title, description are missing, at least one must be provided"}
        if event not in {"", "close", "reopen"}:
            return 400, {"error": "state_event does not have a valid value"}
        if refusal := _refuse_words(wanted):
            return refusal
        if event == "reopen" and request["state"] == "closed":
            other = self._find_open(request["source_branch"], request["target_branch"])
            if other is not None:
                return _refuse_another(other)
            request["state"] = "opened"
        if event == "close" and request["state"] == "opened":
            request["state"] = "closed"
        request.update(changes)
        return None

    def _find_open(self, source: str, target: str) -> dict[str, Any] | None:
        ends = (PROJECT_ID, source, target, "opened")
        names = ("source_project_id", "source_branch", "target_branch", "state")
        for each in self.merge_requests:
            if tuple(each[name] for name in names) == ends:
                return each
        return None

    def _show(self, request: dict[str, Any]) -> dict[str, Any]:
        """With what it lacks before it can be merged.

        https://docs.gitlab.com/api/merge_requests/#merge-status
        """
        if request["state"] != "opened":
            return request | {"detailed_merge_status": "not_open"}
        branches = self.branches
        head, base = branches[request["source_branch"]], branches[request["target_branch"]]
        is_behind = bool(self.list_commits(base, f"^{head}"))
        if not self.list_commits(head, f"^{base}"):
            status = "commits_status"
        elif self.merge_trees(base, head) is None:
            status = "conflict"
        else:
            status = "need_rebase" if is_behind and self.merge_method != "merge" else "mergeable"
        return request | {"detailed_merge_status": status}

    def look_at_branches(self) -> None:
        """What GitLab does with requests once a branch has moved: one without its branch is closed,
        and one whose head has come to its target was merged.

        https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/services/merge_requests/refresh_service.rb
        """
        before, after = self._seen, self.branches
        self._seen = after
        for request in self.merge_requests:
            source, target = request["source_branch"], request["target_branch"]
            if request["state"] != "opened" or request["source_project_id"] != PROJECT_ID:
                continue
            if source not in after:
                request["state"] = "closed"
            elif request["sha"] in self._list_pushed(before.get(target), after[target]):
                request.update(state="merged", merged_at=MERGED_AT)
            else:
                request["sha"] = after[source]

    def _list_pushed(self, before: str | None, after: str) -> list[str]:
        return [] if before in {None, after} else self.list_commits(after, f"^{before}")

    def find_request(self, number: int) -> dict[str, Any]:
        return next(each for each in self.merge_requests if each["iid"] == number)

    def merge(self, number: int, how: str, *, deletes: bool = True) -> None:
        """As the button does, with the messages of the templates; the branch goes, where that is
        set. Where the project has another method, `rebase` is the button for that first.

        https://docs.gitlab.com/user/project/merge_requests/methods/
        """
        self.look_at_branches()
        request = self.find_request(number)
        assert request["state"] == "opened"
        source, target = request["source_branch"], request["target_branch"]
        if how == "rebase" or self._show(request)["detailed_merge_status"] == "need_rebase":
            self.rebase_branch(number)
        base, head = self.branches[target], self.branches[source]
        tree = self.merge_trees(base, head)
        assert tree is not None, f"{source} conflicts with its base"
        commit, made = head, dict[str, str]()
        if how == "squash":
            commit = made["squash_commit_sha"] = self._squash(request, base, head)
        if self.merge_method != "ff" and how != "rebase":
            said = _fill(self.merge_template, request)
            commit = made["merge_commit_sha"] = self.write_commit(said, tree, base, commit)
        self.set_ref(f"refs/heads/{target}", commit)
        request |= {"state": "merged", "merged_at": MERGED_AT, "sha": head, **made}
        if deletes:
            self.set_ref(f"refs/heads/{source}", "")
        self.look_at_branches()

    def _squash(self, request: dict[str, Any], base: str, head: str) -> str:
        """https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/services/merge_requests/squash_service.rb"""
        fork = self.git("merge-base", base, head).strip()
        said, commits = _fill(self.squash_template, request), self.list_commits(head, f"^{fork}")
        if len(commits) == 1 and self.git("log", "-1", "--format=%B", head).strip() == said:
            return head
        return self.write_commit(said, f"{head}^{{tree}}", fork)

    def rebase_branch(self, number: int) -> None:
        """As the button does. https://docs.gitlab.com/topics/git/git_rebase/"""
        request = self.find_request(number)
        commit = self.rebase(request["source_branch"], self.branches[request["target_branch"]])
        self.set_ref(f"refs/heads/{request['source_branch']}", commit)
        self.look_at_branches()

    def merge_base(self, number: int) -> None:
        """Into the branch, as who resolves conflicts does.

        https://docs.gitlab.com/user/project/merge_requests/conflicts/
        """
        request, branches = self.find_request(number), self.branches
        source, target = request["source_branch"], request["target_branch"]
        head, base = branches[source], branches[target]
        tree = self.merge_trees(head, base)
        assert tree is not None, f"{source} conflicts with its base"
        said = f"Merge branch '{target}' into '{source}'"
        self.set_ref(f"refs/heads/{source}", self.write_commit(said, tree, head, base))
        self.look_at_branches()

    def _upload(
        self, package: str, version: str, name: str, body: bytes, query: dict[str, str]
    ) -> Answer:
        """https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/api/generic_packages.rb"""
        for pattern, value, what in (
            (PACKAGE_NAME, package, "package_name"),
            (PACKAGE_VERSION, version, "package_version"),
            (FILE_NAME, name, "file_name"),
        ):
            if not pattern.fullmatch(value):
                return 400, {"error": f"{what} is invalid"}
        if any(
            each["file_name"] == name
            for each in self._files_of(self._find_package(package, version))
        ):
            if not self.allows_duplicates:
                return 400, {"message": "400 Bad request - Duplicate package is not allowed"}
            self.defects.append(f"{name} was uploaded twice")
        self.add_file(version, name, body, package)
        whole = query.get("select") == "package_file"
        return 201, self.files[-1] if whole else {"message": "201 Created"}


def _page(rows: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
    """https://docs.gitlab.com/api/rest/#offset-based-pagination"""
    size, page = min(int(query.get("per_page", 20)), 100), int(query.get("page", 1))
    return rows[size * (page - 1) : size * page]


def _fill(template: str, request: dict[str, Any]) -> str:
    """https://docs.gitlab.com/user/project/merge_requests/commit_templates/#supported-variables-in-commit-templates"""
    values = {**request, "reference": request["references"]["full"]}
    return re.sub(r"%\{(\w+)\}", lambda found: str(values[found[1]] or ""), template)


def _refuse_words(wanted: dict[str, Any]) -> Answer | None:
    """Of a title or a description."""
    for name, most in {"title": MAX_TITLE, "description": MAX_DESCRIPTION}.items():
        if len(wanted.get(name) or "") > most:
            return 400, {"message": {name: [f"is too long (maximum is {most} characters)"]}}
    if wanted.get("title", "x") == "":
        return 400, {"error": "title is empty"}
    return None


def _refuse_another(request: dict[str, Any]) -> Answer:
    said = "Another open merge request already exists for this source branch"
    return 409, {"message": [f"{said}: {request['reference']}"]}


def _refuse(said: str) -> Answer:
    return 400, {"message": f"Validation failed: {said}"}


class _Handler(ForgeHandler):
    world: GitLabDouble
    realm = "GitLab"
    account = USER, TOKEN
    json_type = "application/json"

    do_POST = do_PUT = do_DELETE = ForgeHandler.do_GET

    def refuse_login(self, headers: dict[str, str]) -> bytes | None:
        is_known = _is_of_job(headers) or headers.get("private-token") == PERSONAL_TOKEN
        return None if is_known else b'{"message":"401 Unauthorized"}'

    def is_strange(self) -> bool:
        return self.world.strange_to in f"{self.command} {self.path}"

    def answer_api(self, headers: dict[str, str], body: bytes) -> Answer:
        return self.world.answer(self.command, self.path, body, is_job=_is_of_job(headers))

    def log_in(self, account: tuple[str, str]) -> bool:
        """A personal token goes with any name.

        https://docs.gitlab.com/user/profile/personal_access_tokens/#clone-repository-using-personal-access-token
        """
        return account == self.account or (account[0] != "" and account[1] == PERSONAL_TOKEN)

    def refuse_push(self) -> bytes | None:
        """https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/git_access.rb"""
        is_job = read_account({"authorization": self.headers["Authorization"]}) == self.account
        may = self.world.may_push if is_job else self.world.scope in {"api", "write_repository"}
        return None if may else b"You are not allowed to upload code."

    def _git(self, headers: dict[str, str], body: bytes) -> Response:
        if self.command != "POST" or "receive-pack" not in self.path:
            return super()._git(headers, body)
        before = self.world.branches
        answer = super()._git(headers, body)
        after = self.world.branches
        moved = {name for name, _ in before.items() ^ after.items()}
        self.world.states += [(each, after.get(each, NO_COMMIT)) for each in sorted(moved)]
        self.world.look_at_branches()
        return answer


def _is_of_job(headers: dict[str, str]) -> bool:
    return headers.get("job-token") == TOKEN


def write_login(page: str) -> str:
    """The settings of git that a runner leaves beside a checkout, with FF_GIT_URLS_WITHOUT_TOKENS.

    https://gitlab.com/gitlab-org/gitlab-runner/-/blob/main/shells/abstract.go (credHelperCommand)
    """
    helper = (
        '!f(){ if [ \\"$1\\" = \\"get\\" ] ; then echo \\"password=${CI_JOB_TOKEN}\\" ; fi ; } ; f'
    )
    return (
        f'[credential "{page.partition("/acme")[0]}"]\n\thelper = ""\n'
        f'\thelper = "{helper}"\n\tusername = {USER}\n'
    )


@contextlib.contextmanager
def serving_gitlab(directory: Path, repository: str = PROJECT) -> Iterator[GitLabDouble]:
    """An empty project, which only the tokens may read or write."""
    world = GitLabDouble(make_bare(directory, repository), repository)
    with serving(_Handler, world=world) as world.origin:
        yield world


def _answer_note(
    world: GitLabDouble, method: str, at: re.Match[str], query: dict[str, str], body: bytes
) -> Answer:
    """Newest first; a line that is a command is obeyed by those that are new.

    https://docs.gitlab.com/api/notes/#merge-requests
    https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/quick_actions/extractor.rb
    """
    of = [each for each in world.notes if each["noteable_iid"] == int(at[1])]
    if method == "GET" and at[2] is None:
        return 200, _page(of[::-1], query)
    wanted = json.loads(body)["body"] if body else ""
    if method == "POST" and at[2] is None:
        if re.search(r"^/\w", wanted.replace("\r", ""), re.MULTILINE):
            world.defects.append(f"a note of !{at[1]} is a command")
        made: dict[str, Any] = {
            "id": world.number(),
            "noteable_iid": int(at[1]),
            "body": wanted,
            "author": AUTHOR,
            "system": False,
        }
        world.notes.append(made)
        return 201, made
    note = next((each for each in of if each["id"] == int(at[2] or 0)), None)
    if method != "PUT" or note is None:
        return 404, NOT_FOUND
    if note["author"] != AUTHOR:
        return 403, FORBIDDEN
    note["body"] = wanted
    return 200, note
