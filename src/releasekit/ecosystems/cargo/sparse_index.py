"""The sparse index, read: a file for each crate, a line for each of its versions.

https://doc.rust-lang.org/cargo/reference/registry-index.html#sparse-protocol
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from releasekit.ecosystems.cargo.crate_file import filename
from releasekit.ecosystems.shared.semver import Version
from releasekit.model import Published

if TYPE_CHECKING:
    from releasekit.model import Package


def path_of(name: str) -> str:
    """Where the file of a crate is, relative to the index."""
    lower = name.lower()
    match len(lower):
        case 1 | 2:
            return f"{len(lower)}/{lower}"
        case 3:
            return f"3/{lower[0]}/{lower}"
        case _:
            return f"{lower[:2]}/{lower[2:4]}/{lower}"


def parse(body: bytes) -> list[dict[str, Any]]:
    """The lines of one file, each as it is. Raises ValueError for what is no such file."""
    lines = []
    for text in body.splitlines():
        if not text.strip():
            continue
        line = json.loads(text)
        if not isinstance(line, dict) or not all(
            isinstance(line.get(key), str) for key in ("name", "vers", "cksum")
        ):
            raise ValueError("a line without name, vers or cksum")
        lines.append(line)
    return lines


def published(body: bytes, package: Package, *, url: str) -> Published | None:
    """The version of `package`, None when no line has it; raises ValueError.

    A yanked one counts: its version is taken for ever. Build metadata does not, for registries
    take a version once whatever its build.
    """
    wanted = Version.parse(package.version)
    for line in parse(body):
        if Version.parse(line["vers"]) == wanted:
            file = filename(package.id.name, package.version)
            return Published(files={file: f"sha256:{line['cksum'].lower()}"}, url=url)
    return None
