"""What a registry is told of a version: its package.json as it lies in the tarball, and digests.

Both come from the bytes that are sent, so that no registry shows what nobody can install.
https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
"""

from __future__ import annotations

import base64
import json
import re
import tarfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm import manifest
from releasekit.errors import PackageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Package

_MAX_MANIFEST_BYTES: Final = 1024 * 1024
# npmjs.com keeps no more of it.
_MAX_README_BYTES: Final = 64 * 1024
_MAX_FILES: Final = 200_000
_README: Final = re.compile(r"readme(?:\.(?:md|markdown|mkd|txt))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Contained:
    """What a tarball says of itself; `manifest` as clients of a registry expect it."""

    manifest: Mapping[str, Any]
    readme: str
    readme_filename: str


def contained(file: IO[bytes], what: str) -> Contained:
    """Raises PackageError for what is no tarball of an npm package; `what` starts the message."""
    found: Mapping[str, Any] | None = None
    readme, readme_filename = "", ""
    top: set[str] = set()
    try:
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            for number, member in enumerate(archive):
                if number > _MAX_FILES:
                    raise PackageError(f"{what}: it holds more than {_MAX_FILES} files")
                _, _, name = member.name.partition("/")
                if "/" in name or not member.isfile():
                    continue
                top.add(name)
                if name == "package.json":
                    found = manifest.parse_manifest(_text(archive, member, _MAX_MANIFEST_BYTES))
                elif _README.fullmatch(name) and not readme:
                    readme_filename = name
                    readme = _text(archive, member, _MAX_README_BYTES)
    except (tarfile.TarError, OSError, EOFError, ValueError, RecursionError) as error:
        raise PackageError(f"{what}: it is no tarball of an npm package ({error})") from error
    if found is None:
        raise PackageError(f"{what}: there is no package.json in it")
    return Contained(_normalized(found, top), readme, readme_filename)


def published(
    package: Package, contained: Contained, *, tarball: str, digests: Mapping[str, str]
) -> dict[str, Any]:
    """The version's entry in a packument. `digests` holds sha512 and sha1, in hex."""
    entry = {
        **contained.manifest,
        "_id": f"{package.id.name}@{package.version}",
        "dist": {
            "integrity": integrity(digests["sha512"]),
            "shasum": digests["sha1"],
            "tarball": tarball,
        },
    }
    if contained.readme:
        entry |= {"readme": contained.readme, "readmeFilename": contained.readme_filename}
    return entry


def request(
    package: Package, entry: Mapping[str, Any], data: bytes, *, tag: str, access: str
) -> bytes:
    """The whole document of a publish request, as JSON."""
    name = package.id.name
    document = {
        "_id": name,
        "name": name,
        "description": entry.get("description", ""),
        "dist-tags": {tag: package.version},
        "versions": {package.version: entry},
        "readme": entry.get("readme", ""),
        "_attachments": {
            f"{name}-{package.version}.tgz": {
                "content_type": "application/octet-stream",
                "data": base64.b64encode(data).decode("ascii"),
                "length": len(data),
            }
        },
    }
    if access:
        document["access"] = access
    return json.dumps(document).encode()


def integrity(sha512: str) -> str:
    """https://www.w3.org/TR/SRI/"""
    return f"sha512-{base64.b64encode(bytes.fromhex(sha512)).decode('ascii')}"


def digest_of(dist: Mapping[str, Any]) -> str:
    """`algorithm:hex` of a `dist`, empty where it has none that is known."""
    for part in str(dist.get("integrity", "")).split():
        algorithm, _, value = part.partition("-")
        if algorithm == "sha512":
            try:
                return f"sha512:{base64.b64decode(value.partition('?')[0], validate=True).hex()}"
            except ValueError:
                continue
    shasum = dist.get("shasum")
    return f"sha1:{shasum.lower()}" if isinstance(shasum, str) and shasum else ""


def table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Empty where there is none."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _normalized(document: Mapping[str, Any], top: set[str]) -> dict[str, Any]:
    """Spelled in the one way that every client reads.

    https://github.com/npm/package-json/blob/main/lib/normalize.js
    """
    found = dict(document)
    if isinstance(found.get("bin"), str):
        found["bin"] = {str(found.get("name")).rpartition("/")[2]: found["bin"]}
    if "bundledDependencies" in found:
        found.setdefault("bundleDependencies", found.pop("bundledDependencies"))
    scripts = table(found, "scripts")
    native = any(name.endswith(".gyp") for name in top) and found.get("gypfile") is not False
    if native and not {"install", "preinstall"} & scripts.keys():
        found |= {"scripts": {**scripts, "install": "node-gyp rebuild"}, "gypfile": True}
    if "npm-shrinkwrap.json" in top:
        found["_hasShrinkwrap"] = True
    return found


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> str:
    file = archive.extractfile(member)
    return file.read(limit).decode("utf-8-sig", "replace") if file else ""
