"""R40: archives that somebody else may have made."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import Final

import pytest

from releasekit.ecosystems.shared import archives
from releasekit.ecosystems.shared.archives import BadArchive, opened_archive

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
    with pytest.raises(BadArchive, match="it holds more than 1 files"):
        read(packed(*entries[:2]))


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
