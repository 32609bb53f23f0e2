"""Files of the workspace as they are found: of any size, in any encoding, leading anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


def inside(root: Path, path: Path, *, where: str) -> Path:
    """`path` without symbolic links; raises ConfigError when that is not below `root`."""
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise ConfigError(
            f"{where} leads out of the workspace, to {resolved}",
            hint=f"Everything that is published has to be below {root}.",
        )
    return resolved


def repository_of(directory: Path) -> Path | None:
    """The root of the git repository (or worktree) that holds `directory`; no process."""
    for level in (directory, *directory.parents):
        if (level / ".git").exists():
            return level
    return None


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


def read_text(path: Path, *, max_bytes: int) -> str:
    """The whole file; raises ConfigError also when it is not UTF-8."""
    data = read_file(path, max_bytes=max_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line} is not UTF-8; save it as UTF-8") from error


def read_parsed(path: Path, parse: Callable[[str], T], *, complaint: str, max_bytes: int) -> T:
    """What `parse` makes of the text, without a byte order mark; raises ConfigError where it raises
    ValueError. `complaint` is what to say of the file then: "is not valid TOML".
    """
    text = read_text(path, max_bytes=max_bytes).removeprefix("\ufeff")
    try:
        return parse(text)
    except RecursionError as error:
        raise ConfigError(f"{path} {complaint}: it is nested too deeply") from error
    except ValueError as error:
        reason = " ".join(str(error).split())
        if "integer string conversion" in reason:  # Python names a function that turns this off
            reason = "it holds an integer of thousands of digits"
        raise ConfigError(f"{path} {complaint}: {reason}") from error
