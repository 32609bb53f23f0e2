"""Built files: where they are made, how they get to where they stay, and their digests."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from releasekit.aio import uncancellable
from releasekit.model import Artifact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

_CHUNK: Final = 1024 * 1024


@contextlib.asynccontextmanager
async def scratch(environment: Mapping[str, str]) -> AsyncIterator[Path]:
    """A new directory outside the workspace, gone when it is left."""
    directory = _new_directory(environment.get("RUNNER_TEMP"))
    try:
        yield directory
    finally:
        await uncancellable(asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True))


def _new_directory(where: str | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="releasekit-", dir=where)).resolve()


@contextlib.contextmanager
def staged(into: Path) -> Iterator[Path]:
    """A new directory that takes the place of `into`, with all it holds, once the block ends.

    Where the block raises, `into` stays as it was.
    """
    partial = into.parent / f".{into.name}.building"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        shutil.rmtree(into, ignore_errors=True)
        partial.rename(into)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def digested(path: Path, *algorithms: str) -> Artifact:
    """The file with these digests; blocks."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return Artifact(path=path, size=size, digests=digests(file, *algorithms))


def digests(file: IO[bytes], *algorithms: str) -> dict[str, str]:
    """In hex, of the rest of the file, which is read once."""
    hashes = {
        name: hashlib.blake2b(digest_size=32)
        if name == "blake2b_256"
        else hashlib.new(name, usedforsecurity=False)
        for name in algorithms
    }
    while chunk := file.read(_CHUNK):
        for each in hashes.values():
            each.update(chunk)
    return {name: each.hexdigest() for name, each in hashes.items()}
