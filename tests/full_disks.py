"""A disk that takes no more, as far as this process is concerned."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Of this process and its children, for as long as the block: a write beyond that is refused by
    the system itself, with EFBIG and without a name.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(monkeypatch: pytest.MonkeyPatch, call: str, where: str) -> list[str]:
    """Let `os.write` or `os.fsync` say that the disk is full, as the system does, of every file
    with `where` in its path; those that were refused.
    """
    real: Callable[..., Any] = getattr(os, call)
    refused = []

    def refuse(descriptor: int, *rest: object) -> object:
        path = _path_of(descriptor)
        if where in path:
            refused.append(path)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, *rest)

    monkeypatch.setattr(os, call, refuse)
    return refused


def _path_of(descriptor: int) -> str:
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())
