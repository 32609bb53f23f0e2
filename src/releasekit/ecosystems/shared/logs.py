"""What builds print: one log for each build of a run, and what of it a failure shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.errors import BuildFailed
from releasekit.host.streams import last_lines
from releasekit.state import run_logs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.errors import ReleasekitError
    from releasekit.model import PackageId


@dataclass(frozen=True, slots=True)
class Log:
    """One file. `redact` is for what a child wrote into it by itself."""

    path: Path
    redact: Callable[[str], str]

    @property
    def hint(self) -> str:
        return f"The whole output is in {self.path}"

    def failure(self, message: str, error: ReleasekitError) -> BuildFailed:
        """A failed build, with the lines and the hint of `error` where it has any of its own."""
        own = error.log if isinstance(error, BuildFailed) else ()
        return BuildFailed(
            message,
            log=own or tuple(map(self.redact, last_lines(self.path))),
            hint=error.hint or self.hint,
        )


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs of one run, in a directory of its own that is made with the first of them."""

    state_directory: Path
    run: str
    redact: Callable[[str], str]

    def fresh(self, kind: str, package: PackageId, *, call: int = 0) -> Log:
        """An empty log, named after what is done to the package and in which call of a tool."""
        # No name of a package holds a "+", so no two packages share a file.
        name = package.name.replace("/", "+").replace(":", "+")
        number = f"+{call}" if call else ""
        directory = run_logs.make_directory(self.state_directory, self.run)
        path = directory / f"{kind}-{package.ecosystem}-{name}{number}.log"
        path.unlink(missing_ok=True)
        return Log(path, self.redact)
