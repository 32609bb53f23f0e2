"""What a go.work says of the directories around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.go.roots import may_list, publishable_at, workspace_at

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


def test_a_loop_of_links_in_a_go_work_is_no_module(tmp_path: Path) -> None:
    """R40"""
    root = tmp_path.resolve()
    (root / "loop").symlink_to("loop")
    (root / "go.work").write_text("go 1.24\n\nuse (\n\t./loop\n\t./a\n)\n")
    membership = workspace_at(root)
    assert membership is not None
    assert membership(root / "a") == "member"
    assert may_list(root, root / "a", True)
