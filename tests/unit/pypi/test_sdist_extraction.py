"""An sdist is unpacked to be built from; the same holds with and without tarfile's own filter."""

from __future__ import annotations

import io
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.pypi.worker import _extract

if TYPE_CHECKING:
    from pathlib import Path


# The first Pythons 3.11 have no filter, so there is none to take away; from 3.12 on tarfile itself
# needs it.
HAS_FILTER = hasattr(tarfile, "data_filter")
OLDER = ["Python 3.11.0 to 3.11.3"] if HAS_FILTER and sys.version_info < (3, 12) else []
PYTHONS = ["as it is", *OLDER]


@pytest.fixture(params=PYTHONS, autouse=True)
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param in OLDER:
        monkeypatch.delattr(tarfile, "data_filter")


def archive(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarFile:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        directory = tarfile.TarInfo("a-1.0")
        directory.type = tarfile.DIRTYPE
        directory.mode = 0o755
        made.addfile(directory)
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, link, 0 if link else 1
        made.addfile(member, io.BytesIO(b"x"))
    buffer.seek(0)
    return tarfile.open(fileobj=buffer)


def test_files_are_unpacked(tmp_path: Path) -> None:
    with archive("a-1.0/module.py") as opened:
        _extract(opened, tmp_path)
    assert (tmp_path / "a-1.0/module.py").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../outside", tarfile.REGTYPE, ""),
        ("a-1.0/../../outside", tarfile.REGTYPE, ""),
        ("a-1.0/link", tarfile.SYMTYPE, "../../outside"),
        ("a-1.0/pipe", tarfile.FIFOTYPE, ""),
    ],
)
def test_nothing_leads_out(tmp_path: Path, name: str, kind: bytes, link: str) -> None:
    """R36"""
    into = tmp_path / "into"
    into.mkdir()
    with archive(name, kind, link) as opened, pytest.raises(tarfile.TarError):
        _extract(opened, into)
    assert sorted(tmp_path.iterdir()) == [into]
