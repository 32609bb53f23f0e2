"""Directories where no build can write, as each can below /tmp. They are in one, which goes with
the session of the tests: what is killed removes nothing, and nor does atexit in pytest's workers.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def _make_top() -> Path:
    top = Path(tempfile.mkdtemp(prefix="releasekit-tests-", dir="/var/tmp"))
    top.chmod(0o711)  # for the runs of other users
    return top


def make_outside(name: str) -> Path:
    """A new one, whose name begins like this, and which is closed to other users."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_make_top()))


def remove_outside() -> None:
    """All of them, with what runs and agents have left there."""
    if _make_top.cache_info().currsize:
        shutil.rmtree(_make_top(), ignore_errors=True)
        _make_top.cache_clear()
