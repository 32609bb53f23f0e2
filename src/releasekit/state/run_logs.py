"""Where each run keeps its logs: a directory of its own, and how long those stay."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final

from releasekit.errors import StateError
from releasekit.state.directory import make_state_directory

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

# The run that is about to begin is one of them.
KEPT: Final = 10
_RUN: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


def name_of(run_id: str, began: datetime) -> str:
    """The name of the run's directory: by name is by time. `began` is UTC."""
    return f"{began:%Y%m%dT%H%M%SZ}-{run_id[:8]}"


def make(state_directory: Path, run: str) -> Path:
    """The directory of this name, and the state directory around it, made where they are missing.

    Raises StateError where a link leads somewhere else.
    """
    logs = _logs(state_directory)
    make_state_directory(state_directory)
    directory = logs / run
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def remove_old(state_directory: Path) -> None:
    """All but the last ones, the one that is about to begin included; called under the locks.

    Whatever else lies there stays, and no link is followed. Raises StateError as `make` does.
    """
    logs = _logs(state_directory)
    if not logs.is_dir():
        return
    runs = sorted(
        entry.name
        for entry in logs.iterdir()
        if _RUN.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink()
    )
    for run in runs[: 1 - KEPT]:
        # It follows no link, and a run of another ecosystem may be removing the same.
        # https://docs.python.org/3/library/shutil.html#shutil.rmtree
        shutil.rmtree(logs / run, ignore_errors=True)


def _logs(state_directory: Path) -> Path:
    logs = state_directory / "logs"
    if logs.is_symlink():
        raise StateError(
            f"{logs}: is a link, so no log is written there",
            hint="Delete it; the next run makes a directory of that name.",
        )
    return logs
