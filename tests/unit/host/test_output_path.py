"""R52: what may be replaced by a plan or by results, and what may not."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import ConfigError
from releasekit.host.output_path import describe_obstacle, find_link, require_free

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", ["", '{"schema": 1, "packages": []}', '{\n "schema": 2\n}\n'])
def test_what_a_run_has_written_gives_way(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    require_free(path, "plan-file")
    path.write_text(text)
    require_free(path, "plan-file")


@pytest.mark.parametrize(
    "text", ["{}", "# notes\n", '{"name": "acme"}', ' {"schema": 1}', '{"schema": "x"}', "[1]"]
)
def test_what_somebody_else_has_written_stays(tmp_path: Path, text: str) -> None:
    """R52"""
    path = tmp_path / "notes"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        require_free(path, "results-file")
    assert str(caught.value) == (
        f"results-file: {path} is there, and is neither a plan nor results; write the path of a "
        "new file, or of one that an earlier run has written"
    )


def test_what_is_no_regular_file_stays(tmp_path: Path) -> None:
    """R52"""
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nothing")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        found = {path.name: describe_obstacle(path) for path in tmp_path.iterdir()}
    assert found == {
        "directory": "is a directory",
        "fifo": "is not a regular file",
        "link": "is a symbolic link",
        "socket": "is not a regular file",
    }


@pytest.mark.parametrize("name", ["x" * 300, "file/inner"])
def test_a_path_that_nothing_can_have_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=f"^plan-file: {tmp_path / name} cannot be written: "):
        require_free(tmp_path / name, "plan-file")


def test_links_count_in_the_workspace_alone(tmp_path: Path) -> None:
    """R52: /tmp is a link on macOS; one in a repository is the repository's."""
    root = tmp_path / "real" / "root"
    (root / "out" / "inner").mkdir(parents=True)
    (tmp_path / "way").symlink_to("real")
    (root / "planted").symlink_to("out")
    (root / "out" / "deep").symlink_to(tmp_path)
    for top in (root, tmp_path / "way" / "root"):
        assert find_link(top / "plan.json", root) is None
        assert find_link(top / "out" / "inner" / "plan.json", root) is None
        assert find_link(top / "planted" / "inner" / "plan.json", root) == top / "planted"
        assert find_link(top / "out" / "deep" / "plan.json", root) == top / "out" / "deep"
    assert find_link(tmp_path / "way" / "plan.json", root) is None
