"""Directories of a run's own, which are gone when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.aio import uncancellable
from releasekit.errors import PathError
from releasekit.host import durable
from releasekit.host.ci import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from releasekit.host.sandbox import Sandbox


@contextlib.asynccontextmanager
async def scratch(environment: Mapping[str, str]) -> AsyncIterator[Path]:
    """A new directory outside the workspace, removed at the end; raises ConfigError where it cannot
    be made.
    """
    async with _removing(lambda: _new_directory(environment.get(TEMPORARY))) as directory:
        yield directory


@contextlib.asynccontextmanager
async def closed_scratch(environment: Mapping[str, str], sandbox: Sandbox) -> AsyncIterator[Path]:
    """As `scratch`, where no build in this sandbox can write. `environment` is the snapshot taken
    at the start.
    """
    async with _removing(lambda: _new_closed_directory(environment, sandbox)) as directory:
        yield directory


@contextlib.asynccontextmanager
async def _removing(make: Callable[[], Path]) -> AsyncIterator[Path]:
    directory = make()
    try:
        yield directory
    finally:
        await uncancellable(asyncio.to_thread(_remove, directory))


def _new_directory(where: str | None) -> Path:
    try:
        parent = Path(where).resolve() if where else Path(tempfile.gettempdir())
        return durable.make_scratch(parent, "releasekit-")
    except OSError as error:
        place = f"{TEMPORARY}: {where}" if where else "TMPDIR"
        raise PathError(
            f"{place}: ReleaseKit cannot create a directory there: {error.strerror}",
            hint="Name a writable directory.",
        ) from error


def _new_closed_directory(environment: Mapping[str, str], sandbox: Sandbox) -> Path:
    named = (TEMPORARY, "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME")
    usual = [] if sandbox.abi else [tempfile.gettempdir()]  # there, builds write anywhere
    given = [environment.get(name, "") for name in named]
    # The FHS has it on every Linux: https://refspecs.linuxfoundation.org/FHS_3.0/fhs/ch05s15.html
    for place in (given[0], *usual, "/var/tmp", *given[1:]):  # noqa: S108 - for a name of our own
        if place.startswith("/") and not sandbox.can_change(Path(place)):
            with contextlib.suppress(OSError):
                return durable.make_scratch(Path(place).resolve(), "releasekit-")
    raise PathError(
        f"none of {', '.join(named)} and /var/tmp is a directory that ReleaseKit can write to and "
        "builds cannot; git needs one to log in",
        hint="Set XDG_STATE_HOME to a directory outside the workspace, /tmp, caches and "
        "`build-sandbox-paths`.",
    )


def _remove(directory: Path) -> None:
    """Files that a running build adds meanwhile stay."""
    with contextlib.suppress(OSError):
        durable.remove_tree(directory)
