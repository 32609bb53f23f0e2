"""A git remote over HTTP with accounts: git's own http-backend.

https://git-scm.com/docs/git-http-backend
"""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

from harness.http_server import Handler, serving
from integration.servers import PASSWORD, USERNAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ACCOUNT = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()


def http_backend(
    root: Path, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    """What git answers to `user`, of the repositories in `root`; headers have lower-case names."""
    path, _, query = target.partition("?")
    done = subprocess.run(
        ["git", "http-backend"],
        input=body,
        capture_output=True,
        check=True,
        env={
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_USER": user,
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
        },
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
    status = next((value[:3] for name, value in lines if name == "Status"), "200")
    return int(status), [(name, value) for name, value in lines if name != "Status"], content


class _Handler(Handler):
    root: Path

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Basic {_ACCOUNT}":
            self.send(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send(*http_backend(self.root, self.command, self.path, headers, body, USERNAME))

    do_POST = do_GET


@contextlib.contextmanager
def git_server(root: Path) -> Iterator[str]:
    """The repositories in `root`, for USERNAME with PASSWORD only. Yields the origin."""
    with serving(_Handler, root=root) as origin:
        yield origin
