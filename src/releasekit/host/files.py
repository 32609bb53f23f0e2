"""Files of the workspace as they are found: of any size, in any encoding, leading anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def inside(root: Path, path: Path, *, where: str) -> Path:
    """`path` without symbolic links; raises ConfigError when that is not below `root`."""
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise ConfigError(
            f"{where} leads out of the workspace, to {resolved}",
            hint=f"Everything that is published has to be below {root}.",
        )
    return resolved


def read_file(path: Path, *, max_bytes: int) -> bytes:
    """The whole file; raises ConfigError when it cannot be read or is longer."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > max_bytes:
        raise ConfigError(f"{path}: larger than {max_bytes} bytes")
    return data
