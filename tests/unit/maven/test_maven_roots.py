"""What a POM says of the directories it lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.maven.roots import publishable_at, workspace_at

if TYPE_CHECKING:
    from pathlib import Path


def pom(artifact: str, *lines: str, version: str = "1.0") -> str:
    tags = f"<groupId>g</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    return "\n".join(["<project>", tags, *lines, "</project>"])


def test_modules_are_directories_or_files_anywhere(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("top/a", "top/b", "beside"):
        (root / name).mkdir(parents=True)
        (root / name / "pom.xml").write_text(pom("x"))
    listed = ("a", "../beside", "b/pom.xml", "gone")
    modules = "".join(f"<module>{name}</module>" for name in listed)
    (root / "top/pom.xml").write_text(pom("top", f"<modules>{modules}</modules>"))
    membership = workspace_at(root / "top")
    assert membership is not None
    said = {name: membership(root / name) for name in ("top/a", "top/b", "beside", "other")}
    assert said == {"top/a": "member", "top/b": "member", "beside": "member", "other": ""}
    assert workspace_at(root / "beside") is workspace_at(root / "other") is None


@pytest.mark.parametrize(("version", "publishable"), [("1.0", True), ("1.0-SNAPSHOT", False)])
def test_what_may_leave_the_repository(tmp_path: Path, version: str, publishable: bool) -> None:
    (tmp_path / "pom.xml").write_text(pom("a", version=version))
    assert publishable_at(tmp_path.resolve()) is publishable
