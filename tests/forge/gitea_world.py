"""A repository of a real Gitea behind a proxy, for the cases of the release request."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final, Literal

from forge.requests import MAIN, Request
from harness.gitea import OWNER
from harness.proxy import serving_proxy
from integration.servers import PASSWORD
from processes import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from forge.requests import How, Moment, State
    from harness.gitea import Gitea
    from harness.proxy import Proxy

_NUMBERS: Final = itertools.count(1)
# What the server says while it still looks whether one can be merged.
_LATER: Final = "Please try again later"
# https://git-scm.com/docs/pack-protocol#_reference_update_request
_NO_COMMIT: Final = "0" * 40


class GiteaWorld:
    """Implements `RequestWorld`. `token` is of OWNER, and may do what docs/gitea.md says it has to;
    `reads` may only read.
    """

    name = "127.0.0.1"
    longest_title = 255
    defects: Sequence[str] = ()

    def __init__(self, gitea: Gitea, proxy: Proxy, repository: str) -> None:
        self.gitea = gitea
        self.proxy = proxy
        self.repository = repository
        self.token = make_token(gitea, "write:repository")
        self.states: list[tuple[str, str]] = []
        proxy.carried = self._keep_states

    @property
    def origin(self) -> str:
        return self.proxy.origin

    @property
    def around(self) -> Callable[[str, str], None]:
        return self.proxy.around

    @around.setter
    def around(self, around: Callable[[str, str], None]) -> None:
        self.proxy.around = around

    @property
    def asked(self) -> list[str]:
        return self.proxy.asked

    @property
    def failing(self) -> list[tuple[int, Any, dict[str, str]]]:
        return self.proxy.failing

    @property
    def url(self) -> str:
        login = f"://{OWNER}:{self.token}@"
        return f"{self.origin.replace('://', login)}/{self.repository}.git"

    @property
    def page(self) -> str:
        return f"{self.origin}/{self.repository}"

    @property
    def bare(self) -> Path:
        return self.gitea.directory / "data/gitea-repositories" / f"{self.repository}.git"

    def environment(self, ref: str = MAIN, origin: str = "") -> dict[str, str]:
        """`origin` is another address of the server than that of the proxy."""
        origin = origin or self.origin
        return {
            "GITEA_ACTIONS": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"{origin}/api/v1",
            "GITHUB_SERVER_URL": origin,
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_REF": ref,
            "RELEASEKIT_FORGE_TOKEN": self.token,
        }

    def name_moment(self, what: str) -> Moment | None:
        method, _, target = what.partition(" ")
        path, _, query = target.partition("?")
        pulls = f"/api/v1/repos/{self.repository}/pulls"
        if what == f"POST /{self.repository}.git/git-receive-pack":
            return "move"
        if not path.startswith(pulls):
            return None
        names: dict[tuple[str, bool], Moment] = {
            ("GET", True): "find",
            ("GET", False): "read",
            ("POST", True): "open",
            ("PATCH", False): "say",
        }
        return None if "state=closed" in query else names.get((method, path == pulls))

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", self.bare, *arguments], capture_output=True, check=True, text=True
        ).stdout

    def set_ref(self, ref: str, oid: str) -> None:
        """By a push: what git alone moves, Gitea does not see."""
        self.git("push", "--quiet", self.gitea.url(self.repository), f"+{oid}:{ref}")
        if not oid:
            self.settle()

    @property
    def requests(self) -> list[Request]:
        found = self.ask("GET", "/pulls?state=all&limit=50")
        return [self._read(each) for each in sorted(found, key=lambda each: int(each["number"]))]

    @property
    def open(self) -> list[Request]:
        return [each for each in self.requests if each.state == "open"]

    def merge(self, number: int, how: How, *, deletes: bool = True, bare: bool = False) -> None:
        """A `bare` one names no message to the API."""
        form: dict[str, object] = {"do": how, "delete_branch_after_merge": deletes}
        pull = self.ask("GET", f"/pulls/{number}")
        if not bare:
            form |= write_message(pull, how)
        wait_until(lambda: self._tries(f"/pulls/{number}/merge", form))

    def end_as(self, number: int, state: State) -> None:
        if state != "merged":
            self.ask("PATCH", f"/pulls/{number}", {"state": state})
            return
        self.ask("PATCH", "", {"allow_manual_merge": True})
        tip = self.git("rev-parse", "main").strip()
        form = {"do": "manually-merged", "merge_commit_id": tip}
        wait_until(lambda: self._tries(f"/pulls/{number}/merge", form))

    def say(self, number: int, *, title: str, body: str) -> None:
        self.ask("PATCH", f"/pulls/{number}", {"title": title, "body": body})

    def update_branch(self, number: int, how: Literal["merge", "rebase"]) -> None:
        wait_until(lambda: self._tries(f"/pulls/{number}/update?style={how}", {}))

    def be_strict(self) -> None:
        raise NotImplementedError  # Gitea says nothing of that

    def settle(self) -> None:
        """Until the server has closed what has no branch any more: it takes its time."""
        wait_until(lambda: all(self._has_branch(each) for each in self._list_open()))

    def ask(self, method: str, path: str, document: object = None) -> Any:
        return self.gitea.ask(method, f"/repos/{self.repository}{path}", document)

    def _list_open(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", "/pulls?state=open&limit=50")
        return found

    def _has_branch(self, pull: dict[str, Any]) -> bool:
        return bool(pull["head"]["ref"] == pull["head"]["label"])

    def _tries(self, path: str, form: object) -> bool:
        try:
            self.ask("POST", path, form)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode()
            assert _LATER in said, said
            return False
        return True

    def _read(self, listed: dict[str, Any]) -> Request:
        """A list may lag behind the branch of what is open, and one alone tells another branch for
        what is closed.
        """
        number, is_open = listed["number"], listed["state"] == "open"
        pull = self.ask("GET", f"/pulls/{number}") if is_open else listed
        return Request(
            number=number,
            url=pull["html_url"].replace(self.gitea.origin, self.origin),
            title=pull["title"],
            body=pull["body"],
            head=pull["head"]["sha"],
            state="merged" if pull["merged"] else pull["state"],
            author=pull["user"]["login"],
        )

    def _keep_states(self, path: str, body: bytes, status: int) -> None:
        if path != f"/{self.repository}.git/git-receive-pack" or status != 200:
            return
        at = 0
        while size := int(body[at : at + 4], 16):
            row = body[at + 4 : at + size].partition(b"\0")[0].decode().split()
            at += size
            branch = row[2].removeprefix("refs/heads/")
            if branch != row[2] and self._find(row[2]) == row[1]:
                self.states.append((branch, row[1]))

    def _find(self, ref: str) -> str:
        return self.git("for-each-ref", "--format=%(objectname)", ref).strip() or _NO_COMMIT


def write_message(pull: dict[str, Any], how: How) -> dict[str, str]:
    """What the page of a pull request proposes.

    https://github.com/go-gitea/gitea/blob/v1.26.0/services/pull/merge.go#L43
    """
    title, number = pull["title"], pull["number"]
    titles = {
        "merge": f"Merge pull request '{title}' (#{number}) from {pull['head']['ref']} into "
        f"{pull['base']['ref']}",
        "squash": f"{title} (#{number})",
        "rebase": "",
    }
    body = "" if how == "rebase" else f"Reviewed-on: {pull['html_url']}\n"
    if how == "squash":
        body = f"{pull['body']}\n\n---------\n\n{body}"
    return {"merge_title_field": titles[how], "merge_message_field": body}


def make_token(gitea: Gitea, *scopes: str) -> str:
    """Of OWNER, for these alone."""
    account = base64.b64encode(f"{OWNER}:{PASSWORD}".encode()).decode()
    asked = urllib.request.Request(
        f"{gitea.origin}/api/v1/users/{OWNER}/tokens",
        json.dumps({"name": f"token{next(_NUMBERS)}", "scopes": scopes}).encode(),
        {"Authorization": f"Basic {account}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as response:
        return str(json.load(response)["sha1"])


@contextlib.contextmanager
def serving_world(gitea: Gitea) -> Iterator[GiteaWorld]:
    """A private repository, empty, of an organization of its own."""
    owner = f"acme{next(_NUMBERS)}"
    gitea.add_organization(owner)
    gitea.ask("POST", f"/orgs/{owner}/repos", {"name": "mono", "private": True})
    with serving_proxy(gitea.origin) as proxy:
        yield GiteaWorld(gitea, proxy, f"{owner}/mono")
