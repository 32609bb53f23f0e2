from __future__ import annotations

import asyncio
import zipfile
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.prebuilt import MavenFiles
from releasekit.ecosystems.maven.target import Maven
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.errors import BuildFailed, PackageError
from releasekit.fields import replace
from releasekit.host.process import Processes
from unit.maven.poms import child, gav, modules, needs, write
from unit.maven.test_maven_build import SIGNS, program

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Contained
    from releasekit.ecosystems.maven.target import MavenWorkspace

# A Maven that makes all there may be of one package.
DEPLOYS = """
for argument in "$@"; do
  case $argument in -DaltDeploymentRepository=*) into=${argument#*file://} ;; esac
done
mkdir -p "$into/g/a/1.0"
cp a/pom.xml "$into/g/a/1.0/a-1.0.pom"
for name in a-1.0.jar a-1.0.jar.asc a-1.0-sources.jar a-1.0-javadoc.jar; do
  echo built > "$into/g/a/1.0/$name"
done
"""


def reactor(root: Path) -> Path:
    write(root / "pom.xml", gav("top") + modules("a", "b", "twin") + "")
    write(root / "a" / "pom.xml", child("a"))
    write(root / "b" / "pom.xml", child("b") + needs("a"))
    write(root / "twin" / "pom.xml", gav("a", group="other.group"))
    return root.resolve()


def workspace(root: Path) -> MavenWorkspace:
    config = fakes.config(root)
    return asyncio.run(Maven(config, MavenOptions(), fakes.services(config, None)).discover(root))


@pytest.fixture
def files(tmp_path: Path) -> MavenFiles:
    found = workspace(reactor(tmp_path / "w"))
    return MavenFiles(found.packages, found.complete)


def jar(path: Path, *inside: str) -> Path:
    """With a pom.properties for each GROUP:ARTIFACT:VERSION."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("A.class", b"x")
        for each in inside:
            group, artifact, version = each.split(":")
            archive.writestr(
                f"META-INF/maven/{group}/{artifact}/pom.properties",
                f"# Generated\nversion={version}\ngroupId = {group}\nartifactId={artifact}\n",
            )
    return path


def contained(files: MavenFiles, path: Path) -> Contained:
    with path.open("rb") as file:
        return files.contained(file, path)


def refusal(files: MavenFiles, path: Path) -> str:
    with pytest.raises(PackageError) as caught:
        contained(files, path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("name", "inside", "found"),
    [
        ("a-1.0.jar", ("g:a:1.0",), ("g:a", "1.0")),
        ("a-0.9.jar", ("g:a:0.9",), ("g:a", "0.9")),
        ("a-1.0-shaded.jar", ("x:y:3", "other.group:a:1.0"), ("other.group:a", "1.0")),
        ("b-1.0.jar", (), ("g:b", "1.0")),
        ("b-1.0-sources.jar", ("x:y:3",), ("g:b", "1.0")),
        ("g/a/1.0/a-1.0-sources.jar", (), ("g:a", "1.0")),
        ("other/group/a/1.0/a-1.0-sources.jar", (), ("other.group:a", "1.0")),
    ],
)
def test_a_jar_is_known_by_its_properties_or_its_name(
    files: MavenFiles, tmp_path: Path, name: str, inside: tuple[str, ...], found: tuple[str, str]
) -> None:
    said = contained(files, jar(tmp_path / "dist" / name, *inside))
    assert (said.name, said.version) == found


def test_a_module_file_is_no_archive(files: MavenFiles, tmp_path: Path) -> None:
    path = tmp_path / "b-1.0.module"
    path.write_text("{}")
    assert contained(files, path).name == "g:b"


@pytest.mark.parametrize("name", ["c-1.0.jar", "a-1.0-sources.jar", "b-2.0.jar", "b.jar"])
def test_a_jar_that_says_nothing_clear_is_refused(
    files: MavenFiles, tmp_path: Path, name: str
) -> None:
    """Of two groups that have such an artifact, nobody can say which."""
    assert "which package of this workspace" in refusal(files, jar(tmp_path / name))


def test_a_damaged_jar_is_one_line(files: MavenFiles, tmp_path: Path) -> None:
    """With its path, and what the reader of archives says."""
    path = jar(tmp_path / "b-1.0.jar", "g:b:1.0")
    path.write_bytes(path.read_bytes()[:-10])
    assert refusal(files, path).startswith(": not a readable archive")


def test_a_jar_with_a_name_that_is_no_text_is_one_line(files: MavenFiles, tmp_path: Path) -> None:
    path = tmp_path / "b-1.0.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("é.class", b"x")
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xfe"))
    assert refusal(files, path).startswith(": not a readable archive")


def test_a_pom_is_known_by_its_coordinates(files: MavenFiles, tmp_path: Path) -> None:
    path = write(tmp_path / "b-1.0.pom", child("b") + needs("a", "[1.0,2.0)"))
    found = contained(files, path)
    assert (found.name, found.version) == ("g:b", "1.0")
    assert [(need.on.name, need.requirement) for need in found.dependencies] == [
        ("g:a", "[1.0,2.0)")
    ]
    tested = needs("a", "1.0", "<scope>test</scope>")
    assert contained(files, write(tmp_path / "b-1.0.pom", child("b") + tested)).dependencies == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (child("b", "${revision}"), ": its coordinates are g:b:${revision}, with expressions"),
        (gav("b", "2.0"), " is g:b 2.0, which is published as b-2.0.pom"),
        ("<artifactId>", ": it is not a POM ("),
        ("", ": it is not a POM ("),
    ],
)
def test_a_pom_that_users_could_not_read_is_refused(
    files: MavenFiles, tmp_path: Path, body: str, words: str
) -> None:
    assert refusal(files, write(tmp_path / "b-1.0.pom", body)).startswith(words)


def test_only_a_range_excludes(files: MavenFiles) -> None:
    """What is no range is a wish."""
    assert files.admits("0.9", "1.0")
    assert files.admits("[1.0,2.0)", "1.0")
    assert not files.admits("[2.0,)", "1.0")


def completed(
    root: Path, *names: str, **options: object
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """What g:a has once these files of it were brought, and in which order."""
    given = []
    for name in names:
        path = root / "dist" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"brought")
        given.append(digested(path, "sha256"))
    into = root / "into"

    async def main() -> tuple[str, ...]:
        environment = {"PATH": f"{root}:/usr/bin:/bin"}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            config = fakes.config(root)
            services = fakes.services(config, processes)
            maven = Maven(config, MavenOptions(**options), services)  # type: ignore[arg-type]
            found = await maven.discover(root)
            (package,) = [each for each in found.packages if each.id.name == "g:a"]
            brought = replace(package, prebuilt=tuple(given))
            (built,) = (await found.complete([brought], lambda _: into)).values()
            if isinstance(built, BuildFailed):
                raise built
            return tuple(artifact.filename for artifact in built)

    made = asyncio.run(main())
    return {path.name: path.read_bytes() for path in into.iterdir()}, made


def test_a_jar_without_a_pom_gets_what_its_module_would_have(tmp_path: Path) -> None:
    """And no signature of the jar that it takes the place of."""
    root = reactor(tmp_path)
    program(root / "mvn", DEPLOYS)
    found, order = completed(root, "a-1.0.jar", "a-1.0-native.jar")
    assert order[0] == "a-1.0.pom"
    assert {*order} == found.keys()
    assert b"<artifactId>a</artifactId>" in found.pop("a-1.0.pom")
    assert found == {
        "a-1.0.jar": b"brought",
        "a-1.0-native.jar": b"brought",
        "a-1.0-sources.jar": b"built\n",
        "a-1.0-javadoc.jar": b"built\n",
    }


def test_what_is_complete_is_only_signed(tmp_path: Path) -> None:
    root = reactor(tmp_path)
    program(root / "mvn", "exit 1")
    program(root / "gpg", SIGNS)
    (root / "into").mkdir()
    (root / "into" / "left.jar").write_text("by an earlier build")
    found, _ = completed(root, "a-1.0.jar", "a-1.0.pom", sign=True)
    assert sorted(found) == ["a-1.0.jar", "a-1.0.jar.asc", "a-1.0.pom", "a-1.0.pom.asc"]


def test_asked_for_sources_are_built_beside(tmp_path: Path) -> None:
    root = reactor(tmp_path)
    program(root / "mvn", DEPLOYS)
    found, _ = completed(root, "a-1.0.jar", "a-1.0.pom", sources=True)
    assert found["a-1.0.pom"] == found["a-1.0.jar"] == b"brought"
    assert found["a-1.0-sources.jar"] == b"built\n"


def test_a_build_that_fails_fails_what_lacks_its_files(tmp_path: Path) -> None:
    root = reactor(tmp_path)
    program(root / "mvn", "exit 1")
    with pytest.raises(BuildFailed, match="could not be built"):
        completed(root, "a-1.0.jar")


def test_a_file_that_changed_since_fails_its_package(tmp_path: Path) -> None:
    """R17"""
    root = reactor(tmp_path)
    found = workspace(root)
    (package,) = [each for each in found.packages if each.id.name == "g:a"]
    given = [fakes.artifact(root / name, b"before") for name in ("a-1.0.jar", "a-1.0.pom")]
    for artifact in given:
        artifact.path.write_bytes(b"later!")
    brought = replace(package, prebuilt=tuple(given))
    (built,) = asyncio.run(found.complete([brought], lambda _: root / "into")).values()
    assert "is not what it was when it was planned" in str(built)
