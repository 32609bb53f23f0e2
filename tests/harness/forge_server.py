"""What the doubles of forges share: requests that take turns, and a repository behind git's own
HTTP backend.
"""

from __future__ import annotations

import base64
import json
import subprocess
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harness.git_server import http_backend
from harness.http_server import Handler, HangUp

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

Response = tuple[int, list[tuple[str, str]], bytes]


class ForgeWorld(Protocol):
    bare: Path
    repository: str
    failing: list[tuple[int, Any, dict[str, str]]]
    strange: bytes | None
    asked: list[str]
    turn: threading.RLock

    @property
    def around(self) -> Callable[[str, str], None]: ...


class ForgeHandler(Handler):
    """`account` is what git logs in with, a user and a password, and `json_type` the type of the
    API's answers.
    """

    world: ForgeWorld
    realm: ClassVar[str]
    account: ClassVar[tuple[str, str]]
    json_type: ClassVar[str]

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

    def _answered(self, headers: dict[str, str], body: bytes) -> Response:
        """What is asked of the API; the rest is git's."""
        if not self.path.startswith("/api/"):
            return self._git(headers, body)
        kind = [("Content-Type", self.json_type)]
        if (unknown := self.refuse_login(headers)) is not None:
            return 401, kind, unknown
        if self.world.strange is not None and self.is_strange():
            return 200, kind, self.world.strange
        if self.command != "GET" and self.world.failing:
            status, document, more = self.world.failing.pop(0)
            return status, [*kind, *more.items()], json.dumps(document).encode()
        status, document = self.answer_api(headers, body)
        if document is None or isinstance(document, bytes):
            return status, kind, document or b""
        return status, kind, json.dumps(document).encode()

    def refuse_login(self, headers: dict[str, str]) -> bytes | None:
        """What is said to those whose login is not known."""
        raise NotImplementedError

    def is_strange(self) -> bool:
        return True

    def answer_api(self, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        raise NotImplementedError

    def refuse_push(self) -> bytes | None:
        """What is said to those who may not push."""
        return None

    def log_in(self, account: tuple[str, str]) -> bool:
        """Whether git may, with this user and password."""
        return account == self.account

    def _git(self, headers: dict[str, str], body: bytes) -> Response:
        account = read_account(headers)
        if not self.log_in(account):
            return 401, [("WWW-Authenticate", f'Basic realm="{self.realm}"')], b""
        if "receive-pack" in self.path and (refused := self.refuse_push()) is not None:
            return 403, [("Content-Type", "text/plain")], refused
        root = self.world.bare.parents[self.world.repository.count("/")]
        return http_backend(root, self.command, self.path, headers, body, account[0])


def read_account(headers: dict[str, str]) -> tuple[str, str]:
    """What git logs in with; empty where it does not."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    user, _, password = base64.b64decode(value if kind == "Basic" else "").decode().partition(":")
    return user, password


def make_bare(directory: Path, repository: str) -> Path:
    """An empty one, where `_git` above looks for it."""
    bare = directory / "forge" / f"{repository}.git"
    bare.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", bare], check=True)
    return bare
