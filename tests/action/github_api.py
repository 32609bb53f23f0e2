"""The comments of one pull request, and the attestations of a repository, as GitHub's API has them,
on this machine.
"""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs, urlsplit

from harness.http_server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

BOT = "github-actions[bot]"


@dataclass
class Comments:
    """`read_only` is what the token of a fork may do."""

    url: str = ""
    token: str = "ghs_of_the_job"
    repository: str = "acme/monorepo"
    number: int = 7
    read_only: bool = False
    everything: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def add(self, body: str, login: str = BOT) -> dict[str, Any]:
        """https://docs.github.com/en/rest/issues/comments#create-an-issue-comment"""
        comment = {"id": 100 + len(self.everything), "user": {"login": login}, "body": body}
        self.everything.append(comment)
        return comment

    def of_the_bot(self) -> list[str]:
        return [each["body"] for each in self.everything if each["user"]["login"] == BOT]

    def answer(self, method: str, target: str, body: str) -> tuple[int, Any]:
        url = urlsplit(target)
        issues = f"/repos/{self.repository}/issues"
        if method == "GET" and url.path == f"{issues}/{self.number}/comments":
            query = {name: int(value[0]) for name, value in parse_qs(url.query).items()}
            size = query.get("per_page", 30)
            start = (query.get("page", 1) - 1) * size
            return 200, self.everything[start : start + size]
        if self.read_only:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST" and url.path == f"{issues}/{self.number}/comments":
            return 201, self.add(json.loads(body)["body"])
        for comment in self.everything:
            if method == "PATCH" and url.path == f"{issues}/comments/{comment['id']}":
                return 200, comment | {"body": comment.update(json.loads(body)) or comment["body"]}
        return 404, {"message": "Not Found"}


@dataclass
class Attestations:
    """Each with its bundle. `may_write` is whether the job has `attestations: write`; `failing` are
    statuses of the next answers, and headers that go with each.
    """

    url: str = ""
    token: str = "ghs_of_the_job"
    repository: str = "acme/widgets"
    may_write: bool = True
    failing: list[int] = field(default_factory=list)
    strange: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    everything: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, target: str, body: str) -> tuple[int, Any]:
        """https://docs.github.com/en/rest/repos/attestations#create-an-attestation"""
        if self.failing:
            return self.failing.pop(0), {"message": "what the test wants"}
        place = f"/repos/{self.repository}/attestations"
        if method == "GET" and target.startswith(f"{place}/sha256:"):
            return self._listed(target.rpartition(":")[2])
        if (method, target) != ("POST", place):
            return 404, {"message": "Not Found"}
        if not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        bundle = json.loads(body)["bundle"]
        if refusal := _refusal(bundle):
            return 422, {"message": refusal}
        self.everything.append(bundle)
        return 201, {"id": 1000 + len(self.everything)}

    def _listed(self, sha256: str) -> tuple[int, Any]:
        """https://docs.github.com/en/rest/repos/attestations#list-attestations"""
        found = [
            {"bundle": bundle, "repository_id": 1}
            for bundle in self.everything
            if any(each["digest"]["sha256"] == sha256 for each in _subjects(bundle))
        ]
        return (200, {"attestations": found}) if found else (404, {"message": "Not Found"})


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


class State(Protocol):
    token: str
    url: str
    requests: list[str]

    def answer(self, method: str, target: str, body: str) -> tuple[int, Any]: ...


@contextlib.contextmanager
def comments() -> Iterator[Comments]:
    """None at first, behind a server that wants the token of the job."""
    with _served(state := Comments(), {}):
        yield state


@contextlib.contextmanager
def attestations() -> Iterator[Attestations]:
    """The same."""
    with _served(state := Attestations(), state.headers):
        yield state


@contextlib.contextmanager
def _served(state: State, headers: dict[str, str]) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers["Authorization"]
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            status, answer = 401, {"message": "Bad credentials"}
            if given == f"Bearer {state.token}":
                status, answer = state.answer(self.command, self.path, body)
            state.requests.append(f"{self.command} {self.path}")
            strange = getattr(state, "strange", None)
            data = (json.dumps(answer) if strange is None else strange).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PATCH = do_GET

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name)
            pass

    with serving(Handler) as state.url:
        yield
