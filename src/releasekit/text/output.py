"""What a run prints to, which may disappear before the run ends."""

from __future__ import annotations

# Nothing else is imported, not even typing: each start waits for the first life, too.
import io
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer


class _Unfailing(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def ignore_write_errors(stream: TextIO | None) -> TextIO:
    """The same file, but what cannot be written is dropped: a closed pipe, a terminal that is gone
    or a full disk must not end a release. None stands for a descriptor that was closed before the
    start; it becomes the null device before another file can get its number.
    """
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123
    raw = _Unfailing(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        # Half of a surrogate pair, as JSON may hold one, must not end a release either.
        errors="backslashreplace",
        line_buffering=True,
    )
