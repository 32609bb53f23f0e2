"""A project at GitLab: its releases and generic packages as the API has them, over a real bare
repository that git's own HTTP backend serves, all behind the token of a job or of a person.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from harness.forge_server import ForgeHandler, make_bare
from harness.http_server import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROJECT = "acme/tools/mono"
TOKEN = "glcbt-64_of_the_job"
PERSONAL_TOKEN = "glpat-of_a_person"
# https://docs.gitlab.com/ci/jobs/ci_job_token/#to-git-clone-a-private-projects-repository
USER = "gitlab-ci-token"
FORBIDDEN = {"message": "403 Forbidden"}
NOT_FOUND = {"message": "404 Not Found"}
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
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/checks/tag_check.rb
PROTECTED = """#!/bin/sh
while read old new ref; do
  case "$ref" in
    refs/tags/*)
      echo "GitLab: You are not allowed to create this tag as it is protected." >&2
      exit 1 ;;
  esac
done
"""

Answer = tuple[int, Any]


@dataclass
class GitLabDouble:
    """`around` is told "before" and "after" of each request and what it was, and may raise HangUp:
    before it, nothing has happened; after it, the answer is lost. `failing` are answers to the next
    requests that write, with headers; `strange` is the content of every answer of the API, or of
    those to what has `strange_to` in it. Where the user may only read who has started the job, it
    is `read_only`, and one who may not create protected tags may not release them either:
    `is_protected`.
    """

    bare: Path
    repository: str = PROJECT
    origin: str = ""
    around: Callable[[str, str], None] = lambda moment, what: None
    read_only: bool = False
    may_push: bool = True
    allows_duplicates: bool = True
    is_protected: bool = False
    failing: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    strange: bytes | None = None
    strange_to: str = ""
    releases: list[dict[str, Any]] = field(default_factory=list)
    packages: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)
    _numbers: int = 1000

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
    def tags(self) -> dict[str, str]:
        """The object of each."""
        said = self.git("for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/tags")
        return dict(line.split(" ") for line in said.split("\n") if line)

    @property
    def writes(self) -> list[str]:
        return [
            each for each in self.asked if not each.startswith("GET ") and "upload-pack" not in each
        ]

    @property
    def _rule(self) -> Path:
        return self.bare / "hooks" / "pre-receive"

    def protect_tags(self) -> None:
        """From whoever the tokens speak for."""
        self._rule.write_text(PROTECTED)
        self._rule.chmod(0o755)
        self.is_protected = True

    def release_tags(self) -> None:
        self._rule.unlink()
        self.is_protected = False

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-C", self.bare, *arguments],
            capture_output=True,
            check=True,
            input=stdin,
            env={**os.environ, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.invalid"},
        )
        return done.stdout.decode(errors="replace")

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
        if rest == url.path or (is_job and not OF_JOBS.fullmatch(rest)):
            return 404, NOT_FOUND
        if method != "GET" and is_job and self.read_only:
            return 403, FORBIDDEN
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

    def refuse_push(self) -> bytes | None:
        """https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/git_access.rb"""
        return None if self.world.may_push else b"You are not allowed to upload code."


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
