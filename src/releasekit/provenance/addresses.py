"""Where a registry tells what is attested about a file that it serves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)

from releasekit.causes.refusals import AddressError

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
    """A file at `url`, called `filename`; at `attestations` is what is said about it."""

    url: httpx.URL
    filename: str
    attestations: httpx.URL
    accept: str = "application/json"


def address_of(url: httpx.URL) -> Address:
    """Raises ConfigError for the URL of anything but a file of a Python package or of npm's."""
    path = url.path
    filename = path.rpartition("/")[2]
    bare = url.copy_with(query=None, fragment=None)
    for match in filter(None, (each.fullmatch(path) for each in _TARBALLS)):
        name = f"@{match['scope']}%2f{match['name']}" if match["scope"] else match["name"]
        asked = f"{match['base']}/-/npm/v1/attestations/{name}@{match['version']}"
        return Address(url, filename, bare.copy_with(raw_path=asked.encode()))
    if not filename.endswith(_PYTHON):
        raise AddressError(
            f"{bare}: is no address of a wheel, of a source distribution or of a tarball of npm; "
            "download the file, and write its path"
        )
    if (index := _INDEXES.get(url.host)) is None:
        # https://peps.python.org/pep-0740/#index-changes
        return Address(url, filename, bare.copy_with(path=f"{path}.provenance"))
    name, version = _project(filename, bare)
    asked = f"/integrity/{name}/{version}/{filename}/provenance"
    of_index = bare.copy_with(host=index.partition("//")[2], path=asked)
    return Address(url, filename, of_index, "application/vnd.pypi.integrity.v1+json")


def _project(filename: str, url: httpx.URL) -> tuple[str, str]:
    try:
        if filename.endswith(".whl"):
            name, wheel_version, _, _ = parse_wheel_filename(filename)
            return name, str(wheel_version)
        name, version = parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename) as error:
        raise AddressError(f"{url}: {error}; write the address of a file of PyPI") from error
    else:
        return name, str(version)
