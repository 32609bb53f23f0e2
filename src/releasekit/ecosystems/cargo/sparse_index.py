"""The sparse index: a file for each crate, a line for each of its versions.

https://doc.rust-lang.org/cargo/reference/registry-index.html
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.cargo.crate_file import filename
from releasekit.ecosystems.cargo.publication import dependencies
from releasekit.ecosystems.shared.documents import known_digest, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.model import Published
from releasekit.text.json_text import MAX_ENTRY_BYTES, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.ecosystems.cargo.crate_file import CrateFile
    from releasekit.ecosystems.cargo.publication import Home
    from releasekit.model import Package

# What cargo takes for "there is no such crate".
# https://doc.rust-lang.org/cargo/reference/registry-index.html#nonexistent-crates
ABSENT: Final = frozenset({404, 410, 451})


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


def download_url(template: str, package: Package) -> str:
    """Where the `dl` of a config.json says that a crate is; those with other markers than the usual
    ones lead to nothing.

    https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration
    """
    if "{" not in template:
        template += "/{crate}/{version}/download"
    named = template.replace("{crate}", package.id.name).replace("{version}", package.version)
    return named.replace("{lowerprefix}", index_path(package.id.name).rpartition("/")[0])


def parse_lines(body: bytes) -> Iterator[dict[str, Any]]:
    """The lines of one file, each as it is. Raises ValueError for what is no such file."""
    for text in io.BytesIO(body):
        if not text.strip():
            continue
        line = parse_json(text, max_bytes=MAX_ENTRY_BYTES)
        if not all(text_in(line, key) for key in ("name", "vers", "cksum")):
            raise ValueError("a line without name, vers or cksum")
        yield line


def published(body: bytes, package: Package, *, url: str) -> Published | None:
    """The version of `package`, None when no line has it; raises ValueError.

    A yanked one counts: its version is taken for ever. Build metadata does not, for registries
    take a version once whatever its build.
    """
    wanted = Version.parse(package.version)
    for line in parse_lines(body):
        if Version.parse(line["vers"]) == wanted:
            file = filename(package.id.name, package.version)
            digest = known_digest("sha256", line["cksum"])
            if not digest:
                raise ValueError("a cksum that is no SHA-256")
            return Published(files={file: digest}, url=url)
    return None


def index_line(crate: CrateFile, checksum: str, home: Home) -> dict[str, Any]:
    """What a registry would write into its index for such an upload.

    https://doc.rust-lang.org/cargo/reference/registry-index.html#json-schema
    """
    plain, weak = _features(crate.manifest.get("features", {}))
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
            for need in dependencies(crate.manifest, home)
        ],
        "cksum": checksum,
        "features": plain,
        "yanked": False,
        "links": crate.package.get("links"),
        "rust_version": crate.package.get("rust-version"),
    }
    return {**line, "v": 2, "features2": weak} if weak else line


def _features(features: Mapping[str, list[str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those older versions of cargo can read, and those with `dep:` or `?/` in them.

    https://doc.rust-lang.org/cargo/reference/registry-index.html (features2)
    """
    weak = {
        name: values
        for name, values in features.items()
        if any(value.startswith("dep:") or "?/" in value for value in values)
    }
    return {name: values for name, values in features.items() if name not in weak}, weak
