from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.maven import discover
from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.maven.pin import fill_in_pom, pin_versions
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.errors import PlanError
from unit.maven.poms import child, gav, modules, needs, projects, write

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.maven.discover import PomProject

PLANNED = {"g:a": "1.0", "g:b": "1.0"}


def pin(text: str, project: PomProject, mode: PinMode = "auto") -> str:
    pom = parse_pom(parse_document(text.encode()), project.pom.path)
    return pin_versions(text, pom, project, PLANNED, mode)


@pytest.fixture
def project(tmp_path: Path) -> PomProject:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b"))
    write(tmp_path / "a/pom.xml", gav("a"))
    write(tmp_path / "b/pom.xml", gav("b") + "<!-- é\r\n -->" + needs("a", " [1.0,2.0) "))
    return projects(tmp_path)["b"]


def test_ranges_become_exact_on_request_only(project: PomProject) -> None:
    text = project.pom.path.read_bytes().decode()
    assert pin(text, project) == text
    assert pin(text, project, "none") == text
    exact = pin(text, project, "exact")
    assert exact == text.replace(" [1.0,2.0) ", "1.0")
    assert pin(exact, project, "exact") == exact


def test_a_range_that_excludes_the_planned_version_stays(project: PomProject) -> None:
    """Maven takes another one from the repository."""
    text = project.pom.path.read_text().replace(" [1.0,2.0) ", "[2.0,)")
    assert pin(text, project, "exact") == text


@pytest.mark.parametrize("version", ["[2.0", "[1.0]x"])
def test_what_is_no_range_is_refused(project: PomProject, version: str) -> None:
    text = project.pom.path.read_text().replace(" [1.0,2.0) ", version)
    with pytest.raises(PlanError, match="g:b"):
        pin(text, project)


def test_an_exact_range_stays(project: PomProject) -> None:
    text = project.pom.path.read_text().replace(" [1.0,2.0) ", "[1.0]")
    assert pin(text, project, "exact") == text


def test_what_is_published_has_coordinates_that_stand_alone(tmp_path: Path) -> None:
    version = "${revision}${changelist}"
    held = "<properties><revision>1.0</revision><own>${revision}</own></properties>"
    write(tmp_path / "pom.xml", gav("top", version) + held + modules("a"))
    body = child("a", version) + needs("top", "${project.version}") + "<url>${keep}</url>"
    path = write(tmp_path / "a/pom.xml", body)
    found = projects(tmp_path, properties={"changelist": ""})
    page = fill_in_pom(path.read_bytes(), found["a"]).decode()
    assert page == path.read_text().replace(version, "1.0")
    top = fill_in_pom((tmp_path / "pom.xml").read_bytes(), found["top"]).decode()
    assert "<version>1.0</version>" in top
    assert "<own>1.0</own>" in top


def test_any_other_expression_in_coordinates_is_filled_in_too(tmp_path: Path) -> None:
    held = "<properties><our.version>3</our.version></properties>"
    path = write(tmp_path / "pom.xml", gav("a", "${our.version}") + held)
    page = fill_in_pom(path.read_bytes(), projects(tmp_path)["a"]).decode()
    assert page == path.read_text().replace("${our.version}", "3")


def test_a_pom_that_says_all_is_kept_to_the_byte(project: PomProject) -> None:
    data = project.pom.path.read_bytes()
    assert fill_in_pom(data, project) == data


def test_a_range_of_a_parent_becomes_exact_on_request(tmp_path: Path) -> None:
    """R67"""
    write(tmp_path / "pom.xml", gav("a") + modules("b"))
    above = f"<parent>{gav('a', '[1.0,2.0)')}</parent>"
    text = write(tmp_path / "b/pom.xml", above + gav("b")).read_text()
    project = projects(tmp_path)["b"]
    assert pin(text, project) == text
    assert pin(text, project, "exact") == text.replace("[1.0,2.0)", "1.0")


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-16"])
def test_another_encoding_is_kept(tmp_path: Path, encoding: str) -> None:
    """R66: each byte beside what changes."""
    body = gav("a", "${revision}") + "<!-- é -->" + needs("b", "[1.0,2.0)")
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    page = f"{head}<project><modelVersion>4.0.0</modelVersion>{body}</project>"
    path = tmp_path / "pom.xml"
    path.write_bytes(page.encode(encoding))
    project = projects(tmp_path, properties={"revision": "1.1"})["a"]
    filled = page.replace("${revision}", "1.1").encode(encoding)
    assert fill_in_pom(path.read_bytes(), project) == filled
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    pom = parse_pom(parse_document(path.read_bytes()), path)
    pinned = pin_versions(text, pom, project, PLANNED, "exact")
    assert pinned.encode("utf-8", "surrogateescape") == page.replace("[1.0,2.0)", "1.0").encode(
        encoding
    )


@pytest.mark.parametrize(
    ("path", "more", "is_refused"),
    [
        ("${project.basedir}/lib/x.jar", "", True),
        ("${basedir}/x.jar", "<optional>true</optional>", True),
        ("${lib}/x.jar", "", True),
        ("lib/x.jar", "", True),
        ("${project.build.directory}/x.jar", "", True),
        ("{root}/lib/x.jar", "", True),
        ("${java.home}/lib/tools.jar", "", False),
        ("/usr/share/java/x.jar", "", False),
        ("C:\\x.jar", "", False),
    ],
)
@pytest.mark.parametrize("is_managed", [False, True])
def test_a_file_that_users_do_not_have_is_refused(
    tmp_path: Path, path: str, more: str, is_refused: bool, is_managed: bool
) -> None:
    """R63: as a consumer's mvn shows, which leaves out all dependencies of such a POM."""
    path = path.replace("{root}", str(tmp_path.resolve()))
    needed = needs("x", "1", f"<scope>system</scope><systemPath>{path}</systemPath>{more}")
    if is_managed:
        needed = f"<dependencyManagement>{needed}</dependencyManagement>"
    properties = "<properties><lib>${project.basedir}/lib</lib></properties>"
    write(tmp_path / "pom.xml", gav("a") + properties + needed)
    found = discover.find_file_needed(projects(tmp_path)["a"], tmp_path.resolve())
    assert (found is not None) is is_refused


@pytest.mark.parametrize(
    ("activation", "is_refused"),
    [("<activation><os><family>unix</family></os></activation>", True), ("", False)],
)
@pytest.mark.parametrize("is_managed", [False, True])
def test_a_profile_that_users_may_activate_counts(
    tmp_path: Path, activation: str, is_refused: bool, is_managed: bool
) -> None:
    """R63: mvn of a consumer loses all dependencies with the first, and none with the other."""
    path = "<scope>system</scope><systemPath>${basedir}/x.jar</systemPath>"
    needed = needs("x", "1", path)
    if is_managed:
        needed = f"<dependencyManagement>{needed}</dependencyManagement>"
    profile = f"<profile><id>p</id>{activation}{needed}</profile>"
    write(tmp_path / "pom.xml", gav("a") + f"<profiles>{profile}</profiles>")
    found = discover.find_file_needed(projects(tmp_path)["a"], tmp_path.resolve())
    assert (found is not None) is is_refused


_MANAGED = "<dependencyManagement>{}</dependencyManagement>"
_PLUGINS = "<build><plugins><plugin>{}</plugin></plugins></build>"
_SNAPSHOT = needs("x", "2-SNAPSHOT")
_OPEN = needs("x", "").replace("<version></version>", "")
_PARENT = (
    "<parent><groupId>o</groupId><artifactId>p</artifactId><version>3-SNAPSHOT</version>"
    "<relativePath/></parent>"
)
_SHADED = _PLUGINS.format("<artifactId>maven-shade-plugin</artifactId>")
_FLAT = _PLUGINS.format("<artifactId>flatten-maven-plugin</artifactId>")
_IMPORT = _MANAGED.format(needs("x", "2-SNAPSHOT", "<type>pom</type><scope>import</scope>"))


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        (_SNAPSHOT, ["g:x 2-SNAPSHOT"]),
        (needs("x", "2-20260101.120000-1"), ["g:x 2-20260101.120000-1"]),
        (needs("x", "${v}") + "<properties><v>2-SNAPSHOT</v></properties>", ["g:x 2-SNAPSHOT"]),
        (_OPEN + _MANAGED.format(_SNAPSHOT), ["g:x 2-SNAPSHOT"]),
        (_IMPORT, ["g:x 2-SNAPSHOT"]),
        (_PARENT, ["o:p 3-SNAPSHOT"]),
        (_SNAPSHOT + _FLAT, ["g:x 2-SNAPSHOT"]),
        (_PARENT + _IMPORT + _FLAT, []),
        (_SNAPSHOT + _SHADED, []),
        (_MANAGED.format(_SNAPSHOT), []),
        (needs("x", "2"), []),
        (needs("x", "2-SNAPSHOT", "<scope>test</scope>"), []),
        (needs("x", "2-SNAPSHOT", "<scope>provided</scope>"), []),
        (needs("x", "2-SNAPSHOT", "<optional>true</optional>"), []),
        (_PLUGINS.format(gav("x", "2-SNAPSHOT")), []),
        (needs("a", "2-SNAPSHOT"), []),
    ],
)
def test_a_snapshot_that_users_resolve_is_found(
    tmp_path: Path, body: str, needed: list[str]
) -> None:
    """R63"""
    write(tmp_path / "pom.xml", gav("a") + body)
    by_name = {each.name: each for each in projects(tmp_path).values()}
    found = discover.find_snapshots_needed(by_name["g:a"], by_name)
    assert [" ".join(each) for each in found] == needed


@pytest.mark.parametrize(
    ("place", "name", "is_found"),
    [
        ("", "jgitver-maven-plugin", True),
        ("", "polyglot-yaml", True),
        ("", "maven-build-cache-extension", False),
        ("lib", "maven-git-versioning-extension", True),
        ("other", "maven-git-versioning-extension", False),
    ],
)
def test_an_extension_that_changes_poms_is_found(
    tmp_path: Path, place: str, name: str, is_found: bool
) -> None:
    """R68"""
    path = tmp_path / place / ".mvn/extensions.xml"
    path.parent.mkdir(parents=True)
    extension = f"<extension><groupId>g</groupId><artifactId>{name}</artifactId></extension>"
    path.write_text(f"<extensions>{extension}</extensions>")
    found = discover.find_rewriting(tmp_path / "lib", tmp_path)
    assert found == ((path, name) if is_found else None)


def test_another_pom_may_be_written_for_users(tmp_path: Path) -> None:
    """R63: what is not certain is not refused."""
    path = "<scope>system</scope><systemPath>${basedir}/x.jar</systemPath>"
    flatten = "<plugin><artifactId>flatten-maven-plugin</artifactId></plugin>"
    plugins = f"<build><plugins>{flatten}</plugins></build>"
    write(tmp_path / "pom.xml", gav("a") + needs("x", "1", path) + plugins)
    assert discover.find_file_needed(projects(tmp_path)["a"], tmp_path.resolve()) is None
