"""What a module proxy shows of a version. https://go.dev/ref/mod#goproxy-protocol"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.aio import gather_all
from releasekit.ecosystems.go import edit, module_zip, paths, release
from releasekit.ecosystems.shared.answers import Answers
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES, Server
from releasekit.errors import Rejected, Transient
from releasekit.http.client import MAX_RESPONSE_BYTES
from releasekit.http.origins import require_safe
from releasekit.problems import Problem

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.model import Package

OFFICIAL: Final = "https://proxy.golang.org/"
# Has the hashes of all that the official proxy serves, so that nothing is downloaded.
# https://go.dev/ref/mod#checksum-database
SUM_DB: Final = "https://sum.golang.org/"
# Two lines, and a signed tree. https://go.dev/ref/mod#checksum-database
_MAX_SUMS_BYTES: Final = 64 * 1024
# https://go.dev/ref/mod#go-sum-files
_HASH: Final = re.compile(r"h1:[A-Za-z0-9+/]{43}=")
ANSWERS: Final = Answers(
    reading="ReleaseKit sends no credentials to a module proxy: name one in "
    "`go-proxy` that needs none."
)


class Proxy:
    """One GOPROXY. A version is asked for only after its tag is pushed: proxies remember for up to
    half an hour that a version does not exist. https://proxy.golang.org
    """

    def __init__(self, url: str, config: Config, services: Services) -> None:
        self.url = f"{url.rstrip('/')}/"
        where = require_safe(self.url, name="go-proxy", insecure=config.insecure_hosts)
        self._server = Server(where, ANSWERS, config, services)

    async def digests_of(self, package: Package) -> dict[str, str]:
        """Digests by name of the files it has; the first request makes it fetch the version."""
        _, info, mod, zipped = release.filenames(package.version)
        answer = await self._get(self.address(package, info), package)
        if answer is None:
            return {}
        found = {info: f"version:{_version_in(answer, package)}"}
        if self.url == OFFICIAL:
            return found | await self._from_sum_db(package)
        mod_data, zip_data = await gather_all(
            (
                self._get(self.address(package, mod), package),
                self._get(self.address(package, zipped), package, max_bytes=MAX_FILE_BYTES),
            )
        )
        if mod_data is not None:
            found[mod] = module_zip.hash_of_mod(mod_data.content)
        if zip_data is not None:
            try:
                found[zipped] = await asyncio.to_thread(module_zip.hash_of_zip, zip_data.content)
            except ValueError as error:
                raise Rejected(f"{package}: {zip_data.url}: {error}") from error
        return found

    def address(self, package: Package, filename: str) -> str:
        path = paths.escape(package.id.name)
        return f"{self.url}{path}/@v/{paths.escape(filename)}"

    async def _from_sum_db(self, package: Package) -> dict[str, str]:
        version = package.version
        url = f"{SUM_DB}lookup/{paths.escape(package.id.name)}@{paths.escape(version)}"
        answer = await self._get(url, package, max_bytes=_MAX_SUMS_BYTES)
        # As UTF-8 whatever it declares: Python knows encodings that unpack, or take long.
        text = answer.content.decode("utf-8", "replace") if answer is not None else ""
        known = edit.known_sums(text).get((package.id.name, version))
        if known and not all(map(_HASH.fullmatch, (known.zip, known.mod))):
            raise Transient(
                f"{package}: {url}: not the hashes of a module", problem=Problem.STRANGE_ANSWER
            )
        _, _, mod, zipped = release.filenames(version)
        return {mod: known.mod, zipped: known.zip} if known else {}

    async def _get(
        self, url: str, package: Package, *, max_bytes: int = MAX_RESPONSE_BYTES
    ) -> httpx.Response | None:
        """None where it has nothing there: 404 and 410 say so."""
        response = await self._server.read(httpx.URL(url), max_bytes=max_bytes)
        if response.status_code in {404, 410}:
            return None
        return self._server.explain(response, f"{package}: {url}")


def _version_in(answer: httpx.Response, package: Package) -> str:
    try:
        return release.version_in(answer.content)
    except ValueError as error:
        raise Transient(
            f"{package}: {answer.url}: not what a module proxy says", problem=Problem.STRANGE_ANSWER
        ) from error
