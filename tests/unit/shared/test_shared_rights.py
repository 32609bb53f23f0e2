"""What a server of one's own is asked of a login before anything is sent."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, NamedTuple, cast

import httpx
import pytest

import fakes
from javascript import Passing
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.maven import MavenInputs
from releasekit.ecosystems.preflight import RightsFound
from releasekit.ecosystems.pypi import PyPIInputs
from releasekit.errors import Denied, Transient
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.preflight import Rights
    from releasekit.host.process import Processes

PAIR = f"Basic {base64.b64encode(b'me:secret').decode()}"
OURS = "https://git.example/git/api/packages/acme"
GITEA = httpx.Response(200, json={"version": "1.26.0"})


class Case(NamedTuple):
    """How an upload to `place` below an owner begins."""

    ecosystem: str
    place: str
    method: str
    path: str
    login: str = PAIR


CASES = [
    Case("npm", "npm/", "PUT", "npm/acme", "Bearer secret"),
    Case("pypi", "pypi", "POST", "pypi"),
    Case("cargo", "cargo/", "PUT", "cargo/api/v1/crates/new", "secret"),
    Case("maven", "maven/", "PUT", "maven/releasekit"),
]


def ask(
    root: Path,
    case: Case,
    owner: str,
    answer: httpx.Response,
    *,
    login: bool = True,
    proving: bool = True,
    api: str = "",
    version: httpx.Response = GITEA,
) -> tuple[RightsFound, list[httpx.Request]]:
    """The requests that are no reads."""
    written: list[httpx.Request] = []
    asked: list[httpx.Request] = []

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/config.json"):
            return httpx.Response(200, json={"dl": "x", "api": api or f"{owner}/cargo"})
        if request.url.path == "/git/api/v1/version":
            is_private = version.status_code == 403
            assert ("Authorization" in request.headers) is (is_private and bool(asked))
            asked.append(request)
            return GITEA if is_private and len(asked) > 1 else version
        if request.method == "GET":
            return httpx.Response(404)
        written.append(request)
        return answer

    name = case.ecosystem
    place = f"{'sparse+' if name == 'cargo' else ''}{owner}/{case.place}"
    secret = f"RELEASEKIT_{name.upper()}_{'PASSWORD' if name == 'maven' else 'TOKEN'}"
    config = fakes.config(
        root,
        registries=fakes.registries(**{name: place}),
        ecosystem_inputs=(MavenInputs(username="me"), PyPIInputs(username="me")),
        max_retries=0,
        retry_base_delay=0.0,
    )

    async def main() -> RightsFound:
        taken = snapshot({secret: "secret"} if login else {})
        async with http_client(transport=httpx.MockTransport(serve)) as http:
            credentials = Credentials(taken, mask=lambda _: None)
            services = fakes.make_services(config, http, cast("Processes", Passing()), credentials)
            registry = discovery(ECOSYSTEMS[name], config, services).registry
            await registry.lookup(of(case, root))
            return await cast("Rights", registry).find_rights([of(case, root)], proving=proving)

    return asyncio.run(main()), written


def of(case: Case, root: Path) -> Package:
    name = "org.acme:acme" if case.ecosystem == "maven" else "acme"
    return Package(
        id=PackageId(case.ecosystem, name), version="1.0.0", directory=root, manifest=root / "m"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.ecosystem)
def test_gitea_is_asked_by_an_upload_of_nothing(tmp_path: Path, case: Case) -> None:
    """R1, R38: as real ones answer, which tests/forge tries."""
    refused = httpx.Response(401, text="reqPackageAccess: user should have specific permission")
    found, (request,) = ask(tmp_path, case, OURS, refused)
    assert (request.method, str(request.url)) == (case.method, f"{OURS}/{case.path}")
    assert request.headers["Authorization"] == case.login
    assert request.headers["Content-Length"] == "0"
    (error,) = found.denied.values()
    assert isinstance(error, Denied)
    assert "reqPackageAccess" in str(error)
    assert "a team that may write them" in error.hint
    unknown, _ = ask(tmp_path, case, OURS, httpx.Response(404))  # there is no such owner
    assert unknown.denied.keys() == found.denied.keys()
    private, _ = ask(tmp_path, case, OURS, refused, version=httpx.Response(403))
    assert private.denied.keys() == found.denied.keys()
    for status in (400, 500):
        assert ask(tmp_path, case, OURS, httpx.Response(status))[0] == RightsFound()
    with pytest.raises(Transient, match="HTTP 502"):
        ask(tmp_path, case, OURS, httpx.Response(502))
    assert ask(tmp_path, case, OURS, refused, proving=False) == (RightsFound(), [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.ecosystem)
def test_other_servers_are_not_asked_and_the_plan_says_so(tmp_path: Path, case: Case) -> None:
    """R68: they might store it."""
    refused = httpx.Response(401)
    others = (
        "https://git.example/acme",
        "https://git.example/api/packages",
        f"{OURS}/{case.place}",
    )
    told = [ask(tmp_path, case, owner, refused) for owner in others]
    told += [
        ask(tmp_path, case, OURS, refused, version=answer)
        for answer in (httpx.Response(404), httpx.Response(200), httpx.Response(200, json=[]))
    ]
    if case.ecosystem == "cargo":
        told.append(ask(tmp_path, case, OURS, refused, api="https://other.example/"))
    for found, written in told:
        assert not written
        assert found.note.startswith("git.example tells nobody what a token may do")
    assert ask(tmp_path, case, OURS, refused, login=False) == (RightsFound(), [])
