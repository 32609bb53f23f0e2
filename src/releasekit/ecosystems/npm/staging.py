"""How npmjs.com, and servers that speak as it does, take a version that a person approves later.

https://docs.npmjs.com/staged-publishing and
https://github.com/npm/api-documentation/tree/main/api/registry.npmjs.com: stage.yaml
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm.answers import FIRST_VERSION, NO_STAGING, STAGE_ANSWERS, maybe_stored
from releasekit.ecosystems.npm.hidden import read_stage_id
from releasekit.ecosystems.shared.documents import text_in
from releasekit.errors import Rejected, Transient
from releasekit.model import SENT, Staged
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.npm.hidden import HiddenVersion
    from releasekit.ecosystems.npm.registry import NpmRegistry
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage

# The page of the person who is logged in, as https://www.npmjs.com/settings/~/tokens, which npm
# itself names: everybody who may approve has a list below the name of their account.
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
        found = await self._registry.find_hidden(package)
        if found is None or found.is_dropped:
            return None
        found.check_digest(package, artifacts)
        return self._describe(found)

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """A warning about tokens that npmjs.com may soon restrict to staging.

        Only the token of a login may ask which kind a token is, and whether it bypasses the second
        factor: https://github.com/npm/api-documentation, api/registry.npmjs.com/token.yaml.
        What ends: https://github.com/npm/cli/blob/latest/lib/commands/token.js and
        https://github.com/npm/documentation/pull/2036
        """
        sending = any(each.action in SENT for each in packages)
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
        response, tag = await self._registry.send_tarball(package, artifact, "stage")
        try:
            accepted = STAGE_ANSWERS.accept(response, str(package), redact=server.redact)
        except Rejected as error:
            # A 404 has several causes.
            if response.status_code in {404, 405} and self._registry.is_new(package.id):
                raise error.with_(hint=FIRST_VERSION) from error.__cause__
            if response.status_code in {404, 405} and not self._registry.is_npmjs:
                raise error.with_(hint=NO_STAGING) from error.__cause__
            raise
        if not accepted:
            with maybe_stored():
                return await self._resolve_conflict(package, artifact, response, tag)
        try:
            answer = parse_json(response.content)
        except ValueError:
            answer = None
        if not text_in(answer, "stageId"):
            # Servers without staging may answer any request so, and nothing looks it up again.
            raise Transient(
                f"{package}: HTTP {response.status_code}, which names no staged version",
                ambiguous=True,
                hint="" if self._registry.is_npmjs else NO_STAGING,
            )
        identifier = read_stage_id(answer, "stageId")
        return Staged(id=identifier, url=self._make_page_url(identifier), tag=tag)

    async def _resolve_conflict(
        self, package: Package, artifact: Artifact, response: httpx.Response, tag: str
    ) -> Staged:
        words = f"HTTP {response.status_code} {self._registry.server.words(response)}"
        if await self._registry.lookup(package) is not None:
            # Approved meanwhile, or never staged: the comparison of digests decides.
            raise Transient(f"{package}: {words}")
        found = await self._registry.check_hidden(package, artifact)
        if found is not None:
            return self._describe(found, tag)
        if response.status_code == 409 and "previously" not in words.lower():
            # Something else of the package was being saved.
            raise Transient(f"{package}: {words}")
        return Staged(url=self._make_page_url(""), tag=tag)

    def _describe(self, found: HiddenVersion, tag: str = "") -> Staged:
        return Staged(id=found.id, url=self._make_page_url(found.id), tag=found.tag or tag)

    def _make_page_url(self, identifier: str) -> str:
        if self._registry.is_npmjs:
            return _REVIEW
        return str(self._registry.server.at(f"-/stage/{identifier}" if identifier else "-/stage"))
