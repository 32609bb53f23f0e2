"""What a module proxy shows of a version, over HTTP or as plain files.

https://go.dev/ref/mod#goproxy-protocol
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.aio import gather_all
from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.go import gomod, module_zip, paths, release
from releasekit.ecosystems.go.paths import parse_version
from releasekit.ecosystems.shared.answers import ResponseRules
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES, RegistryClient
from releasekit.errors import Rejected, Transient
from releasekit.host import durable
from releasekit.http.client import MAX_RESPONSE_BYTES
from releasekit.http.origins import require_safe
from releasekit.model import Published
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.ecosystems.interface import Services
    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


OFFICIAL: Final = "https://proxy.golang.org/"
# Has the hashes of all that the official proxy serves, so that nothing is downloaded.
# https://go.dev/ref/mod#checksum-database
SUM_DB: Final = "https://sum.golang.org/"
# Two lines, and a signed tree. https://go.dev/ref/mod#checksum-database
_MAX_SUMS_BYTES: Final = 64 * 1024
# https://go.dev/ref/mod#go-sum-files
_HASH: Final = re.compile(r"h1:[A-Za-z0-9+/]{43}=")
ANSWERS: Final = ResponseRules(
    reading="ReleaseKit sends no credentials to a module proxy: name one in "
    "`go-proxy` that needs none."
)


class ModuleProxy:
    """One GOPROXY. It is asked for a version only after the tag is pushed: proxies remember for up
    to half an hour that a version does not exist. https://proxy.golang.org
    """

    def __init__(self, url: str, services: Services) -> None:
        self.url = f"{url.rstrip('/')}/"
        where = require_safe(self.url, name="go-proxy", insecure=services.insecure)
        self._server = RegistryClient(where, ANSWERS, services)

    async def read_digests(self, package: Package) -> dict[str, str]:
        """Digests of its files by name; the first request makes the proxy fetch the version."""
        _, info, mod, zipped = release.filenames(package.version)
        answer = await self._get(self.address(package, info), package)
        if answer is None:
            return {}
        try:
            version = release.read_version_in(answer.content)
        except ValueError as error:
            raise Transient(
                f"{package}: {answer.url}: not what a module proxy says",
                problem=Problem.STRANGE_ANSWER,
            ) from error
        found = {info: f"version:{version}"}
        if self.url == OFFICIAL:
            return found | await self._read_sum_db(package)
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

    async def _read_sum_db(self, package: Package) -> dict[str, str]:
        version = package.version
        url = f"{SUM_DB}lookup/{paths.escape(package.id.name)}@{paths.escape(version)}"
        answer = await self._get(url, package, max_bytes=_MAX_SUMS_BYTES)
        # Always as UTF-8: some encodings of Python unpack their input, or take long.
        text = answer.content.decode("utf-8", "replace") if answer is not None else ""
        known = gomod.read_sums(text).get((package.id.name, version))
        if known and not all(map(_HASH.fullmatch, (known.zip, known.mod))):
            raise Transient(
                f"{package}: {url}: not the hashes of a module", problem=Problem.STRANGE_ANSWER
            )
        _, _, mod, zipped = release.filenames(version)
        return {mod: known.mod, zipped: known.zip} if known else {}

    async def _get(
        self, url: str, package: Package, *, max_bytes: int = MAX_RESPONSE_BYTES
    ) -> httpx.Response | None:
        """None for 404 and 410: the proxy has nothing there."""
        response = await self._server.read(httpx.URL(url), max_bytes=max_bytes)
        if response.status_code in {404, 410}:
            return None
        return self._server.explain(response, f"{package}: {url}")


class ProxyDirectory:
    """Implements `directory.Layout`: `<module>/@v/{list,V.info,V.mod,V.zip}`, and a bundle with the
    tag beside them. The go command uses it as `GOPROXY=file:///…`, and through any static web
    server.
    """

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        if filename not in release.filenames(package.version):
            return None
        return _directory(package) / paths.escape(filename)

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """Clients of a proxy do not look for attestations."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        versions = _find_versions(root / _directory(package))
        page = "".join(f"{version}\n" for version in sorted(versions, key=parse_version))
        yield _directory(package) / "list", page.encode()

    def lookup(self, root: Path, package: Package) -> Published | None:
        """The zip counts once the list names its version, because clients find it by the list."""
        directory = root / _directory(package)
        names = release.filenames(package.version)
        files = {
            name: _digest(data, name)
            for name in names
            if (data := read_page(directory / paths.escape(name))) is not None
        }
        listed = (read_page(directory / "list") or b"").decode().split()
        if package.version not in listed:
            files.pop(names[-1], None)
        if not files:
            return None
        return Published(
            files=files, complete=len(files) == len(names), url=f"{directory.as_uri()}/"
        )


def _directory(package: Package) -> PurePosixPath:
    return PurePosixPath(paths.escape(package.id.name), "@v")


def _find_versions(directory: Path) -> list[str]:
    """Versions with all files that the go command requests."""
    names = durable.names(directory)
    stems = (name.removesuffix(".zip") for name in names if name.endswith(".zip"))
    return [
        _unescape(stem)
        for stem in stems
        if all(durable.is_file(directory / f"{stem}{end}") for end in (".info", ".mod"))
    ]


def _unescape(text: str) -> str:
    head, *rest = text.split("!")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _digest(data: bytes, name: str) -> str:
    if name.endswith(".info"):
        with contextlib.suppress(ValueError):
            return f"version:{release.read_version_in(data)}"
    if name.endswith(".mod"):
        return module_zip.hash_of_mod(data)
    if name.endswith(".zip"):
        return module_zip.hash_of_zip(data)
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
