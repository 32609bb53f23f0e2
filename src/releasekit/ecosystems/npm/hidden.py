"""Versions that npmjs.com, and servers that speak as it does, have and do not show.

https://github.com/npm/api-documentation/tree/main/api/registry.npmjs.com: stage.yaml and
package-version-status.yaml
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.ecosystems.npm.document import escape
from releasekit.ecosystems.npm.login import authorize
from releasekit.ecosystems.shared.documents import known_digest, text_in
from releasekit.errors import DigestMismatch, Rejected, Transient
from releasekit.problems import Problem
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import httpx

    from releasekit.ecosystems.shared.server import RegistryClient
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package

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
