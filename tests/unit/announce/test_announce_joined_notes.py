"""The text of a release that several packages share."""

from __future__ import annotations

from pathlib import Path

from releasekit.announce.notes import MAX_CHARS, join_notes
from releasekit.model import Package, PackageId


def package(name: str) -> Package:
    directory = Path("/") / name
    return Package(
        id=PackageId("npm", name),
        version="1.0.0",
        directory=directory,
        manifest=directory / "package.json",
    )


def test_a_long_text_leaves_something_of_each() -> None:
    """Alone it has all the room there is, and under a heading it has less."""
    one = package("one")
    two = package("two")
    text = join_notes({one: "- A change.\n" * (MAX_CHARS // 12), two: "- Another."})
    assert len(text) <= MAX_CHARS
    assert text.startswith("## one 1.0.0\n\n- A change.\n")
