"""R40: what a hostile repository has in place of a manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from releasekit.errors import ConfigError
from releasekit.host import files


def test_a_link_that_leads_out_is_followed_no_further(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "in").symlink_to("sub")
    (root / "out").symlink_to("..")
    assert files.inside(root, root / "in", where="here") == root / "sub"
    assert files.inside(root, root, where="here") == root
    for path in (root / "out", root / ".." / "root2", root / "out" / "x"):
        with pytest.raises(ConfigError, match=f"^here leads out of the workspace, to {tmp_path}"):
            files.inside(root, path, where="here")


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_file(path, max_bytes=5) == b"12345"
    with pytest.raises(ConfigError, match="file: larger than 4 bytes"):
        files.read_file(path, max_bytes=4)


def test_what_never_ends_is_not_read_to_its_end() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: larger than 10 bytes"):
        files.read_file(Path("/dev/zero"), max_bytes=10)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone: cannot be read \(No such file or directory\)"):
        files.read_file(tmp_path / "gone", max_bytes=1)
