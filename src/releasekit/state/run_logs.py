"""What builds print: one log for each build of a run, the part of it that a failure shows, and how
long the logs of a run are kept.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import BuildFailed
from releasekit.host import durable
from releasekit.host.streams import last_lines, log_pipe
from releasekit.report.view import OUTPUT, READ_ITS_LOG
from releasekit.state.directory import MOVE_AWAY, make_state_directory, state_errors
from releasekit.text.cause import find_cause

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from pathlib import Path

    from releasekit.errors import ReleasekitError
    from releasekit.host.scrub import Redactor
    from releasekit.model import PackageId

# The run that is about to begin is one of them.
KEPT: Final = 10
# The first error of a compiler, say, stands far above the end.
_SEARCHED: Final = 5_000
_RUN: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


class Log(Struct, frozen=True):
    """One file, without the secrets that `redact` knows."""

    path: Path
    redact: Redactor

    @property
    def hint(self) -> str:
        return f"{READ_ITS_LOG} {OUTPUT}{self.path}."

    def piped(self) -> AbstractAsyncContextManager[Path]:
        """The path of a pipe, for a child that writes its output to a path."""
        return log_pipe(self.path, self.redact)

    def failure(self, message: str, error: ReleasekitError) -> BuildFailed:
        """A failed build, with the lines and the hint of `error` if it has some, and after
        `message` the cause that they name.
        """
        own = error.log if isinstance(error, BuildFailed) else ()
        cause = find_cause(own or last_lines(self.path, most=_SEARCHED))
        return BuildFailed(
            f"{message}: {cause}" if cause and cause not in message else message,
            log=own or last_lines(self.path),
            hint=error.hint or self.hint,
            problem=error.problem,
        )


class Logs(Struct, frozen=True):
    """The logs of one run, in one directory, which is made with the first of them."""

    state_directory: Path
    run: str
    redact: Redactor

    def fresh(self, kind: str, package: PackageId, *, call: int = 0) -> Log:
        """An empty log, named after what is done to the package and in which call of a tool."""
        # No name of a package holds a "+", so no two packages share a file.
        name = package.name.replace("/", "+").replace(":", "+")
        number = f"+{call}" if call else ""
        directory = make_directory(self.state_directory, self.run)
        path = directory / f"{kind}-{package.ecosystem}-{name}{number}.log"
        with state_errors(MOVE_AWAY, trouble="cannot be used for logs: "):
            durable.remove_tree(path)
        return Log(path, self.redact)


def name_of(run_id: str, began: datetime) -> str:
    """The name of the run's directory; names sort by time. `began` is UTC."""
    return f"{began:%Y%m%dT%H%M%SZ}-{run_id[:8]}"


def make_directory(state_directory: Path, run: str) -> Path:
    """With the state directory around it. Raises StateError, for a link in the way for instance."""
    make_state_directory(state_directory)
    directory = state_directory / "logs" / run
    with state_errors(MOVE_AWAY, trouble="cannot be used for logs: "):
        durable.make_directory(directory)
    return directory


def remove_old(state_directory: Path) -> None:
    """Remove all but the last ones, counting the one that is about to begin; called under the
    locks.

    Other files there stay. Raises StateError for a link in the place of the directory.
    """
    logs = state_directory / "logs"
    with state_errors(MOVE_AWAY, trouble="cannot be used for logs: "):
        runs = [name for name in durable.directories(logs) if _RUN.fullmatch(name)]
    for run in runs[: 1 - KEPT]:
        # A run of another ecosystem may be removing the same.
        with contextlib.suppress(OSError):
            durable.remove_tree(logs / run)
