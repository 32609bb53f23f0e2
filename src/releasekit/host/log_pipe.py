"""A log that others open by its name, and that no secret gets into."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.aio import uncancellable
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
        # Who writes there may also have put something else in its place.
        directory = ours.enter_context(
            tempfile.TemporaryDirectory(prefix="releasekit-log-", ignore_cleanup_errors=True)
        )
        path = Path(directory) / "log"
        os.mkfifo(path, 0o600)
        output = Output(redact)
        output.log = ours.enter_context(appending(log))
        stream = Stream(output.splitter().feed)
        writer = contextlib.ExitStack()
        await stream.open_named(path, writer)
        try:
            with writer:
                yield path
        finally:
            try:
                await asyncio.wait((stream.closed,), timeout=_PATIENCE_S)
            finally:
                stream.close()
                await uncancellable(stream.closed)
