"""How npmjs.com, and servers that speak as it does, take a version that a person approves later.

https://docs.npmjs.com/staged-publishing and
https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/stage.yaml
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm.answers import (
    FIRST_VERSION,
    NO_STAGING,
    STAGE_ANSWERS,
    stored_perhaps,
)
from releasekit.ecosystems.npm.waiting import stage_id
from releasekit.ecosystems.shared.documents import text_in
from releasekit.errors import Denied, Rejected, Transient
from releasekit.model import Action, Staged
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.npm.registry import NpmRegistry
    from releasekit.ecosystems.npm.waiting import Waiting
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage

# Of whoever is logged in, as in https://www.npmjs.com/settings/~/tokens, which npm itself names:
# everybody who may approve has a list of their own, below the name of their account.
# https://github.com/lerna-lite/lerna-lite/pull/1399
_REVIEW: Final = "https://www.npmjs.com/settings/~/staged-packages"


class NpmStaging:
    """Implements `interface.Staging`."""

    def __init__(self, registry: NpmRegistry, mode: StageMode) -> None:
        self.mode: StageMode = mode
        self._registry = registry

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        return {
            package.id: await self._stage(package, artifact)
            for package, artifacts in release.items()
            for artifact in artifacts
        }

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        found = await self._registry.waiting(package)
        if found is None or found.is_dropped:
            return None
        found.held_against(package, artifacts)
        return self._at(found)

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """What a plan says of a token that npmjs.com may soon let do no more than stage.

        Which kind of token it is, and whether it bypasses the second factor, only tokens of a
        login may ask: https://github.com/npm/api-documentation, api/registry.npmjs.com/token.yaml.
        What ends: https://github.com/npm/cli/blob/latest/lib/commands/token.js and
        https://github.com/npm/documentation/pull/2036
        """
        sending = any(each.action in {Action.PUBLISH, Action.UPLOAD} for each in packages)
        registry = self._registry
        if self.mode == "always" or not (sending and registry.is_npmjs and registry.has_token):
            return ""
        return (
            "npm: from January 2027 on, npmjs.com takes no version directly from a token that "
            "bypasses the second factor. Use trusted publishing, or `stage: always` and a person's "
            "approval"
        )

    async def _stage(self, package: Package, artifact: Artifact) -> Staged:
        server = self._registry.server
        response, tag = await self._registry.send(package, artifact, "stage")
        try:
            accepted = STAGE_ANSWERS.accept(response, str(package), redact=server.redact)
        except Rejected as error:
            error.hint = self._hint(package, response) or error.hint
            raise
        if not accepted:
            with stored_perhaps():
                return await self._there_already(package, artifact, response, tag)
        try:
            answer = parse_json(response.content)
        except ValueError:
            answer = None
        if not text_in(answer, "stageId"):
            # Servers that know no staging may answer so to anything, and nobody asks again.
            raise Transient(
                f"{package}: HTTP {response.status_code}, which names no staged version",
                ambiguous=True,
                hint="" if self._registry.is_npmjs else NO_STAGING,
            )
        identifier = stage_id(answer, "stageId")
        return Staged(id=identifier, url=self._url(identifier), tag=tag)

    async def _there_already(
        self, package: Package, artifact: Artifact, response: httpx.Response, tag: str
    ) -> Staged:
        words = f"HTTP {response.status_code} {self._registry.server.words(response)}"
        if await self._registry.lookup(package) is not None:
            # Approved meanwhile, or never staged: whoever compares digests decides.
            raise Transient(f"{package}: {words}")
        try:
            found = await self._registry.waiting(package)
        except Denied:
            found = None
        if found is not None:
            found.refuse_dropped(package, self._registry.url)
            found.held_against(package, [artifact])
            return self._at(found, tag)
        if response.status_code == 409 and "previously" not in words.lower():
            # Something else of the package was being saved.
            raise Transient(f"{package}: {words}")
        return Staged(url=self._url(""), tag=tag)

    def _hint(self, package: Package, response: httpx.Response) -> str:
        """Of a 404, which has several causes; empty where there is nothing to add."""
        if response.status_code not in {404, 405}:
            return ""
        if self._registry.is_new(package.id):
            return FIRST_VERSION
        return "" if self._registry.is_npmjs else NO_STAGING

    def _at(self, found: Waiting, tag: str = "") -> Staged:
        return Staged(id=found.id, url=self._url(found.id), tag=found.tag or tag)

    def _url(self, identifier: str) -> str:
        if self._registry.is_npmjs:
            return _REVIEW
        return str(self._registry.server.at(f"-/stage/{identifier}" if identifier else "-/stage"))
