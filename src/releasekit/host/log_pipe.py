"""A log that others open by its name, and that no secret gets into."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.aio import uncancellable
from releasekit.host import durable
from releasekit.host.streams import Output, Stream, appending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from releasekit.host.scrub import Redactor

# What a writer that is still there after the block gets to let go of the pipe.
_PATIENCE_S: Final = 0.5


@contextlib.asynccontextmanager
async def log_pipe(log: Path, redact: Redactor) -> AsyncIterator[Path]:
    """The path of a named pipe: what anybody writes there is appended to `log`, line by line and
    redacted. Once this is left, `log` has all of it. Raises CommandFailed for a link in its place.

    It lies in the directory for temporary files, which builds may write to.
    """
    with contextlib.ExitStack() as ours:
        directory = durable.make_scratch(Path(tempfile.gettempdir()), "releasekit-log-")
        ours.callback(_remove, directory)
        output = Output(redact)
        output.log = ours.enter_context(appending(log))
        stream = Stream(output.splitter().feed)
        writer = contextlib.ExitStack()
        await stream.open_named(directory, "log", writer)
        try:
            with writer:
                yield directory / "log"
        finally:
            try:
                await asyncio.wait((stream.closed,), timeout=_PATIENCE_S)
            finally:
                stream.close()
                await uncancellable(stream.closed)


def _remove(directory: Path) -> None:
    """Who writes there may also have put something in the way."""
    with contextlib.suppress(OSError):
        durable.remove_tree(directory)
