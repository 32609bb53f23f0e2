"""An npm registry: one document with manifest and tarball goes in, and shows in the packument.

https://github.com/npm/registry/blob/main/docs/REGISTRY-API.md
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from releasekit.aio import uncancellable
from releasekit.ecosystems.npm import Inputs, document, login
from releasekit.ecosystems.npm.ecosystem import filename
from releasekit.ecosystems.npm.tarball import read_tarball
from releasekit.ecosystems.shared.answers import Answers
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.server import MAX_PAGE_BYTES, UPLOAD_TIMEOUT, Server
from releasekit.errors import Rejected, Transient
from releasekit.host import contents
from releasekit.http.origins import require_safe
from releasekit.model import Published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.npm.tarball import Contained
    from releasekit.model import Artifact, Package, PackageId

_EXISTS: Final = (
    # https://docs.npmjs.com/cli/commands/npm-publish
    (403, "publish over"),
    (403, "previously published"),
    # https://docs.gitlab.com/user/packages/npm_registry/#troubleshooting
    (403, "already exists"),
    (400, "already exists"),
    (400, "does not allow updating assets"),  # Nexus
    (403, "overwrite artifact"),  # Artifactory
)
_TOKEN: Final = "Check RELEASEKIT_NPM_TOKEN (input `npm-token`)"  # noqa: S105 (its name)
_BYPASS: Final = (
    "The account asks for a second factor: use a granular access token that may bypass it, or "
    "trusted publishing."
)
_PAYMENT: Final = (
    "A package with a scope is private unless told otherwise: set `npm-access: public`, or "
    "publishConfig.access in its package.json."
)
_HIDDEN: Final = (
    f"{_TOKEN}: npm answers 404 to those who may not publish the package. The scope has to exist, "
    "and `npm-registry` is the registry's root."
)
_BY_STATUS: Final = {
    401: f"{_TOKEN}: the registry does not know it, or it has expired.",
    402: _PAYMENT,
    403: f"{_TOKEN}: its owner may not publish this package, or the name is too close.",
    404: _HIDDEN,
}
ANSWERS: Final = Answers(
    exists=_EXISTS,
    hints={"one-time pass": _BYPASS, "two-factor": _BYPASS},
    by_status=_BY_STATUS,
    reading="The registry is for those with a token only, for a plan as well: give one that may "
    "read the package as RELEASEKIT_NPM_TOKEN (input `npm-token`).",
    denied=frozenset({404}),
    moved="npm-registry",
)


NPMJS: Final = "https://registry.npmjs.org/"
# A document cached on the way would hide a version that is there.
_FRESH: Final = {"Cache-Control": "no-cache", "Accept": "application/json"}
# Versions, tags and digests, and nothing else; servers that know no such form send everything.
# https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
ABBREVIATED: Final = {
    "Cache-Control": "no-cache",
    "Accept": "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8",
}


class NpmRegistry:
    """npmjs.com, or a server that speaks as it does. Implements `interface.Registry`."""

    def __init__(self, config: Config, services: Services) -> None:
        url = require_safe(config.registry_url("npm", default=NPMJS), name="npm-registry")
        self.url = str(url)
        self._config = config
        self._server = Server(url, ANSWERS, config, services)
        self._login = login.login_for(config, services, url)
        self.check_credentials = self._login.check
        self._unknown: set[str] = set()

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup found no package of that name."""
        return package.name in self._unknown

    async def lookup(self, package: Package) -> Published | None:
        response = await self._read(package, package.version, headers=_FRESH)
        if response.status_code == 200:
            entry: Any = await self._server.document(response, f"{package}: {response.request.url}")
        else:
            # Not every server can be asked for one version, and not every refusal is a no.
            packument = await self._packument(package)
            entry = table_in(packument, "versions").get(package.version)
            if not packument:
                self._unknown.add(package.id.name)
        if not isinstance(entry, dict):
            return None
        digest = document.digest_of(table_in(entry, "dist"))
        if not digest:
            raise Rejected(
                f"{package}: {self.url} shows it without a digest, so nobody can tell which "
                "bytes it holds"
            )
        return Published(files={filename(package): digest}, url=self._page_url(package))

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        for artifact in artifacts:
            await self._store(package, artifact)

    async def _store(self, package: Package, artifact: Artifact) -> None:
        token = await self._login.get(package)
        contained = await uncancellable(asyncio.to_thread(_contained, package, artifact))
        tag = await self._tag(package, contained.manifest)
        tarball = str(
            self._server.at(f"{package.id.name}/-/{package.id.name}-{package.version}.tgz")
        )
        entry = document.version_entry(
            package, contained, tarball=tarball, digests=artifact.digests
        )
        access = self._config.own(Inputs).access or _access(contained.manifest)
        body = await uncancellable(
            asyncio.to_thread(_body, package, entry, artifact, tag=tag, access=access)
        )
        request = self._server.http.build_request(
            "PUT",
            self._server.at(escaped(package.id.name)),
            content=body,
            headers={
                "Authorization": f"Bearer {token.reveal()}",
                "Content-Type": "application/json",
                "Accept": "*/*",
                "npm-command": "publish",
            },
            timeout=UPLOAD_TIMEOUT,
        )
        response = await self._server.send(request)
        if response.status_code == 409:
            await self._conflict(package, response)
        else:
            self._server.accept(response, str(package))

    async def _tag(self, package: Package, manifest: Mapping[str, Any]) -> str:
        given = document.given_tag(self._config.own(Inputs).tag, manifest, where=str(package))
        if given:
            return given
        try:
            packument = await self._packument(package)
        except Transient as error:
            # Whatever became of this question, nothing was uploaded.
            error.ambiguous = False
            raise
        latest = str(table_in(packument, "dist-tags").get(document.LATEST, ""))
        return document.choose_tag(package.version, latest=latest)

    async def _conflict(self, package: Package, response: httpx.Response) -> None:
        """409 is no proof: npmjs answers so while it saves something else of the package, and
        verdaccio where a refused upload has left its tarball behind.
        """
        if await self.lookup(package) is None:
            words = self._server.words(response)
            raise Transient(f"{package}: HTTP 409 {words}", ambiguous=True)

    async def _packument(self, package: Package) -> Mapping[str, Any]:
        """Empty when there is no such package."""
        response = await self._read(package, headers=ABBREVIATED)
        if response.status_code == 404:
            return {}
        what = f"{package}: {response.request.url}"
        self._server.explain(response, what)
        try:
            return await asyncio.to_thread(document.packument_of, response.content, package.version)
        except ValueError as error:
            raise Transient(f"{what}: not a packument ({error})") from error

    async def _read(
        self, package: Package, *path: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        sent = dict(headers)
        token = self._login.for_reading()
        if token is not None:
            sent["Authorization"] = f"Bearer {token.reveal()}"
        url = self._server.at("/".join([escaped(package.id.name), *path]))
        return await self._server.read(url, sent, max_bytes=MAX_PAGE_BYTES)

    def _page_url(self, package: Package) -> str:
        if self._server.url.host == "registry.npmjs.org":
            return f"https://www.npmjs.com/package/{package.id.name}/v/{package.version}"
        return str(self._server.at(package.id.name))


def escaped(name: str) -> str:
    """As it stands in a URL: one segment, `@` as it is."""
    return name.replace("/", "%2f")


def _contained(package: Package, artifact: Artifact) -> Contained:
    with contents.opened(artifact) as file, file.raw() as raw:
        return read_tarball(raw, f"{package}: {artifact.filename}")


def _body(
    package: Package, entry: Mapping[str, Any], artifact: Artifact, *, tag: str, access: str
) -> bytes:
    with contents.opened(artifact) as file:
        return document.request_body(package, entry, file.read(), tag=tag, access=access)


def _access(manifest: Mapping[str, Any]) -> str:
    access = table_in(manifest, "publishConfig").get("access")
    return access if access in {"public", "restricted"} else ""
