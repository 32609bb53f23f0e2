"""What is read out of sources of Rust."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peers.cargo import crates_io, projects

if TYPE_CHECKING:
    from pathlib import Path

SUITE = r"""
#[cargo_test]
fn plain() {
    let p = project()
        .file("Cargo.toml", r#"
            [package]
            name = "a"
        "#)
        .file("src/lib.rs", "one\n\
            two \"quoted\" \u{e9}")
        .symlink("src/lib.rs", "link.rs")
        .build();
    let q = project().file("b/Cargo.toml", &basic_manifest("b", "0.1.0")).build();
}

#[cargo_test(nightly, reason = "-Z")]
fn computed() {
    let p = project().file("Cargo.toml", &format!("{}", 1)).build();
}
"""
UPLOAD = r"""
    New("foo", "1.0.0").keyword("a,b(").feature("x", &["dep:y", "z"])
        .dependency(DependencyBuilder::new("y").version_req("> 0").rename(&"f".repeat(3)))
        .description(&long);
"""


def test_the_projects_of_a_test_are_read(tmp_path: Path) -> None:
    suite = tmp_path / "tests" / "testsuite" / "demo.rs"
    suite.parent.mkdir(parents=True)
    suite.write_text(SUITE)
    found = dict(projects.read(tmp_path))
    assert [*found] == ["demo::plain#0", "demo::plain#1", "demo::computed#0"]
    first, second = found["demo::plain#0"], found["demo::plain#1"]
    assert first
    assert second
    assert first.files["src/lib.rs"] == 'one\ntwo "quoted" é'
    assert first.links == {"link.rs": "src/lib.rs"}
    assert 'version = "0.0.1"' in second.files["Cargo.toml"]
    assert found["demo::computed#0"] is None


def test_the_parts_of_an_upload_are_read() -> None:
    parts = crates_io.read_upload(UPLOAD.strip(), {"long": '"ab".repeat(2)'})
    (dependency,) = parts.pop("dependency")
    assert (dependency.key, dependency.entry) == ("fff", {"version": "> 0", "package": "y"})
    assert parts == {
        "name": "foo",
        "version": "1.0.0",
        "keyword": ["a,b("],
        "feature": [("x", ["dep:y", "z"])],
        "description": "abab",
    }
