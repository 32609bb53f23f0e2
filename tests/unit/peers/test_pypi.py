"""How projects and tables are read out of the tests of other projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peers.pypi import tables, uv

if TYPE_CHECKING:
    from pathlib import Path

RUST = """
#[test]
fn joins_members() -> Result<()> {
    let manifest = context.temp_dir.child("pyproject.toml");
    manifest.write_str(indoc! {r#"
        [tool.uv.workspace]
        members = ["a"]
    "#})?;
    let member = context.temp_dir.child("a");
    member.child("pyproject.toml").write_str("[project]")?;
    uv_snapshot!(context.filters(), context.lock(), @"");
    member.child("src").child("__init__.py").touch()?;
    uv_snapshot!(context.filters(), context.lock(), @"");
    uv_snapshot!(context.filters(), context.sync(), @"");
    Ok(())
}
#[test]
fn writes_a_port() -> Result<()> {
    context.temp_dir.child("pyproject.toml").write_str(&formatdoc! {r#"a = "{port}""#})?;
    uv_snapshot!(context.filters(), context.lock(), @"");
    Ok(())
}
"""


def test_workspaces_are_read_at_each_command(tmp_path: Path) -> None:
    """R64: each as often as it has changed, and nothing of what a test computes."""
    path = tmp_path / "lock.rs"
    path.write_text(RUST)
    first, second, computed = uv._read_suite(path)
    assert first[0] == "lock::joins_members#0"
    assert first[1] is not None
    assert first[1].files == {
        "pyproject.toml": '\n[tool.uv.workspace]\nmembers = ["a"]\n',
        "a/pyproject.toml": "[project]",
    }
    assert second[1] is not None
    assert second[1].files.keys() - first[1].files.keys() == {"a/src/__init__.py"}
    assert computed == ("lock::writes_a_port#0", None)


def test_rows_of_tables_are_read_without_running_them(tmp_path: Path) -> None:
    """R64: a value that a test computes is left out."""
    path = tmp_path / "test_a.py"
    path.write_text(
        '@pytest.mark.parametrize(("a", "b"), [(1, "x"), (f(), "y")])\n'
        '@pytest.mark.parametrize("c", ["z", make()])\n'
        '@pytest.mark.parametrize("d", computed)\n'
        "def test_a(a, b, c, d): pass\n"
    )
    rows = [({"a": 1, "b": "x"}), {"b": "y"}, {"c": "z"}, {}]
    assert [*tables.read_rows(path)] == [("test_a", each) for each in rows]
