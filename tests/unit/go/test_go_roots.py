"""What a go.work says of the directories around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.go.roots import publishable_at, workspace_at

if TYPE_CHECKING:
    from pathlib import Path


def test_a_go_work_lists_its_modules_one_by_one(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    assert workspace_at(root) is None
    (root / "go.work").write_text("go 1.24\n\nuse (\n\t./a\n\t./b/c\n)\n")
    membership = workspace_at(root)
    assert membership is not None
    said = {name: membership(root / name) for name in ("a", "b", "b/c")}
    assert said == {"a": "member", "b": "excluded", "b/c": "member"}
    assert not publishable_at(root)
