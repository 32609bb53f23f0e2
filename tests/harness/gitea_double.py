"""A repository at Gitea: its releases as the API has them, over a real bare repository that git's
own HTTP backend serves, all behind the token of a job. tests/forge/test_gitea.py holds it to a real
Gitea.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from harness.forge_server import ForgeHandler, Response, make_bare
from harness.http_server import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REPOSITORY = "acme/mono"
TOKEN = "5a17of_the_job"
NOT_ALLOWED = {"message": "user should have a permission to write to a repo"}
UNKNOWN = {"message": "invalid username, password or token"}
NOT_FOUND = {"errors": None, "message": "not found"}
# What its own hook says. https://github.com/go-gitea/gitea/blob/v1.26.0/routers/private
DENIED = """#!/bin/sh
echo "Gitea: User permission denied for writing." >&2
exit 1
"""
PROTECTED = """#!/bin/sh
while read old new ref; do
  case "$ref" in
    refs/tags/*)
      echo "Gitea: Tag ${ref#refs/tags/} is protected" >&2
      exit 1 ;;
  esac
done
"""

Answer = tuple[int, Any]


@dataclass
class GiteaDouble:
    """`around` is told "before" and "after" of each request and what it was, and may raise HangUp:
    before it, nothing has happened; after it, the answer is lost. `failing` are answers to the next
    requests that write, with headers; `strange` is the content of every answer of the API, and
    `page_size` the most releases that it shows at once. It learns of a pushed tag only once a
    release has been made of it, which is when that does most harm.
    """

    bare: Path
    repository: str = REPOSITORY
    origin: str = ""
    around: Callable[[str, str], None] = lambda moment, what: None
    page_size: int = 50
    failing: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    strange: bytes | None = None
    releases: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    learned: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)
    _read_only: bool = False
    _numbers: int = 1000

    @property
    def page(self) -> str:
        return f"{self.origin}/{self.repository}"

    @property
    def url(self) -> str:
        """Of the repository, with the token in it."""
        return f"{self.page.replace('://', f'://x-access-token:{TOKEN}@')}.git"

    @property
    def api(self) -> str:
        return f"{self.origin}/api/v1"

    @property
    def environment(self) -> dict[str, str]:
        """Of a job, as far as it says where that is, and what the action adds."""
        return {
            "CI": "true",
            "GITEA_ACTIONS": "true",
            "GITHUB_ACTIONS": "true",
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

    @property
    def read_only(self) -> bool:
        return self._read_only

    @read_only.setter
    def read_only(self, wanted: bool) -> None:
        self._read_only = wanted
        if wanted:
            self._set_hook(DENIED)
        else:
            self.release_tags()

    def protect_tags(self) -> None:
        self._set_hook(PROTECTED)

    def release_tags(self) -> None:
        (self.bare / "hooks" / "pre-receive").unlink()

    def _set_hook(self, script: str) -> None:
        hook = self.bare / "hooks" / "pre-receive"
        hook.write_text(script)
        hook.chmod(0o755)

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

    def add(self, tag: str, **more: Any) -> dict[str, Any]:
        """A release, as it is in answers, newest first."""
        number = self.number()
        place = f"{self.api}/repos/{self.repository}/releases/{number}"
        release = {
            "id": number,
            "tag_name": tag,
            "target_commitish": "main",
            "name": tag,
            "body": "",
            "url": place,
            "html_url": f"{self.page}/releases/tag/{tag}",
            "upload_url": f"{place}/assets",
            "draft": False,
            "prerelease": False,
            "assets": [],
            **more,
        }
        self.releases.insert(0, release)
        return release

    def add_asset(self, release: dict[str, Any], name: str, content: bytes) -> dict[str, Any]:
        """There may be several of a name."""
        number = self.number()
        uuid = f"uuid-{number}"
        asset = {
            "id": number,
            "name": name,
            "size": len(content),
            "uuid": uuid,
            "browser_download_url": f"{self.origin}/attachments/{uuid}",
        }
        release["assets"].append(asset)
        self.contents[uuid] = content
        return asset

    def answer(self, method: str, target: str, body: bytes) -> Answer:
        """Of the API, to whoever has the token."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        place = f"/api/v1/repos/{self.repository}"
        rest = url.path.removeprefix(place)
        if method != "GET" and self.read_only:
            return 403, NOT_ALLOWED
        if method == "GET" and rest.startswith("/tags/"):
            return self._tag(unquote(rest.removeprefix("/tags/")))
        if (method, rest) == ("GET", "/releases"):
            shown = [each for each in self.releases if not (self.read_only and each["draft"])]
            size = min(int(query.get("limit", 30)), self.page_size)
            first = size * (int(query.get("page", 1)) - 1)
            return 200, shown[first : first + size]
        if (method, rest) == ("GET", "/releases/latest"):
            stable = [each for each in self.releases if not (each["draft"] or each["prerelease"])]
            return (200, stable[0]) if stable else (404, NOT_FOUND)
        if (method, rest) == ("POST", "/releases"):
            return self._create(json.loads(body))
        if found := re.fullmatch(r"/releases/(\d+)(?:/assets(?:/(\d+))?)?", rest):
            for release in self.releases:
                if release["id"] == int(found[1]):
                    return self._change(method, rest, release, int(found[2] or 0), query, body)
        return 404, NOT_FOUND

    def _tag(self, name: str) -> Answer:
        """`id` is the tag object."""
        if name not in self.tags:
            return 404, {"errors": None, "message": f"tag doesn't exist: {name}"}
        commit = self.git("rev-parse", f"{name}^{{commit}}").strip()
        return 200, {"name": name, "id": self.tags[name], "commit": {"sha": commit}}

    def _create(self, wanted: dict[str, Any]) -> Answer:
        """https://github.com/go-gitea/gitea/blob/v1.26.0/routers/api/v1/repo/release.go"""
        tag = wanted["tag_name"]
        if any(each["tag_name"] == tag for each in self.releases):
            return 409, {"message": "Release is has no Tag"}
        if not wanted["draft"]:
            self.defects.append(f"{tag} was published before it was whole")
        said = dict(self.add(tag, **wanted))
        self._learn()
        return 201, said

    def _learn(self) -> None:
        """What it does with tags that were pushed: a draft of one is published.

        https://github.com/go-gitea/gitea/blob/v1.26.0/services/repository/push.go
        """
        for release in self.releases:
            if release["tag_name"] in self.tags and release["tag_name"] not in self.learned:
                release["draft"] = False
        self.learned |= set(self.tags)

    def _change(
        self,
        method: str,
        rest: str,
        release: dict[str, Any],
        number: int,
        query: dict[str, str],
        body: bytes,
    ) -> Answer:
        """What concerns one release, or its asset of that number."""
        (asset,) = [each for each in release["assets"] if each["id"] == number] or (None,)
        if method == "PATCH":
            wanted = json.loads(body)
            if release["tag_name"] not in self.tags:
                self.defects.append(f"Gitea had to make the tag {release['tag_name']}")
            release.update({name: wanted[name] for name in ("draft", "body") if name in wanted})
            return 200, release
        if method == "POST" and rest.endswith("/assets"):
            return 201, self.add_asset(release, query["name"], body)
        if asset is None:
            return 404, NOT_FOUND
        if method == "DELETE":
            release["assets"].remove(asset)
            return 204, None
        return 200, asset


class _Handler(ForgeHandler):
    world: GiteaDouble
    realm = "Gitea"
    account = "x-access-token", TOKEN
    json_type = "application/json;charset=utf-8"

    do_POST = do_PATCH = do_DELETE = ForgeHandler.do_GET

    def refuse_login(self, headers: dict[str, str]) -> bytes | None:
        is_known = headers.get("authorization") == f"Bearer {TOKEN}"
        return None if is_known else json.dumps(UNKNOWN).encode()

    def answer_api(self, _headers: dict[str, str], body: bytes) -> Answer:
        return self.world.answer(self.command, self.path, body)

    def _answered(self, headers: dict[str, str], body: bytes) -> Response:
        """Files of releases are neither below the API nor git's."""
        if not self.path.startswith("/attachments/"):
            return super()._answered(headers, body)
        if (unknown := self.refuse_login(headers)) is not None:
            return 401, [("Content-Type", self.json_type)], unknown
        content = self.world.contents.get(self.path.removeprefix("/attachments/"))
        return (404, [], b"Not Found") if content is None else (200, [], content)


@contextlib.contextmanager
def serving_gitea(directory: Path, repository: str = REPOSITORY) -> Iterator[GiteaDouble]:
    """An empty repository, which only the token may read or write."""
    world = GiteaDouble(make_bare(directory, repository), repository)
    with serving(_Handler, world=world) as world.origin:
        yield world
