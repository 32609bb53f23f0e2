"""POMs that Maven refuses, whatever other POMs say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.maven.pom import read_pom
from releasekit.errors import ManifestError
from unit.maven.poms import gav, write

if TYPE_CHECKING:
    from pathlib import Path

MANAGED = (
    "<dependencyManagement><dependencies><dependency><groupId>b</groupId></dependency>"
    "</dependencies></dependencyManagement>"
)
PLUGIN = "<build><plugins><plugin>{}</plugin></plugins></build>"
DEPENDENCY = "<dependencies><dependency>{}</dependency></dependencies>"
PROFILE = "<profiles><profile>{}</profile></profiles>"
EXECUTION = "<execution><id>x</id></execution>"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<packaging> </packaging>", "has an empty <packaging>"),
        ("<parent><groupId>g</groupId><artifactId>p</artifactId></parent>", "its <parent>"),
        ("<subprojects><subproject>a</subproject></subprojects>", "has <subprojects> in"),
        ("<dependencies/><dependencies/>", "has <dependencies> 2 times in <project>"),
        ("<modules><module/></modules>", "lists a <module> without a path"),
        ("<modules><module>a</module><module>a</module></modules>", "has 2 modules named 'a'"),
        (DEPENDENCY.format("<artifactId>b</artifactId>"), "no <groupId> in a dependency"),
        (DEPENDENCY.format("<groupId>b</groupId>"), "no <artifactId> in a dependency"),
        (DEPENDENCY.format(gav(":b")), "<artifactId> ':b', which is not a valid artifactId"),
        (DEPENDENCY.format(gav("b", "1/2")), "depends on version '1/2' of b"),
        (DEPENDENCY.format(gav("b") + "<version>2</version>"), "has <version> 2 times"),
        (DEPENDENCY.format(gav("a")), "depends on itself"),
        (MANAGED, "no <artifactId> in a managed dependency"),
        (PLUGIN.format("<version>1</version>"), "no <artifactId> in the plugin ?"),
        (PLUGIN.format("<artifactId>p</artifactId><version/>"), "no <version> in the plugin p"),
        (PLUGIN.format("<artifactId>p</artifactId><groupId/>"), "no <groupId> in the plugin p"),
        (PLUGIN.format(gav("p", "LATEST")), "the version LATEST of the plugin p"),
        (
            PLUGIN.format(gav("p") + f"<executions>{EXECUTION}{EXECUTION}</executions>"),
            "has 2 executions of the plugin p named 'x'",
        ),
        (
            PLUGIN.format(gav("p") + DEPENDENCY.format("<groupId>b</groupId>")),
            "no <artifactId> in a dependency of a plugin",
        ),
        (
            PLUGIN.format(gav("p") + DEPENDENCY.format(gav("b") + "<scope>test</scope>")),
            "for a plugin in the scope 'test'",
        ),
        (
            f"<profiles>{'<profile><id>x</id></profile>' * 2}</profiles>",
            "has 2 profiles named 'x'",
        ),
        (f"<profiles>{'<profile/>' * 2}</profiles>", "has 2 profiles named 'default'"),
        (PROFILE.format("<modules/><modules/>"), "has <modules> 2 times in <profile>"),
        ("<build><plugins/><plugins/></build>", "has <plugins> 2 times in <build>"),
        (
            PROFILE.format("<repositories><repository><id>r</id></repository></repositories>"),
            "no <url> in <repository>",
        ),
        (
            "<repositories>"
            + "<repository><id>r</id><url>u</url></repository>" * 2
            + "</repositories>",
            "has 2 <repositories> named 'r'",
        ),
        (
            "<reporting><plugins><plugin><version>1</version></plugin></plugins></reporting>",
            "a plugin in <reporting>",
        ),
        (
            "<distributionManagement><status>deployed</status></distributionManagement>",
            "has a <status> in <distributionManagement>",
        ),
    ],
)
def test_a_pom_that_maven_refuses_is_refused(tmp_path: Path, body: str, said: str) -> None:
    """R66: else its build fails, once packages of other ecosystems have gone out."""
    path = write(tmp_path / "pom.xml", gav("a") + body)
    with pytest.raises(ManifestError) as caught:
        read_pom(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("model", ["", "<modelVersion>4.1.0</modelVersion>"])
def test_a_model_of_maven_4_is_refused(tmp_path: Path, model: str) -> None:
    """R66: its modules are listed and inherit in other ways, so none of them would be found."""
    path = tmp_path / "pom.xml"
    path.write_text(f"<project>{model}{gav('a')}</project>")
    with pytest.raises(ManifestError, match=r"modelVersion.*4\.0\.0.*ReleaseKit reads"):
        read_pom(path)


@pytest.mark.parametrize(
    "body",
    [
        "<properties><a>1</a><a>2</a></properties>",
        DEPENDENCY.format(gav("${b}", "[1,2)") + "<scope>${s}</scope>"),
        DEPENDENCY.format(gav("a") + "<classifier>tests</classifier>"),
        DEPENDENCY.format(gav("a") + "<type>pom</type>"),
        PROFILE.format(DEPENDENCY.format("<artifactId>b</artifactId>")),
        PROFILE.format("<modules><module>b</module><module>b</module><module/></modules>"),
        PLUGIN.format("<artifactId>p</artifactId>"),
        PLUGIN.format(gav("p") + "<executions><execution/><execution><id>x</id></execution>"
        "</executions>"),
    ],
)  # fmt: skip
def test_a_pom_that_maven_reads_is_read(tmp_path: Path, body: str) -> None:
    """R66: Maven only warns of these, or says nothing."""
    assert read_pom(write(tmp_path / "pom.xml", gav("a") + body)).artifact == "a"


def test_paths_with_the_separators_of_windows_lead_to_modules_and_parents(tmp_path: Path) -> None:
    """R66: Maven takes them on all systems."""
    parent = f"<parent>{gav('p')}<relativePath>..\\\\p</relativePath></parent>"
    body = f"{parent}<artifactId>a</artifactId><modules><module>b\\c</module></modules>"
    found = read_pom(write(tmp_path / "pom.xml", body))
    assert found.modules == ("b/c",)
    assert found.parent is not None
    assert found.parent.relative_path == "..//p"
