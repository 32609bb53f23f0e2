"""R40: archives that somebody else may have made."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from typing import Final

import pytest

from releasekit.ecosystems.shared import archives
from releasekit.ecosystems.shared.archives import (
    BadArchive,
    member_names,
    opened_archive,
    opened_zip,
)

LIMIT: Final = 1_000


def packed(*entries: tuple[str, bytes, bytes]) -> io.BytesIO:
    """A .tar.gz of entries with these names, types and contents."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, kind, data in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(data), "/etc/passwd"
            archive.addfile(entry, io.BytesIO(data))
    stream.seek(0)
    return stream


def read(stream: io.BytesIO) -> dict[str, bytes]:
    with opened_archive(stream, max_bytes=LIMIT) as members:
        return {member.name: member.read(3) for member in members}


def test_regular_files_are_read_to_the_limit_and_nothing_else_is() -> None:
    """R36"""
    stream = packed(
        ("a", tarfile.REGTYPE, b"12345"),
        ("directory", tarfile.DIRTYPE, b""),
        ("link", tarfile.SYMTYPE, b""),
        ("hard", tarfile.LNKTYPE, b""),
        ("../b", tarfile.REGTYPE, b"1"),
    )
    assert read(stream) == {"a": b"123", "../b": b"1"}


def test_an_archive_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(name, tarfile.REGTYPE, b"x" * 400) for name in "abc"]
    assert read(packed(*entries[:2])).keys() == {"a", "b"}
    with pytest.raises(BadArchive, match="it unpacks to more than 1000 bytes"):
        read(packed(*entries))
    monkeypatch.setattr(archives, "MAX_FILES", 1)
    with pytest.raises(BadArchive, match="it holds more than 1 files and headers"):
        read(packed(*entries[:2]))


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (tarfile.XHDTYPE, b"0" * 300_000, "a header of more than 32768 bytes"),
        (tarfile.XGLTYPE, b"0" * 300_000, "a header of more than 32768 bytes"),
        (tarfile.GNUTYPE_LONGNAME, b"0" * 300_000, "a header of more than 32768 bytes"),
        (tarfile.GNUTYPE_SPARSE, b"", "a sparse file"),
        (
            tarfile.XHDTYPE,
            b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n",
            "a sparse file",
        ),
        (
            tarfile.XGLTYPE,
            b"".join(b"8 %03d=x\n" % number for number in range(200)),
            "more than 100 attributes",
        ),
    ],
)
def test_headers_have_limits(kind: bytes, data: bytes, words: str) -> None:
    """R40: tarfile reads each of them as a whole, and a map of a sparse file without end."""
    stream = packed(("a", kind, data), ("b", tarfile.REGTYPE, b"1"))
    with pytest.raises(BadArchive, match=words):
        read(stream)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"MAX_FILES": 11}, "more than 11 files and headers"),
        ({"_MAX_NAMES_BYTES": 79}, "its headers have more than 79 bytes"),
    ],
)
def test_headers_add_up(monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], words: str) -> None:
    """Each within its limit, and several before one file: they took minutes."""
    attributes = ("a", tarfile.XHDTYPE, b"8 a=123\n")
    entries = [*[attributes] * 4, ("a", tarfile.REGTYPE, b""), *[attributes] * 6]
    stream = packed(*entries, ("b", tarfile.REGTYPE, b"1"))
    assert read(stream) == {"a": b"", "b": b"1"}
    for name, most in limit.items():
        monkeypatch.setattr(archives, name, most)
    stream.seek(0)
    with pytest.raises(BadArchive, match=words):
        read(stream)


def test_members_are_not_kept() -> None:
    with opened_archive(packed(*[("a", tarfile.REGTYPE, b"")] * 9), max_bytes=LIMIT) as members:
        kept = [len(member._archive.members) for member in members]  # type: ignore[attr-defined]
    assert kept == [0] * 9


def zipped(count: int, name: bytes = b"a", comment: bytes = b"") -> io.BytesIO:
    """The end of a zip that says it has so many files; the count beside it is a lie."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, *[0] * 8, len(name), *[0] * 6)
    table = (entry + name) * count
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(table), 0, len(comment))
    return io.BytesIO(table + end + comment)


@pytest.mark.parametrize("comment", [b"", b"a comment"])
def test_a_zip_has_a_limit_of_files(comment: bytes) -> None:
    """R40: zipfile makes objects of its whole table."""
    with opened_zip(zipped(5, comment=comment), max_files=5) as archive:
        assert archive.namelist() == ["a"] * 5
    with (
        pytest.raises(zipfile.BadZipFile, match="it holds more than 5 files"),
        opened_zip(zipped(6, comment=comment), max_files=5),
    ):
        pass


def test_a_table_has_a_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MAX_DIRECTORY_BYTES", 100)
    with (
        pytest.raises(zipfile.BadZipFile, match="its table of files has more than 100 bytes"),
        opened_zip(zipped(2, name=b"a" * 10)),
    ):
        pass


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_is_zipfile_s_to_word(data: bytes) -> None:
    with pytest.raises(zipfile.BadZipFile), opened_zip(io.BytesIO(data)):
        pass


def test_the_names_in_too_large_a_zip_are_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert member_names(zipped(3)) == ["a"] * 3
    monkeypatch.setattr(archives, "_MAX_DIRECTORY_BYTES", 100)
    assert member_names(zipped(3)) == []


def test_what_is_announced_is_not_unpacked_to_find_it_too_large() -> None:
    """A header may promise terabytes; nothing of them has to be there."""
    entry = tarfile.TarInfo("a")
    entry.size = 8 * 1024**4
    with pytest.raises(BadArchive, match="it unpacks to more than"):
        read(io.BytesIO(gzip.compress(entry.tobuf(tarfile.GNU_FORMAT))))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no tar"),
        packed(("a", tarfile.REGTYPE, bytes(range(256)))).getvalue()[:100],
        packed(("a", tarfile.REGTYPE, b"1")).getvalue()[:30] + b"\xff" * 40,
    ],
)
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(BadArchive):
        read(io.BytesIO(data))


def test_an_archive_that_is_cut_off_is_refused_wherever_it_ends() -> None:
    """R36"""
    whole = packed(*((name, tarfile.REGTYPE, name.encode()) for name in "abc")).getvalue()
    for end in range(len(whole)):
        unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(whole[:end])
        # Three members, each a header and a block; only zeros come behind them.
        if len(unpacked) < 3 * 2 * tarfile.BLOCKSIZE:
            with pytest.raises(BadArchive):
                read(io.BytesIO(whole[:end]))


def test_an_archive_may_be_compressed_in_parts() -> None:
    """As pigz and bgzip do it. https://www.rfc-editor.org/rfc/rfc1952#page-5"""
    plain = gzip.decompress(
        packed(("a", tarfile.REGTYPE, b"1"), ("b", tarfile.REGTYPE, b"2")).read()
    )
    parts = gzip.compress(plain[:700]) + gzip.compress(plain[700:])
    assert read(io.BytesIO(parts)) == {"a": b"1", "b": b"2"}


def parts(plain: bytes, *more: bytes) -> io.BytesIO:
    return io.BytesIO(gzip.compress(plain) + b"".join(more))


def test_what_unpacks_to_nothing_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40: Python's gzip goes through zeros byte by byte, and no unpacked byte counts them."""
    monkeypatch.setattr(archives, "_MAX_GROWTH_BYTES", 100_000)
    monkeypatch.setattr(archives, "MAX_FILES", 50)
    # Shorter than the record that tarfile reads at once, as npm writes them.
    plain = gzip.decompress(packed(("a", tarfile.REGTYPE, b"1")).read())[:2048]
    empty = gzip.compress(b"")
    assert read(parts(plain, bytes(50_000), empty * 40, bytes(50_000), empty)) == {"a": b"1"}
    endless = parts(plain, bytes(10_000_000))
    with pytest.raises(BadArchive, match="far larger than what it unpacks to"):
        read(endless)
    assert endless.tell() < 200_000
    for stream in (parts(plain, empty * 60), parts(b"", empty * 60, gzip.compress(plain))):
        with pytest.raises(BadArchive, match="packed in more than 50 parts"):
            read(stream)
    with pytest.raises(BadArchive):
        read(parts(plain, b"no gzip"))


def test_a_file_that_packing_makes_larger_is_read() -> None:
    data = random.Random(1).randbytes(5_000_000)
    stream = packed(("a", tarfile.REGTYPE, data))
    with opened_archive(stream, max_bytes=len(data)) as members:
        assert [member.read(len(data)) == data for member in members] == [True]
