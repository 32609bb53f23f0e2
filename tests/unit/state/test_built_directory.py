"""Where built files lie in the state directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from releasekit.model import Package, PackageId
from releasekit.state.directory import built_directory

STATE = Path("/w/.releasekit")


@pytest.mark.parametrize(
    ("ecosystem", "name", "directory"),
    [
        ("pypi", "acme-core", "dist/pypi/acme-core/1.0"),
        ("npm", "@acme/core", "dist/npm/@acme/core/1.0"),
        ("go", "example.org/acme/core", "dist/go/example.org/acme/core/1.0"),
        ("maven", "org.acme:core", "dist/maven/org.acme/core/1.0"),
    ],
)
def test_each_version_has_a_directory_of_its_own(ecosystem: str, name: str, directory: str) -> None:
    """R18: where an earlier run has left them, a later one finds them."""
    home = Path("/w") / name
    package = Package(
        id=PackageId(ecosystem, name), version="1.0", directory=home, manifest=home / "manifest"
    )
    assert built_directory(package, STATE) == STATE / directory
