from __future__ import annotations

import asyncio
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

import fakes
from integration.tools import require_tool
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.target import Maven, MavenTarget
from releasekit.errors import PlanError, told_of
from releasekit.host.edits import Edits
from releasekit.model import PackageId
from releasekit.problems import Problem
from unit.maven.poms import child, gav, modules, needs
from versions.writing import write_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# «what stands there|what is going to»
MARK = re.compile(r"«([^|»]*)\|([^»]*)»")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!-- 1.2.0 -->\n<project>\n'
OWN = "«1.2.0|1.3.0»"


def pom(body: str) -> str:
    return f"{HEAD}<modelVersion>4.0.0</modelVersion>\n{body}\n</project>\n"


def managed(body: str) -> str:
    return f"<dependencyManagement>{body}</dependencyManagement>"


def plugin(artifact: str, version: str) -> str:
    return f"<plugins><plugin>{gav(artifact, version)}</plugin></plugins>"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(MARK.sub(r"\1", text).encode())


def find(root: Path, options: MavenOptions | None = None) -> MavenTarget:
    config = fakes.config(root.resolve())
    maven = Maven(config, options or MavenOptions(), fakes.services(config, None))
    return MavenTarget(asyncio.run(maven.discover(config.root)), fakes.FakeRegistry())


def assert_written(
    root: Path, files: Mapping[str, str], versions: Mapping[str, str], options: MavenOptions
) -> None:
    """All files are as their marks say, what is discovered has `versions`, and all is done."""
    write(root, files)
    wanted = {f"g:{name}": version for name, version in versions.items()}
    changed = write_versions(root.resolve(), find(root, options), wanted)
    after = {name: MARK.sub(r"\2", text).encode() for name, text in files.items()}
    assert {name: (root / name).read_bytes() for name in files} == after
    assert changed == {name for name, text in files.items() if MARK.search(text)}
    options = MavenOptions.from_table({"properties": dict.fromkeys(options.properties, "1.3.0")})
    target = find(root, options)
    found = {each.id.name: each.version for each in target.workspace.packages}
    assert found == {**found, **wanted}
    assert write_versions(root.resolve(), target, wanted) == set()


INHERITED = {
    "pom.xml": pom(gav("top", OWN) + modules("a", "b")),
    "a/pom.xml": pom(child("a", OWN) + needs("b") + managed(needs("elsewhere"))),
    "b/pom.xml": pom(child("b", OWN) + "<version>${project.parent.version}</version>"),
}
REVISION = {
    "pom.xml": pom(
        gav("top", "${revision}")
        + modules("a")
        + f"<properties><revision>{OWN}</revision><other>1.2.0</other></properties>"
    ),
    "a/pom.xml": pom(child("a", "${revision}") + needs("top", "${revision}")),
}
SNAPSHOT = {
    "pom.xml": pom(
        gav("top", "${revision}${sha1}${changelist}")
        + modules("a")
        + f"<properties><revision>{OWN}</revision><sha1/>"
        "<changelist>«-SNAPSHOT|»</changelist></properties>"
    ),
    "a/pom.xml": pom(child("a", "${revision}${sha1}${changelist}")),
}
QUALIFIED = {
    "pom.xml": pom(
        gav("top", "${base}-jre") + modules() + f"<properties><base>{OWN}</base></properties>"
    )
}
OF_ARGUMENTS = {
    "pom.xml": pom(gav("top", "${revision}") + modules("a")),
    "a/pom.xml": pom(child("a", "${revision}")),
}
MAVEN_CONFIG = f"# -Drevision=1.2.0\r\n-T 1C\r\n-Dother=1.2.0 '-Drevision={OWN}'\r\n"
OPTIONS = f"[maven]  # ours\n[maven.properties]\nother = '1.2.0'\n'revision' = '{OWN}'"
IN_PROFILE = {
    "pom.xml": pom(
        gav("top", OWN)
        + modules()
        + "<profiles><profile><id>it</id><modules><module>it</module><module>gone</module>"
        f"</modules>{needs('top', OWN)}</profile></profiles>"
    ),
    "it/pom.xml": pom(child("it", OWN) + f"<version>{OWN}</version>" + needs("top")),
}
SKIPPED = "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
# What is private repeats the version of its parent, or of what names it, or has one of its own.
PRIVATE = {
    "pom.xml": pom(
        gav("top", OWN)
        + modules("its", "tools", "own", "lib")
        + managed(
            "<dependencies>"
            + "".join(
                f"<dependency>{gav(name, '${project.version}')}</dependency>"
                for name in ("its", "tools")
            )
            + "</dependencies>"
        )
    ),
    "lib/pom.xml": pom(child("lib", OWN)),
    "its/pom.xml": pom(
        child("its", OWN) + f"<version>{OWN}</version>" + modules("unnamed") + SKIPPED
    ),
    "its/unnamed/pom.xml": pom(
        f"<parent>{gav('its', OWN)}</parent>" + gav("unnamed", OWN) + needs("helper")
    ),
    "tools/pom.xml": pom(gav("tools", OWN) + modules("helper") + SKIPPED),
    "tools/helper/pom.xml": pom(gav("helper", OWN) + SKIPPED + needs("own", "1.2.0-own")),
    "own/pom.xml": pom(child("own", OWN) + "<version>1.2.0-own</version>" + SKIPPED),
}
ABOVE = {
    "pom.xml": pom(gav("all", "1.0") + modules("a")),
    "a/pom.xml": pom(
        f"<parent>{gav('top', OWN)}<relativePath>../parent</relativePath></parent>"
        "<artifactId>a</artifactId>"
    ),
    "parent/pom.xml": pom(gav("top", OWN) + modules()),
}


@pytest.mark.parametrize(
    ("files", "versions", "properties"),
    [
        (INHERITED, {"top": "1.3.0", "a": "1.3.0", "b": "1.3.0"}, {}),
        (REVISION, {"top": "1.3.0", "a": "1.3.0"}, {}),
        (SNAPSHOT, {"top": "1.3.0", "a": "1.3.0"}, {}),
        (QUALIFIED, {"top": "1.3.0-jre"}, {}),
        ({**OF_ARGUMENTS, ".mvn/maven.config": MAVEN_CONFIG}, {"top": "1.3.0", "a": "1.3.0"}, {}),
        (
            {**OF_ARGUMENTS, "releasekit.toml": OPTIONS},
            {"top": "1.3.0", "a": "1.3.0"},
            {"revision": "1.2.0"},
        ),
        (IN_PROFILE, {"top": "1.3.0"}, {}),
        (PRIVATE, {"top": "1.3.0", "lib": "1.3.0"}, {}),
        (ABOVE, {"a": "1.3.0"}, {}),
    ],
    ids=[
        *("inherited", "revision", "snapshot", "qualifier", "maven.config", "option"),
        *("profile", "private", "a parent that is no module"),
    ],
)
def test_a_version_is_written_where_it_stands(
    tmp_path: Path,
    files: Mapping[str, str],
    versions: Mapping[str, str],
    properties: Mapping[str, str],
) -> None:
    assert_written(tmp_path, files, versions, MavenOptions(properties=properties))


CORE = pom(gav("core", OWN))
PLUGINS = f"<build>{plugin('core', OWN)}</build>"
MANAGED_PLUGINS = f"<build><pluginManagement>{plugin('core', OWN)}</pluginManagement></build>"
CONFIGURATION = (
    "<build><plugins><plugin><artifactId>maven-compiler-plugin</artifactId><configuration>"
    f"<annotationProcessorPaths><path>{gav('core', OWN)}</path></annotationProcessorPaths>"
    f"<oldVersion><dependency>{gav('core', '1.2.0')}</dependency></oldVersion>"
    "</configuration></plugin></plugins></build>"
)
RELOCATION = "<distributionManagement><relocation>{}</relocation></distributionManagement>"


@pytest.mark.parametrize(
    "body",
    [
        needs("core", OWN),
        needs("core", OWN, "<scope>test</scope>"),
        needs("core", "\n\t\t«1.2.0|1.3.0» <!-- ours -->\r\n"),
        needs("core", "<![CDATA[«1.2.0|1.3.0»]]>"),
        managed(needs("core", OWN, "<type>pom</type><scope>import</scope>")),
        f"<properties><core.version>{OWN}</core.version><x>1.2.0</x></properties>"
        + needs("core", "${core.version}")
        + managed(needs("core", "${core.version}")),
        PLUGINS,
        MANAGED_PLUGINS,
        f"<reporting>{plugin('core', OWN)}</reporting>",
        CONFIGURATION,
        needs("core", "[«1.2.0|1.3.0»]"),
        needs("core", "[1.0, «1.3|1.4» )"),
        needs("core", "(1.0,1.1),[1.2,«1.2.9|1.3.0»]"),
        needs("core", "[1.2,2)"),
        needs("core", "1.1.0"),  # on purpose
        needs("core", "[1.0,1.1]"),
        needs("other", "1.2.0"),
        RELOCATION.format(f"<artifactId>core</artifactId><version>{OWN}</version>"),
        RELOCATION.format("<artifactId>core</artifactId><version>1.1.0</version>"),
    ],
)
def test_what_siblings_require_goes_along(tmp_path: Path, body: str) -> None:
    files = {
        "pom.xml": pom(gav("top", "1.2.0") + modules("core", "web")),
        "core/pom.xml": CORE,
        "web/pom.xml": pom(gav("web", "1.2.0") + body),
    }
    assert_written(tmp_path, files, {"core": "1.3.0"}, MavenOptions())


def test_each_byte_that_is_no_version_stays(tmp_path: Path) -> None:
    text = pom(gav("core", OWN) + "<name>Grüße &amp; mehr</name>").replace("\n", "\r\n").strip()
    files = {"pom.xml": f"\ufeff{text}"}
    assert_written(tmp_path, files, {"core": "1.3.0"}, MavenOptions())


SHARED = "<properties><v>1.2.0</v></properties>"


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (
            needs("core"),
            [
                "web/pom.xml: '1.2.0' has to be '1.2.0' for web/pom.xml: the version of g:web",
                "and '1.3.0' for web/pom.xml: the version of g:core",
            ],
        ),
        (
            SHARED + needs("core", "${v}") + managed(needs("third", "${v}")),
            [
                "web/pom.xml: '1.2.0' has to be '1.3.0' for web/pom.xml: the version of g:core",
                "and '1.2.0' for web/pom.xml: the version of g:third",
            ],
        ),
        (
            needs("core", "1.2&#46;0"),
            ["web/pom.xml: the version of g:core is '1.2.0', and has to be 1.3.0"],
        ),
        (
            needs("core", "[1.2,1.3-alpha)"),
            ["web/pom.xml: the version of g:core is '[1.2,1.3-alpha)', and has to hold 1.3.0"],
        ),
    ],
)
def test_what_cannot_be_edited_is_named_and_nothing_is_written(
    tmp_path: Path, body: str, messages: list[str]
) -> None:
    write(
        tmp_path,
        {
            "pom.xml": pom(gav("top", "1.2.0") + modules("core", "web")),
            "core/pom.xml": CORE,
            "web/pom.xml": pom(gav("web", "1.2.0") + body),
        },
    )
    with pytest.raises(PlanError) as raised:
        write_versions(tmp_path.resolve(), find(tmp_path), {"g:core": "1.3.0"})
    (error,) = told_of(raised.value)
    assert (str(error), error.problem) == (" ".join(messages), Problem.CANNOT_WRITE)


def test_the_version_of_a_parent_on_a_registry_is_not_ours(tmp_path: Path) -> None:
    write(tmp_path, {"pom.xml": pom(child("a", "1.2.0"))})
    with pytest.raises(PlanError, match=r"version of g:a is '1\.2\.0', and has to be 1\.3\.0"):
        write_versions(tmp_path.resolve(), find(tmp_path), {"g:a": "1.3.0"})


def test_a_range_of_a_parent_is_widened(tmp_path: Path) -> None:
    """R67: Maven would look for the parent in a registry."""
    above = f"<parent>{gav('top', '[1.0,«1.3|1.4»)')}</parent>"
    files = {
        "pom.xml": pom(gav("top", OWN) + modules("web")),
        "web/pom.xml": pom(above + gav("web", "1.2.0") + needs("top", "${project.parent.version}")),
    }
    assert_written(tmp_path, files, {"top": "1.3.0"}, MavenOptions())


def test_what_repeats_a_version_by_chance_keeps_it(tmp_path: Path) -> None:
    """R67: a range of its parent leaves its version free, as with versions:set. What moves is
    named, and mvn finds each parent in the reactor.
    """
    mvn = require_tool("mvn")

    def private(name: str, of_parent: str, own: str, more: str = "") -> str:
        return pom(f"<parent>{gav('top', of_parent)}</parent>{gav(name, own)}{SKIPPED}{more}")

    in_profile = "<profile><id>it</id><modules><module>it</module></modules></profile>"
    files = {
        "pom.xml": pom(
            gav("top", OWN)
            + modules("lib", "free", "named", "closed", "repeats", "inherits", "needing")
            + managed(needs("named"))
            + f"<profiles>{in_profile}</profiles>"
        ),
        "lib/pom.xml": pom(child("lib", OWN)),
        "free/pom.xml": private("free", "[1.0,2.0)", "1.2.0", modules("below")),
        "free/below/pom.xml": pom(
            f"<parent>{gav('free', '1.2.0')}</parent>{gav('below', '1.2.0')}"
        ),
        "named/pom.xml": private("named", "[1.0,2.0)", OWN),
        "closed/pom.xml": private("closed", "[1.0,«1.3|1.4»)", OWN, needs("free", "1.2.0")),
        "repeats/pom.xml": private("repeats", OWN, OWN),
        "inherits/pom.xml": pom(child("inherits", OWN) + SKIPPED + needs("needing", OWN)),
        "it/pom.xml": private("it", OWN, OWN),
        "needing/pom.xml": private("needing", "[1.0,2.0)", OWN, needs("lib")),
    }
    write(tmp_path, files)
    versions, edits = {"g:top": "1.3.0", "g:lib": "1.3.0"}, Edits(tmp_path.resolve())
    written = find(tmp_path).versioning.edit(versions, edits, "raise")
    moved = ("g:closed", "g:inherits", "g:it", "g:named", "g:needing", "g:repeats")
    assert written.moved == {PackageId("maven", name): "1.3.0" for name in moved}
    assert_written(tmp_path, files, {"top": "1.3.0", "lib": "1.3.0"}, MavenOptions())
    argv = (str(mvn), "-o", "-B", "-Pit", "validate")
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    stay = {"free 1.2.0", "below 1.2.0"}
    moved_too = {f"{name} 1.3.0" for name in ("top", "lib", *(it[2:] for it in moved))}
    assert {*re.findall(r"Building (\w+ \S+)", said.stdout)} == stay | moved_too


def test_another_encoding_is_kept(tmp_path: Path) -> None:
    """R66"""
    head = '<?xml version="1.0" encoding="ISO-8859-1"?><!-- é -->'
    page = f"{head}<project><modelVersion>4.0.0</modelVersion>{gav('top', '1.2.0')}</project>"
    (tmp_path / "pom.xml").write_bytes(page.encode("iso-8859-1"))
    write_versions(tmp_path.resolve(), find(tmp_path), {"g:top": "1.3.0"})
    written = page.replace("1.2.0", "1.3.0").encode("iso-8859-1")
    assert (tmp_path / "pom.xml").read_bytes() == written


def test_what_cannot_be_edited_in_its_encoding_is_named(tmp_path: Path) -> None:
    """R66"""
    page = f"<project><modelVersion>4.0.0</modelVersion>{gav('top', '1.2.0')}</project>"
    (tmp_path / "pom.xml").write_bytes(page.encode("utf-16"))
    with pytest.raises(PlanError, match=r"pom\.xml: the version of g:top is '1\.2\.0'"):
        write_versions(tmp_path.resolve(), find(tmp_path), {"g:top": "1.3.0"})


def test_long_chains_of_properties_are_followed(tmp_path: Path) -> None:
    chain = "".join(f"<p{n}>${{p{n + 1}}}</p{n}>" for n in range(900))
    properties = f"<properties>{chain}<p900>{OWN}</p900></properties>"
    files = {"pom.xml": pom(gav("top", "${p0}") + modules() + properties)}
    assert_written(tmp_path, files, {"top": "1.3.0"}, MavenOptions())


def test_maven_sees_the_versions(tmp_path: Path) -> None:
    mvn = require_tool("mvn")
    files = {
        "pom.xml": pom(
            gav("top", "${revision}")
            + modules("core", "web")
            + f"<properties><revision>{OWN}</revision><core.version>«2.0|2.1»</core.version>"
            "</properties>" + managed(needs("core", "${core.version}"))
        ),
        "core/pom.xml": pom(child("core", "${revision}") + "<version>${core.version}</version>"),
        "web/pom.xml": pom(
            child("web", "${revision}")
            + "<version>«0.4|0.5»</version>"
            + needs("core", "[«2.0|2.1»]")
        ),
    }
    assert_written(tmp_path, files, {"top": "1.3.0", "core": "2.1", "web": "0.5"}, MavenOptions())
    said = subprocess.run(
        [mvn, "-o", "-B", "validate"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.findall(r"Building (\w+ \S+)", said.stdout) == ["top 1.3.0", "core 2.1", "web 0.5"]
