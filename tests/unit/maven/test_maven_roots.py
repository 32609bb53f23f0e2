"""What a POM says of the directories it lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.maven import MavenOptions, discover
from releasekit.ecosystems.maven.discover import load_projects
from releasekit.ecosystems.maven.roots import publishable_at, workspace_at
from releasekit.ecosystems.shared.packages import unique_by_name

if TYPE_CHECKING:
    from pathlib import Path


def pom(artifact: str, *lines: str, version: str = "1.0") -> str:
    tags = f"<groupId>g</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    return "\n".join(["<project><modelVersion>4.0.0</modelVersion>", tags, *lines, "</project>"])


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


def test_a_pom_that_lists_no_modules_is_not_parsed(tmp_path: Path) -> None:
    """A reactor has a thousand of them, and each is looked at."""
    (tmp_path / "pom.xml").write_text("<project> and no end")
    assert workspace_at(tmp_path.resolve()) is None


@pytest.mark.parametrize("version", ["1.0", "1.0-SNAPSHOT"])
@pytest.mark.parametrize("skip", ["true", "false"])
def test_what_may_leave_the_repository(tmp_path: Path, version: str, skip: str) -> None:
    """R66: a snapshot too, as between releases every version is one."""
    more = f"<properties><maven.deploy.skip>{skip}</maven.deploy.skip></properties>"
    (tmp_path / "pom.xml").write_text(pom("a", more, version=version))
    assert publishable_at(tmp_path.resolve()) is (skip == "false")


def test_a_parent_above_keeps_its_children_from_leaving(tmp_path: Path) -> None:
    """R56: within the repository, as far as the files lead."""
    skipped = "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
    below = tmp_path.resolve() / "extras" / "a"
    below.mkdir(parents=True)
    parent = (
        "<parent><groupId>g</groupId><artifactId>top</artifactId><version>1.0</version>"
        "<relativePath>../../pom.xml</relativePath></parent>"
    )
    (below / "pom.xml").write_text(pom("a", parent))
    (tmp_path / "pom.xml").write_text(pom("top", skipped))
    assert publishable_at(below)
    (tmp_path / ".git").mkdir()
    assert not publishable_at(below)


def test_of_two_of_one_name_the_published_one_counts(tmp_path: Path) -> None:
    """But for those in whose reactor only the private one is."""
    root = tmp_path.resolve()
    needs = "<dependencies><dependency><groupId>g</groupId><artifactId>core</artifactId>"
    needs += "</dependency></dependencies>"
    for top, version in (("one", "1.0"), ("two", "1.0-SNAPSHOT")):
        for name in ("core", f"of-{top}"):
            (root / top / name).mkdir(parents=True)
        modules = f"<modules><module>core</module><module>of-{top}</module></modules>"
        (root / top / "pom.xml").write_text(pom(top, modules))
        (root / top / "core/pom.xml").write_text(pom("core", version=version))
        (root / top / f"of-{top}/pom.xml").write_text(pom(f"of-{top}", needs))
    found = load_projects(root, MavenOptions(reactors=("two", "one")))
    projects, twins = unique_by_name(found, cure="", private=discover.explain_unpublishable)
    packages = {each.id.name: each for each in discover.make_packages(projects, twins)}
    assert packages["g:core"].version == "1.0"
    assert packages["g:of-one"].dependencies[0].private == ""
    assert "is a snapshot" in packages["g:of-two"].dependencies[0].private
