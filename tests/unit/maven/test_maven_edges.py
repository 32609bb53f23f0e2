from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.versioning import MavenVersioning
from unit.maven.poms import child, gav, modules, needs, projects, write

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.decided import Edge

SKIPPED = "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
RELEASED = {"g:core": "1.2.0", "g:web": "1.0", "g:top": "1.0"}


def edges(root: Path, pins: PinMode = "auto") -> dict[tuple[str, str], Edge]:
    """By artifacts."""
    by_name = {each.name: each for each in projects(root).values()}
    found = MavenVersioning(by_name, root, MavenOptions(), root, pins).list_edges(RELEASED)
    return {(edge.dependent.name[2:], edge.on.name[2:]): edge for edge in found}


@pytest.mark.parametrize(
    ("version", "pins", "requirement", "patch", "major"),
    [
        ("1.3.0", "auto", "1.2.0", False, False),
        ("[1.2,2)", "auto", "[1.2,2)", True, False),
        ("[1.2,2)", "exact", "1.2.0", False, False),
        ("[1.2,)", "auto", "[1.2,)", True, True),
    ],
)
def test_an_edge_has_the_version_that_was_published(
    tmp_path: Path, version: str, pins: PinMode, requirement: str, patch: bool, major: bool
) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("core", "web"))
    write(tmp_path / "core/pom.xml", gav("core", "1.3.0"))
    write(tmp_path / "web/pom.xml", gav("web") + needs("core", version))
    edge = edges(tmp_path, pins)["web", "core"]
    assert edge.requirement == requirement
    assert (edge.admits("1.2.1"), edge.admits("2.0")) == (patch, major)


def test_parents_and_what_poms_manage_are_named_in_one_version(tmp_path: Path) -> None:
    managed = f"<dependencyManagement>{needs('core', '1.3.0')}</dependencyManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules("core", "web") + managed)
    write(tmp_path / "core/pom.xml", gav("core", "1.3.0"))
    write(tmp_path / "web/pom.xml", child("web") + needs("core", ""))
    found = edges(tmp_path)
    assert {pair: edge.requirement for pair, edge in found.items()} == {
        ("top", "core"): "1.2.0",
        ("web", "top"): "1.0",
        ("web", "core"): "1.2.0",
    }


@pytest.mark.parametrize("scope", ["<scope>test</scope>", "<optional>true</optional>"])
def test_what_users_never_resolve_makes_no_edge(tmp_path: Path, scope: str) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("core", "web"))
    write(tmp_path / "core/pom.xml", gav("core", "1.3.0"))
    write(tmp_path / "web/pom.xml", gav("web") + needs("core", "1.3.0", scope))
    assert edges(tmp_path) == {}


def places(root: Path) -> dict[str, list[str]]:
    by_name = {each.name: each for each in projects(root).values()}
    groups = MavenVersioning(by_name, root.resolve(), MavenOptions(), root, "auto").groups
    return {place: [each.name[2:] for each in sharing] for place, sharing in groups.items()}


def test_children_share_the_version_of_their_parent(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b", "c"))
    write(tmp_path / "a/pom.xml", child("a"))
    write(tmp_path / "b/pom.xml", child("b") + "<version>${project.parent.version}</version>")
    write(tmp_path / "c/pom.xml", child("c") + "<version>3.0</version>")
    assert places(tmp_path) == {"pom.xml: version": ["top", "a", "b"]}


@pytest.mark.parametrize("name", ["project.version", "project.parent.version"])
def test_a_property_of_the_name_of_a_fixed_value_is_not_followed(tmp_path: Path, name: str) -> None:
    """It may name itself, as resource filtering has it."""
    named = f"<properties><{name}>${{{name}}}</{name}></properties>"
    write(tmp_path / "pom.xml", gav("top") + named + modules("core", "web"))
    write(tmp_path / "core/pom.xml", child("core"))
    write(tmp_path / "web/pom.xml", child("web") + needs("core", f"${{{name}}}"))
    assert places(tmp_path) == {"pom.xml: version": ["top", "core", "web"]}


def test_all_that_name_one_property_share_it(tmp_path: Path) -> None:
    revision = "<properties><revision>2.1</revision></properties>"
    write(tmp_path / "pom.xml", gav("top", "${revision}") + revision + modules("a", "b"))
    write(tmp_path / "a/pom.xml", child("a", "${revision}"))
    write(tmp_path / "b/pom.xml", child("b", "${revision}") + "<version>${revision}</version>")
    assert places(tmp_path) == {"pom.xml: ${revision}": ["top", "a", "b"]}


OF_OWN = "<properties><own.version>${project.version}</own.version></properties>"


@pytest.mark.parametrize(
    ("top", "core", "asked", "shared"),
    [
        ("", gav("core"), "${project.version}", True),
        ("", gav("core", "${own}") + "<properties><own>1.0</own></properties>", "${version}", True),
        (OF_OWN, gav("core"), "${own.version}", True),
        ("<properties><its>1.0</its></properties>", gav("core"), "${its}", False),
        ("", gav("core"), "1.0", False),
        ("", gav("core", "1.3.0"), "${project.version}", False),
    ],
)
def test_who_is_required_in_the_version_of_its_dependent_shares_it(
    tmp_path: Path, top: str, core: str, asked: str, shared: bool
) -> None:
    """R67: one text cannot name two versions."""
    write(tmp_path / "pom.xml", gav("top") + modules("core", "web") + top)
    write(tmp_path / "core/pom.xml", core)
    write(tmp_path / "web/pom.xml", child("web") + needs("core", asked))
    assert places(tmp_path) == {
        "pom.xml: version": ["top", "web", "core"] if shared else ["top", "web"]
    }


@pytest.mark.parametrize(
    ("place", "own"),
    [
        ("profile", child("bom")),
        ("profile", child("bom") + "<version>1.0</version>"),
        ("profile", gav("bom")),
        ("module", child("bom") + SKIPPED),
        ("module", gav("bom") + SKIPPED),
    ],
)
def test_what_is_never_published_names_its_siblings_by_one_text_too(
    tmp_path: Path, place: str, own: str
) -> None:
    """R67: versions are written there as well, and one text cannot name two. mvn takes all of these
    with the profile.
    """
    listed = "<profile><id>release</id><modules><module>bom</module></modules></profile>"
    names = ("core", "web", "bom") if place == "module" else ("core", "web")
    top = (
        gav("top") + modules(*names) + (f"<profiles>{listed}</profiles>" if len(names) < 3 else "")
    )
    write(tmp_path / "pom.xml", top)
    write(tmp_path / "core/pom.xml", gav("core"))
    write(tmp_path / "web/pom.xml", gav("web"))
    bom = f"{own}{needs('core')}<dependencyManagement>{needs('web')}</dependencyManagement>"
    write(tmp_path / "bom/pom.xml", bom)
    (shared,) = places(tmp_path).values()
    assert {*shared} >= {"core", "web"}


def test_places_that_lead_to_one_another_are_one(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b", "c"))
    for name, need in (("a", "b"), ("b", "c"), ("c", "a")):
        write(tmp_path / name / "pom.xml", gav(name) + needs(need, "${project.version}"))
    assert places(tmp_path) == {"a/pom.xml: version": ["a", "b", "c"]}


def test_a_revision_from_outside_is_shared_too(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("top", "${revision}") + modules("a"))
    write(tmp_path / "a/pom.xml", child("a", "${revision}"))
    (tmp_path / ".mvn").mkdir()
    (tmp_path / ".mvn/maven.config").write_text("-Drevision=2.1\n")
    assert places(tmp_path) == {"${revision}": ["top", "a"]}


def test_a_snapshot_is_going_to_be_published(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("core", "web"))
    write(tmp_path / "core/pom.xml", gav("core", "1.3.0-SNAPSHOT"))
    write(tmp_path / "web/pom.xml", gav("web") + needs("core", "1.3.0-SNAPSHOT"))
    assert edges(tmp_path)["web", "core"].requirement == "1.2.0"


def test_a_range_of_a_parent_is_what_was_published(tmp_path: Path) -> None:
    """R67"""
    write(tmp_path / "pom.xml", gav("top") + modules("web"))
    above = f"<parent>{gav('top', '[1.0,2.0)')}</parent>"
    write(tmp_path / "web/pom.xml", above + gav("web"))
    edge = edges(tmp_path)["web", "top"]
    assert (edge.requirement, edge.admits("1.9"), edge.admits("2.0")) == ("[1.0,2.0)", True, False)
