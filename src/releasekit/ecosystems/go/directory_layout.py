"""A module proxy as plain files: `<module>/@v/{list,V.info,V.mod,V.zip}`.

The go command uses it as `GOPROXY=file:///…`, and through any static web server.
https://go.dev/ref/mod#goproxy-protocol
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.go import module_zip, paths, release
from releasekit.ecosystems.go.versions import parse_version
from releasekit.host import durable
from releasekit.model import Published

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


class ProxyDirectory:
    """Implements `directory.Layout`. A bundle with the tag lies beside the files."""

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        if filename not in release.filenames(package.version):
            return None
        return _versions(package) / paths.escape(filename)

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """No client of a proxy looks for one."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        versions = _listed(root / _versions(package))
        page = "".join(f"{version}\n" for version in sorted(versions, key=parse_version))
        yield _versions(package) / "list", page.encode()

    def lookup(self, root: Path, package: Package) -> Published | None:
        """The zip counts once the list names its version: it is what makes a client find it."""
        directory = root / _versions(package)
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


def _versions(package: Package) -> PurePosixPath:
    return PurePosixPath(paths.escape(package.id.name), "@v")


def _listed(directory: Path) -> list[str]:
    """Versions with all that the go command asks for."""
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
            return f"version:{release.version_in(data)}"
    if name.endswith(".mod"):
        return module_zip.hash_of_mod(data)
    if name.endswith(".zip"):
        return module_zip.hash_of_zip(data)
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
