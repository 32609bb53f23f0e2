"""Sigstore on loopback, whole: GitHub's token service, Fulcio with its CT log, and Rekor v1, whose
answers the official verifiers accept. As a process, it prints where everything is once it listens:
`python -m provenance.sigstore_double DIRECTORY [--delay-s 0.2]`, with `tests` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import re
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from harness import http_server
from harness.http_server import HangUp
from provenance.authority import Authority, BadRequest, public_bytes
from provenance.oidc import (
    GITLAB,
    ISSUER,
    RUNNER_TOKEN,
    BadToken,
    Issuer,
    claims_of,
    gitlab_claims_of,
)
from provenance.transparency import ENTRIES, BadEntry, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cryptography.hazmat.primitives.asymmetric import ec

    from provenance.transparency import Entry

CERTIFY = "/api/v2/signingCert"
START = "2026-01-01T00:00:00Z"

Service = Literal["tokens", "authority", "log"]
# A status; or the work is done and the connection reset; or nobody ever answers.
Fault = int | Literal["lost", "silent"]


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Request:
    service: Service | Literal["other"]
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Sigstore:
    """`before` sees each request before anything is done about it, `after` the answer to it; each
    may end the client, or raise HangUp. `delay_s` is how long the log takes for an entry.
    """

    directory: Path
    issuer: Issuer = field(default_factory=Issuer)
    authority: Authority = field(default_factory=Authority)
    log: Log = field(default_factory=Log)
    delay_s: float = 0.0
    before: Callable[[Request], None] = lambda request: None
    after: Callable[[Request, Answer], None] = lambda request, answer: None
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    # How many were at work at the same time, at most.
    most: Counter[str] = field(default_factory=Counter)
    closing: threading.Event = field(default_factory=threading.Event)
    _faults: dict[str, list[Fault]] = field(default_factory=dict)
    _working: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def entries(self) -> list[Entry]:
        """What the log holds, in its order."""
        return self.log.entries

    @property
    def claims(self) -> dict[str, Any]:
        """What the next tokens say about the job; to be changed."""
        return self.issuer.claims

    def become(self, repository: str, workflow: str = "release.yml") -> None:
        """From now on the job is one of another repository, or of another workflow."""
        self.issuer.claims = claims_of(repository, workflow)

    def become_gitlab(self) -> None:
        """From now on the job is one of gitlab.com: its tokens lie in the environment."""
        self.issuer.claims = gitlab_claims_of()

    def fail(self, service: Service, fault: Fault, *, times: int = 1) -> None:
        """The next `times` requests to a service. What is "lost" is done: a log has the entry."""
        self._faults.setdefault(service, []).extend([fault] * times)

    def seen(self, service: Service) -> list[Request]:
        return [request for request in self.requests if request.service == service]

    @property
    def environment(self) -> dict[str, str]:
        """What the runner sets for this job; where Sigstore is, `trust_config` says."""
        claims = self.claims
        if "project_path" in claims:
            return {
                **gitlab_environment(claims),
                "SIGSTORE_ID_TOKEN": self.issuer.token("sigstore"),
            }
        return {
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": RUNNER_TOKEN,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": claims["repository"],
            "GITHUB_REPOSITORY_ID": claims["repository_id"],
            "GITHUB_REPOSITORY_OWNER": claims["repository_owner"],
            "GITHUB_REPOSITORY_OWNER_ID": claims["repository_owner_id"],
            "GITHUB_EVENT_NAME": claims["event_name"],
            "GITHUB_REF": claims["ref"],
            "GITHUB_SHA": claims["sha"],
            "GITHUB_RUN_ID": claims["run_id"],
            "GITHUB_RUN_ATTEMPT": claims["run_attempt"],
            "GITHUB_WORKFLOW": claims["workflow"],
            "GITHUB_WORKFLOW_REF": claims["workflow_ref"],
            "GITHUB_WORKFLOW_SHA": claims["workflow_sha"],
            "RUNNER_ENVIRONMENT": claims["runner_environment"],
        }

    @property
    def trust_config(self) -> Path:
        """Where clients find this instance, and what they trust: a client trust config."""
        return self._written(
            "trust_config.json",
            {
                "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
                "trustedRoot": self.root,
                "signingConfig": self._signing_config,
            },
        )

    @property
    def trusted_root(self) -> Path:
        """The root of trust alone, as verifiers read it."""
        return self._written("trusted_root.json", self.root)

    @property
    def root(self) -> dict[str, Any]:
        chain = [
            {"rawBytes": _base64(each.public_bytes(Encoding.DER))} for each in self.authority.chain
        ]
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self._log_of_trust(self.log.key)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "sigstore.dev", "commonName": "sigstore"},
                    "uri": self.url,
                    "certChain": {"certificates": chain},
                    "validFor": {"start": START},
                }
            ],
            "ctlogs": [self._log_of_trust(self.authority.ct_key)],
            "timestampAuthorities": [],
        }

    @property
    def _signing_config(self) -> dict[str, Any]:
        service = {
            "majorApiVersion": 1,
            "validFor": {"start": START},
            "operator": "127.0.0.1",
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
            "caUrls": [{"url": self.url, **service}],
            "oidcUrls": [{"url": ISSUER, **service}],
            "rekorTlogUrls": [{"url": self.url, **service}],
            "rekorTlogConfig": {"selector": "ANY"},
            "tsaUrls": [],
            "tsaConfig": {"selector": "ANY"},
        }

    def _log_of_trust(self, key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
        public = public_bytes(key.public_key())
        return {
            "baseUrl": self.url,
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": _base64(public),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": {"start": START},
            },
            "logId": {"keyId": _base64(hashlib.sha256(public).digest())},
        }

    def _written(self, name: str, document: dict[str, Any]) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / name
        path.write_text(json.dumps(document))
        return path

    def answer(self, request: Request) -> Answer:
        service = request.service
        with self._lock:
            self.requests.append(request)
            waiting = self._faults.get(service, [])
            fault = waiting.pop(0) if waiting else None
            self._working[service] += 1
            self.most[service] = max(self.most[service], self._working[service])
        try:
            self.before(request)
            answer = self._failed(fault) or self._answer(request)
            self.after(request, answer)
        finally:
            with self._lock:
                self._working[service] -= 1
        if fault == "lost":
            raise HangUp
        return answer

    def _failed(self, fault: Fault | None) -> Answer | None:
        if fault == "silent":
            self.closing.wait()
            raise HangUp
        if isinstance(fault, int):
            return _json(fault, {"code": fault, "message": "a fault that the test wants"})
        return None

    def _answer(self, request: Request) -> Answer:
        url = urlsplit(request.target)
        match request.method, url.path:
            case "GET", "/token":
                return self._token(parse_qs(url.query), request.headers)
            case "POST", path if path == CERTIFY:
                return self._certify(request)
            case "POST", path if path == ENTRIES:
                time.sleep(self.delay_s)
                return self._add(request)
            case "GET", path if found := re.fullmatch(rf"{ENTRIES}/([0-9a-f]+)", path):
                entry = self.log.find(found[1])
                return _error(404, "entry not found") if entry is None else self._shown(200, entry)
            case "GET", "/api/v1/log/publicKey":
                form = Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
                return Answer(200, self.log.key.public_key().public_bytes(*form))
            case _:
                return _error(404, "no such page")

    def _token(self, query: dict[str, list[str]], headers: dict[str, str]) -> Answer:
        if headers.get("authorization") != f"Bearer {RUNNER_TOKEN}":
            return _error(401, "who are you?")
        return _json(200, {"count": 1, "value": self.issuer.token(query["audience"][0])})

    def _certify(self, request: Request) -> Answer:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            chain = self._chain(token, json.loads(request.body))
        except BadToken as error:
            words = "There was an error processing the identity token"
            return _json(401, {"code": 16, "message": words, "details": [str(error)]})
        except (BadRequest, KeyError, ValueError) as error:
            return _json(400, {"code": 3, "message": str(error), "details": []})
        return _json(200, {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}})

    def _chain(self, token: str, asked: dict[str, Any]) -> list[str]:
        token = asked.get("credentials", {}).get("oidcIdentityToken", token)
        if (wanted := asked.get("publicKeyRequest")) is None:
            csr = base64.b64decode(asked["certificateSigningRequest"])
            return self.authority.certify(token, csr)
        pem, proof = wanted["publicKey"]["content"], wanted["proofOfPossession"]
        return self.authority.certify_key(token, pem.encode(), base64.b64decode(proof))

    def _add(self, request: Request) -> Answer:
        try:
            entry, is_new = self.log.add(json.loads(request.body))
        except (BadEntry, ValueError) as error:
            return _error(400, str(error))
        if is_new:
            return self._shown(201, entry)
        words = f"an equivalent entry already exists in the transparency log with UUID {entry.uuid}"
        body = json.dumps({"code": 409, "message": words}).encode()
        return Answer(409, body, (("Location", f"{ENTRIES}/{entry.uuid}"),))

    def _shown(self, status: int, entry: Entry) -> Answer:
        return _json(status, self.log.shown(entry))


def gitlab_environment(claims: dict[str, Any]) -> dict[str, str]:
    """Of the job, as GitLab tells it, with what people have written.

    https://docs.gitlab.com/ci/variables/predefined_variables/
    """
    project = f"{GITLAB}/{claims['project_path']}"
    return {
        "CI": "true",
        "GITLAB_CI": "true",
        "GITLAB_USER_EMAIL": claims["user_email"],
        "GITLAB_USER_LOGIN": claims["user_login"],
        "CI_API_V4_URL": f"{GITLAB}/api/v4",
        "CI_COMMIT_BRANCH": claims["ref"],
        "CI_COMMIT_MESSAGE": "Say what only we may read",
        "CI_COMMIT_TITLE": "Say what only we may read",
        "CI_COMMIT_REF_NAME": claims["ref"],
        "CI_COMMIT_REF_PROTECTED": claims["ref_protected"],
        "CI_COMMIT_SHA": claims["sha"],
        "CI_CONFIG_PATH": ".gitlab-ci.yml",
        "CI_JOB_ID": claims["job_id"],
        "CI_JOB_NAME": "publish",
        "CI_JOB_STAGE": "deploy",
        "CI_JOB_TOKEN": "glcbt-64_of-this-job",
        "CI_JOB_URL": f"{project}/-/jobs/{claims['job_id']}",
        "CI_PIPELINE_ID": claims["pipeline_id"],
        "CI_PIPELINE_SOURCE": claims["pipeline_source"],
        "CI_PIPELINE_URL": f"{project}/-/pipelines/{claims['pipeline_id']}",
        "CI_PROJECT_DESCRIPTION": "Say what only we may read",
        "CI_PROJECT_ID": claims["project_id"],
        "CI_PROJECT_PATH": claims["project_path"],
        "CI_PROJECT_URL": project,
        "CI_PROJECT_VISIBILITY": claims["project_visibility"],
        "CI_RUNNER_DESCRIPTION": "green-1.saas-linux-small-amd64.runners-manager",
        "CI_RUNNER_EXECUTABLE_ARCH": "linux/amd64",
        "CI_RUNNER_ID": str(claims["runner_id"]),
        "CI_SERVER_HOST": "gitlab.com",
        "CI_SERVER_URL": GITLAB,
        "CI_SERVER_VERSION": "19.4.0-pre",
    }


@contextlib.contextmanager
def serving(directory: Path, *, port: int = 0) -> Iterator[Sigstore]:
    """An instance of its own, whose log is empty; `directory` is for what it writes."""
    sigstore = Sigstore(directory)
    with http_server.serving(_Handler, port=port, checked=True, sigstore=sigstore) as sigstore.url:
        try:
            yield sigstore
        finally:
            sigstore.closing.set()


class _Handler(http_server.Handler):
    sigstore: Sigstore

    def do_GET(self) -> None:
        if (received := self.received()) is None:
            return
        headers, body = received
        request = Request(_service(self.path), self.command, self.path, headers, body)
        try:
            answer = self.sigstore.answer(request)
        except HangUp:
            self.hang_up()
            return
        kind = ("Content-Type", "application/json")
        self.send(answer.status, [kind, *answer.headers], answer.body)

    do_POST = do_GET


def _service(target: str) -> Service | Literal["other"]:
    path = urlsplit(target).path
    if path == "/token":
        return "tokens"
    if path == CERTIFY:
        return "authority"
    return "log" if path.startswith("/api/v1/log/") else "other"


def _error(status: int, message: str) -> Answer:
    return _json(status, {"code": status, "message": message})


def _json(status: int, document: object) -> Answer:
    return Answer(status, json.dumps(document).encode())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Sigstore on loopback, until its input ends")
    parser.add_argument("directory", type=Path, help="for the trust config and the trusted root")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-s", type=float, default=0.0, help="that an entry takes")
    parser.add_argument("--repository", default="acme/widgets")
    parser.add_argument("--workflow", default="release.yml")
    options = parser.parse_args()
    with serving(options.directory.resolve(), port=options.port) as sigstore:
        sigstore.delay_s = options.delay_s
        sigstore.become(options.repository, options.workflow)
        where = {
            "url": sigstore.url,
            "environment": sigstore.environment,
            "trust_config": str(sigstore.trust_config),
            "trusted_root": str(sigstore.trusted_root),
        }
        sys.stdout.write(json.dumps(where) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
