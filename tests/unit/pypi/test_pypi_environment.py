"""Which Python's pip fills build environments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.pypi.environment import find_python_with_pip

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of packages of a Python that ours, which has no pip, was made from."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("site.getsitepackages", lambda _prefixes: [str(tmp_path)])
    monkeypatch.setattr(sys, "_base_executable", "BASE", raising=False)
    return tmp_path


def put_pip(place: Path, version: str) -> None:
    directory = place / f"pip-{version}.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pip\nVersion: {version}\n")


def test_our_own_pip_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert find_python_with_pip() == sys.executable


def test_else_that_of_the_python_ours_was_made_from(base: Path) -> None:
    assert find_python_with_pip() == ""
    put_pip(base, "22.3")
    assert find_python_with_pip() == "BASE"


@pytest.mark.parametrize("version", ["22.2.2", "9.0", "of Debian"])
def test_an_old_pip_cannot_install_elsewhere(base: Path, version: str) -> None:
    put_pip(base, version)
    assert find_python_with_pip() == ""
