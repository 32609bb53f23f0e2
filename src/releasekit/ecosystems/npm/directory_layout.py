"""An npm registry as plain files: a packument `NAME` or `@SCOPE/NAME`, tarballs below `-/NAME/`,
and attestations where npmjs.com has them.

npm, pnpm and yarn install from it through any static web server that decodes `%2f`.
https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.npm import document
from releasekit.ecosystems.npm.tarball import get_filename, read_tarball
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.model import Published
from releasekit.text.json_text import format_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle

_TARBALLS: Final = "-"


class PackumentDirectory:
    """Implements `directory.Layout`. `url` is where the directory is served, because the address
    of a tarball is absolute: npm and pnpm refuse any other. Only npm replaces the address of npmjs,
    by that of the registry for packages without a scope, even for a package with one
    (https://github.com/npm/cli/blob/latest/workspaces/arborist/lib/arborist/reify.js,
    registryResolved).
    """

    def __init__(self, *, tag: str, url: str) -> None:
        self._tag = tag
        self._url = url.rstrip("/")
        # As `NpmRegistry` has it.
        self.usual: Mapping[str, Mapping[str, str]] = {}

    def path_for(self, package: Package, name: str) -> PurePosixPath | None:
        if name != get_filename(package) or package.id.name == _TARBALLS:
            return None
        return _find_tarballs(package) / name

    def attestation(
        self,
        package: Package,
        filename: str,  # noqa: ARG002 - the only one
        bundle: Bundle,
    ) -> tuple[PurePosixPath, bytes]:
        """https://github.com/npm/pacote/blob/main/lib/registry.js (verifyAttestations)"""
        attested = {"predicateType": bundle.predicate_type, "bundle": bundle.document}
        text = json.dumps({"attestations": [attested]})
        return _find_attestations(package), text.encode() + b"\n"

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        known = _read_packument(root, package)
        path = root / _find_tarballs(package) / get_filename(package)
        versions = dict(table_in(known, "versions"))
        tags = dict(table_in(known, "dist-tags"))
        if package.version not in versions:
            versions[package.version] = made = self._make_entry(root, package, path)
            usual = text_in(self.usual.get(package.id.name, {}), "tag")
            given = document.find_given_tag(self._tag, made, where=str(path), usual=usual)
            latest = str(tags.get(document.LATEST, ""))
            tags[given or document.choose_tag(package.version, latest=latest)] = package.version
        # npmjs does so with the first version of a package: clients need `latest` to install it.
        tags.setdefault(document.LATEST, package.version)
        ordered = {}
        for version in sorted(versions, key=Version.parse):
            # The address of the directory may have changed since an earlier version.
            each = replace(package, version=version)
            entry = table_in(versions, version)
            dist = {**table_in(entry, "dist"), "tarball": self._make_address(each)}
            if attested := table_in(dist, "attestations"):
                url = f"{self._url}/{_find_attestations(each)}"
                dist["attestations"] = {**attested, "url": url}
            ordered[version] = {**entry, "dist": dist}
        name = package.id.name
        page = {"_id": name, "name": name, "dist-tags": tags, "versions": ordered}
        yield PurePosixPath(name), format_json(page).encode() + b"\n"

    def lookup(self, root: Path, package: Package) -> Published | None:
        page = root / package.id.name
        entry = table_in(_read_packument(root, package), "versions").get(package.version)
        if entry is None:
            return None
        digest = document.find_digest(table_in(entry, "dist"))
        return Published(
            files={get_filename(package): digest},
            url=page.as_uri(),
            withdrawal=document.find_deprecation(entry, package),
            asks=document.list_requirements(entry),
        )

    def _make_entry(self, root: Path, package: Package, path: Path) -> dict[str, Any]:
        with durable.reading(path) as file:
            shown = digests(file, "sha512", "sha1")
            file.seek(0)
            contained = read_tarball(file, str(path))
        address = self._make_address(package)
        entry = document.make_version_entry(package, contained, tarball=address, digests=shown)
        attested = _read_json(root / _find_attestations(package))
        bundles = attested.get("attestations") if isinstance(attested, dict) else None
        listed = bundles if isinstance(bundles, list) else []
        kinds = (text_in(each, "predicateType") for each in listed)
        if kind := next(filter(None, kinds), ""):
            entry["dist"]["attestations"] = {"provenance": {"predicateType": kind}}
        # A packument is read whole for each install.
        return {key: value for key, value in entry.items() if not key.startswith("readme")}

    def _make_address(self, package: Package) -> str:
        return f"{self._url}/{_find_tarballs(package)}/{get_filename(package)}"


def _find_tarballs(package: Package) -> PurePosixPath:
    return PurePosixPath(_TARBALLS, package.id.name)


def _find_attestations(package: Package) -> PurePosixPath:
    """The path that npmjs.com has them at."""
    return PurePosixPath("-/npm/v1/attestations", f"{package.id.name}@{package.version}")


def _read_packument(root: Path, package: Package) -> Mapping[str, Any]:
    """Empty where there is none; raises ValueError for one that cannot be read."""
    found = _read_json(root / package.id.name)
    if not isinstance(found, dict):
        raise ValueError(f"{package.id.name} is not a packument")  # noqa: TRY004
    return found


def _read_json(path: Path) -> Any:
    page = read_page(path)
    return {} if page is None else parse_json(page, max_bytes=None)
