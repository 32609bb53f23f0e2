"""Built files: where they are made, how they reach their place, and their digests."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
from typing import IO, TYPE_CHECKING, Final

from releasekit.aio import uncancellable
from releasekit.errors import BuildFailed, PackageError
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.folder import Folder
from releasekit.model import Artifact, PackageWarning, WarningName
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built
    from releasekit.provenance.bundle import Bundle

_CHUNK: Final = 1024 * 1024
# Four times what Maven Central takes, the most generous of all. A sparse file only seems so long.
# https://central.sonatype.org/publish/publish-portal-api/#uploading-a-deployment-bundle
MAX_BYTES: Final = 4 * 1024**3
KEPT_THERE: Final = "Built files are kept there. Make room, or move away what is in the way."


def find_too_large(
    artifacts: Iterable[Artifact], most_bytes: int, takes: str
) -> Iterator[PackageWarning]:
    """Files that a registry refuses unless it has raised its limit; `takes` ends a sentence about
    that.
    """
    for each in artifacts:
        if each.size > most_bytes:
            yield PackageWarning(
                name=WarningName.OVER_LIMIT,
                message=f"{each.filename} has {each.size / 1024**2:.1f} MiB, more than the "
                f"{most_bytes // 1024**2} MiB that {takes}",
            )


@contextlib.contextmanager
def staged(into: Path) -> Iterator[Path]:
    """A new directory that replaces `into`, with all it holds, once the block ends.

    Where the block raises, `into` stays as it was. A build may leave links anywhere: raises
    BuildFailed for one on the way to, or in place of, either directory.
    """
    partial = f".{into.name}.building"
    with contextlib.ExitStack() as stack:
        with _refusals():
            # What is put there becomes durable with its record in the journal.
            reached = Folder.reached(into.parent, make=True, sync=False)
            folder = stack.enter_context(reached)
            folder.remove_tree(partial)
            folder.make(partial)
        try:
            yield into.parent / partial
            with _refusals(), folder.inner(partial):
                folder.remove_tree(into.name)
                folder.move(partial, folder, into.name)
        finally:
            with contextlib.suppress(OSError):
                folder.remove_tree(partial)


@contextlib.asynccontextmanager
async def staged_aside(into: Path) -> AsyncIterator[Path]:
    """`staged` beside the loop, as it waits for the disk."""
    stage = staged(into)
    partial = await uncancellable(asyncio.to_thread(stage.__enter__))
    try:
        yield partial
    except BaseException as error:
        raised = type(error), error, error.__traceback__
        await uncancellable(asyncio.to_thread(stage.__exit__, *raised))
        raise
    await uncancellable(asyncio.to_thread(stage.__exit__, None, None, None))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn an OSError of the block into a BuildFailed."""
    try:
        yield
    except OSError as error:
        raise no_place(error) from error


def no_place(error: OSError) -> BuildFailed:
    """The error for a built file that cannot be read or written; not every OSError names one."""
    where = error.filename or "a file of the build"
    return BuildFailed(
        f"{where}: {error.strerror or error}", hint=KEPT_THERE, problem=Problem.NO_PLACE_TO_BUILD
    )


def write_new(path: Path, data: bytes) -> None:
    """Write one file of a new directory, through no link. Raises BuildFailed."""
    with _refusals(), durable.writing(path) as file:
        file.write(data)


def copy_new(source: Path, target: Path) -> None:
    """As `write_new`, with the bytes of another file, which must not be a link either."""
    with _refusals(), durable.writing(target) as new:
        for chunk in durable.chunks(source, max_bytes=MAX_BYTES):
            new.write(chunk)


def placed(given: Iterable[Artifact], into: Path) -> list[str]:
    """Copy files that were built elsewhere into a directory, and return their names; blocks.

    Raises BuildFailed where a file no longer has its digest.
    """
    names = []
    for artifact in given:
        try:
            with (
                open_artifact(artifact) as source,
                _refusals(),
                durable.writing(into / artifact.filename) as file,
            ):
                while chunk := source.read(_CHUNK):
                    file.write(chunk)
        except BuildFailed:
            raise
        except PackageError as error:
            raise BuildFailed(
                f"{artifact.path}: it is not what it was when it was planned",
                hint="Let nothing change files that were built elsewhere during a run, and run "
                "again.",
                problem=Problem.CHANGED_MEANWHILE,
            ) from error
        names.append(artifact.filename)
    return names


def copied(given: Sequence[Artifact], into: Path, *algorithms: str) -> Built:
    """Copy all files of a package that was built elsewhere into `into`, alone; blocks."""
    try:
        with staged(into) as partial:
            names = placed(given, partial)
    except BuildFailed as error:
        return error
    return tuple(digested(into / name, *algorithms) for name in names)


def read_attestation(artifact: Artifact) -> Bundle | None:
    """What was signed about a file; None for nothing. Blocks."""
    if artifact.attestation is None:
        return None
    from releasekit.provenance.bundle import read  # noqa: PLC0415 - only what is signed

    return read(artifact.attestation)


def digested(path: Path, *algorithms: str) -> Artifact:
    """The file with these digests; blocks. Raises BuildFailed for a link or another special file,
    and for a file that no registry would take.
    """
    with _refusals(), durable.reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"is larger than {MAX_BYTES} bytes", str(path))
        return Artifact(path=path, size=size, digests=digests(file, *algorithms))


def digests(file: IO[bytes], *algorithms: str) -> dict[str, str]:
    """In hex, of the rest of the file, which is read once."""
    hashes = {
        name: hashlib.blake2b(digest_size=32)
        if name == "blake2b_256"
        else hashlib.new(name, usedforsecurity=False)
        for name in algorithms
    }
    left = MAX_BYTES
    while chunk := file.read(_CHUNK):
        left -= len(chunk)
        if left < 0:  # it grows while it is read
            raise OSError(errno.EFBIG, f"is larger than {MAX_BYTES} bytes")
        for each in hashes.values():
            each.update(chunk)
    return {name: each.hexdigest() for name, each in hashes.items()}
