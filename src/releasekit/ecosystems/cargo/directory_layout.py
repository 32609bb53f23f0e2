"""A sparse index as plain files, with the crates beside it.

cargo builds from it through any static web server:
https://doc.rust-lang.org/cargo/reference/running-a-registry.html
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from releasekit.ecosystems.cargo import crate_file, sparse_index
from releasekit.ecosystems.cargo.publication import Home
from releasekit.ecosystems.directory import page_there, read_page
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.host import durable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.model import Package, Published
    from releasekit.provenance.bundle import Bundle


class SparseDirectory:
    """Implements `directory.Layout`.

    `directory_url` is where it will be served, which an index has to name; without one it names
    the directory itself, which is good for this machine only.
    """

    def __init__(self, directory_url: str = "") -> None:
        self._directory_url = directory_url

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        path = _crate(package)
        return path if path.name == filename else None

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """No client of an index looks for one."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        url = (self._directory_url or root.as_uri()).rstrip("/")
        # https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration
        yield (
            PurePosixPath("config.json"),
            _json({"dl": f"{url}/crates/{{crate}}/{{crate}}-{{version}}.crate"}),
        )
        page = PurePosixPath(sparse_index.index_path(package.id.name))
        yield page, b"".join(_json(line) for line in _lines(root, page, package))

    def lookup(self, root: Path, package: Package) -> Published | None:
        page = root / sparse_index.index_path(package.id.name)
        return sparse_index.published(page_there(page), package, url=page.as_uri())


def _crate(package: Package) -> PurePosixPath:
    name = package.id.name
    return PurePosixPath("crates", name, crate_file.filename(name, package.version))


def _lines(root: Path, page: PurePosixPath, package: Package) -> list[dict[str, Any]]:
    """What is listed stays as it is, a yanked version too; the package's own is added."""
    lines = list(sparse_index.parse_lines(read_page(root / page) or b""))
    path = root / _crate(package)
    if any(line["vers"] == package.version for line in lines) or not durable.is_file(path):
        return lines
    with durable.reading(path) as content:
        checksum = digests(content, "sha256")["sha256"]
        content.seek(0)
        crate = crate_file.read_crate(content, package.id.name, package.version)
    return [*lines, sparse_index.index_line(crate, checksum, Home.for_package("", package))]


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
