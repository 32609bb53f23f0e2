"""What a Cargo.toml says before cargo is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.cargo.roots import publishable_at, workspace_at

if TYPE_CHECKING:
    from pathlib import Path

ROOT = '[workspace]\nmembers = ["crates/*", "out/in"]\nexclude = ["out"]\n'


@pytest.mark.parametrize(
    ("directory", "standing"),
    [
        ("crates/a", "member"),
        ("anywhere", "member"),  # by a path, or refused by cargo
        ("out", "excluded"),
        ("out/other", "excluded"),
        ("out/in", "member"),
        ("../x", ""),
    ],
)
def test_what_a_root_says_of_a_directory(tmp_path: Path, directory: str, standing: str) -> None:
    (tmp_path / "Cargo.toml").write_text(ROOT)
    membership = workspace_at(tmp_path.resolve())
    assert membership is not None
    assert membership((tmp_path / directory).resolve()) == standing


@pytest.mark.parametrize(
    ("text", "publishable"),
    [
        ('version = "1.0.0"', True),
        ("version.workspace = true", True),
        ("", False),
        ('version = "1.0.0"\npublish = false', False),
        ('version = "1.0.0"\npublish = []', False),
        ('version = "1.0.0"\npublish = ["ours"]', True),
    ],
)
def test_what_may_leave_the_repository(tmp_path: Path, text: str, publishable: bool) -> None:
    (tmp_path / "Cargo.toml").write_text(f'[package]\nname = "a"\n{text}\n')
    assert publishable_at(tmp_path) is publishable
    assert workspace_at(tmp_path) is workspace_at(tmp_path / "no") is None
