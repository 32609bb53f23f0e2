"""What Gradle, sbt and Mill have published into a directory, through ./entrypoint.sh into real
registries, and back with the tools of users.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from integration import reactor
from integration.reactor import GROUP
from integration.servers import static_server
from integration.test_maven import fresh_repository
from integration.tools import require_tool
from workspaces import Program, git

if TYPE_CHECKING:
    from collections.abc import Mapping

    from integration.maven_server import MavenServer
    from integration.portal import PortalServer
    from workspaces import Run

FIXTURES: Final = Path(__file__).parents[1] / "fixtures"
GET: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"
COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_tool("mvn")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "home", reactor.environment())


def write(root: Path, files: Mapping[str, str], directory: str = "build/repo") -> Path:
    """A git repository of another tool, and where that publishes to."""
    settings = f'[maven]\ndirectories = ["{directory}"]\n'
    ignored = ".gradle/\nbuild/\ntarget/\n"
    for name, text in {**files, "releasekit.toml": settings, ".gitignore": ignored}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def publish(program: Program, root: Path, server: MavenServer) -> Run:
    known = Program(program.home, {**program.environment, **server.environment})
    return known.run("publish", root, "--maven-registry", server.url)


def run_tool(argv: list[str | Path], root: Path) -> str:
    done = subprocess.run(
        argv,
        cwd=root,
        env={**os.environ, "HOME": str(root), "GRADLE_USER_HOME": str(root / ".gradle")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def read_files(directory: Path) -> dict[str, bytes]:
    """What a tool has published, without its checksums and lists."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
        and not path.name.startswith("maven-metadata")
        and path.suffix not in {".md5", ".sha1", ".sha256", ".sha512"}
    }


# For Debian's Gradle, 4.4, and later ones, which have other words for some of it.
_GRADLE: Final = """\
subprojects {
    group = 'com.example.acme'
    version = '1.4.0'
    apply plugin: 'maven-publish'
}
configure([project(':core'), project(':text')]) {
    apply plugin: 'java-library'
    task sourcesJar(type: Jar) {
        from sourceSets.main.allSource
        if (it.hasProperty('archiveClassifier')) archiveClassifier = 'sources'
        else classifier = 'sources'
    }
    publishing { publications { library(MavenPublication) {
        artifactId = "acme-$project.name"
        from components.java
        artifact sourcesJar
    } } }
}
project(':text') { dependencies { api project(':core') } }
project(':bom') { publishing { publications { bom(MavenPublication) {
    artifactId = 'acme-bom'
    pom.withXml {
        def managed = asNode().appendNode('dependencyManagement').appendNode('dependencies')
        ['acme-core', 'acme-text'].each {
            def entry = managed.appendNode('dependency')
            entry.appendNode('groupId', 'com.example.acme')
            entry.appendNode('artifactId', it)
            entry.appendNode('version', '1.4.0')
        }
    }
} } } }
"""
_SOURCES: Final = {
    f"{module}/src/main/java/acme/{module.capitalize()}.java": f"""\
package acme;
public final class {module.capitalize()} {{ public static final String NAME = {value}; }}
"""
    for module, value in (("core", '"core"'), ("text", '"text" + Core.NAME'))
}
_GRADLE_USER: Final = """\
apply plugin: 'java'
repositories {{ maven {{
    url '{url}'
    if (it.hasProperty('allowInsecureProtocol')) allowInsecureProtocol = true
}} }}
dependencies {{ implementation 'com.example.acme:acme-text:1.4.0' }}
"""


@pytest.fixture(scope="module")
def gradle_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published into its directory by the line that RK-210 has."""
    gradle = require_tool("gradle")
    root = write(
        tmp_path_factory.mktemp("gradle") / "a workspace",
        {
            "settings.gradle": "include 'core', 'text', 'bom'\n",
            "build.gradle": _GRADLE,
            **_SOURCES,
        },
    )
    into = f"-Dmaven.repo.local={root}/build/repo"
    run_tool([gradle, "--offline", "--no-daemon", "publishToMavenLocal", into], root)
    return root


def test_what_gradle_has_published_goes_out_in_order_once_and_back(
    gradle_project: Path, maven_server: MavenServer, program: Program, tmp_path: Path
) -> None:
    """R1, R17, R19, R66: the very bytes; mvn and Gradle take them from there."""
    root = shutil.copytree(gradle_project, tmp_path / "w")
    built = read_files(root / "build" / "repo")
    assert len(built) >= 3 + 3 + 1
    run = publish(program, root, maven_server)
    assert run.code == 0, run.out + run.err
    assert list(run.outcomes) == [f"{GROUP}:acme-{name}" for name in ("core", "text", "bom")]
    assert set(run.outcomes.values()) == {"published"}
    assert "does not read" not in run.out + run.err
    assert read_files(maven_server.files) == built
    sent = [
        it.path.partition("/acme-")[2].partition("/")[0] for it in maven_server.recorder.uploads
    ]
    assert sent == sorted(sent, key=("core", "text", "bom").index)

    # The next job has no state.
    shutil.rmtree(root / ".releasekit")
    maven_server.recorder.forget()
    assert publish(program, root, maven_server).results["result"] == "noop"
    assert maven_server.recorder.uploads == []

    used = {"artifact": "acme-text", "name": "acme.Text.NAME + acme.Core.NAME"}
    reactor.dependent(tmp_path / "user", maven_server.url, **used)
    reactor.mvn(tmp_path / "user", "compile", repository=fresh_repository(tmp_path))
    build = _GRADLE_USER.format(url=maven_server.url)
    (tmp_path / "user" / "build.gradle").write_text(build)
    run_tool([require_tool("gradle"), "--no-daemon", "compileJava"], tmp_path / "user")
    assert [*(tmp_path / "user" / "build").rglob("User.class")]


def test_signatures_of_the_build_go_to_central_as_they_are(
    gradle_project: Path, portal_server: PortalServer, program: Program, tmp_path: Path
) -> None:
    """R19: one bundle, with checksums of ours."""
    root = shutil.copytree(gradle_project, tmp_path / "w")
    directory = root / "build" / "repo"
    for name in read_files(directory):
        (directory / f"{name}.asc").write_text(f"signature of {name}")
    built = read_files(directory)
    (root / "releasekit.toml").write_text(
        f'[maven]\ndirectories = ["build/repo"]\napi = "portal"\n'
        f'repository = "{portal_server.repository}"\n'
    )
    known = Program(program.home, {**program.environment, **portal_server.environment})

    def send() -> Run:
        return known.run("publish", root, "--maven-registry", portal_server.url)

    run = send()
    assert run.code == 0, run.out + run.err
    (deployed,) = portal_server.deployments.values()
    assert deployed.state == "PUBLISHED"
    assert {name: data for name, data in deployed.files.items() if name in built} == built
    rest = {Path(name).suffix for name in deployed.files if name not in built}
    assert rest == {".md5", ".sha1"}
    shutil.rmtree(root / ".releasekit")
    assert send().results["result"] == "noop"
    assert portal_server.requests.count("POST upload") == 1


def test_versions_are_left_to_the_other_tool_by_name(
    gradle_project: Path, program: Program, tmp_path: Path
) -> None:
    """R66: beside what gets versions here, and alone."""
    root = shutil.copytree(gradle_project, tmp_path / "w")
    run = program.run("version", root)
    assert run.code == 2
    assert "what other tools publish into build/repo gets its versions from these" in run.err
    (root / "package.json").write_text('{"name": "@acme/a", "version": "1.0.0"}\n')
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "feat: begin")
    run = program.run("version", root, "--dry-run")
    assert run.code == 0, run.out + run.err
    assert "what other tools publish into build/repo gets its versions from these" in run.out
    assert "acme-core" not in run.out


def test_without_a_directory_the_lines_for_it_are_told(program: Program, tmp_path: Path) -> None:
    """R66"""
    root = write(tmp_path / "w", {"settings.gradle": "", "build.gradle": ""})
    run = program.run("plan", root)
    assert run.code == 2
    assert "[maven] directories: 'build/repo' is not there, or no directory" in run.err
    assert "gradle publishToMavenLocal" in run.err
    (root / "releasekit.toml").unlink()
    for command in ("plan", "init"):
        run = program.run(command, root)
        assert run.code == 2
        told = " ".join((run.out + run.err).split())
        assert "ReleaseKit does not read settings.gradle (Gradle)" in told
        assert '`maven.directories = ["build/repo"]` into releasekit.toml' in told


# By tool, each package of its fixture, which waits for the one before it in its row. Documentation
# and checksums are left out. sbt 1.10.7 has made them by `sbt +publish`, and Mill 1.1.2 by `mill
# __.publishM2Local --m2RepoPath`; each takes minutes and 250 MB before it makes the first.
_MADE: Final = {
    "sbt": [
        ("com.example.scala:acme-core_2.12", "com.example.scala:acme-text_2.12"),
        ("com.example.scala:acme-core_2.13", "com.example.scala:acme-text_2.13"),
    ],
    "mill": [
        ("com.example.mill:score_3", "com.example.mill:stext_3"),
        ("com.example.mill:jcore", "com.example.mill:jtext"),
    ],
}


@pytest.mark.parametrize("tool", _MADE)
def test_what_sbt_and_mill_have_cross_built_goes_out_in_order_and_back(
    program: Program, tmp_path: Path, tool: str
) -> None:
    """R1, R17, R66"""
    fixture, rows, served = FIXTURES / tool, _MADE[tool], tmp_path / "served"
    root = write(tmp_path / "a workspace", {f"build.{tool}": ""})
    shutil.copytree(fixture, root / "build" / "repo")
    run = program.run("publish", root, "--registry", f"dir:{served}")
    assert run.code == 0, run.out + run.err
    assert run.outcomes == dict.fromkeys([name for row in rows for name in row], "published")
    order = list(run.outcomes)
    assert all(order.index(core) < order.index(text) for core, text in rows)
    assert read_files(fixture).items() <= read_files(served / "maven").items()
    assert program.run("publish", root, "--registry", f"dir:{served}").results["result"] == "noop"
    repository = fresh_repository(tmp_path)
    core, text = rows[-1]
    version = next(path.name for path in fixture.joinpath(*path_of(text)).iterdir())
    with static_server(served / "maven") as url:
        remote = f"-DremoteRepositories=it::::{url}/"
        reactor.mvn(tmp_path, GET, f"-Dartifact={text}:{version}", remote, repository=repository)
    jar = f"{core.partition(':')[2]}-{version}.jar"
    assert repository.joinpath(*path_of(core), version, jar).exists()


def path_of(name: str) -> tuple[str, ...]:
    group, _, artifact = name.partition(":")
    return (*group.split("."), artifact)


# What Maven Central has of Kotlin and Android, under a group that it does not have.
_REAL: Final = {
    "org.jetbrains.kotlinx:atomicfu:0.25.0": ("pom", "module", "jar"),
    "org.jetbrains.kotlinx:atomicfu-jvm:0.25.0": ("pom", "module", "jar"),
    "org.jetbrains.kotlinx:atomicfu-linuxx64:0.25.0": ("pom", "module", "klib"),
    "org.jetbrains.kotlinx:kotlinx-coroutines-bom:1.8.1": ("pom",),
    "com.jakewharton.timber:timber:5.0.1": ("pom", "module", "aar"),
}
_OURS: Final = {"org.jetbrains.kotlinx": "com.example.kotlinx", "com.jakewharton": "com.example"}


def lay_out(into: Path, scratch: Path) -> None:
    """Fetched by mvn, in the layout of a repository."""
    scratch.mkdir()
    tags = ("groupId", "artifactId", "version", "type")
    items = [(*name.split(":"), kind) for name, kinds in _REAL.items() for kind in kinds]
    rows = (zip(tags, item, strict=True) for item in items)
    inside = ("".join(f"<{tag}>{text}</{tag}>" for tag, text in row) for row in rows)
    written = "".join(f"<artifactItem>{each}</artifactItem>" for each in inside)
    reactor.page(
        scratch / "pom.xml",
        "<groupId>g</groupId><artifactId>a</artifactId><version>1</version>"
        "<packaging>pom</packaging><build><plugins><plugin>"
        "<artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version><configuration>"
        f"<outputDirectory>{scratch}/out</outputDirectory><artifactItems>{written}</artifactItems>"
        "</configuration></plugin></plugins></build>",
    )
    reactor.mvn(scratch, COPY)
    for group, artifact, version, kind in items:
        data = (scratch / "out" / f"{artifact}-{version}.{kind}").read_bytes()
        for theirs, ours in _OURS.items():
            group = group.replace(theirs, ours)  # noqa: PLW2901
            if kind in {"pom", "module"}:
                data = data.replace(theirs.encode(), ours.encode())
        path = into.joinpath(*group.split("."), artifact, version, f"{artifact}-{version}.{kind}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_modules_of_kotlin_and_android_go_out_whole(program: Program, tmp_path: Path) -> None:
    """R1, R17: a multiplatform module after all that its .module leads Gradle's clients to; klib,
    aar and .module as they are.
    """
    root = write(tmp_path / "w", {"settings.gradle.kts": ""})
    lay_out(root / "build" / "repo", tmp_path / "fetched")
    served = tmp_path / "served"
    run = program.run("publish", root, "--registry", f"dir:{served}")
    assert run.code == 0, run.out + run.err
    names = [name.rpartition(":")[2] for name in run.outcomes]
    assert names.index("atomicfu") > max(map(names.index, ("atomicfu-jvm", "atomicfu-linuxx64")))
    assert set(run.outcomes.values()) == {"published"}
    built = read_files(root / "build" / "repo")
    assert len(built) == 13
    assert built.items() <= read_files(served / "maven").items()
    assert program.run("publish", root, "--registry", f"dir:{served}").results["result"] == "noop"
    repository = fresh_repository(tmp_path)
    with static_server(served / "maven") as url:
        for name, kinds in _REAL.items():
            for theirs, ours in _OURS.items():
                name = name.replace(theirs, ours)  # noqa: PLW2901
            get = [f"-Dartifact={name}:{kinds[-1]}", "-Dtransitive=false"]
            remote = f"-DremoteRepositories=it::::{url}/"
            reactor.mvn(tmp_path, GET, *get, remote, repository=repository)
    assert [*(repository / "com/example").rglob("timber-5.0.1.aar")]
    assert [*(repository / "com/example").rglob("atomicfu-linuxx64-0.25.0.klib")]


_POM: Final = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>com.example</groupId><artifactId>{name}</artifactId><version>1.0</version>
<packaging>pom</packaging>{more}
</project>
"""
_UNVERSIONED: Final = """\
<dependencies><dependency>
<groupId>com.example</groupId><artifactId>x</artifactId>
</dependency></dependencies>"""


def test_what_is_refused_for_a_dependency_without_a_version_mvn_calls_invalid(
    program: Program, tmp_path: Path
) -> None:
    """R49: and goes on without all that the package needs, so that nobody is told."""
    root = write(tmp_path / "w", {"build.sbt": ""})
    for name, more in (("x", ""), ("lone", _UNVERSIONED)):
        path = root / f"build/repo/com/example/{name}/1.0/{name}-1.0.pom"
        path.parent.mkdir(parents=True)
        path.write_text(_POM.format(name=name, more=more))
    run = program.run("plan", root, "--registry", f"dir:{tmp_path}/served")
    assert run.code == 2
    assert "lone-1.0.pom: its dependency com.example:x has no version [RK-218]" in run.err
    with static_server(root / "build" / "repo") as url:
        get = (GET, "-Dartifact=com.example:lone:1.0:pom", f"-DremoteRepositories=it::::{url}/")
        said = reactor.mvn(tmp_path, *get, repository=fresh_repository(tmp_path))
    assert "The POM for com.example:lone:pom:1.0 is invalid, transitive dependencies" in said
