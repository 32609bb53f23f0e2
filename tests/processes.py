"""Processes as the system sees them."""

from __future__ import annotations

import os
import select
import signal

from releasekit.host.process import KillSchedule

PATIENCE_S = 60.0

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
