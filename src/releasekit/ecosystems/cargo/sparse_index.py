"""The sparse index, on a server or as plain files: a file for each crate, a line for each version.

An upload describes a crate in nearly the same words as its line in the index.
https://doc.rust-lang.org/cargo/reference/registry-index.html and
https://doc.rust-lang.org/cargo/reference/registry-web-api.html#publish
"""

from __future__ import annotations

import io
import json
import struct
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from releasekit.ecosystems.cargo import crate_file
from releasekit.ecosystems.cargo.destination import CRATES_IO, with_slash
from releasekit.ecosystems.cargo.requirements import normalise_requirement
from releasekit.ecosystems.directory import page_there, read_page
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.ecosystems.shared.documents import known_digest, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.host import durable
from releasekit.model import Published, Withdrawal
from releasekit.text.json_text import MAX_ENTRY_BYTES, parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.cargo.crate_file import CrateFile
    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


# The statuses by which an index says that it has no such crate.
# https://doc.rust-lang.org/cargo/reference/registry-index.html#nonexistent-crates
ABSENT: Final = frozenset({404, 410, 451})
_KINDS: Final = (
    ("dependencies", "normal"),
    ("dev-dependencies", "dev"),
    ("build-dependencies", "build"),
)


def index_path(name: str) -> str:
    """Where the file of a crate is, relative to the index."""
    lower = name.lower()
    match len(lower):
        case 1 | 2:
            return f"{len(lower)}/{lower}"
        case 3:
            return f"3/{lower[0]}/{lower}"
        case _:
            return f"{lower[:2]}/{lower[2:4]}/{lower}"


def download_url(template: str, name: str, version: str, checksum: str) -> str:
    """Where a crate is, by the `dl` of a config.json.

    https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration
    """
    if "{" not in template:
        template += "/{crate}/{version}/download"
    lower = index_path(name).rpartition("/")[0]
    prefix = (
        lower if len(name) < 3 else f"3/{name[0]}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}"
    )
    values = {"crate": name, "version": version, "sha256-checksum": checksum}
    for marker, value in {**values, "prefix": prefix, "lowerprefix": lower}.items():
        template = template.replace(f"{{{marker}}}", value)
    return template


def parse_lines(body: bytes) -> Iterator[dict[str, Any]]:
    """The lines of one file, unchanged. Raises ValueError for anything else."""
    for text in io.BytesIO(body):
        if not text.strip():
            continue
        line = parse_json(text, max_bytes=MAX_ENTRY_BYTES)
        if not all(text_in(line, key) for key in ("name", "vers", "cksum")):
            raise ValueError("a line without name, vers or cksum")
        yield line


def find_published(body: bytes, package: Package, *, url: str, unyank: str) -> Published | None:
    """The version of `package`, None when no line has it; raises ValueError.

    A yanked version counts, because it is taken for ever; `unyank` takes that back. Build metadata
    does not: registries take a version once, with any build metadata.
    """
    wanted = Version.parse(package.version)
    for line in parse_lines(body):
        if Version.parse(line["vers"]) == wanted:
            file = crate_file.filename(package.id.name, package.version)
            digest = known_digest("sha256", line["cksum"])
            if not digest:
                raise ValueError("a cksum that is not a SHA-256")
            withdrawal = None
            if line.get("yanked") is True:
                others = [it["vers"] for it in parse_lines(body) if it.get("yanked") is not True]
                withdrawal = Withdrawal(word="yanked", cure=unyank, others=tuple(others))
            needs = line.get("deps")
            asks = {
                text_in(need, "package") or text_in(need, "name"): text_in(need, "req")
                for need in (needs if isinstance(needs, list) else ())
                if text_in(need, "kind") != "dev"
            }
            return Published(files={file: digest}, url=url, withdrawal=withdrawal, asks=asks)
    return None


class Home(Struct, frozen=True):
    """The registry a package goes to: `index` as a manifest names it, empty where manifests have no
    name for it; `members` are the packages that are published there with it.
    """

    index: str
    members: Collection[str]

    @classmethod
    def for_package(cls, index: str, package: Package) -> Self:
        """With what `package` needs from its workspace as the members."""
        needed = (need.on for need in (*package.dependencies, *package.set_aside))
        return cls(index, {on.name for on in needed if on.ecosystem == package.id.ecosystem})

    def registry_of(self, package: str, named: str | None) -> str | None:
        """None means "the same registry"; in a manifest, no registry means crates.io.

        https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/registry/publish.rs
        """
        if named is None:
            same = self.index == CRATES_IO or package in self.members
            return None if same else CRATES_IO
        return None if with_slash(named) == with_slash(self.index) else named


class IndexDependency(Struct, frozen=True, kw_only=True):
    """`alias` is the name in the manifest, where that states the one of the package too. `common`
    are the fields that have the same names in an upload and in an index.
    """

    package: str
    alias: str | None
    requirement: str
    common: Mapping[str, Any]


def read_dependencies(manifest: Mapping[str, Any], home: Home) -> Iterator[IndexDependency]:
    """Of a normalised manifest, in which nothing is inherited and nothing has a path."""
    for target, tables in ((None, manifest), *manifest.get("target", {}).items()):
        for table, kind in _KINDS:
            for key, value in tables.get(table, {}).items():
                entry: dict[str, Any] = {"version": value} if isinstance(value, str) else value
                package = entry.get("package", key)
                yield IndexDependency(
                    package=package,
                    alias=key if "package" in entry else None,
                    requirement=normalise_requirement(entry.get("version", "*")),
                    common={
                        "features": entry.get("features", []),
                        "optional": entry.get("optional", False),
                        "default_features": entry.get("default-features", True),
                        "target": target,
                        "kind": kind,
                        "registry": home.registry_of(package, entry.get("registry-index")),
                    },
                )


def index_line(crate: CrateFile, checksum: str, home: Home) -> dict[str, Any]:
    """https://doc.rust-lang.org/cargo/reference/registry-index.html#json-schema"""
    features = crate.manifest.get("features", {})
    # Older versions of cargo cannot read those with `dep:` or `?/` in them.
    # https://doc.rust-lang.org/cargo/reference/registry-index.html (features2)
    weak = {
        name: values
        for name, values in features.items()
        if any(value.startswith("dep:") or "?/" in value for value in values)
    }
    line: dict[str, Any] = {
        "name": crate.package["name"],
        "vers": crate.package["version"],
        "deps": [
            {
                "name": need.alias or need.package,
                "req": need.requirement,
                **need.common,
                **({"package": need.package} if need.alias else {}),
            }
            for need in read_dependencies(crate.manifest, home)
        ],
        "cksum": checksum,
        "features": {name: features[name] for name in features if name not in weak},
        "yanked": False,
        "links": crate.package.get("links"),
        "rust_version": crate.package.get("rust-version"),
    }
    return {**line, "v": 2, "features2": weak} if weak else line


def request_body(crate: CrateFile, data: bytes, home: Home) -> bytes:
    """The body of PUT /api/v1/crates/new."""
    package = crate.package
    texts = ("description", "documentation", "homepage", "repository", "license", "links")
    lists = ("authors", "keywords", "categories")
    readme = package.get("readme")
    metadata = {
        "name": package["name"],
        "vers": package["version"],
        "deps": [
            {
                "name": need.package,
                "version_req": need.requirement,
                **need.common,
                **({"explicit_name_in_toml": need.alias} if need.alias else {}),
            }
            for need in read_dependencies(crate.manifest, home)
        ],
        "features": crate.manifest.get("features", {}),
        **{key: package.get(key, []) for key in lists},
        **{key: package.get(key) for key in texts},
        "license_file": package.get("license-file"),
        "rust_version": package.get("rust-version"),
        "readme": crate.readme,
        "readme_file": readme if isinstance(readme, str) else None,
        "badges": crate.manifest.get("badges", {}),
    }
    document = json.dumps(metadata, ensure_ascii=False).encode()
    return b"".join(
        [struct.pack("<I", len(document)), document, struct.pack("<I", len(data)), data]
    )


class SparseDirectory:
    """Implements `directory.Layout`: an index as plain files, with the crates beside it. Cargo
    builds from it through any static web server:
    https://doc.rust-lang.org/cargo/reference/running-a-registry.html

    `directory_url` is where it will be served, which an index has to name; without it, the index
    names the directory itself, and works on this machine only.
    """

    def __init__(self, directory_url: str = "") -> None:
        self._directory_url = directory_url

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        path = _crate_path(package)
        return path if path.name == filename else None

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """Clients of an index do not look for attestations."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        url = (self._directory_url or root.as_uri()).rstrip("/")
        # https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration
        yield (
            PurePosixPath("config.json"),
            _json({"dl": f"{url}/crates/{{crate}}/{{crate}}-{{version}}.crate"}),
        )
        page, path = PurePosixPath(index_path(package.id.name)), root / _crate_path(package)
        # What is listed stays, yanked versions too.
        lines = list(parse_lines(read_page(root / page) or b""))
        is_listed = any(line["vers"] == package.version for line in lines)
        if not is_listed and durable.is_file(path):
            with durable.reading(path) as content:
                checksum = digests(content, "sha256")["sha256"]
                content.seek(0)
                crate = crate_file.read_crate(content, package.id.name, package.version)
            lines.append(index_line(crate, checksum, Home.for_package("", package)))
        yield page, b"".join(map(_json, lines))

    def lookup(self, root: Path, package: Package) -> Published | None:
        page = root / index_path(package.id.name)
        unyank = f'write `"yanked":false` into its line of {page}'
        return find_published(page_there(page), package, url=page.as_uri(), unyank=unyank)


def _crate_path(package: Package) -> PurePosixPath:
    return crate_path(package.id.name, package.version)


def crate_path(name: str, version: str) -> PurePosixPath:
    """Where a directory has a crate."""
    return PurePosixPath("crates", name, crate_file.filename(name, version))


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
