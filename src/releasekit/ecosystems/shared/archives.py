"""A .tar.gz, or the names in any archive, read with bounds. Nothing is ever extracted."""

from __future__ import annotations

import contextlib
import gzip
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from releasekit.host import durable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILES: Final = 200_000
MAX_UNPACKED_BYTES: Final = 8 * 1024 * 1024 * 1024

# What zipfile raises for a zip that it cannot read. RuntimeError is for an encrypted member and,
# as NotImplementedError, for a version of the format that it does not know; UnicodeDecodeError for
# a name that is no UTF-8.
BAD_ZIP: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError)


class BadArchive(ValueError):
    """Not a .tar.gz, a damaged one, or one beyond the limits."""


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file of an archive."""

    name: str
    size: int
    _archive: tarfile.TarFile
    _entry: tarfile.TarInfo

    def read(self, max_bytes: int) -> bytes:
        """The beginning of it, up to that many bytes; only until the next member is asked for."""
        file = self._archive.extractfile(self._entry)
        assert file is not None  # noqa: S101 (a regular file)
        # Room is made beforehand for as many bytes as are asked for.
        return file.read(min(max_bytes, self.size))


@contextlib.contextmanager
def opened_archive(file: IO[bytes], *, max_bytes: int) -> Iterator[Iterator[Member]]:
    """Its members, in their order; blocks. Raises BadArchive, also while they are read."""
    try:
        # As a stream, in which no header leads back; tarfile itself would take a compressed file
        # that is cut off for a whole one. https://github.com/python/cpython/blob/3.11/Lib/tarfile.py
        with gzip.open(file) as data, tarfile.open(fileobj=data, mode="r|") as archive:
            yield _members(archive, max_bytes)
    # gzip raises OSError for a wrong header; headers that lead to further headers recurse.
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError) as error:
        raise BadArchive(str(error)) from error


def _members(archive: tarfile.TarFile, max_bytes: int) -> Iterator[Member]:
    unpacked = 0
    for number, entry in enumerate(archive):
        unpacked += entry.size
        if number >= MAX_FILES:
            raise BadArchive(f"it holds more than {MAX_FILES} files")
        if unpacked > max_bytes:
            raise BadArchive(f"it unpacks to more than {max_bytes} bytes")
        if entry.isfile():
            yield Member(entry.name, entry.size, archive, entry)


def member_names(path: Path) -> list[str]:
    """Of the files in a zip or a .tar.gz, whatever its name; none for what is neither. Blocks."""
    with durable.reading(path) as file:
        if zipfile.is_zipfile(file):
            with contextlib.suppress(*BAD_ZIP), zipfile.ZipFile(file) as archive:
                return [name for name in archive.namelist() if not name.endswith("/")]
            return []
        file.seek(0)
        try:
            with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
                return [member.name for member in members]
        except BadArchive:
            return []
