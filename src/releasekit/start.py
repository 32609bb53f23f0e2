"""Where the process starts: it removes its secrets first, and then imports everything else."""

from __future__ import annotations

from releasekit.host.reexec import reexec_without_secrets


def start() -> int:
    """`releasekit.__main__.start`, in a process whose secrets others cannot read."""
    reexec_without_secrets()
    # Takes 0.1 s, which would be for nothing in the first life.
    from releasekit import __main__  # noqa: PLC0415

    return __main__.start()
