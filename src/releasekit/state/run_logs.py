"""Where each run keeps its logs, in a directory of its own, and how long those are kept."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final

from releasekit.host import durable
from releasekit.state.directory import make_state_directory, state_errors

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

# The run that is about to begin is one of them.
KEPT: Final = 10
_HINT: Final = "Only releasekit writes it: move away what is there."
_RUN: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


def name_of(run_id: str, began: datetime) -> str:
    """The name of the run's directory; names sort by time. `began` is UTC."""
    return f"{began:%Y%m%dT%H%M%SZ}-{run_id[:8]}"


def make_directory(state_directory: Path, run: str) -> Path:
    """Make the directory of this name, and the state directory around it, where they are missing.

    Raises StateError where that is impossible, because of a link in the way for instance.
    """
    make_state_directory(state_directory)
    directory = state_directory / "logs" / run
    with state_errors(_HINT, trouble="cannot be used for logs: "):
        durable.make_directory(directory)
    return directory


def remove_old(state_directory: Path) -> None:
    """Remove all but the last ones, counting the one that is about to begin; called under the
    locks.

    Whatever else lies there stays. Raises StateError for a link in the place of the directory.
    """
    logs = state_directory / "logs"
    with state_errors(_HINT, trouble="cannot be used for logs: "):
        runs = [name for name in durable.names(logs) if _RUN.fullmatch(name)]
    for run in runs[: 1 - KEPT]:
        # It follows no link, and a run of another ecosystem may be removing the same.
        # https://docs.python.org/3/library/shutil.html#shutil.rmtree
        shutil.rmtree(logs / run, ignore_errors=True)
