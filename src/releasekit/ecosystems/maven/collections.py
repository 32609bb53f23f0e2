"""Collections of a WebDAV server, which takes no file into one that is not there."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePosixPath

    from releasekit.ecosystems.shared.server import Server

# 405 is the answer for what is there already. https://www.rfc-editor.org/rfc/rfc4918#section-9.3.1
_THERE: Final = frozenset({HTTPStatus.CREATED, HTTPStatus.OK, HTTPStatus.METHOD_NOT_ALLOWED})
# Servers that know no such method.
_UNKNOWN: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED})


async def make_collections(
    server: Server, directory: PurePosixPath, *, headers: Mapping[str, str], what: str
) -> bool:
    """Make what is missing of `directory`, below the server's own address; whether it may be there
    now: False from a server without WebDAV.

    Raises Transient, Denied or Rejected.
    """

    async def status_of(collection: PurePosixPath, *, orphaned: bool) -> int:
        # Some servers take a name without the slash for that of a file.
        url = server.at(f"{collection}/")
        response = await server.send(server.http.build_request("MKCOL", url, headers=headers))
        # 409 says that the one above is missing too.
        known = {*_THERE, *_UNKNOWN} | ({HTTPStatus.CONFLICT} if orphaned else set())
        if response.status_code not in known:
            server.explain(response, f"{what}: MKCOL {url}")
        return response.status_code

    *above, top = [directory, *directory.parents][: len(directory.parts)]
    missing = []
    for collection in above:
        status = await status_of(collection, orphaned=True)
        if status in _UNKNOWN:
            return False
        if status in _THERE:
            break
        missing.append(collection)
    else:
        missing.append(top)
    for collection in reversed(missing):
        if await status_of(collection, orphaned=False) in _UNKNOWN:
            return False
    return True
