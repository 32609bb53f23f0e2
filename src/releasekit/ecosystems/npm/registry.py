"""An npm registry: one document with manifest and tarball goes in, and shows in the packument.

https://github.com/npm/registry/blob/main/docs/REGISTRY-API.md
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from releasekit.ecosystems.npm import Inputs, document
from releasekit.ecosystems.npm.answers import (
    ANSWERS,
    NPMJS_HOST,
    STAGES_ONLY,
    WAITS,
    is_for_stage_only_token,
    is_held_already,
    may_only_stage,
    stored_perhaps,
)
from releasekit.ecosystems.npm.document import REUSED_FOR_S, Packument, escaped, is_aged
from releasekit.ecosystems.npm.login import login_for
from releasekit.ecosystems.npm.staging import waiting
from releasekit.ecosystems.npm.tarball import filename
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.login import Given
from releasekit.ecosystems.shared.semver import Version
from releasekit.ecosystems.shared.server import MAX_PAGE_BYTES, Server
from releasekit.errors import Denied, PackageError, Rejected, StageOnly, Transient
from releasekit.http.origins import require_safe
from releasekit.model import Published
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.npm.document import Command
    from releasekit.ecosystems.npm.staging import HiddenVersion
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage

NPMJS: Final = f"https://{NPMJS_HOST}/"
# A document cached on the way would hide a version that is there.
_FRESH: Final = {"Cache-Control": "no-cache", "Accept": "application/json"}
# Versions, tags and digests, and nothing else; servers that know no such form send everything.
# https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
ABBREVIATED: Final = {
    "Cache-Control": "no-cache",
    "Accept": "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8",
}


class Sent(NamedTuple):
    """`tag` is the dist-tag that went along."""

    response: httpx.Response
    tag: str


class NpmRegistry:
    """npmjs.com, or a server that speaks as it does. Implements `interface.Registry`."""

    def __init__(self, config: Config, services: Services) -> None:
        goes_to = config.registry_url("npm", default=NPMJS)
        url = require_safe(goes_to.text, name="npm-registry", insecure=config.insecure_hosts)
        self.url = str(url)
        self._config = config
        self.server = Server(url, ANSWERS, config, services)
        self._login = login_for(config, services, goes_to)
        self.check_credentials = self._login.check
        # The last packument of each package.
        self._asked: dict[str, Packument] = {}
        # What the registry said when it refused to let this token publish.
        self._stage_only = ""
        # The dist-tag of each package whose upload was refused.
        self._refused: dict[str, str] = {}

    @property
    def is_npmjs(self) -> bool:
        return self.server.url.host == NPMJS_HOST

    @property
    def access(self) -> str:
        """What the user says of who may see packages; empty for nothing."""
        return self._config.own(Inputs).access

    def is_shown_to_all(self, package: PackageId) -> bool:
        """Whether the last lookup, made without a token, found a package of that name."""
        known = self._asked.get(package.name)
        return known is not None and known.exists and self._login.for_reading() is None

    @property
    def has_token(self) -> bool:
        """Whether uploads depend on a token that was given, rather than on what this job is."""
        return isinstance(self._login, Given)

    def plan_notes(self, _packages: Sequence[PlannedPackage]) -> str:
        """Whose token goes along where no input gave one."""
        source = self._login.source if isinstance(self._login, Given) else ""
        return f"npm: the token for {self.url} is that of {source}" if source else ""

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup found no package of that name."""
        known = self._asked.get(package.name)
        return known is not None and not known.exists

    async def lookup(self, package: Package) -> Published | None:
        """At first, for a plan, by the packument, which tells all that a plan wants to know; from
        then on by the document of the version, which stays small and is there as early.
        """
        entry = await (self._seen if package.id.name in self._asked else self._seen_first)(package)
        if not isinstance(entry, dict):
            return None
        digest = document.digest_of(table_in(entry, "dist"))
        if not digest:
            raise Rejected(
                f"{package}: {self.url} shows it without a digest, so nobody can tell which "
                "bytes it holds",
                problem=Problem.STRANGE_ANSWER,
            )
        found = Published(files={filename(package): digest}, url=self._page_url(package))
        tag = self._refused.get(package.id.name)
        return replace(found, lacks=await self._lacks(package, tag)) if tag else found

    async def _lacks(self, package: Package, tag: str) -> str:
        """What the refusal of an upload has left out: a registry may store, then refuse the tag."""
        try:
            known = await self._packument(package)
        except PackageError:
            return ""  # the refusal itself is told anyway
        if tag in known.tags:
            return ""
        add = f"npm dist-tag add {package.id.name}@{package.version} {tag}"
        return f"there is no dist-tag {tag} (`{add}` makes it)"

    async def _seen_first(self, package: Package) -> object:
        try:
            packument = await self._packument(package)
        except Rejected:
            # One that is too large, for instance.
            if found := await self._version(package):
                return found
            raise
        entry = packument.entries.get(package.version)
        # What a cache on the way has kept may be older than the version.
        return await self._version(package) if entry is None and packument.aged else entry

    async def _seen(self, package: Package) -> object:
        found = await self._version(package)
        # Not every server can be asked for one version, and not every refusal is a no.
        return found or (await self._packument(package)).entries.get(package.version)

    async def _version(self, package: Package) -> object:
        """None for every answer but a success."""
        response = await self._read(package, package.version, headers=_FRESH)
        if response.status_code != 200:
            return None
        return await self.server.document(response, f"{package}: {response.request.url}")

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        for artifact in artifacts:
            await self._store(package, artifact)

    async def _store(self, package: Package, artifact: Artifact) -> None:
        if self._stage_only:
            raise StageOnly(f"{package}: {self._stage_only}", hint=STAGES_ONLY)
        response, tag = await self.send(package, artifact, "publish")
        words = self.server.words(response)
        if response.status_code in {403, 409} and is_held_already(words):
            with stored_perhaps():
                await self._held(package, artifact, words)
        elif response.status_code == 409:
            with stored_perhaps():
                await self._conflict(package, words)
        else:
            try:
                self.server.accept(response, str(package))
            except Rejected as error:
                if isinstance(error, Denied) and may_only_stage(response, package.id.name):
                    raise self._stage_only_for(package, response, error) from error
                self._refused[package.id.name] = tag
                raise

    async def send(self, package: Package, artifact: Artifact, command: Command) -> Sent:
        """Whatever the registry answers."""
        token = await self._login.get(package)
        contained = await document.contained_in(artifact, package)
        tag = await self._tag(package, contained.manifest)
        request = await document.request(
            self.server,
            package,
            artifact,
            contained,
            command=command,
            token=token,
            tag=tag,
            access=self.access,
        )
        return Sent(await self.server.send(request), tag)

    async def waiting(self, package: Package) -> HiddenVersion | None:
        """What waits for approval under this version. Raises Denied where the identity of this run
        may not ask.
        """
        token = self._login.for_reading()
        if token is None:
            # https://docs.npmjs.com/trusted-publishers#limitations-and-future-improvements
            raise Denied(
                f"{package}: there is no token to ask {self.url} what is staged; trusted "
                "publishing may stage, and not ask"
            )
        return await waiting(self.server, token, package)

    def _stage_only_for(
        self, package: Package, response: httpx.Response, error: Denied
    ) -> StageOnly:
        hint = error.hint
        if is_for_stage_only_token(response, package.id.name):
            hint = STAGES_ONLY
            if self.has_token:
                # Another package need not be sent to hear the same.
                words = self.server.words(response)
                self._stage_only = f"HTTP {response.status_code} {words}".rstrip()
        return StageOnly(str(error), hint=hint)

    async def _held(self, package: Package, artifact: Artifact, words: str) -> None:
        """The registry has bytes of this version. Those that are published and still looked through
        are not staged, and become visible by themselves: they are accepted, though not where that
        is enough for what needs them, unless it is known.
        """
        if await self.lookup(package) is not None:
            return
        try:
            found = await self.waiting(package)
        except Denied:
            found = None
        if found is not None:
            found.refuse_dropped(package, self.url)
            found.held_against(package, [artifact])
            if found.status == "staged":
                raise StageOnly(f"{package}: {words}", hint=WAITS)
        elif self._config.gate == "accepted":
            raise Transient(f"{package}: {words}")

    async def _tag(self, package: Package, manifest: Mapping[str, Any]) -> str:
        given = document.given_tag(self._config.own(Inputs).tag, manifest, where=str(package))
        if given:
            return given
        if Version.parse(package.version).pre:
            return document.choose_tag(package.version, latest="")
        known = self._asked.get(package.id.name)
        if known is None or asyncio.get_running_loop().time() - known.asked_s > REUSED_FOR_S:
            try:
                known = await self._packument(package, known)
            except Transient as error:
                # Whatever became of this question, nothing was uploaded.
                error.ambiguous = False
                raise
        return document.choose_tag(package.version, latest=known.latest)

    async def _conflict(self, package: Package, words: str) -> None:
        """409 is no proof: npmjs answers so while it saves something else of the package, and
        verdaccio where a refused upload has left its tarball behind.
        """
        if await self.lookup(package) is None:
            raise Transient(f"{package}: HTTP 409 {words}")

    async def _packument(self, package: Package, known: Packument | None = None) -> Packument:
        """`known` may still be the truth, which takes fewer bytes to hear."""
        asked_s = asyncio.get_running_loop().time()
        unless = {"If-None-Match": known.etag} if known and known.etag else {}
        response = await self._read(package, headers={**ABBREVIATED, **unless})
        if response.status_code == 304 and known and unless:
            found = replace(known, asked_s=asked_s)
        elif response.status_code == 404:
            found = Packument(asked_s=asked_s, aged=is_aged(response))
        else:
            what = f"{package}: {response.request.url}"
            self.server.explain(response, what)
            parse = partial(Packument.from_response, response, package.version, asked_s=asked_s)
            try:
                found = await asyncio.to_thread(parse)
            except ValueError as error:
                raise Transient(
                    f"{what}: not a packument ({error})", problem=Problem.STRANGE_ANSWER
                ) from error
        self._asked[package.id.name] = found
        return found

    async def _read(
        self, package: Package, *path: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        sent = dict(headers)
        token = self._login.for_reading()
        if token is not None:
            sent["Authorization"] = f"Bearer {token.reveal()}"
        url = self.server.at("/".join([escaped(package.id.name), *path]))
        return await self.server.read(url, sent, max_bytes=MAX_PAGE_BYTES)

    def _page_url(self, package: Package) -> str:
        if self.is_npmjs:
            return f"https://www.npmjs.com/package/{package.id.name}/v/{package.version}"
        return str(self.server.at(package.id.name))
