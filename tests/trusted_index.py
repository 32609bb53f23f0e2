"""GitHub's token service and an index with trusted publishing, as far as a client sees them.

https://docs.github.com/actions/reference/security/oidc and
https://github.com/pypi/warehouse/blob/main/warehouse/oidc/views.py
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from harness.http_server import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNER_TOKEN = "runner-token-of-this-job"
CLAIMS = {
    "repository": "acme/mono",
    "workflow_ref": "acme/mono/.github/workflows/release.yml@refs/tags/v1",
    "job_workflow_ref": "acme/mono/.github/workflows/release.yml@refs/tags/v1",
    "ref": "refs/tags/v1",
    "environment": "pypi",
}
# As tests see it: status, body, content type.
Answer = tuple[int, bytes, str]


@dataclass
class TrustedIndex:
    """Both services in one. `refusal` is a 422 for every mint, `lifetime_s` that of its tokens,
    `projects` those that trust this job, and `pending` those that begin to with their first mint,
    one each; where `projects` is None, all do.
    """

    audience: str = "127.0.0.1"
    claims: dict[str, str] = field(default_factory=lambda: dict(CLAIMS))
    refusal: tuple[str, str] | None = None
    lifetime_s: float = 900.0
    projects: list[str] | None = None
    pending: list[str] = field(default_factory=list)
    id_tokens: list[str] = field(default_factory=list)
    minted: list[str] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    def environment(self, origin: str) -> dict[str, str]:
        """What the runner sets for a job that may identify itself."""
        return {
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{origin}/idtoken?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": RUNNER_TOKEN,
        }

    def answer(self, method: str, target: str, authorization: str, body: bytes) -> Answer:
        url = urlsplit(target)
        match method, url.path:
            case "GET", "/idtoken":
                return self._id_token(parse_qs(url.query), authorization)
            case "GET", "/_/oidc/audience":
                return _json(200, {"audience": self.audience})
            case "POST", "/_/oidc/mint-token":
                return self._mint(json.loads(body)["token"])
            case "POST", "/legacy/":
                return self._upload(authorization, body)
            case _:
                return 404, b"no such page", "text/plain"

    def _id_token(self, query: dict[str, list[str]], authorization: str) -> Answer:
        if authorization != f"Bearer {RUNNER_TOKEN}":
            return 401, b"who are you?", "text/plain"
        claims = {**self.claims, "aud": query["audience"][0], "jti": str(len(self.id_tokens))}
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        self.id_tokens.append(f"eyJhbGciOiJub25lIn0.{payload}.c2ln")
        return _json(200, {"count": 1, "value": self.id_tokens[-1]})

    def _mint(self, token: str) -> Answer:
        refusal = self.refusal
        if token not in self.id_tokens or f'"aud": "{self.audience}"' not in _payload(token):
            refusal = ("invalid-token", "malformed or invalid token")
        elif token in self._used:
            refusal = ("invalid-reuse-token", "invalid token: already used")
        self._used.add(token)
        if refusal is not None:
            errors = [{"code": refusal[0], "description": refusal[1]}]
            return _json(422, {"message": "Token request failed", "errors": errors})
        self.minted.append(f"pypi-minted-{len(self.minted)}")
        if self.projects is not None:
            self.projects += [self.pending.pop(0)] if self.pending else []
            publisher = [4, f"publisher-{len(self.minted)}", None]
            self.minted[-1] = make_token(publisher, [2, [f"id-of-{it}" for it in self.projects]])
        self.valid.add(self.minted[-1])
        expires = int(time.time() + self.lifetime_s)
        return _json(200, {"success": True, "token": self.minted[-1], "expires": expires})

    def _upload(self, authorization: str, body: bytes) -> Answer:
        user, _, password = (
            base64.b64decode(authorization.partition(" ")[2]).decode().partition(":")
        )
        if user != "__token__" or password not in self.valid:
            return 403, b"Invalid or non-existent authentication information.", "text/plain"
        found = re.search(rb'name="content"; filename="([^"]+)"', body)
        self.files.append(found[1].decode() if found else "")
        return 200, b"", "text/plain"


def make_token(*caveats: list[object]) -> str:
    """As PyPI writes one down: tests/unit/pypi/test_macaroon.py compares it with pymacaroons'."""

    def pack(kind: int, data: bytes) -> bytes:
        size = len(data)
        return bytes([kind, size] if size < 128 else [kind, size & 127 | 128, size >> 7]) + data

    sections = [pack(1, b"pypi.org") + pack(2, b"token-1")]
    sections += [pack(2, json.dumps(each).encode()) for each in caveats]
    data = b"\2" + b"".join(each + b"\0" for each in sections) + b"\0" + pack(6, bytes(32))
    return f"pypi-{base64.urlsafe_b64encode(data).rstrip(b'=').decode()}"


@contextlib.contextmanager
def served(index: TrustedIndex) -> Iterator[str]:
    """On loopback, one request at a time. Yields the origin."""
    lock = threading.Lock()

    class Asked(Handler):
        def do_GET(self) -> None:
            if (received := self.received()) is None:
                return
            headers, body = received
            with lock:
                status, answer, kind = index.answer(
                    self.command, self.path, headers.get("authorization", ""), body
                )
            self.send(status, [("Content-Type", kind)], answer)

        do_POST = do_GET

    with serving(Asked) as origin:
        yield origin


def _payload(token: str) -> str:
    return base64.urlsafe_b64decode(token.split(".")[1] + "==").decode()


def _json(status: int, document: dict[str, Any]) -> Answer:
    return status, json.dumps(document).encode(), "application/json"
