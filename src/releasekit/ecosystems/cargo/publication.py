"""What a registry is told of a package, and what it needs by the names that registries know.

https://doc.rust-lang.org/cargo/reference/registry-web-api.html#publish
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from releasekit.ecosystems.cargo.requirement import normalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from releasekit.ecosystems.cargo.crate_file import CrateFile
    from releasekit.model import Package

# The name of crates.io wherever an index URL is asked for, whichever protocol is spoken.
# https://doc.rust-lang.org/cargo/reference/registry-index.html (dependencies: registry)
CRATES_IO: Final = "https://github.com/rust-lang/crates.io-index"
_KINDS: Final = (
    ("dependencies", "normal"),
    ("dev-dependencies", "dev"),
    ("build-dependencies", "build"),
)


@dataclass(frozen=True, slots=True)
class Home:
    """The registry a package goes to: `index` as a manifest would name it, empty for one without
    a name of its own; `members` are the packages that are published there with it.
    """

    index: str
    members: Collection[str]

    @classmethod
    def for_package(cls, index: str, package: Package) -> Self:
        """With the packages that `package` needs from its workspace."""
        needed = (need.on for need in (*package.dependencies, *package.set_aside))
        return cls(index, {on.name for on in needed if on.ecosystem == package.id.ecosystem})

    def registry_of(self, package: str, named: str | None) -> str | None:
        """None means "the same registry", while in a manifest no registry means crates.io.

        https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/registry/publish.rs
        """
        if named is None:
            same = self.index == CRATES_IO or package in self.members
            return None if same else CRATES_IO
        return None if _bare(named) == _bare(self.index) else named


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """`alias` is the name that stands in the manifest, where that is not the package's. `common` is
    what an upload and an index call the same.
    """

    package: str
    alias: str | None
    requirement: str
    common: Mapping[str, Any]


def request_body(crate: CrateFile, data: bytes, home: Home) -> bytes:
    """Of PUT /api/v1/crates/new."""
    document = json.dumps(upload_metadata(crate, home), ensure_ascii=False).encode()
    return b"".join(
        [struct.pack("<I", len(document)), document, struct.pack("<I", len(data)), data]
    )


def upload_metadata(crate: CrateFile, home: Home) -> dict[str, Any]:
    package = crate.package
    texts = ("description", "documentation", "homepage", "repository", "license", "links")
    lists = ("authors", "keywords", "categories")
    readme = package.get("readme")
    return {
        "name": package["name"],
        "vers": package["version"],
        "deps": [
            {
                "name": need.package,
                "version_req": need.requirement,
                **need.common,
                **({"explicit_name_in_toml": need.alias} if need.alias else {}),
            }
            for need in dependencies(crate.manifest, home)
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


def dependencies(manifest: Mapping[str, Any], home: Home) -> Iterator[Dependency]:
    """Of a normalised manifest, in which nothing is inherited and nothing has a path."""
    yield from _dependencies(manifest, None, home)
    for target, tables in manifest.get("target", {}).items():
        yield from _dependencies(tables, target, home)


def _dependencies(
    tables: Mapping[str, Any], target: str | None, home: Home
) -> Iterator[Dependency]:
    for table, kind in _KINDS:
        for key, value in tables.get(table, {}).items():
            entry: dict[str, Any] = {"version": value} if isinstance(value, str) else value
            package = entry.get("package", key)
            yield Dependency(
                package=package,
                alias=key if package != key else None,
                requirement=normalised(entry.get("version", "*")),
                common={
                    "features": entry.get("features", []),
                    "optional": entry.get("optional", False),
                    "default_features": entry.get("default-features", True),
                    "target": target,
                    "kind": kind,
                    "registry": home.registry_of(package, entry.get("registry-index")),
                },
            )


def _bare(index: str) -> str:
    return index.removeprefix("sparse+").rstrip("/")
