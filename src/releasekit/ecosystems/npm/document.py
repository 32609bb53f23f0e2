"""The document that publishes a version, and the packument in which a registry shows it.

Manifest and digests come from the bytes that are sent, so that a registry shows only what can be
installed. `npm install NAME` takes the version that the dist-tag `latest` points to.
https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from releasekit.aio import uncancellable
from releasekit.ecosystems.npm.login import authorize
from releasekit.ecosystems.npm.manifest import find_tag
from releasekit.ecosystems.npm.reference import is_range
from releasekit.ecosystems.shared.artifacts import read_attestation
from releasekit.ecosystems.shared.documents import known_digest, table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.ecosystems.shared.server import UPLOAD_TIMEOUT
from releasekit.errors import ManifestError
from releasekit.host.artifact_reader import open_artifact
from releasekit.model import MAX_REASON_CHARS, Withdrawal
from releasekit.text.escape import one_line
from releasekit.text.json_text import read_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from releasekit.ecosystems.npm.tarball import Tarball
    from releasekit.ecosystems.shared.server import RegistryClient
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package
    from releasekit.provenance.bundle import Bundle

Command = Literal["publish", "stage"]
LATEST: Final = "latest"
# Another job may publish a version meanwhile, and move `latest`. npmjs.com's own caches keep a
# packument for five minutes, so a fresh lookup may be just as old.
# https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
REUSED_FOR_S: Final = 60.0
_MAX_ETAG_CHARS: Final = 256


class Packument(Struct, frozen=True, kw_only=True):
    """As it was asked for at `asked_s`, by the clock of the loop; `exists` where there is such a
    package, and `aged` where a cache on the way had kept it.
    """

    asked_s: float
    exists: bool = False
    tags: Mapping[str, Any] = field(default_factory=dict)
    etag: str = ""
    aged: bool = False
    entries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def latest(self) -> str:
        return str(self.tags.get(LATEST, ""))

    @classmethod
    def from_response(cls, response: httpx.Response, version: str, *, asked_s: float) -> Packument:
        """Of its entries only that of `version` is kept. Blocks; raises ValueError."""
        found: dict[str, dict[str, Any]] = {"versions": {}, "dist-tags": {}}
        for key, name, value in read_entries(response.content, found.keys()):
            if name and (name == version or key == "dist-tags"):
                found[key][name] = value
        etag = response.headers.get("ETag", "")
        return cls(
            asked_s=asked_s,
            exists=True,
            tags=found["dist-tags"],
            etag=etag if len(etag) <= _MAX_ETAG_CHARS else "",
            aged=is_aged(response),
            entries=found["versions"],
        )


def is_aged(response: httpx.Response) -> bool:
    """Whether a cache on the way had kept it: https://www.rfc-editor.org/rfc/rfc9111#section-5.1"""
    return bool(response.headers.get("Age", "0").strip() != "0")


def find_digest(dist: Mapping[str, Any]) -> str:
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


def list_requirements(entry: Mapping[str, Any]) -> dict[str, str]:
    """By name; where a package is a dependency and a peer, the user's one has to fit the peer."""
    asked = {**table_in(entry, "dependencies"), **table_in(entry, "peerDependencies")}
    return {name: wanted for name, wanted in asked.items() if isinstance(wanted, str)}


def find_deprecation(entry: Mapping[str, Any], package: Package) -> Withdrawal | None:
    """What npm warns of when it installs the version; an empty text takes that back.
    https://docs.npmjs.com/cli/commands/npm-deprecate
    """
    if not (said := entry.get("deprecated")):
        return None
    return Withdrawal(
        word="deprecated",
        cure=f'run `npm deprecate {package.id.name}@{package.version} ""`',
        reason=one_line(said, MAX_REASON_CHARS) if isinstance(said, str) else "",
    )


async def build_request(
    server: RegistryClient,
    package: Package,
    artifact: Artifact,
    contents: Tarball,
    *,
    command: Command,
    token: Secret,
    tag: str,
    access: str,
    usual: str,
) -> httpx.Request:
    """For `Server.send`. `access` is what the user says; otherwise the package decides, and the
    `usual` one is that of a package that says nothing.
    """
    name = package.id.name
    address = str(server.at(f"{name}/-/{name}-{package.version}.tgz"))
    entry = make_version_entry(package, contents, tarball=address, digests=artifact.digests)
    if not access:
        wanted = table_in(contents.manifest, "publishConfig").get("access", usual)
        access = wanted if wanted in {"public", "restricted"} else ""

    def make_body() -> bytes:
        attested = read_attestation(artifact)
        with open_artifact(artifact) as file:
            return make_request_body(
                package, entry, file.read(), tag=tag, access=access, attested=attested
            )

    staged = command == "stage"
    return server.http.build_request(
        "POST" if staged else "PUT",
        server.at(f"-/stage/package/{escape(name)}" if staged else escape(name)),
        content=await uncancellable(asyncio.to_thread(make_body)),
        headers={
            **authorize(token),
            "Content-Type": "application/json",
            "Accept": "*/*",
            "npm-command": command,
        },
        timeout=UPLOAD_TIMEOUT,
    )


def escape(name: str) -> str:
    """As it stands in a URL: one segment, `@` as it is."""
    return name.replace("/", "%2f")


def make_version_entry(
    package: Package, contents: Tarball, *, tarball: str, digests: Mapping[str, str]
) -> dict[str, Any]:
    """The version's entry in a packument. `digests` holds sha512 and sha1, in hex."""
    entry = {
        **contents.shown,
        "_id": f"{package.id.name}@{package.version}",
        "dist": {
            "integrity": format_integrity(digests["sha512"]),
            "shasum": digests["sha1"],
            "tarball": tarball,
        },
    }
    if contents.readme and not entry.get("readme"):
        entry |= {"readme": contents.readme, "readmeFilename": contents.readme_filename}
    return entry


def format_integrity(sha512: str) -> str:
    """https://www.w3.org/TR/SRI/"""
    return f"sha512-{base64.b64encode(bytes.fromhex(sha512)).decode('ascii')}"


def make_request_body(
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


def check_tag(tag: str, *, where: str) -> str:
    """Raises ConfigError for what npm would take for a version.
    https://docs.npmjs.com/cli/commands/npm-dist-tag#caveats
    """
    if tag and (is_range(tag) or any(not (letter.isalnum() or letter in "-._") for letter in tag)):
        raise ManifestError(
            f"{where} = {tag!r} is not a dist-tag", hint='Write a word that is not a range: "next".'
        )
    return tag


def find_given_tag(
    npm_tag: str, manifest: Mapping[str, object], *, where: str, usual: str = ""
) -> str:
    """The dist-tag of the input, else of the manifest, else the `usual` one of the settings
    of its workspace; empty where none of them names one.
    """
    key, own = find_tag(manifest)
    return npm_tag or check_tag(
        own or usual, where=f"{where}: {key or 'the setting tag of its workspace'}"
    )


def is_below(version: str, latest: str) -> bool:
    """Whether `latest`, which may be empty, points to a higher version."""
    try:
        return Version.parse(version) < Version.parse(latest)
    except ValueError:
        return False


def choose_tag(version: str, *, latest: str) -> str:
    """The dist-tag where none is given: a prerelease gets its own word, a version below the one
    that `latest` points to a tag of its release line, and only the newest becomes `latest`.
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
