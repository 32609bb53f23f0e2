from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.maven import MavenOptions, discover
from releasekit.errors import ConfigError
from unit.maven.poms import child, edges, gav, modules, needs, packages, projects, write

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_is_found_without_a_pom(tmp_path: Path) -> None:
    assert packages(tmp_path) == {}


def test_a_reactor_with_what_its_modules_inherit(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "deep/b/pom.xml"))
    write(tmp_path / "a/pom.xml", child("a"))
    path = write(
        tmp_path / "deep/b/pom.xml",
        child("b").replace("</parent>", "<relativePath>../../pom.xml</relativePath></parent>")
        + needs("a"),
    )
    found = packages(tmp_path)
    assert [str(it.id) for it in found.values()] == ["maven:g:top", "maven:g:a", "maven:g:b"]
    assert {it.version for it in found.values()} == {"1.0"}
    assert found["b"].manifest == path.resolve()
    assert edges(found["b"]) == {"top": "runtime", "a": "runtime"}


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("pom.xml", "<properties><revision>2.1</revision></properties>"),
        (".mvn/maven.config", "# ours\n-B -Drevision=2.1\n"),
        (".mvn/maven.config", "--define\nrevision=2.1\n"),
        (".mvn/maven.config", "--define=revision=2.1"),
    ],
)
def test_a_revision_comes_from_the_pom_or_from_outside(
    tmp_path: Path, where: str, text: str
) -> None:
    own = text if where == "pom.xml" else ""
    write(tmp_path / "pom.xml", gav("top", "${revision}${changelist}") + own + modules("a"))
    write(tmp_path / "a/pom.xml", child("a", "${revision}${changelist}"))
    if not own:
        (tmp_path / ".mvn").mkdir()
        (tmp_path / where).write_text(text)
    found = projects(tmp_path, properties={"changelist": "-rc-1"})
    assert {it.version for it in found.values()} == {"2.1-rc-1"}
    assert found["a"].parent is found["top"]


@pytest.mark.parametrize("version", ["[2.0,)", "0.9"])
def test_what_the_reactors_version_does_not_satisfy_is_no_edge(
    tmp_path: Path, version: str
) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b"))
    write(tmp_path / "a/pom.xml", child("a"))
    write(tmp_path / "b/pom.xml", child("b") + needs("a", version))
    b = packages(tmp_path)["b"]
    assert edges(b) == {"top": "runtime"}
    assert [(need.on.name, need.requirement) for need in b.elsewhere] == [("g:a", version)]


def test_a_parent_elsewhere_gives_group_and_version(tmp_path: Path) -> None:
    parent = f"<parent>{gav('corporate', '7', 'org.example')}<relativePath/></parent>"
    write(tmp_path / "pom.xml", f"{parent}<artifactId>a</artifactId>")
    (project,) = projects(tmp_path).values()
    assert (project.name, project.version, project.parent) == ("org.example:a", "7", None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gav("a", "1.0-SNAPSHOT"), "snapshot"),
        (
            gav("a") + "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>",
            "maven.deploy.skip",
        ),
        (
            gav("a") + "<build><plugins><plugin><artifactId>maven-deploy-plugin</artifactId>"
            "<configuration><skip>true</skip></configuration></plugin></plugins></build>",
            "maven-deploy-plugin",
        ),
        (
            gav("a") + "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
            "<build><plugins><plugin><artifactId>maven-deploy-plugin</artifactId>"
            "<configuration><skip>false</skip></configuration></plugin></plugins></build>",
            "",
        ),
    ],
)
def test_what_is_never_published_says_why(tmp_path: Path, body: str, reason: str) -> None:
    write(tmp_path / "pom.xml", body)
    found = packages(tmp_path)["a"].unpublishable
    assert reason in found
    assert bool(found) is bool(reason)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ("", "runtime"),
        ("<scope>test</scope>", "optional"),
        ("<scope>provided</scope>", "optional"),
        ("<optional>true</optional>", "optional"),
    ],
)
def test_users_need_what_they_resolve(tmp_path: Path, more: str, kind: str) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b"))
    write(tmp_path / "a/pom.xml", gav("a"))
    write(tmp_path / "b/pom.xml", gav("b") + needs("a", more=more))
    assert edges(packages(tmp_path)["b"]) == {"a": kind}


@pytest.mark.parametrize(
    ("version", "is_edge"),
    [("1.0", True), ("[1.0,2)", True), ("${nowhere}", True), ("0.9", False)],
)
def test_another_version_comes_from_a_repository(
    tmp_path: Path, version: str, is_edge: bool
) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b"))
    write(tmp_path / "a/pom.xml", gav("a"))
    write(tmp_path / "b/pom.xml", gav("b") + needs("a", version))
    assert ("a" in edges(packages(tmp_path)["b"])) is is_edge


@pytest.mark.parametrize(
    ("managed", "is_edge"), [("1.0", True), ("0.9", False), ("[1,2)", True), ("[2,3)", False)]
)
def test_a_managed_version_decides_where_none_is_given(
    tmp_path: Path, managed: str, is_edge: bool
) -> None:
    held = f"<dependencyManagement>{needs('a', managed)}</dependencyManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b") + held)
    write(tmp_path / "a/pom.xml", gav("a"))
    write(
        tmp_path / "b/pom.xml",
        child("b") + needs("a").replace("<version>${project.version}</version>", ""),
    )
    b = packages(tmp_path)["b"]
    assert ("a" in edges(b)) is is_edge
    assert [need.requirement for need in b.elsewhere] == ([] if is_edge else [managed])


def test_a_bom_comes_after_what_it_lists_and_a_parent_before_its_children(tmp_path: Path) -> None:
    listed = f"<dependencyManagement>{needs('a')}</dependencyManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules("a", "bom", "user") + listed)
    write(tmp_path / "a/pom.xml", child("a"))
    write(tmp_path / "bom/pom.xml", gav("bom") + "<packaging>pom</packaging>" + listed)
    imported = needs("bom", more="<type>pom</type><scope>import</scope>")
    managed = f"<dependencyManagement>{imported}</dependencyManagement>"
    write(tmp_path / "user/pom.xml", gav("user") + managed)
    found = packages(tmp_path)
    assert edges(found["bom"]) == {"a": "order"}
    assert edges(found["a"]) == {"top": "runtime"}
    assert edges(found["top"]) == {"a": "order"}
    assert edges(fakes.ordered(found)["top"]) == {}
    assert edges(found["user"]) == {"bom": "runtime"}


def test_plugins_come_first_where_they_can(tmp_path: Path) -> None:
    plugin = f"<build><plugins><plugin>{gav('tool')}</plugin></plugins></build>"
    write(tmp_path / "pom.xml", gav("top") + modules("tool", "a") + plugin)
    write(tmp_path / "tool/pom.xml", child("tool") + "<packaging>maven-plugin</packaging>")
    write(tmp_path / "a/pom.xml", gav("a") + plugin)
    found = packages(tmp_path)
    assert edges(found["a"]) == {"tool": "order"}
    assert edges(found["top"]) == {"tool": "order"}
    assert edges(fakes.ordered(found)["top"]) == {}


def test_reactors_are_named(tmp_path: Path) -> None:
    write(tmp_path / "java/pom.xml", gav("a"))
    assert packages(tmp_path) == {}
    assert packages(tmp_path, reactors=("java",)).keys() == {"a"}
    with pytest.raises(ConfigError, match="nowhere"):
        packages(tmp_path, reactors=("nowhere",))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (gav("a") + modules("gone"), "gone"),
        (gav("a", "${nowhere}"), "nowhere"),
        (gav("a", "../../x"), "no version"),
        (gav("a", "1..2"), "no version"),
        (gav("a/b"), "no artifactId"),
        (
            gav("a", "${x}") + "<properties><x>${y}</x><y>${x}${x}</y></properties>",
            "never comes to an end",
        ),
        ("<artifactId>a</artifactId>", "groupId"),
        ("<groupId>g</groupId><version>1</version>", "artifactId"),
    ],
)
def test_a_pom_that_cannot_be_used_is_named(tmp_path: Path, body: str, words: str) -> None:
    write(tmp_path / "pom.xml", body)
    with pytest.raises(ConfigError) as caught:
        packages(tmp_path)
    assert words in str(caught.value)
    assert str(tmp_path / "pom.xml") in str(caught.value)


def test_a_module_outside_of_the_workspace_is_refused(tmp_path: Path) -> None:
    """R36"""
    write(tmp_path / "outside/pom.xml", gav("b"))
    write(tmp_path / "root/pom.xml", gav("a") + modules("../outside"))
    with pytest.raises(ConfigError, match="leads out of the workspace"):
        packages(tmp_path / "root")


def test_parents_in_a_circle_are_refused(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        above = f"<parent>{gav(other)}<relativePath>../{other}</relativePath></parent>"
        write(tmp_path / one / "pom.xml", above + gav(one))
    with pytest.raises(ConfigError, match="never come to an end"):
        packages(tmp_path, reactors=("a",))


@pytest.mark.parametrize(
    "page",
    [
        '<!DOCTYPE project [<!ENTITY a "b">]><project>&a;</project>',
        '<!DOCTYPE project [<!ENTITY a SYSTEM "/etc/passwd">]><project>&a;</project>',
        "<project>&a;</project>",
        "<project>",
        "",
        "<html/>",
        "<a>" * 200,
    ],
)
def test_what_is_no_pom_is_refused(tmp_path: Path, page: str) -> None:
    """R40"""
    (tmp_path / "pom.xml").write_text(page)
    with pytest.raises(ConfigError, match="not a POM"):
        packages(tmp_path)


@pytest.mark.parametrize(
    ("head", "encoding", "words"),
    [
        ('<?xml version="1.0" encoding="Shift_JIS"?>', "shift-jis", "the encoding 'shift_jis'"),
        ('<?xml version="1.0" encoding="nonsense"?>', "ascii", "the encoding 'nonsense'"),
        ('<?xml version="1.0" encoding="UTF-16"?>', "ascii", "the encoding 'UTF-16'"),
        *(
            (f'<?xml version="1.0" encoding="{name}"?>', "ascii", f"the encoding '{name}'")
            for name in ("rot13", "zlib", "punycode", "UTF-32")
        ),
    ],
)
def test_an_encoding_that_is_not_read_is_named(
    tmp_path: Path, head: str, encoding: str, words: str
) -> None:
    """R66"""
    page = f"{head}\n<project><name>é日</name></project>"
    (tmp_path / "pom.xml").write_bytes(page.encode(encoding, "replace"))
    with pytest.raises(ConfigError) as caught:
        packages(tmp_path)
    assert str(tmp_path / "pom.xml is not a POM: ") in str(caught.value)
    assert words in str(caught.value)


def test_what_a_plugin_needs_goes_out_before_what_uses_it(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b", "c", "./a"))
    for name in ("a", "b"):
        write(tmp_path / name / "pom.xml", gav(name))
    plugin = f"<plugin>{gav('elsewhere', '3')}{needs('a', '1.0')}</plugin>"
    extension = f"<extension>{gav('b')}</extension>"
    write(
        tmp_path / "c" / "pom.xml",
        f"{gav('c')}<build><plugins>{plugin}</plugins><extensions>{extension}</extensions></build>",
    )
    found = packages(tmp_path)
    assert list(found) == ["top", "a", "b", "c"]
    assert edges(found["c"]) == {"a": "order", "b": "order"}


@pytest.mark.parametrize(
    ("artifact", "where"),
    [
        ("top", ""),
        ("top", "<relativePath>../../outside/pom.xml</relativePath>"),
        ("corporate", ""),
    ],
)
def test_another_parent_is_not_the_one_that_lies_here(
    tmp_path: Path, artifact: str, where: str
) -> None:
    root = tmp_path / "workspace"
    write(tmp_path / "outside" / "pom.xml", gav("top", "0.9"))
    write(root / "pom.xml", gav("top") + modules("a"))
    parent = f"<parent>{gav(artifact, '0.9')}{where}</parent>"
    write(root / "a" / "pom.xml", f"{parent}<artifactId>a</artifactId>")
    assert projects(root)["a"].parent is None
    assert projects(root)["a"].version == "0.9"


def test_arguments_that_a_shell_would_refuse_are_named(tmp_path: Path) -> None:
    write(tmp_path / "pom.xml", gav("a"))
    (tmp_path / ".mvn").mkdir()
    (tmp_path / ".mvn" / "maven.config").write_text('-Drevision="1')
    with pytest.raises(ConfigError, match=r"maven.config.*not a list of arguments"):
        projects(tmp_path)


def test_a_workspace_has_only_so_many_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover, "MAX_PROJECTS", 1)
    write(tmp_path / "pom.xml", gav("top") + modules("a"))
    write(tmp_path / "a" / "pom.xml", gav("a"))
    with pytest.raises(ConfigError, match="more than 1 modules"):
        projects(tmp_path)


def test_a_property_that_grows_is_refused(tmp_path: Path) -> None:
    """R51"""
    grows = "".join(f"<p{n}>{f'${{p{n + 1}}}' * 300}</p{n}>" for n in range(9))
    write(tmp_path / "pom.xml", gav("a", "${p0}") + f"<properties>{grows}<p9>x</p9></properties>")
    with pytest.raises(ConfigError, match="never comes to an end"):
        projects(tmp_path)


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        ("", True),
        ("<profile><id>release</id></profile>", True),
        ("<profile><id>new</id><activation><jdk>[9,)</jdk></activation></profile>", False),
    ],
)
def test_a_profile_that_is_active_by_default_may_skip_deployment(
    tmp_path: Path, other: str, counts: bool
) -> None:
    """R1: unless another of that POM may be active by itself, which then replaces it."""
    default = (
        "<profile><activation><activeByDefault>true</activeByDefault></activation><build><plugins>"
        "<plugin><artifactId>maven-deploy-plugin</artifactId><configuration><skip>${no}</skip>"
        "</configuration></plugin></plugins></build><properties><no>true</no></properties>"
        "<modules><module>b</module></modules></profile>"
    )
    write(tmp_path / "pom.xml", gav("a") + f"<profiles>{default}{other}</profiles>")
    write(tmp_path / "b/pom.xml", gav("b"))
    found = packages(tmp_path)
    assert found.keys() == {"a"}
    assert bool(found["a"].unpublishable) is counts


def test_a_managed_artifact_may_be_named_by_an_expression(tmp_path: Path) -> None:
    held = "<properties><name>a</name></properties>"
    held += f"<dependencyManagement>{needs('${name}', '0.9')}</dependencyManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b") + held)
    write(tmp_path / "a/pom.xml", gav("a"))
    write(tmp_path / "b/pom.xml", child("b") + needs("a", ""))
    assert [need.requirement for need in packages(tmp_path)["b"].elsewhere] == ["0.9"]


def test_each_module_asks_for_what_it_needs_of_all_that_is_managed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time to plan grows with the square of the modules."""
    names = [f"m{number}" for number in range(40)]
    managed = "".join(f"<dependency>{gav(name)}</dependency>" for name in names)
    managed = f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules(*names) + managed)
    for name, need in zip(names, [*names[1:], names[0]], strict=True):
        write(tmp_path / name / "pom.xml", child(name) + needs(need, ""))
    found = {each.name: each for each in projects(tmp_path).values()}
    resolve, asked = discover.PomProject.resolve, Counter[str]()

    def count(project: discover.PomProject, text: str) -> str:
        asked[project.name] += 1
        return resolve(project, text)

    monkeypatch.setattr(discover.PomProject, "resolve", count)
    discover.make_packages(found)
    assert max(asked[f"g:{name}"] for name in names) < len(names)


def test_a_plugin_of_a_managed_version_comes_from_a_repository(tmp_path: Path) -> None:
    plugin = f"<plugins><plugin>{gav('p', '')}</plugin></plugins>".replace(
        "<version></version>", ""
    )
    managed = f"<plugins><plugin>{gav('p', '0.9')}</plugin></plugins>"
    managed = f"<pluginManagement>{managed}</pluginManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules("a", "p") + f"<build>{managed}</build>")
    write(tmp_path / "a/pom.xml", child("a") + f"<build>{plugin}</build>")
    write(tmp_path / "p/pom.xml", gav("p"))
    assert edges(packages(tmp_path)["a"]) == {"top": "runtime"}


PARENT = f"<parent>{gav('top', '[1.0,2.0)')}</parent>"


@pytest.mark.parametrize(
    ("version", "place", "is_parent"),
    [
        ("[1.0,2.0)", "", True),
        ("[0.1,0.2],[1.0,)", "", True),
        ("[2.0,3.0)", "", False),
        ("[1.0,2.0)", "<relativePath/>", False),  # Maven asks a registry
        ("1.0", "<relativePath/>", True),
        ("[1.0", "", False),
    ],
)
def test_a_parent_may_be_named_by_a_range(
    tmp_path: Path, version: str, place: str, is_parent: bool
) -> None:
    """R67: what it hands down comes along, and so does its place in the order."""
    skip = "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
    write(tmp_path / "pom.xml", gav("top") + modules("a") + skip)
    write(tmp_path / "a/pom.xml", f"<parent>{gav('top', version)}{place}</parent>{gav('a')}")
    found = packages(tmp_path)["a"]
    assert edges(found) == ({"top": "runtime"} if is_parent else {})
    assert bool(found.unpublishable) is is_parent


def test_a_range_stays_one_where_a_child_names_it(tmp_path: Path) -> None:
    """R67: as `mvn help:evaluate` says."""
    write(tmp_path / "pom.xml", gav("top", "1.5") + modules("a"))
    write(tmp_path / "a/pom.xml", PARENT + gav("a"))
    project = projects(tmp_path)["a"]
    assert project.resolve("${project.parent.version}") == "[1.0,2.0)"
    (edge,) = packages(tmp_path)["a"].dependencies
    assert edge.requirement == "[1.0,2.0)"


@pytest.mark.parametrize(
    ("moved", "kind"),
    [
        ("<artifactId>new</artifactId>", {"new": "runtime"}),
        (
            "<groupId>g</groupId><artifactId>new</artifactId><version>1.0</version>",
            {"new": "runtime"},
        ),
        ("<artifactId>new</artifactId><version>0.9</version>", {}),
        ("<groupId>h</groupId>", {"old": "runtime"}),
        ("<artifactId>elsewhere</artifactId>", {}),
    ],
)
def test_what_a_package_moved_to_goes_out_first(
    tmp_path: Path, moved: str, kind: dict[str, str]
) -> None:
    """R67: Maven takes the target in place of it."""
    relocation = f"<relocation>{moved}</relocation>"
    write(tmp_path / "pom.xml", gav("top") + modules("old", "new", "other"))
    write(
        tmp_path / "old/pom.xml",
        gav("old") + f"<distributionManagement>{relocation}</distributionManagement>",
    )
    write(tmp_path / "new/pom.xml", gav("new"))
    write(tmp_path / "other/pom.xml", gav("old", group="h"))
    by_name = {
        each.name: each for each in discover.load_projects(tmp_path.resolve(), MavenOptions())
    }
    package = next(each for each in discover.make_packages(by_name) if each.id.name == "g:old")
    assert edges(package) == kind


def test_a_relocation_is_not_inherited(tmp_path: Path) -> None:
    """R67: as `mvn help:effective-pom` shows."""
    relocation = "<relocation><artifactId>b</artifactId></relocation>"
    above = f"<distributionManagement>{relocation}</distributionManagement>"
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b") + above)
    write(tmp_path / "a/pom.xml", child("a"))
    write(tmp_path / "b/pom.xml", gav("b"))
    assert edges(packages(tmp_path)["a"]) == {"top": "runtime"}


def plugin(name: str, body: str, more: str = "") -> str:
    configured = f"<configuration>{body}</configuration>" if body else ""
    return f"<plugin><artifactId>{name}</artifactId>{configured}{more}</plugin>"


def build(*plugins: str, managed: bool = False) -> str:
    listed = f"<plugins>{''.join(plugins)}</plugins>"
    return (
        f"<build>{f'<pluginManagement>{listed}</pluginManagement>' if managed else listed}</build>"
    )


def execution(name: str, body: str = "", goal: str = "") -> str:
    goals = f"<goals><goal>{goal}</goal></goals>" if goal else ""
    return f"<executions><execution><id>{name}</id>{goals}{body}</execution></executions>"


@pytest.mark.parametrize(
    ("reactors", "top"),
    [((), None), ((".",), None), ((".", "e"), "."), (("e", "."), "e"), ((".", "f"), None)],
)
def test_a_module_of_a_profile_is_built_in_the_reactor_that_lists_it(
    tmp_path: Path, reactors: tuple[str, ...], top: str | None
) -> None:
    """R67: there its parent is, which no registry has yet."""
    root = tmp_path.resolve()
    only = "<profiles><profile><id>p</id><modules><module>e</module></modules></profile></profiles>"
    write(root / "pom.xml", gav("top") + modules("a") + only)
    for name in ("a", "e", "f"):
        write(root / name / "pom.xml", child(name))
    found = projects(root, reactors=reactors)
    assert (found["e"].top if "e" in found else None) == (root / top if top else None)


def profile(name: str, plugin: str) -> str:
    return f"<profiles><profile><id>{name}</id>{build(plugin)}</profile></profiles>"


CENTRAL = "central-publishing-maven-plugin"
STAGING = "nexus-staging-maven-plugin"
DEPLOY = "maven-deploy-plugin"
YES = "<skip>true</skip>"
CONFIGURED_YES = f"<configuration>{YES}</configuration>"
NO_PHASE = "<phase>none</phase>"


@pytest.mark.parametrize(
    ("above", "own", "reason"),
    [
        ("", build(plugin(CENTRAL, "<skipPublishing>true</skipPublishing>")), f"{CENTRAL} is con"),
        ("", "<properties><skipPublishing>true</skipPublishing></properties>", "skipPublishing is"),
        (
            "",
            "<properties><skipNexusStagingDeployMojo>true</skipNexusStagingDeployMojo></properties>",
            "skipNexusStagingDeployMojo is true",
        ),
        (
            build(plugin(STAGING, "<skipNexusStagingDeployMojo>true</skipNexusStagingDeployMojo>")),
            "",
            f"{STAGING} is configured",
        ),
        ("", build(plugin(STAGING, "<skipStaging>true</skipStaging>")), ""),
        ("", "<properties><maven.install.skip>true</maven.install.skip></properties>", ""),
        (
            build(plugin(CENTRAL, "<excludeArtifacts><a>x</a><a>a</a></excludeArtifacts>")),
            "",
            f"excludeArtifacts of {CENTRAL} names it",
        ),
        (build(plugin(CENTRAL, "<excludeArtifacts><a>b</a></excludeArtifacts>")), "", ""),
        (
            build(
                plugin(CENTRAL, "<excludeArtifacts><a>${it}</a></excludeArtifacts>"), managed=True
            ),
            "<properties><it>a</it></properties>",
            "excludeArtifacts",
        ),
        ("<properties><excludeArtifacts>b, a</excludeArtifacts></properties>", "", "excludeArtif"),
        # A nearer value decides, and that of pluginManagement gives way.
        (
            build(plugin(CENTRAL, "<skipPublishing>true</skipPublishing>")),
            build(plugin(CENTRAL, "<skipPublishing>false</skipPublishing>")),
            "",
        ),
        (
            build(plugin(DEPLOY, YES)),
            build(plugin(DEPLOY, "<skip>false</skip>"), managed=True),
            DEPLOY,
        ),
        (build(plugin(DEPLOY, YES, "<inherited>false</inherited>")), "", ""),
        (build(plugin(DEPLOY, YES, "<inherited>false</inherited>"), managed=True), "", ""),
        # By execution; one that publishes is enough.
        ("", build(plugin(DEPLOY, "", execution("default-deploy", CONFIGURED_YES))), DEPLOY),
        ("", build(plugin(DEPLOY, "", execution("other", CONFIGURED_YES))), ""),
        ("", build(plugin(DEPLOY, YES, execution("again", "", "deploy"))), DEPLOY),
        ("", build(plugin(DEPLOY, "", execution("again", CONFIGURED_YES, "deploy"))), ""),
        (
            "",
            build(
                plugin(
                    DEPLOY, YES, execution("x", CONFIGURED_YES.replace("true", "false"), "deploy")
                )
            ),
            "",
        ),
        (
            build(plugin(DEPLOY, "", execution("default-deploy", CONFIGURED_YES))),
            build(
                plugin(
                    DEPLOY,
                    "",
                    execution("default-deploy", CONFIGURED_YES.replace("true", "false")),
                )
            ),
            "",
        ),
        ("", build(plugin(DEPLOY, "", execution("default-deploy", NO_PHASE))), "no phase"),
        (
            build(plugin(CENTRAL, "")),
            build(plugin(DEPLOY, "", execution("default-deploy", NO_PHASE))),
            "",
        ),
        ("", build(plugin(CENTRAL, "", execution("publish", NO_PHASE, "publish"))), ""),
        # Of kinds of versions.
        ("", build(plugin(DEPLOY, "<skip>releases</skip>")), DEPLOY),
        ("", build(plugin(DEPLOY, "<skip>snapshots</skip>")), ""),
        ("", build(plugin(DEPLOY, "<skip>TRUE</skip>")), DEPLOY),
        # Beside another plugin, as google/gson has it.
        (
            build(plugin(DEPLOY, YES), managed=True) + profile("release", plugin(CENTRAL, "")),
            "",
            f"to skip it; if {CENTRAL} publishes it, remove this <skip>",
        ),
        (profile("release", plugin(CENTRAL, "")), build(plugin(DEPLOY, YES)), "to skip it"),
        # In the profile that releases turn on.
        (
            profile("release", plugin(CENTRAL, "<excludeArtifacts><a>a</a></excludeArtifacts>")),
            "",
            "names it in the profile 'release'",
        ),
        (
            build(plugin(CENTRAL, "<skipPublishing>true</skipPublishing>"))
            + profile("release", plugin(CENTRAL, "<skipPublishing>false</skipPublishing>")),
            "",
            "",
        ),
        (
            profile("quick", plugin(DEPLOY, YES)),
            "",
            "",
        ),
    ],
)
def test_what_a_plugin_that_publishes_would_not_send_stays(
    tmp_path: Path, above: str, own: str, reason: str
) -> None:
    """R67"""
    write(tmp_path / "pom.xml", gav("top") + modules("a") + above)
    write(tmp_path / "a/pom.xml", child("a") + own)
    found = packages(tmp_path)["a"].unpublishable
    assert reason in found
    assert bool(found) is bool(reason)


DEFAULT = "<activeByDefault>true</activeByDefault>"


@pytest.mark.parametrize(
    ("activation", "body", "kinds"),
    [
        (DEFAULT, needs("b", "1.0"), {"b": "runtime"}),
        (DEFAULT, build(f"<plugin>{gav('b')}</plugin>"), {"b": "order"}),
        ("<jdk>[9,)</jdk>", needs("b", "1.0"), {"b": "optional"}),
        ("<jdk>[9,)</jdk>", f"<dependencyManagement>{needs('b')}</dependencyManagement>", {}),
        ("", needs("b", "1.0"), {}),
    ],
)
def test_what_a_profile_adds_goes_out_first(
    tmp_path: Path, activation: str, body: str, kinds: dict[str, str]
) -> None:
    """R67: Maven orders it first, and users may have the profile too."""
    active = f"<activation>{activation}</activation>" if activation else ""
    profiles = f"<profiles><profile>{active}{body}</profile></profiles>"
    write(tmp_path / "pom.xml", gav("top") + modules("a", "b"))
    write(tmp_path / "a/pom.xml", gav("a") + profiles)
    write(tmp_path / "b/pom.xml", gav("b"))
    assert edges(packages(tmp_path)["a"]) == kinds
