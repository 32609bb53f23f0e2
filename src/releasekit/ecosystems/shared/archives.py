"""A .tar.gz or a zip, or the names in any archive, read with bounds. Nothing is ever extracted."""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import tarfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES: Final = 200_000
MAX_UNPACKED_BYTES: Final = 8 * 1024 * 1024 * 1024
# Of the table at the end of a zip, which is read as a whole; each entry takes 450 bytes more. There
# are 46 bytes for each file, its name, and some extra fields: 130 to 150 in large wheels.
# In memory, a name with an emoji and a NUL takes eight times its size.
_MAX_DIRECTORY_BYTES: Final = 16 * 1024 * 1024
_ENTRY: Final = b"PK\x01\x02"
# Fields of the record at the end, and the size of the two records that zip64 puts before it.
_SIZE, _PLACE, _ZIP64_BYTES = 5, 9, 76
# Methods that unpack in pieces of a given size; with others, four kilobytes may unpack to gigabytes
# at once.
_IN_PIECES: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
# Of a long name or of attributes, which tar keeps in an entry before their file; and of all of them
# together, or of all names.
_MAX_HEADER_BYTES: Final = 32 * 1024
_MAX_NAMES_BYTES: Final = 32 * 1024 * 1024
_HEADERS: Final = frozenset(
    {
        *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
        *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    }
)
# Of everything but the content of files.
_MAX_BESIDE_BYTES: Final = 4096 * MAX_FILES
# Of those for all files that follow; git writes its commit into one.
_MAX_ATTRIBUTES: Final = 100
_SPARSE: Final = "it holds a sparse file"

_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
_PIECE_BYTES: Final = 16 * 1024
# How much larger a .gz may be than its content: incompressible data grows by at most five bytes in
# 16 kilobytes, by 31 in 64 with bgzip.
_MAX_GROWTH_BYTES: Final = 4 * 1024 * 1024
# The errors of tarfile and zlib for an unreadable archive; headers that lead to headers recurse.
BAD_TAR: Final = (tarfile.TarError, zlib.error, EOFError, ValueError, RecursionError)
# The errors of zipfile for an unreadable zip. RuntimeError is for an encrypted member and, as
# NotImplementedError, for an unknown version of the format; ValueError, as UnicodeDecodeError, for
# a name that is not UTF-8.
BAD_ZIP: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, OverflowError, RuntimeError, ValueError),
)


class BadArchive(ValueError):
    """Not a .tar.gz, a damaged one, or one beyond the limits."""


class Member(Struct, frozen=True):
    """A regular file of an archive."""

    name: str
    size: int
    _archive: tarfile.TarFile
    _entry: tarfile.TarInfo

    def read(self, max_bytes: int) -> bytes:
        """Its first bytes, up to `max_bytes`; only until the next member is taken."""
        file = self._archive.extractfile(self._entry)
        assert file is not None  # noqa: S101 (a regular file)
        # Memory for all requested bytes is allocated beforehand.
        return file.read(min(max_bytes, self.size))

    def sha256(self) -> str:
        """The digest of all of it; only until the next member is taken."""
        file = self._archive.extractfile(self._entry)
        assert file is not None  # noqa: S101 (a regular file)
        digest = hashlib.sha256()
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
        return digest.hexdigest()

    def repack(self, into: tarfile.TarFile, data: bytes | None = None) -> None:
        """Copy it, or replace its content by `data`; only until the next member is taken."""
        entry = self._entry
        if data is None:
            into.addfile(entry, self._archive.extractfile(entry))
        else:
            entry.size = len(data)
            into.addfile(entry, io.BytesIO(data))


class _TarEntry(tarfile.TarInfo):
    """Refuses the headers that tarfile would read as a whole, however long they are.

    tarfile calls `_proc_member` for subclasses to process an entry.
    """

    def _proc_member(self, archive: Tar) -> tarfile.TarInfo | None:
        archive.count += 1
        if archive.count > MAX_FILES:
            raise BadArchive(f"it holds more than {MAX_FILES} files and headers")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise BadArchive(_SPARSE)
        if self.type in _HEADERS:
            archive.header_bytes += self.size
            if self.size > _MAX_HEADER_BYTES:
                raise BadArchive(f"it holds a header of more than {_MAX_HEADER_BYTES} bytes")
            if archive.header_bytes > _MAX_NAMES_BYTES:
                raise BadArchive(f"its headers have more than {_MAX_NAMES_BYTES} bytes")
        if len(archive.pax_headers) > _MAX_ATTRIBUTES:
            raise BadArchive(f"it gives all files more than {_MAX_ATTRIBUTES} attributes")
        member: tarfile.TarInfo | None = super()._proc_member(archive)  # type: ignore[misc]
        return member

    def _refuse_sparse(self, *_: object) -> None:
        raise BadArchive(_SPARSE)

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


class Tar(tarfile.TarFile):
    """`tarfile.TarFile` with the limits of this module, except for sizes of files. Raises
    BadArchive.
    """

    tarinfo = _TarEntry

    def __init__(self, *args: Any, **options: Any) -> None:
        self.count = self.header_bytes = 0
        super().__init__(*args, **options)


class _Unpacker:
    """Reads a .gz of one or many parts, as pigz and bgzip write it; zeros may follow each. Python's
    gzip skips zeros one by one, and any number of empty parts.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zlib = zlib.decompressobj(_GZIP_FORMAT)
        self._rest = b""
        self._parts = 1
        self._growth = 0

    def read(self, max_bytes: int) -> bytes:
        """`max_bytes`, or fewer at the end."""
        data = bytearray()
        while len(data) < max_bytes:
            if not self._rest:
                self._rest = self._file.read(_PIECE_BYTES)
                self._growth += len(self._rest)
                if self._growth > _MAX_GROWTH_BYTES:
                    raise BadArchive("it is far larger than what it unpacks to")
                if not self._rest and self._zlib.eof:
                    break
                if not self._rest:
                    raise EOFError("it ends too early")
            if self._zlib.eof:
                self._rest = self._rest.lstrip(b"\0")
                if not self._rest:
                    continue
                self._parts += 1
                if self._parts > MAX_FILES:
                    raise BadArchive(f"it is packed in more than {MAX_FILES} parts")
                self._zlib = zlib.decompressobj(_GZIP_FORMAT)
            piece = self._zlib.decompress(self._rest, max_bytes - len(data))
            self._rest = self._zlib.unconsumed_tail or self._zlib.unused_data
            self._growth -= len(piece)
            data += piece
        return bytes(data)


@contextlib.contextmanager
def opened_archive(file: IO[bytes], *, max_bytes: int) -> Iterator[Iterator[Member]]:
    """Its members, in their order; blocks. Raises BadArchive, also while they are read."""
    try:
        # As a stream, where no header leads back; tarfile itself would accept a compressed file
        # that is cut off. https://github.com/python/cpython/blob/3.11/Lib/tarfile.py
        with Tar.open(fileobj=cast("IO[bytes]", _Unpacker(file)), mode="r|") as archive:
            yield _members(archive, max_bytes)
    except BAD_TAR as error:
        raise BadArchive(str(error)) from error


def _members(archive: tarfile.TarFile, max_bytes: int) -> Iterator[Member]:
    unpacked = named = 0
    for entry in archive:
        unpacked += entry.size
        named += len(entry.name)
        if named > _MAX_NAMES_BYTES:
            raise BadArchive(f"the names in it have more than {_MAX_NAMES_BYTES} bytes")
        if unpacked > max_bytes or archive.offset > max_bytes + _MAX_BESIDE_BYTES:
            raise BadArchive(f"it unpacks to more than {max_bytes} bytes")
        archive.members.clear()  # type: ignore[attr-defined]  # or all of them would be kept
        if entry.isfile():
            yield Member(entry.name, entry.size, archive, entry)


@contextlib.contextmanager
def opened_zip(file: IO[bytes], *, max_files: int = MAX_FILES) -> Iterator[zipfile.ZipFile]:
    """A zip to read; blocks. Raises BadZipFile for more than `max_files`, before it parses them,
    and the other errors of BAD_ZIP.
    """
    _refuse_many(file, max_files)
    with zipfile.ZipFile(file) as archive:
        yield archive


@contextlib.contextmanager
def opened_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    """A file in a zip, to read piece by piece. Raises as `opened_zip`."""
    if entry.compress_type not in _IN_PIECES:
        raise zipfile.BadZipFile(f"a file in it is packed by method {entry.compress_type}")
    with archive.open(entry) as member:
        yield member


def _refuse_many(file: IO[bytes], max_files: int) -> None:
    # ZipFile begins with the same search. The count may include matches inside of names.
    try:
        end = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # noqa: SLF001
    except OSError:
        end = None
    if end is None:
        return  # ZipFile raises
    size, place = end[_SIZE], end[_PLACE]
    if size > _MAX_DIRECTORY_BYTES:
        raise zipfile.BadZipFile(f"its table of files has more than {_MAX_DIRECTORY_BYTES} bytes")
    file.seek(max(0, place - size - _ZIP64_BYTES))
    if file.read(size + _ZIP64_BYTES).count(_ENTRY) > max_files:
        raise zipfile.BadZipFile(f"it holds more than {max_files} files")


def member_names(file: IO[bytes]) -> list[str]:
    """The names of the files in a zip or a .tar.gz with any name; else empty. Blocks."""
    if zipfile.is_zipfile(file):
        with contextlib.suppress(*BAD_ZIP), opened_zip(file) as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]
        return []
    file.seek(0)
    try:
        with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
            return [member.name for member in members]
    except BadArchive:
        return []
