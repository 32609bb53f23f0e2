"""Processes as the system sees them, and waiting for what they do."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING

from releasekit.host.process import KillSchedule

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

# However busy the machine is, only what hangs takes as long.
PATIENCE_S = 600.0

# For children that obey no signal but the last.
IMPATIENT = KillSchedule(
    signals=((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, PATIENCE_S)),
    pipes_s=0.1,
)


def ended(pid: int) -> bool:
    """Whether the process, not necessarily a child of ours, is gone or goes shortly."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], PATIENCE_S)[0])
    finally:
        os.close(fd)


def wait_until(
    happened: Callable[[], bool],
    process: subprocess.Popen[bytes] | None = None,
    told: Callable[[], str] = str,
) -> None:
    """Until then, `process` may not end. `told` gives what a failure shows."""
    patience = time.monotonic() + PATIENCE_S
    over = False
    while not happened():
        assert not over, f"it ended before that\n{told()}"
        assert time.monotonic() < patience, f"it never came to that\n{told()}"
        time.sleep(0.01)
        over = process is not None and process.poll() is not None
