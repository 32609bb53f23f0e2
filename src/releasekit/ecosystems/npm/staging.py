"""How npmjs.com, and servers that speak as it does, take a version that a person approves later.

https://docs.npmjs.com/staged-publishing and
https://github.com/npm/api-documentation/tree/main/api/registry.npmjs.com: stage.yaml and
package-version-status.yaml
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.ecosystems.npm.answers import FIRST_VERSION, NO_STAGING, STAGE_ANSWERS, maybe_stored
from releasekit.ecosystems.npm.document import escape
from releasekit.ecosystems.npm.login import authorize
from releasekit.ecosystems.shared.documents import known_digest, text_in
from releasekit.errors import DigestMismatch, Rejected, Transient
from releasekit.model import SENT, Staged
from releasekit.problems import Problem
from releasekit.text.commands import spell
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    import httpx

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.npm.registry import NpmRegistry
    from releasekit.ecosystems.shared.server import RegistryClient
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage

# The page of the person who is logged in, as https://www.npmjs.com/settings/~/tokens, which npm
# itself names: everybody who may approve has a list below the name of their account.
# https://github.com/lerna-lite/lerna-lite/pull/1399
_REVIEW: Final = "https://www.npmjs.com/settings/~/staged-packages"
_PER_PAGE: Final = 100
_MAX_PAGES: Final = 100
_DROPPED: Final = {
    "blocked": "it did not pass the registry's automated validation",
    "deleted": "it was published, and removed",
}
# What a row says once a person has decided; until then "validating" or "staged".
DECIDED: Final = frozenset({"approved", "published", "rejected"})
_KNOWN: Final = frozenset({"staged", "validating", "published", *_DROPPED})
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class HiddenVersion(Struct, frozen=True, kw_only=True):
    """A version that the registry has and does not show. Fields that it does not tell are empty.

    `status` is "staged" where a version waits for a person. For one that no list shows it may also
    be "validating" or "published", which becomes visible later, "blocked" or "deleted".
    """

    id: str = ""
    tag: str = ""
    digest: str = ""
    status: str = "staged"

    @property
    def is_dropped(self) -> bool:
        return self.status in _DROPPED

    def refuse_dropped(self, package: Package, url: str) -> None:
        """Raises Rejected."""
        if self.is_dropped:
            raise Rejected(
                f"{package}: {url} has this version, and it is {self.status}: "
                f"{_DROPPED[self.status]}",
                hint="Bump the version: the registry takes none twice.",
                problem=Problem.VERSION_GONE,
            )

    def check_digest(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Raises DigestMismatch where it is known to hold other bytes than these."""
        algorithm, _, theirs = self.digest.partition(":")
        for artifact in artifacts:
            ours = artifact.digests.get(algorithm, theirs)
            if ours != theirs:
                raise DigestMismatch(
                    f"{package}: {algorithm} {theirs} waits for approval there, ours has {ours}",
                    hint="Somebody else staged it, or the build differs each time. If it must not "
                    f"be published, take it back with {spell('reject')} or `npm stage reject "
                    f"{self.id or 'ID'}`, and run again; else bump the version.",
                )


def read_stage_id(document: object, key: str) -> str:
    """Empty for a text that is not an id, since it becomes a part of URLs and commands."""
    value = text_in(document, key).lower()
    return value if _UUID.fullmatch(value) else ""


async def find_hidden(
    server: RegistryClient, token: Secret, package: Package
) -> HiddenVersion | None:
    """None when the registry has nothing under this version. Raises Denied where the owner of this
    token may not ask.
    """
    headers = {**authorize(token), "Accept": "application/json"}
    row = await find_staged(server, package, lambda page: server.read(page, headers))
    if row is not None:
        return HiddenVersion(
            id=read_stage_id(row, "id"),
            tag=text_in(row, "tag"),
            digest=known_digest("sha1", text_in(row, "shasum")),
        )
    # A version that was approved, or published directly, and is still being scanned.
    name = escape(package.id.name)
    url = server.at(f"-/package/{name}/version/{package.version}/status")
    response = await server.read(url, headers)
    # 403 is for a package that it is not enabled for, 404 also where a registry cannot be asked.
    if response.status_code != 200:
        return None
    status = text_in(await server.document(response, f"{package}: {url}"), "status")
    return HiddenVersion(status=status) if status in _KNOWN else None


async def find_staged(
    server: RegistryClient, package: Package, ask: Callable[[httpx.URL], Awaitable[httpx.Response]]
) -> dict[str, Any] | None:
    """The row of what is staged under this version, in the registry's words; `ask` reads a page."""
    url = server.at("-/stage").copy_merge_params({"package": package.id.name})
    what, seen = f"{package}: {server.at('-/stage')}", 0
    for page in range(_MAX_PAGES):
        asked = url.copy_merge_params({"page": str(page), "perPage": str(_PER_PAGE)})
        document = await server.document(await ask(asked), what)
        items, total = document.get("items"), document.get("total")
        if not isinstance(items, list):
            raise Transient(f"{what}: not a list of what is staged", problem=Problem.STRANGE_ANSWER)
        for item in items:
            if not isinstance(item, dict) or text_in(item, "status") in DECIDED:
                continue
            named = text_in(item, "packageName"), text_in(item, "version")
            if named == (package.id.name, package.version):
                return item
        seen += len(items)
        # Pages may be shorter than asked for.
        if not items or (len(items) < _PER_PAGE and not (type(total) is int and seen < total)):
            return None
    raise Transient(f"{what} lists more than {_MAX_PAGES} pages", problem=Problem.STRANGE_ANSWER)


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
