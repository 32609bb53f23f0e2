"""What a registry is told of a version: its package.json as it lies in the tarball, digests, and a
dist-tag: `npm install NAME` takes what `latest` points to.

Manifest and digests come from the bytes that are sent, so that no registry shows what nobody can
install.
https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm.reference import is_range
from releasekit.ecosystems.shared.documents import known_digest, table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ManifestError
from releasekit.text.json_text import entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.ecosystems.npm.tarball import Contained
    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle

LATEST: Final = "latest"


def version_entry(
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


def request_body(
    package: Package,
    entry: Mapping[str, Any],
    data: bytes,
    *,
    tag: str,
    access: str,
    attested: Bundle | None = None,
) -> bytes:
    """The whole document of a publish request, as JSON, with the attestation of `data`."""
    name = package.id.name
    document: dict[str, Any] = {
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
    if attested is not None:
        text = attested.text.decode()
        document["_attachments"][f"{name}-{package.version}.sigstore"] = {
            "content_type": attested.document["mediaType"],
            "data": text,
            "length": len(text),
        }
    return json.dumps(document).encode()


def integrity(sha512: str) -> str:
    """https://www.w3.org/TR/SRI/"""
    return f"sha512-{base64.b64encode(bytes.fromhex(sha512)).decode('ascii')}"


def packument_of(page: bytes, version: str) -> dict[str, dict[str, Any]]:
    """What is wanted of a packument: the entry of one version, and the dist-tags. Raises
    ValueError. Blocks.
    """
    found: dict[str, dict[str, Any]] = {"versions": {}, "dist-tags": {}}
    for key, name, value in entries(page, found.keys()):
        if name and (name == version or key == "dist-tags"):
            found[key][name] = value
    return found


def digest_of(dist: Mapping[str, Any]) -> str:
    """`algorithm:hex` of a `dist`, empty where it has none that is known."""
    for part in text_in(dist, "integrity").split():
        algorithm, _, value = part.partition("-")
        if algorithm == "sha512":
            try:
                found = base64.b64decode(value.partition("?")[0], validate=True).hex()
            except ValueError:
                continue
            if digest := known_digest("sha512", found):
                return digest
    return known_digest("sha1", dist.get("shasum"))


def checked_tag(tag: str, *, where: str) -> str:
    """Raises ConfigError for what npm would take for a version.

    https://docs.npmjs.com/cli/commands/npm-dist-tag#caveats
    """
    if tag and (is_range(tag) or any(not (letter.isalnum() or letter in "-._") for letter in tag)):
        raise ManifestError(
            f"{where} = {tag!r} is no dist-tag", hint='Write a word that is no range: "next".'
        )
    return tag


def given_tag(npm_tag: str, manifest: Mapping[str, object], *, where: str) -> str:
    """The one that is asked for: by the input, else by `publishConfig.tag`; empty for none."""
    own = table_in(manifest, "publishConfig").get("tag")
    return npm_tag or checked_tag(str(own or ""), where=f"{where}: publishConfig.tag")


def choose_tag(version: str, *, latest: str) -> str:
    """Where nobody asks for one: a prerelease gets its own word, a version below the one that
    `latest` points to a tag of its release line, and only what is newest becomes `latest`.
    """
    ours = Version.parse(version)
    if ours.pre:
        word = next((part for part in ours.pre if isinstance(part, str)), "")
        return word if word and word != LATEST and not is_range(word) else "next"
    try:
        theirs = Version.parse(latest)
    except ValueError:
        return LATEST
    if theirs.pre or ours >= theirs:
        return LATEST
    major, minor, _ = ours.release
    # Not "1.x": a tag must not read as a range.
    return f"release-{major}.x" if major else f"release-0.{minor}.x"
