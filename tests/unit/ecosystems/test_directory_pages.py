"""R40, R51: pages of a `dir:` registry that somebody else has put there."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.directory import MAX_PAGE_BYTES, DirectoryRegistry
from releasekit.ecosystems.npm.directory_layout import PackumentDirectory
from releasekit.errors import Rejected
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path) -> Package:
    at = tmp_path / "package.json"
    return Package(id=PackageId("npm", "a"), version="1.0.0", directory=tmp_path, manifest=at)


@pytest.fixture
def registry(tmp_path: Path) -> DirectoryRegistry:
    (tmp_path / "registry").mkdir()
    layout = PackumentDirectory(tag="", url="https://registry.example")
    return DirectoryRegistry(tmp_path / "registry", layout)


def test_a_page_that_only_seems_long_is_not_read(
    package: Package, registry: DirectoryRegistry, tmp_path: Path
) -> None:
    with (tmp_path / "registry/a").open("wb") as page:
        os.truncate(page.fileno(), MAX_PAGE_BYTES + 1)
    with pytest.raises(Rejected, match=f"larger than {MAX_PAGE_BYTES} bytes"):
        asyncio.run(registry.lookup(package))
    with pytest.raises(Rejected, match=f"larger than {MAX_PAGE_BYTES} bytes"):
        asyncio.run(registry.upload(package, []))


def test_a_version_that_is_none_is_the_pages_fault(
    package: Package, registry: DirectoryRegistry, tmp_path: Path
) -> None:
    versions: dict[str, object] = {"1.0.0": {}, "\x1b[2J": {}}
    (tmp_path / "registry/a").write_text(json.dumps({"versions": versions}))
    with pytest.raises(Rejected, match="has a page that cannot be read"):
        asyncio.run(registry.upload(package, []))
