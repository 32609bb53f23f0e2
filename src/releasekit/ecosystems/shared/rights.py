"""Asks Gitea and Forgejo what a login may do, by an empty upload."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.preflight import RightsFound
from releasekit.ecosystems.shared.documents import text_in
from releasekit.ecosystems.shared.login import describe_untold
from releasekit.errors import Transient
from releasekit.http.origins import same_origin
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from releasekit.ecosystems.shared.server import RegistryClient
    from releasekit.model import Package

# Where the packages of one owner are. https://docs.gitea.com/usage/packages/overview
_PLACE: Final = re.compile(r"(?P<top>.*)/api/packages/[^/]+/(?:cargo|maven|npm|pypi)/?", re.DOTALL)


async def find_rights_at_gitea(
    server: RegistryClient,
    method: str,
    url: httpx.URL,
    headers: Mapping[str, str],
    packages: Sequence[Package],
    *,
    proving: bool,
) -> RightsFound:
    """All packages are denied where an empty upload is refused. Gitea looks at rights before it
    reads anything of an upload, and with them answers HTTP 400 or 500 and stores nothing. Other
    servers are not asked, as they may store it. Raises Transient.
    https://github.com/go-gitea/gitea/blob/v1.26.0/routers/api/packages/api.go (reqPackageAccess)
    """
    if not headers:
        return RightsFound()
    place = _PLACE.fullmatch(server.url.path) if same_origin(url, server.url) else None
    if place is None or not await _is_gitea(server, place["top"], headers):
        return RightsFound(note=describe_untold(server.url.host))
    if not proving:
        return RightsFound()

    async def attempt() -> None:
        response = await server.ask(
            partial(server.http.build_request, method, url, headers=headers)
        )
        if response.status_code in {401, 403, 404}:
            server.check(response, str(server.url), reading=False)
        if response.status_code in {429, 502, 503, 504} or response.is_redirect:
            raise Transient(f"{server.url}: HTTP {response.status_code}")

    return await RightsFound.of_attempt(attempt(), packages)


async def _is_gitea(server: RegistryClient, top: str, headers: Mapping[str, str]) -> bool:
    """https://docs.gitea.com/api/ (GET /version), which a private one tells those who log in."""
    url = server.url.copy_with(path=f"{top}/api/v1/version")
    response = await server.read(url)
    if response.status_code in {401, 403}:
        response = await server.read(url, headers)
    try:
        return response.is_success and bool(text_in(parse_json(response.content), "version"))
    except ValueError:
        return False
