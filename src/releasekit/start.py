"""Where the process starts: it removes its secrets first, and then imports everything else."""

from __future__ import annotations

import gc
import sys

from releasekit import __version__
from releasekit.host.reexec import reexec_without_secrets
from releasekit.text.output import ignore_write_errors


def start() -> int:
    """`releasekit.__main__.start`, in a process whose secrets others cannot read."""
    if sys.argv[1:] in (["--version"], ["-V"]):  # which takes nothing of what follows
        print(f"releasekit {__version__}", file=ignore_write_errors(sys.stdout))
        return 0
    reexec_without_secrets()
    gc.disable()  # until all is imported: nothing of that is ever garbage
    # Takes 0.1 s, which would be for nothing in the first life.
    from releasekit import __main__  # noqa: PLC0415

    return __main__.start()
