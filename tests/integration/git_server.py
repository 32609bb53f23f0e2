"""A git remote over HTTP with accounts: git's own http-backend.

https://git-scm.com/docs/git-http-backend
"""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from integration.http_server import serving
from integration.servers import PASSWORD, USERNAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ACCOUNT = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Basic {_ACCOUNT}":
            self._answer(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": USERNAME,
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value[:3] for name, value in headers if name == "Status"), "200")
        kept = [(name, value) for name, value in headers if name != "Status"]
        self._answer(int(status), kept, content)

    do_POST = do_GET  # noqa: N815

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def git_server(root: Path) -> Iterator[str]:
    """The repositories in `root`, for USERNAME with PASSWORD only. Yields the origin."""

    class Handler(_Handler):
        pass

    Handler.root = root
    with serving(Handler) as origin:
        yield origin
