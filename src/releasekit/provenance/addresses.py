"""Where a registry tells what is attested about a file that it serves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)

from releasekit.errors import ConfigError
from releasekit.problems import Problem

if TYPE_CHECKING:
    import httpx

# https://docs.pypi.org/api/integrity/
_INDEXES: Final = {
    "files.pythonhosted.org": "https://pypi.org",
    "test-files.pythonhosted.org": "https://test.pypi.org",
}
_PYTHON: Final = (".whl", ".tar.gz", ".zip")
# Where npm's registry has the file of a package, and where a `dir:` of ours has it:
# /@acme/core/-/core-1.0.0.tgz and /-/@acme/core/acme-core-1.0.0.tgz.
_TARBALLS: Final = (
    re.compile(
        r"(?P<base>.*?)/(?:@(?P<scope>[^/@]+)/)?(?P<name>[^/@]+)/-/(?P=name)-(?P<version>[^/]+)\.tgz"
    ),
    re.compile(
        r"(?P<base>.*?)/-/@(?P<scope>[^/@]+)/(?P<name>[^/@]+)/(?P=scope)-(?P=name)-(?P<version>[^/]+)\.tgz"
    ),
    re.compile(r"(?P<base>.*?)/-/(?P<scope>)(?P<name>[^/@]+)/(?P=name)-(?P<version>[^/]+)\.tgz"),
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is said about a file."""

    attestations: httpx.URL
    accept: str = "application/json"


def filename_of(url: httpx.URL) -> str:
    """Raises ConfigError for the URL of a directory."""
    if name := url.path.rpartition("/")[2]:
        return name
    bare = url.copy_with(query=None, fragment=None)
    raise ConfigError(
        f"{bare}: is not the address of a file; write that of one", problem=Problem.ADDRESS
    )


def address_of(url: httpx.URL) -> Address:
    """Raises ConfigError for the URL of anything but a file of a Python package or of npm's."""
    path, filename = url.path, filename_of(url)
    bare = url.copy_with(query=None, fragment=None)
    if not path.isprintable():
        raise ConfigError(
            f"{bare}: has a control character in it; write the address of a file",
            problem=Problem.ADDRESS,
        )
    for match in filter(None, (each.fullmatch(path) for each in _TARBALLS)):
        base, name, version = (quote(match[part]) for part in ("base", "name", "version"))
        scoped = f"@{quote(match['scope'])}%2f{name}" if match["scope"] else name
        asked = f"{base}/-/npm/v1/attestations/{scoped}@{version}"
        return Address(bare.copy_with(raw_path=asked.encode()))
    if not filename.endswith(_PYTHON):
        raise ConfigError(
            f"{bare}: is not the address of a wheel, a source distribution or an npm tarball, "
            "which have attestations of their own; name those of the release with --bundle",
            problem=Problem.ADDRESS,
        )
    if (index := _INDEXES.get(url.host)) is None:
        # https://peps.python.org/pep-0740/#index-changes
        return Address(bare.copy_with(path=f"{path}.provenance"))
    name, version = _project(filename, bare)
    asked = f"/integrity/{name}/{version}/{filename}/provenance"
    of_index = bare.copy_with(host=index.partition("//")[2], path=asked)
    return Address(of_index, "application/vnd.pypi.integrity.v1+json")


def listed_at(path: Path) -> Path | None:
    """Where a `dir:` of npm packages has what is said about the tarball at `path`; None of a file
    that does not lie as it would in one.
    """
    for match in filter(None, (each.fullmatch(path.absolute().as_posix()) for each in _TARBALLS)):
        name = f"@{match['scope']}/{match['name']}" if match["scope"] else match["name"]
        return Path(match["base"], "-/npm/v1/attestations", f"{name}@{match['version']}")
    return None


def _project(filename: str, url: httpx.URL) -> tuple[str, str]:
    try:
        if filename.endswith(".whl"):
            name, wheel_version, _, _ = parse_wheel_filename(filename)
            return name, str(wheel_version)
        name, version = parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename) as error:
        raise ConfigError(
            f"{url}: {error}; write the address of a file of PyPI", problem=Problem.ADDRESS
        ) from error
    else:
        return name, str(version)
