"""The bytes of a built file, read from one descriptor and hashed on the way: readers get all of
them only if they are the bytes that were built.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from releasekit.errors import ChangedMeanwhile
from releasekit.host import durable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.errors import PackageError
    from releasekit.model import Artifact

_CHUNK: Final = 1024 * 1024
_IN_MEMORY_BYTES: Final = 1024 * 1024


class ArtifactReader(io.RawIOBase):
    """A binary file that hands out its last bytes only if all bytes hash to the artifact's sha256.

    Otherwise it raises PackageError, so that the request that sends them cannot be finished.
    """

    def __init__(self, descriptor: int, artifact: Artifact) -> None:
        super().__init__()
        self.artifact = artifact
        self._descriptor = descriptor
        self._offset = 0
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """To the start or to the end: enough for a client to learn the size."""
        if offset or whence == os.SEEK_CUR:
            raise io.UnsupportedOperation("seek")
        self._offset = self.artifact.size if whence == os.SEEK_END else 0
        os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        self._hash = hashlib.sha256()
        return self._offset

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self.read(_CHUNK), b""))
        wanted = min(size, self.artifact.size - self._offset)
        try:
            chunk = os.read(self._descriptor, wanted)
        except OSError as error:
            raise _unreadable(self.artifact, error) from error
        self._offset += len(chunk)
        self._hash.update(chunk)
        if wanted and not chunk:
            raise self._changed()
        if chunk and self._offset == self.artifact.size:
            self._verify()
        return chunk

    @contextlib.contextmanager
    def raw(self) -> Iterator[IO[bytes]]:
        """A copy, for readers of archives, which jump back and forth; afterwards this file is
        rewound. What a build changes in the file meanwhile does not change the copy, which is in
        memory where it is small, and otherwise a file without a name.
        """
        self.seek(0)
        if self.artifact.size <= _IN_MEMORY_BYTES:
            yield io.BytesIO(self.read())
        else:
            with durable.unnamed(Path(tempfile.gettempdir())) as copy:
                shutil.copyfileobj(self, copy, _CHUNK)
                copy.seek(0)
                yield copy
        self.seek(0)

    def _verify(self) -> None:
        grown = os.fstat(self._descriptor).st_size != self.artifact.size
        if grown or self._hash.hexdigest() != self.artifact.sha256:
            raise self._changed()

    def _changed(self) -> PackageError:
        return ChangedMeanwhile(
            f"{self.artifact.path}: the file is not what was built (sha256 {self.artifact.sha256}, "
            f"{self.artifact.size} bytes); it was not sent",
            hint="Something changed it after the build. Delete it and run again to rebuild it.",
        )


@contextlib.contextmanager
def open_artifact(artifact: Artifact) -> Iterator[ArtifactReader]:
    """A reader of an artifact, for as long as its descriptor is open; nothing is read yet.

    Raises PackageError if the file is missing, or only a symbolic link.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(durable.opened(artifact.path, os.O_RDONLY))
        except OSError as error:
            raise _unreadable(artifact, error) from error
        yield stack.enter_context(ArtifactReader(descriptor, artifact))


def _unreadable(artifact: Artifact, error: OSError) -> PackageError:
    return ChangedMeanwhile(
        f"{artifact.path}: {error.strerror}; it was not sent",
        hint="Run again: what is missing is built again.",
    )
