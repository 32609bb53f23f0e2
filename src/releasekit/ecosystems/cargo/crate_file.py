"""A .crate, read: what `cargo package` made of a manifest, so that stored bytes say all there is
to say. Nothing is ever extracted.
"""

from __future__ import annotations

import tarfile
import tomllib
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from releasekit.errors import PackageError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
# https://github.com/rust-lang/crates.io/blob/main/src/config/server.rs (max_unpack_size: 512 MB)
MAX_UNPACKED_BYTES: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CrateFile:
    """`manifest` is the normalised Cargo.toml; `readme` its text, None when there is none."""

    manifest: Mapping[str, Any]
    readme: str | None

    @property
    def package(self) -> Mapping[str, Any]:
        found = self.manifest["package"]
        assert isinstance(found, dict)  # noqa: S101 (checked by `read`)
        return found


def filename(name: str, version: str) -> str:
    return f"{name}-{version}.crate"


def read(file: IO[bytes], name: str, version: str) -> CrateFile:
    """Raises PackageError for anything but the .crate of this package."""
    root = f"{name}-{version}"
    try:
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            sizes = _sizes(archive)
            data = _content(archive, f"{root}/Cargo.toml", sizes)
            manifest = tomllib.loads(data.decode())
            readme = _checked(manifest, name, version).get("readme")
            text = None
            if isinstance(readme, str) and f"{root}/{readme}" in sizes:
                text = _content(archive, f"{root}/{readme}", sizes).decode("utf-8", "replace")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, LookupError) as error:
        raise PackageError(
            f"cargo:{name} {version}: {filename(name, version)} is not its package: {error}"
        ) from error
    return CrateFile(manifest, text)


def _checked(manifest: Mapping[str, Any], name: str, version: str) -> Mapping[str, Any]:
    package = manifest.get("package")
    if not isinstance(package, dict) or (package.get("name"), package.get("version")) != (
        name,
        version,
    ):
        raise ValueError("its Cargo.toml is another package's")
    return package


def _sizes(archive: tarfile.TarFile) -> dict[str, int]:
    sizes: dict[str, int] = {}
    total = 0
    for member in archive:
        total += member.size
        if total > MAX_UNPACKED_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
        if member.isfile():
            sizes[member.name] = member.size
    return sizes


def _content(archive: tarfile.TarFile, name: str, sizes: Mapping[str, int]) -> bytes:
    if sizes[name] > MAX_FILE_BYTES:
        raise ValueError(f"{name} is larger than {MAX_FILE_BYTES} bytes")
    file = archive.extractfile(name)
    return file.read() if file is not None else b""
