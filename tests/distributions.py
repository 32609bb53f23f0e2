"""Small real distributions, made without a build tool, and the packages they belong to."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.ecosystems.pypi.build import DIGESTS
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Artifact

_BACKEND = b"""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""


def package(name: str = "acme-core", version: str = "1.0.0") -> Package:
    directory = Path("/workspace") / name
    return Package(
        id=PackageId("pypi", name),
        version=version,
        directory=directory,
        manifest=directory / "pyproject.toml",
    )


def artifact(path: Path) -> Artifact:
    return digested(path, *DIGESTS)


def metadata(package: Package, *more: str) -> bytes:
    lines = ["Metadata-Version: 2.3", f"Name: {package.id.name}", f"Version: {package.version}"]
    return "\n".join([*lines, "Requires-Python: >=3.9", *more, "", "A package."]).encode()


def wheel(
    directory: Path, package: Package, *, requires: Sequence[str] = (), text: str = "A = 1\n"
) -> Artifact:
    """Installs a module of the package's name."""
    stem = package.id.name.replace("-", "_")
    info = f"{stem}-{package.version}.dist-info"
    files = {
        f"{stem}.py": text.encode(),
        f"{info}/METADATA": metadata(package, *(f"Requires-Dist: {r}" for r in requires)),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{name},{_record_hash(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    path = directory / f"{stem}-{package.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return artifact(path)


def sdist(
    directory: Path, package: Package, *, text: str = "A = 1\n", info: bytes | None = None
) -> Artifact:
    """`info` stands in for the PKG-INFO it would have."""
    stem = f"{package.id.name.replace('-', '_')}-{package.version}"
    path = directory / f"{stem}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (
            ("pyproject.toml", _BACKEND),
            ("module.py", text.encode()),
            ("PKG-INFO", metadata(package) if info is None else info),
        ):
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return artifact(path)


def both(directory: Path, package: Package, *, text: str = "A = 1\n") -> tuple[Artifact, ...]:
    """Source distribution and wheel, in a directory of their own."""
    directory.mkdir(parents=True, exist_ok=True)
    return sdist(directory, package, text=text), wheel(directory, package, text=text)


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"
