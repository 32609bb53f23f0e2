"""What waits on an npm registry for a person's approval, as far as an identity may ask.

https://github.com/npm/api-documentation/tree/main/api/registry.npmjs.com: stage.yaml and
package-version-status.yaml
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm.submission import escaped
from releasekit.ecosystems.shared.documents import known_digest, text_in
from releasekit.errors import DigestMismatch, Rejected, Transient
from releasekit.problems import Problem
from releasekit.text.commands import spelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    import httpx

    from releasekit.ecosystems.shared.server import Server
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
_VISIBLE_LATER: Final = ("validating", "published")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A version that the registry has and does not show; what is empty, it does not say.

    `status` is "staged" of what waits for a person. Of what is listed nowhere it may be
    "validating" and "published", which becomes visible by itself, "blocked" and "deleted".
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

    def held_against(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Raises DigestMismatch where it is known to be other bytes than these."""
        algorithm, _, theirs = self.digest.partition(":")
        for artifact in artifacts:
            ours = artifact.digests.get(algorithm, theirs)
            if ours != theirs:
                raise DigestMismatch(
                    f"{package}: {algorithm} {theirs} waits for approval there, ours has {ours}",
                    hint="Somebody else staged it, or the build differs each time. If it must not "
                    f"be published, take it back with {spelled('reject')} or `npm stage reject "
                    f"{self.id or 'ID'}`, and run again; else bump the version.",
                )


def stage_id(document: object, key: str) -> str:
    """Empty for what is none, as it becomes a part of URLs and commands."""
    value = text_in(document, key).lower()
    return value if _UUID.fullmatch(value) else ""


async def waiting(server: Server, token: Secret, package: Package) -> Waiting | None:
    """None when the registry knows of nothing under this version. Raises Denied where whoever has
    this token may not ask.
    """
    headers = {"Authorization": f"Bearer {token.reveal()}", "Accept": "application/json"}
    found = await listed(server, package, lambda page: server.read(page, headers))
    return await _unlisted(server, headers, package) if found is None else _of(found)


async def listed(
    server: Server, package: Package, ask: Callable[[httpx.URL], Awaitable[httpx.Response]]
) -> dict[str, Any] | None:
    """What is staged under this version, in the registry's words; `ask` reads one page."""
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
            if _is_of(package, item):
                return item
        seen += len(items)
        # Pages may be shorter than asked for.
        if not items or (len(items) < _PER_PAGE and not (type(total) is int and seen < total)):
            return None
    raise Transient(f"{what} lists more than {_MAX_PAGES} pages", problem=Problem.STRANGE_ANSWER)


async def _unlisted(server: Server, headers: Mapping[str, str], package: Package) -> Waiting | None:
    """As what was approved, or published directly, and is still being looked through."""
    name = escaped(package.id.name)
    url = server.at(f"-/package/{name}/version/{package.version}/status")
    response = await server.read(url, headers)
    # 403 is for a package that it is not enabled for, 404 also where a registry cannot be asked.
    if response.status_code != 200:
        return None
    status = text_in(await server.document(response, f"{package}: {url}"), "status")
    known = {"staged", *_VISIBLE_LATER, *_DROPPED}
    return Waiting(status=status) if status in known else None


def _is_of(package: Package, item: dict[str, Any]) -> bool:
    named = text_in(item, "packageName"), text_in(item, "version")
    return named == (package.id.name, package.version)


def _of(item: dict[str, Any]) -> Waiting:
    return Waiting(
        id=stage_id(item, "id"),
        tag=text_in(item, "tag"),
        digest=known_digest("sha1", text_in(item, "shasum")),
    )
