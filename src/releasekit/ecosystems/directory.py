"""Static directory registries (`dir:PATH`): files and pages that any web server can serve.

One class for every ecosystem; what differs is where files lie and what the pages beside them say,
and that is a `Layout`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from typing import TYPE_CHECKING, Final, Protocol

from releasekit.aio import uncancellable
from releasekit.config.values import Directory
from releasekit.ecosystems.shared.artifacts import read_attestation
from releasekit.ecosystems.shared.packages import not_a_package
from releasekit.errors import MissingCredentials, Rejected, Transient, describe_os_error
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.files import find_closed
from releasekit.host.flock import try_lock
from releasekit.problems import Problem
from releasekit.state.lock_order import DIRECTORY_LOCK, Kind, turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path, PurePosixPath

    from releasekit.errors import PackageError
    from releasekit.model import Artifact, Package, Published
    from releasekit.provenance.bundle import Bundle

# The holder of the lock writes a few small files: this long means that it hangs.
PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 0.005
# What a killed run has left of a file goes with the next one that is written beside it.
_TEMPORARY: Final = ".releasekit.tmp"
# Of ten thousand versions at least.
MAX_PAGE_BYTES: Final = 16 * 1024 * 1024


class Layout(Protocol):
    """Where the clients of one ecosystem look for what. Paths are relative to the directory."""

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        """Where a built file goes; None for one that no client would look for."""

    def attestation(
        self, package: Package, filename: str, bundle: Bundle
    ) -> tuple[PurePosixPath, bytes] | None:
        """Where a client finds what says where a built file comes from, and in which words; None
        where no client looks for that.
        """

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        """Everything to rewrite once the files of `package` are there, in this order.

        Each page is asked for when the one before it is in place. A kill in between leaves what a
        later call completes: pages come from the files, not from what was added last.
        """

    def lookup(self, root: Path, package: Package) -> Published | None:
        """What a client sees, from the pages alone: None, or FileNotFoundError, for nothing."""


class DirectoryRegistry:
    """Implements `interface.Registry` on a directory that several processes may write to."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._root = root
        self.layout = layout
        # One writer of this process at a time: threads that wait for a file lock would only poll.
        self._turn = asyncio.Lock()

    @property
    def url(self) -> str:
        return str(Directory(self._root))

    def check_credentials(self) -> str:
        """It takes none, and has to be writable: the directory, or where it is going to be."""
        if above := find_closed(self._root):
            raise MissingCredentials(
                f"{self.url} cannot be written: this user may not write to {above}",
                hint="Correct the permissions, or name another directory as `registry`.",
                problem=Problem.DIRECTORY_CLOSED,
            )
        return "none, and this user may write there"

    async def lookup(self, package: Package) -> Published | None:
        try:
            return await asyncio.to_thread(self.layout.lookup, self._root, package)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            cause = describe_os_error(error) if isinstance(error, OSError) else error
            raise Rejected(
                f"{package}: {self.url} cannot be read ({cause})", problem=Problem.DIRECTORY
            ) from error

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        async with turn(Kind.DIRECTORY, str(self._root), self._turn):
            await uncancellable(asyncio.to_thread(self._store, package, artifacts))

    def _store(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        try:
            durable.make_directory(self._root)
            with self._locked():
                for artifact in artifacts:
                    self._add(package, artifact)
                for path, page in self.layout.pages(self._root, package):
                    _write(self._root / path, page)
        except OSError as error:
            raise Rejected(
                f"{package}: {self.url} cannot be written ({describe_os_error(error)})",
                hint="Make room or correct the permissions, and run it again: what is there stays.",
                problem=Problem.DIRECTORY,
            ) from error
        except ValueError as error:
            raise Rejected(
                f"{package}: {self.url} has a page that cannot be read ({error})",
                problem=Problem.DIRECTORY,
            ) from error

    def _add(self, package: Package, artifact: Artifact) -> None:
        relative = self.layout.path_for(package, artifact.filename)
        if relative is None:
            raise misnamed(package, artifact.filename)
        path = self._root / relative
        durable.make_directory(path.parent)
        # A file is never replaced: the caller compares, as with any registry.
        with contextlib.suppress(FileNotFoundError), durable.opened(path, os.O_RDONLY):
            return
        with open_artifact(artifact) as file:
            data = file.read()
        # Before the file, so that none is ever shown without; until then it belongs to no file.
        if bundle := read_attestation(artifact):
            attested = self.layout.attestation(package, artifact.filename, bundle)
            if attested is not None:
                _write(self._root / attested[0], attested[1])
        durable.replace(path, data, temporary=path.with_name(_TEMPORARY))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Between two writers that read the same listing, the second would lose a link. The file
        stays: one who waits for it would hold a removed file, beside one who makes a new one.
        """
        with durable.opened(self._root / DIRECTORY_LOCK, os.O_RDWR | os.O_CREAT) as descriptor:
            patience = time.monotonic() + PATIENCE_S
            while not try_lock(descriptor):
                if time.monotonic() > patience:
                    raise Transient(
                        f"{self.url}: another process has it locked", problem=Problem.DIRECTORY
                    )
                time.sleep(_PAUSE_S)
            yield


def misnamed(package: Package, filename: str) -> PackageError:
    return not_a_package(f"{package}: {filename} is not the name of one of its files")


def read_page(path: Path) -> bytes | None:
    """As `page_there`, but None without such a page."""
    try:
        return page_there(path)
    except FileNotFoundError:
        return None


def page_there(path: Path) -> bytes:
    """Raises OSError for a link, on the way or in its place, and for a page that is not ours."""
    with durable.reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_PAGE_BYTES:
            raise OSError(errno.EFBIG, f"larger than {MAX_PAGE_BYTES} bytes", str(path))
        return file.read(size)


def _write(path: Path, page: bytes) -> None:
    with contextlib.suppress(FileNotFoundError), durable.reading(path) as file:  # through no link
        if file.read(len(page) + 1) == page:
            return
    durable.make_directory(path.parent)
    durable.replace(path, page, temporary=path.with_name(_TEMPORARY))
