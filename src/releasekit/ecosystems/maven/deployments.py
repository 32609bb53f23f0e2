"""The deployments of one account at the Central Portal: upload, state, publish, drop.

https://central.sonatype.org/publish/publish-portal-api/
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

import httpx

from releasekit.ecosystems.maven.repository import ANSWERS, make_login
from releasekit.ecosystems.shared.server import RegistryClient
from releasekit.errors import Rejected, Transient
from releasekit.http.client import one_line
from releasekit.http.origins import require_safe
from releasekit.problems import Problem

if TYPE_CHECKING:
    from releasekit.config.values import Url
    from releasekit.ecosystems.interface import Services

_UPLOAD_TIMEOUT: Final = httpx.Timeout(60.0, connect=15.0, read=600.0, pool=None)
# UUIDs; as a part of an address they cannot lead elsewhere.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
# Undocumented words of the portal, as users quote them: "Component with coordinate 'g:a:1.0' is
# currently being published in another deployment (ID)".
_ELSEWHERE: Final = re.compile(r"in another deployment \(([A-Za-z0-9_-]{1,100})\)")

State = Literal["PENDING", "VALIDATING", "VALIDATED", "PUBLISHING", "PUBLISHED", "FAILED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentStatus:
    """`words` are the portal's errors, and `elsewhere` the ids of the deployments that already have
    the same versions. `components` are the names and versions in this deployment; the portal knows
    them once it has validated it.
    """

    state: State
    name: str = ""
    words: str = ""
    elsewhere: frozenset[str] = frozenset()
    components: frozenset[tuple[str, str]] = frozenset()


class Deployments:
    """The portal answers for the deployments of the account whose credentials it gets."""

    def __init__(self, registry: Url, username: str, services: Services) -> None:
        url = require_safe(registry.text, name="maven-registry", insecure=services.insecure)
        self.server = RegistryClient(url, ANSWERS, services)
        self.url = str(self.server.url)
        self.login = make_login(username, services.credentials, registry)
        self._redact = services.credentials.redact

    @property
    def page(self) -> str:
        """The page where a person sees, publishes and drops deployments."""
        return str(self.server.at("publishing/deployments"))

    async def upload(self, bundle: IO[bytes], name: str, *, automatic: bool, what: str) -> str:
        """The id of the new deployment, after one attempt."""
        request = self.server.http.build_request(
            "POST",
            self._endpoint("upload"),
            params={"name": name, "publishingType": "AUTOMATIC" if automatic else "USER_MANAGED"},
            files={"bundle": ("bundle.zip", bundle, "application/octet-stream")},
            headers=self.header,
            timeout=_UPLOAD_TIMEOUT,
        )
        response = await self.server.send(request)
        if not self.server.accept(response, what):
            raise Rejected(f"{what}: HTTP {response.status_code}")
        identifier = response.content[:1000].decode("utf-8", "replace").strip()
        if not is_deployment_id(identifier):
            raise Transient(
                f"{what}: {self.url} gave it no usable id",
                ambiguous=True,
                problem=Problem.STRANGE_ANSWER,
            )
        return identifier

    async def status(self, identifier: str) -> DeploymentStatus | None:
        """None for a deployment that the account does not have."""
        url = self._endpoint("status").copy_with(params={"id": identifier})
        response = await self.server.read(url, self.header, method="POST")
        if response.status_code == 404:
            return None
        answer = await self.server.document(response, f"deployment {identifier}")
        state = answer.get("deploymentState")
        match state:
            case None:
                return None
            case "PENDING" | "VALIDATING" | "VALIDATED" | "PUBLISHING" | "PUBLISHED" | "FAILED":
                said = _error_text(answer.get("errors"))
                return DeploymentStatus(
                    state=state,
                    name=str(answer.get("deploymentName")),
                    words=one_line(self._redact(said), 600),
                    elsewhere=frozenset(_ELSEWHERE.findall(said)),
                    components=_parse_components(answer),
                )
            case _:
                shown = one_line(str(state), 100)
                raise Transient(
                    f"{self.url}: deployment {identifier} is in state {shown!r}",
                    problem=Problem.STRANGE_ANSWER,
                )

    async def publish(self, identifier: str) -> None:
        """Ask once for the publication of a deployment that is VALIDATED."""
        response = await self._send("POST", identifier)
        self.server.explain(response, f"publishing deployment {identifier}", reading=False)

    async def drop(self, identifier: str) -> None:
        """Drop a deployment that is VALIDATED or FAILED, unless it is gone."""
        response = await self._send("DELETE", identifier)
        if response.status_code != 404:
            self.server.explain(response, f"dropping deployment {identifier}", reading=False)

    def address_of(self, identifier: str, path: str) -> httpx.URL:
        """The URL of a file in a deployment; `header` reads it once that is VALIDATED.

        https://central.sonatype.org/publish/publish-portal-api/#manually-testing-a-deployment-bundle
        """
        return self._endpoint(f"deployment/{identifier}/download/{path}")

    @property
    def header(self) -> dict[str, str]:
        return self.login.header("Bearer")

    async def _send(self, method: str, identifier: str) -> httpx.Response:
        request = self.server.http.build_request(
            method, self._endpoint(f"deployment/{identifier}"), headers=self.header
        )
        return await self.server.send(request)

    def _endpoint(self, path: str) -> httpx.URL:
        return self.server.at(f"api/v1/publisher/{path}")


def is_deployment_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _error_text(errors: object) -> str:
    found = errors.items() if isinstance(errors, dict) else ()
    return "; ".join(
        f"{purl}: {', '.join(map(str, said)) if isinstance(said, list) else said}"
        for purl, said in found
    )


def _parse_components(answer: dict[str, Any]) -> frozenset[tuple[str, str]]:
    """Names and versions in package URLs, such as pkg:maven/org.example/core@1.0?type=pom.

    https://github.com/package-url/purl-spec/blob/main/types-doc/maven-definition.md
    """
    purls = answer.get("purls")
    found = set()
    for purl in purls if isinstance(purls, list) else ():
        path = str(purl).removeprefix("pkg:maven/").partition("#")[0].partition("?")[0]
        name, _, version = path.rpartition("@")
        group, _, artifact = name.rpartition("/")
        found.add((f"{unquote(group)}:{unquote(artifact)}", unquote(version)))
    return frozenset(found)
