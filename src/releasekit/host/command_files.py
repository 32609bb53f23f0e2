"""The files in which a step tells the runner what to do next, kept free of what others write there.

The runner makes them before the step and obeys them after it: variables and a PATH for the steps
that follow, outputs, state, the summary. Their names are no secret, and what a build runs as the
same user can be kept from writing there by a sandbox alone. So it is taken out again.
https://github.com/actions/runner/blob/258d6c85/src/Runner.Worker/FileCommandManager.cs
"""

from __future__ import annotations

import os
import selectors
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.errors import ConfigError
from releasekit.host import durable
from releasekit.host.folder import Folder
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VARIABLES: Final = (
    *("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"),
    *("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"),
)
# The runner's own directory, which an action in a container has under another name. It also holds
# the files of the step around this one, where an action is made of steps, and these are obeyed too.
# https://github.com/actions/runner/blob/258d6c85/src/Runner.Worker/Handlers/ContainerActionHandler.cs
_DIRECTORIES: Final = frozenset({"_runner_file_commands", "file_commands"})
# More than it takes of any: a summary holds 1 MiB, all outputs together 1 MB.
MAX_BYTES: Final = 16 * 1024 * 1024
# A pipe that has no reader must not keep us waiting.
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY
_PATIENCE_S: Final = 2.0


class CommandFiles:
    """What the files have to hold: what they held when this was made, and what `append` added."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Raises ConfigError for a file that cannot be watched."""
        self._expected: dict[Path, bytes | None] = {}
        for path in _command_files(environment):
            self._expected[path] = _held(path)

    def append(self, path: str, text: str) -> None:
        """Raises OSError."""
        data = text.encode("utf-8", "replace")
        place = _real(path)
        if place not in self._expected:
            _write(path, data)
            return
        with durable.opened(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
            size = os.fstat(descriptor).st_size
            try:
                durable.write_all(descriptor, data)
            except OSError:  # a full disk: half an output would be none of ours, nor of any use
                os.ftruncate(descriptor, size)
                raise
        self._expected[place] = (self._expected[place] or b"") + data

    def restore(self) -> list[str]:
        """Put back what the files have to hold, and tell of each that held something else."""
        told = []
        for path, expected in self._expected.items():
            try:
                if _holds(path, expected):
                    continue
                _put(path, expected)
            except OSError as error:
                told.append(
                    f"{path}: written during the release, not by ReleaseKit, and cannot be "
                    f"put back: {error.strerror}"
                )
            else:
                told.append(f"{path}: written during the release, not by ReleaseKit; put back")
        return told


def _write(path: str, data: bytes) -> None:
    """To whatever it is, a terminal or a pipe too; raises OSError where nobody reads that."""
    descriptor = os.open(path, _FLAGS, 0o666)
    try:
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as full:
                    full.register(descriptor, selectors.EVENT_WRITE)
                    if not full.select(_PATIENCE_S):
                        raise
    finally:
        os.close(descriptor)


def _command_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Those that are regular files or not there yet. What this process prints to is not watched:
    `releasekit publish >>"$GITHUB_STEP_SUMMARY"`.
    """
    ours = {_identity(os.fstat(descriptor)) for descriptor in (1, 2) if _is_open(descriptor)}
    named = {_real(path) for path in map(environment.get, VARIABLES) if path}
    beside = {
        folder / name
        for folder in {path.parent for path in named}
        if folder.name in _DIRECTORIES
        for name in durable.names(folder)
    }
    for path in sorted(named | beside):
        try:
            status = path.lstat()
        except OSError:
            yield path
        else:
            if stat.S_ISREG(status.st_mode) and _identity(status) not in ours:
                yield path


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _real(path: str) -> Path:
    """With the links above it resolved; a runner's directory may well be on another disk."""
    return Path(os.path.realpath(Path(path).parent), Path(path).name)


def _held(path: Path) -> bytes | None:
    try:
        with durable.reading(path) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}",
            hint="It is the runner's; what builds write there has to be told from what was there.",
            problem=Problem.RUNNER,
        ) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{path}: holds more than {MAX_BYTES} bytes, and the runner takes 1 MiB",
            hint="Let the steps before this one write less into it.",
            problem=Problem.RUNNER,
        )
    return data


def _holds(path: Path, expected: bytes | None) -> bool:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return expected is None
    if expected is None or not stat.S_ISREG(mode):
        return False
    try:
        with durable.reading(path) as file:
            return file.read(len(expected) + 1) == expected
    except PermissionError:
        return False


def _put(path: Path, expected: bytes | None) -> None:
    """A new file in its place: whoever has the old one open writes to nothing the runner reads."""
    with Folder.reached(path.parent, make=expected is not None):
        # A link, a pipe or a file of somebody else goes; a directory stays, and is an OSError.
        path.unlink(missing_ok=True)
    if expected is not None:
        durable.replace(path, expected)
