"""R70: what tests do where a program that they take is missing or too old."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration import tools
from integration.tools import require_closed, require_tool
from releasekit.host import sandbox

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "said", "wanted", "lacking"),
    [
        ("cargo", "cargo 1.90.0", "", ""),
        ("cargo", "cargo 1.85.1", "", "cargo is 1.85.1, and 1.90 or later is wanted"),
        ("go", "go version go1.21.3 linux/amd64", "", ""),
        ("go", "go version go1.21.3 linux/amd64", "1.24", "go is 1.21.3, and 1.24 or later"),
        ("mvn", "no JAVA_HOME", "", "mvn is broken, and 3.6.3 or later is wanted"),
        ("hammer", "no version", "", ""),
        ("hammer", "v2.1.0", "2.2", "hammer is 2.1.0, and 2.2 or later is wanted"),
        ("saw", "", "", "saw is not installed"),
    ],
)
def test_what_is_too_old_counts_as_missing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    said: str,
    wanted: str,
    lacking: str,
) -> None:
    """The test is skipped with the version that it wants; in CI it fails."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "IN_CI", False)
    program = tmp_path / name
    if said:
        program.write_text(f"#!/bin/sh\necho '{said}'\n")
        program.chmod(0o755)
    if not lacking:
        assert require_tool(name, wanted) == program
        return
    with pytest.raises(pytest.skip.Exception, match=lacking):
        require_tool(name, wanted)
    monkeypatch.setattr(tools, "IN_CI", True)
    with pytest.raises(pytest.fail.Exception, match=f"{lacking}.*; CI runs every test"):
        require_tool(name, wanted)


def test_what_builds_could_change_is_not_tested_where_it_may_not_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a checkout below /tmp."""
    monkeypatch.setattr(tools, "IN_CI", False)
    monkeypatch.setattr(sandbox, "_EVERYBODYS", ("/",))
    with pytest.raises(pytest.skip.Exception, match=r"^/ holds ReleaseKit itself, and builds may"):
        require_closed()
