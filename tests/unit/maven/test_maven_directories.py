"""What other tools have published into a directory: read, ordered, refused, laid out as it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from typing import TYPE_CHECKING

import httpx
import pytest

import fakes
from releasekit.__main__ import main
from releasekit.config.values import Dist
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.maven import CENTRAL, MavenOptions, directories
from releasekit.ecosystems.maven.target import Maven, MavenTarget
from releasekit.ecosystems.prebuilt import with_prebuilt
from releasekit.ecosystems.shared.artifacts import MAX_BYTES
from releasekit.errors import BuildFailed, ConfigError, PlanError
from releasekit.host.process import Processes
from releasekit.model import Action, PlannedPackage
from releasekit.plan.decision import decide
from unit.maven.poms import child, gav, needs, write
from unit.maven.releases import DESCRIBED, Server, services, settings
from unit.maven.test_maven_build import SIGNS, program
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built
    from releasekit.ecosystems.maven.target import MavenWorkspace
    from releasekit.model import Artifact, Package, PackageId, Published

BOM = "<packaging>pom</packaging><dependencyManagement>{}</dependencyManagement>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    return tmp_path.resolve()


def publish(
    root: Path, name: str, more: str = "", *files: str, group: str = "g", said: str = ""
) -> Path:
    """ARTIFACT:VERSION as a tool writes it, with a jar unless `files` are given; `said` in place of
    its coordinates. Returns the directory of the version.
    """
    artifact, version = name.split(":")
    place = root / "repo" / group.replace(".", "/") / artifact / version
    write(
        place / f"{artifact}-{version}.pom",
        (said or gav(artifact, version, group)) + more,
    )
    for file in files or (".jar",):
        (place / f"{artifact}-{version}{file}").write_text(f"{name}{file}")
    (place.parent / "maven-metadata.xml").write_text("never read")
    (place.parent / "maven-metadata-local.xml").write_text("never read")
    return place


def add_checksums(path: Path) -> None:
    """As tools write them: sbt and Mill in capitals too, others with the name of the file."""
    data = path.read_bytes()
    for algorithm in ("md5", "sha1", "sha256", "sha512"):
        text = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
        said = {"md5": text.upper(), "sha256": f"{text}  {path.name}\n"}.get(algorithm, text)
        path.with_name(f"{path.name}.{algorithm}").write_text(said)


def discover(root: Path, **options: object) -> MavenWorkspace:
    config = fakes.config(root, mode=options.pop("mode", "publish"))
    chosen = MavenOptions(**{"directories": ("repo",), **options})  # type: ignore[arg-type]
    return asyncio.run(Maven(config, chosen, fakes.services(config, None)).discover(root))


def found(root: Path, **options: object) -> dict[str, Package]:
    return {each.id.name: each for each in discover(root, **options).packages}


def refusal(root: Path, **options: object) -> tuple[str, str]:
    """In one line without the path of the root, and what to do."""
    with pytest.raises(ConfigError) as caught:
        discover(root, **options)
    assert caught.value.problem is not None
    said = str(caught.value).replace(f"{root}/", "")
    assert "\n" not in said
    return said, caught.value.hint.replace(f"{root}/", "")


def edges(package: Package) -> dict[str, str]:
    return {each.on.name: str(each.kind) for each in package.dependencies}


def test_each_pom_is_a_package_with_the_files_beside_it(root: Path) -> None:
    """R66: no tool is started, and its lists are not read."""
    place = publish(root, "a:1.0", "", ".jar", "-sources.jar", ".jar.asc", ".pom.asc", ".module")
    (place / "a-1.0.module").write_text("{}")
    (root / "repo" / ".hidden").touch()
    (package,) = found(root).values()
    assert (str(package), package.packaging) == ("maven:g:a 1.0", "jar")
    assert package.manifest == place / "a-1.0.pom"
    assert package.directory == root / "repo"
    assert [each.filename for each in package.prebuilt] == [
        *("a-1.0-sources.jar", "a-1.0.jar", "a-1.0.jar.asc", "a-1.0.module", "a-1.0.pom"),
        "a-1.0.pom.asc",
    ]
    assert {*package.prebuilt[0].digests} == {"md5", "sha1", "sha256", "sha512"}


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
@pytest.mark.parametrize("said", ["", "0" * 32, "cut short", b"\xff", "x" * 5_000])
def test_a_file_that_is_not_what_a_checksum_beside_it_says_is_refused(
    root: Path, algorithm: str, said: str | bytes
) -> None:
    """R49: as the jar of a transfer that was cut short."""
    path = publish(root, "a:1.0") / "a-1.0.jar"
    add_checksums(path)
    assert [*found(root)] == ["g:a"]
    place = path.with_name(f"{path.name}.{algorithm}")
    place.write_bytes(said if isinstance(said, bytes) else said.encode())
    message, hint = refusal(root)
    own = hashlib.new(algorithm, path.read_bytes(), usedforsecurity=False).hexdigest()
    words = f"repo/g/a/1.0/a-1.0.jar has {algorithm}:{own}, and a-1.0.jar.{algorithm} beside it"
    assert message == f"{words} says otherwise"
    assert hint.startswith("Empty the directory, and publish into it again")


def test_a_checksum_of_a_file_that_is_not_there_says_nothing(root: Path) -> None:
    """A file may be left out of a release."""
    path = publish(root, "a:1.0", "", ".jar", "-sources.jar") / "a-1.0-sources.jar"
    add_checksums(path)
    path.unlink()
    assert len(found(root)["g:a"].prebuilt) == 2


def test_order_comes_from_the_poms(root: Path) -> None:
    """R1"""
    publish(root, "top:1.0", "<packaging>pom</packaging><properties><v>1.0</v></properties>")
    publish(root, "core_2.13:1.0", said=child("core_2.13"))
    publish(root, "web:1.0", needs("core_2.13", "${v}"), said=child("web"))
    publish(root, "bom:1.0", BOM.format(needs("web", "1.0")))
    imported = needs("bom", "1.0", "<type>pom</type><scope>import</scope>")
    publish(root, "app:1.0", f"<dependencyManagement>{imported}</dependencyManagement>")
    moved = "<relocation><artifactId>app</artifactId></relocation>"
    publish(root, "old:1.0", f"<distributionManagement>{moved}</distributionManagement>")
    publish(root, "lone:1.0", needs("web", "0.9"))
    packages = found(root)
    assert {name: edges(each) for name, each in packages.items()} == {
        "g:top": {},
        "g:core_2.13": {"g:top": "runtime"},
        "g:web": {"g:top": "runtime", "g:core_2.13": "runtime"},
        "g:bom": {"g:web": "order"},
        "g:app": {"g:bom": "runtime"},
        "g:old": {"g:app": "runtime"},
        "g:lone": {},
    }
    assert [need.requirement for need in packages["g:lone"].elsewhere] == ["0.9"]


def test_a_module_follows_those_that_have_its_variants(root: Path) -> None:
    """R1: of Kotlin's multiplatform modules, the POM names one at most."""
    place = publish(root, "lib:1.0", "", ".jar", ".module")
    there = {"group": "g", "module": "lib-iosarm64", "version": "1.0", "url": "../.."}
    variants = [{"name": "a"}, {"available-at": there}, {"available-at": 1}, 5]
    (place / "lib-1.0.module").write_text(json.dumps({"variants": variants}))
    publish(root, "lib-iosarm64:1.0", "<packaging>klib</packaging>", ".klib")
    assert edges(found(root)["g:lib"]) == {"g:lib-iosarm64": "runtime"}
    for text in ("[", "[]", '{"variants": {}}', '{"variants": [[]]}'):
        (place / "lib-1.0.module").write_text(text)
        if text == "[":
            assert "lib-1.0.module: it is no metadata of Gradle (" in refusal(root)[0]
        else:
            assert edges(found(root)["g:lib"]) == {}


@pytest.mark.parametrize(
    ("packaging", "files", "looked_for"),
    [
        ("klib", (".klib",), "klib"),
        ("aar", (".aar", "-sources.jar"), "aar"),
        ("maven-plugin", (".jar",), "maven-plugin"),
        ("bundle", (".jar",), "bundle"),
        ("feature", ("-features.xml",), "pom"),
        ("jar", (".exe",), "pom"),
    ],
)
def test_the_main_file_is_what_is_there(
    root: Path, packaging: str, files: tuple[str, ...], looked_for: str
) -> None:
    """R20: a client's look is for nothing that nobody publishes."""
    publish(root, "a:1.0", f"<packaging>{packaging}</packaging>", *files)
    assert found(root)["g:a"].packaging == looked_for


def test_parents_may_be_of_a_reactor(root: Path) -> None:
    write(root / "java" / "pom.xml", gav("top") + "<packaging>pom</packaging>")
    publish(root, "a:1.0", said=child("a"))
    packages = found(root, reactors=("java",))
    assert edges(packages["g:a"]) == {"g:top": "runtime"}
    assert packages["g:top"].prebuilt == ()


def test_a_parent_elsewhere_is_no_edge(root: Path) -> None:
    publish(root, "a:1.0", said=child("a", "1.0"))
    publish(root, "top:2.0", "<packaging>pom</packaging>")
    assert edges(found(root)["g:a"]) == {}


POM = "<packaging>pom</packaging>"
PARENT = gav("par", "${revision}").join(("<parent>", "</parent>"))
LABEL = "releasekit.toml: [maven] directories: 'repo'"
TWICE = "One of them goes out: remove repo/g/b/1.0, or let the build empty the directory first."
NAMES = "Letters, digits, and _ . + - are what it may hold"
AGAIN = "Each file is to be named ARTIFACT-VERSION"
FILL = "Publish into it before this"


POM_AT = "Let the build write the coordinates themselves"
# A file, its text (an empty file, or a POM), what is said, and what to do.
CASES = [
    ("g/a/1.0/a-1.0.jar", "", "g/a/1.0/a-1.0.jar lies in no GROUP/ARTIFACT/VERSION with", AGAIN),
    ("a-1.0.pom", gav("a"), "a-1.0.pom lies in no GROUP/ARTIFACT/VERSION with its POM", AGAIN),
    ("g/a/notes.txt", "", "g/a/notes.txt lies in no GROUP/ARTIFACT/VERSION with its POM", AGAIN),
    ("g/b/2/c-2.pom", "", "g/b/2/c-2.pom lies in no GROUP/ARTIFACT/VERSION with its POM", AGAIN),
    ("g/b/1.0/_remote.repositories", "", "g/b/1.0: '_remote.repositories' is not part of", AGAIN),
    (
        "g/b/1.0/b-1.0-a b.jar",
        "",
        "g/b/1.0: 'b-1.0-a b.jar' is no name that can be published",
        NAMES,
    ),
    ("g/b/1.0/b-1.0.a..b", "", "g/b/1.0: 'b-1.0.a..b' is no name that can be published", NAMES),
    ("g/b/1.0/b-1.0.\n", "", r"g/b/1.0: 'b-1.0.\n' is no name that can be published", NAMES),
    ("g/b é/1.0/b é-1.0.pom", gav("b é"), "g/b é/1.0: 'b é' is no name that can be", NAMES),
    ("g h/b/1.0/b-1.0.pom", gav("b"), "g h/b/1.0: 'g h' is no name that can be", NAMES),
    ("g/b/1~0/b-1~0.pom", gav("b", "1~0"), "g/b/1~0: '1~0' is no name that can be", NAMES),
    ("g/c/1.0/c-1.0.pom", gav("c", "1.1"), "g/c/1.0/c-1.0.pom: it says g:c:1.1, and lies", POM_AT),
    ("g/c/1/c-1.pom", gav("c", "${v}"), "g/c/1/c-1.pom: it says g:c:${v}, and lies where", POM_AT),
    ("g/c/1.0/c-1.0.pom", "<artifactId>", "g/c/1.0/c-1.0.pom is not a POM: ", ""),
    ("g/c/1/c-1.pom", gav("c", "1"), "g/c/1/c-1.pom: its packaging is jar, and no such", AGAIN),
    ("g/b/1.0/b-1.0.jar.lock", "", "g/b/1.0: 'b-1.0.jar.lock' is not part of g:b-1.0", AGAIN),
    ("g/b/1.0/b-1.0.1.jar", "", "g/b/1.0: 'b-1.0.1.jar' is not part of g:b-1.0", AGAIN),
    ("g/c/1/c-1.pom", gav("c", "1") + PARENT, "g/c/1/c-1.pom: its parent is named by", POM_AT),
    ("g/b/1.1/b-1.1.pom", gav("b", "1.1") + POM, f"{LABEL}: g:b is there twice, 1.0 and", TWICE),
]


@pytest.mark.parametrize(("file", "text", "words", "cure"), CASES)
def test_what_cannot_go_out_as_it_is_is_refused_in_one_line(
    root: Path, file: str, text: str, words: str, cure: str
) -> None:
    publish(root, "b:1.0")
    path = root / "repo" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if text:
        write(path, text)
    else:
        path.touch()
    said, hint = refusal(root)
    assert said.removeprefix("repo/").startswith(words)
    assert hint.startswith(cure)


@pytest.mark.parametrize("file", ["-sources.jar", "-javadoc.jar", ".pom.asc", "-sources.jar.asc"])
def test_what_is_made_beside_a_jar_is_none(root: Path, file: str) -> None:
    publish(root, "b:1.0", "", file)
    said, _ = refusal(root)
    assert said.endswith("b-1.0.pom: its packaging is jar, and no such file lies beside it")


def test_a_package_that_has_moved_needs_no_jar(root: Path) -> None:
    """https://maven.apache.org/guides/mini/guide-relocation.html"""
    moved = "<relocation><groupId>h</groupId></relocation>"
    publish(root, "b:1.0", f"<distributionManagement>{moved}</distributionManagement>", ".pom.asc")
    assert [*found(root)] == ["g:b"]


def test_a_directory_that_is_named_twice_is_one(root: Path) -> None:
    publish(root, "b:1.0")
    assert [*found(root, directories=("repo", "./repo/"))] == ["g:b"]


def test_what_no_client_resolves_is_refused(root: Path) -> None:
    """As of a reactor: nothing else reads these POMs before they go out."""
    publish(root, "a:1.0")
    on = "<groupId>g</groupId><artifactId>a</artifactId><version>[2.0,</version>"
    publish(root, "b:1.0", f"<dependencies><dependency>{on}</dependency></dependencies>")
    workspace = discover(root)
    text = (root / "repo/g/b/1.0/b-1.0.pom").read_text()
    with pytest.raises(PlanError):
        workspace.pin(text, {"g:a": "1.0", "g:b": "1.0"})


BARE = needs("x", "")
MANAGING = "<dependencyManagement>{}</dependencyManagement>"


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        (BARE, True),
        (needs("x", "", "<scope>runtime</scope>"), True),
        (MANAGING.format(needs("y", "1.0")) + BARE, True),
        (MANAGING.format(needs("x", "1.0")) + BARE, False),
        (MANAGING.format(needs("b", "1.0", "<scope>import</scope>")) + BARE, False),
        (needs("x", "1.0"), False),
    ],
)
def test_a_dependency_of_which_nothing_has_the_version_is_refused(
    root: Path, more: str, is_refused: bool
) -> None:
    """R49: mvn calls the POM invalid and, with BUILD SUCCESS, gives its users nothing that it
    needs. What is managed elsewhere is not known.
    """
    publish(root, "a:1.0", more)
    publish(root, "top:1.0", "<packaging>pom</packaging>" + MANAGING.format(needs("x", "2.0")))
    publish(root, "b:1.0", BARE, said=child("b"))
    publish(root, "c:3.0", BARE, said=child("c", "3.0"))
    if is_refused:
        said, hint = refusal(root)
        assert said == "repo/g/a/1.0/a-1.0.pom: its dependency g:x has no version"
        assert hint.startswith("mvn calls such a POM invalid: let")
    else:
        assert len(found(root)) == 4


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "releasekit.toml: [maven] directories: 'none' is not there, or no directory"),
        ("file", "releasekit.toml: [maven] directories: 'file' is not there, or no directory"),
        ("empty", "releasekit.toml: [maven] directories: 'empty': there is no package in it"),
        ("..", "releasekit.toml: [maven] directories: '..' leads out of the workspace"),
    ],
)
def test_a_directory_that_nothing_was_published_into_is_named(
    root: Path, name: str, words: str
) -> None:
    (root / "file").touch()
    (root / "empty").mkdir()
    said, hint = refusal(root, directories=(name,))
    assert said.startswith(words)
    assert hint.startswith("Everything that is published" if name == ".." else FILL)


def test_one_artifact_in_two_directories_is_refused(root: Path) -> None:
    place = publish(root, "a:1.0")
    other = root / "other" / "g" / "a" / "1.0"
    other.parent.mkdir(parents=True)
    place.rename(other)
    publish(root, "a:1.0")
    said, hint = refusal(root, directories=("repo", "other"))
    assert said.endswith("directories: 'other': g:a is there twice, 1.0 and 1.0")
    assert hint.startswith("One of them goes out: remove repo/g/a/1.0, or")


@pytest.mark.parametrize(
    ("target", "leads"), [("a-1.0.jar", ""), ("/etc/passwd", " that leads out of ")]
)
def test_no_link_is_followed(root: Path, target: str, leads: str) -> None:
    """R50: nor left out in silence."""
    place = publish(root, "a:1.0")
    (place / "a-1.0-all.jar").symlink_to(target)
    said, hint = refusal(root)
    assert said.startswith(f"repo/g/a/1.0/a-1.0-all.jar is a symbolic link{leads}")
    assert hint.startswith("Copy the file there")


def test_there_is_a_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(root, "a:1.0")
    monkeypatch.setattr(directories, "MAX_FILES", 3)
    said, hint = refusal(root)
    assert said.endswith("'repo': there are more than 3 files in it")
    assert hint == "Keep everything else than this release out of it."


def test_a_file_that_no_registry_takes_is_named(root: Path) -> None:
    path = publish(root, "a:1.0") / "a-1.0.jar"
    os.truncate(path, MAX_BYTES + 1)
    assert refusal(root)[0] == f"repo/g/a/1.0/a-1.0.jar: is larger than {MAX_BYTES} bytes"


def test_ten_thousand_files_are_no_trouble(root: Path) -> None:
    for number in range(1_000):
        place = root / "repo" / "g" / f"a{number}" / "1"
        write(place / f"a{number}-1.pom", gav(f"a{number}", "1"))
        (place / f"a{number}-1.jar").touch()
        for path in (*place.iterdir(),):
            add_checksums(path)
    assert len(found(root)) == 1_000


def test_parents_come_to_an_end(root: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        above = f"<parent>{gav(other)}</parent><artifactId>{one}</artifactId>"
        publish(root, f"{one}:1.0", "<packaging>pom</packaging>", said=above)
    assert refusal(root)[0].endswith("its parents never come to an end")


def test_a_snapshot_is_left_out_by_name(root: Path) -> None:
    """As Gradle writes it, and sbt."""
    place = root / "repo" / "g" / "a" / "1.1-SNAPSHOT"
    write(place / "a-1.1-20261130.101010-1.pom", gav("a", "1.1-SNAPSHOT"))
    (place / "a-1.1-20261130.101010-1.jar").touch()
    publish(root, "b:2-SNAPSHOT")
    packages = found(root)
    assert {name: each.unpublishable for name, each in packages.items()} == {
        "g:a": "its version 1.1-SNAPSHOT is a snapshot, not a release",
        "g:b": "its version 2-SNAPSHOT is a snapshot, not a release",
    }
    # Nothing here gives it another version.
    assert not any(each.gets_version for each in packages.values())
    publish(root, "a:1.0")
    publish(root, "b:1.0", needs("a", "1.1-SNAPSHOT"))
    workspace = discover(root)
    assert {str(each) for each in workspace.packages} == {"maven:g:a 1.0", "maven:g:b 1.0"}
    assert workspace.aside == ("g:a 1.1-SNAPSHOT", "g:b 2-SNAPSHOT")


def test_what_a_reactor_has_too_is_refused(root: Path) -> None:
    publish(root, "a:1.0")
    write(root / "pom.xml", gav("a"))
    assert [*found(root)] == ["g:a"]  # the directory takes the place of the root
    with pytest.raises(ConfigError, match=r"a-1\.0\.pom and .*/pom\.xml are both named") as caught:
        found(root, reactors=(".",))
    assert caught.value.hint.endswith("or take its reactor or its directory out of [maven].")


def test_what_says_versions_reads_no_directory(root: Path) -> None:
    """It may not be there yet, and its versions are not written here."""
    workspace = discover(root, mode="version", directories=("none",))
    assert workspace.packages == ()
    target = MavenTarget(workspace, fakes.FakeRegistry())
    assert target.versioning.describe_left_out() == (
        "what other tools publish into none gets its versions from these tools; set them in their "
        "build files"
    )


@pytest.mark.parametrize(
    "argv",
    [["change", "--package", "g:a=minor", "--text", "New."], ["notes", "maven:g:a", "1.0"]],
)
def test_what_tells_of_changes_says_why_it_knows_no_such_package(
    root: Path, argv: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """R66: whose sources and versions only the other tool knows, whether it has run or not."""
    (root / "releasekit.toml").write_text('[maven]\ndirectories = ["repo"]\n')
    git(root, "init", "--quiet")
    command, *rest = argv
    for _ in range(2):
        assert main([command, *rest, *(["--working-directory", str(root)])]) == 2
        assert (
            f"there is no package {rest[rest[0] == '--package'].partition('=')[0]!r} here; what "
            "other tools publish into repo gets its versions from these tools; set them in their "
            "build files"
        ) in capsys.readouterr().err
        publish(root, "a:1.0")


def test_a_package_of_a_directory_has_no_version_of_another_time(root: Path) -> None:
    publish(root, "a:1.0")
    workspace = discover(root)
    target = MavenTarget(workspace, fakes.FakeRegistry())
    (package,) = workspace.packages
    assert target.versioning.read_version(package, lambda _: b"") == ""
    assert [*target.versioning.list_edges({})] == []
    assert target.versioning.groups == {}


def test_no_pin_changes_what_was_published(root: Path) -> None:
    """A range goes out as it is."""
    publish(root, "a:1.0")
    place = publish(root, "b:1.0", needs("a", "[1.0,2.0)"))
    text = (place / "b-1.0.pom").read_text()
    assert discover(root).pin(text, {"g:a": "1.0", "g:b": "1.0"}) == text


def build(root: Path, **options: object) -> dict[str, tuple[str, ...] | str]:
    """What is laid out of each package, or why not."""

    async def main() -> dict[str, tuple[str, ...] | str]:
        environment = {"PATH": f"{root}:/usr/bin:/bin"}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            config = fakes.config(root)
            chosen = MavenOptions(directories=("repo",), **options)  # type: ignore[arg-type]
            services = fakes.services(config, processes)
            workspace = await Maven(config, chosen, services).discover(root)
            target = MavenTarget(workspace, fakes.FakeRegistry())
            assert await target.find_tool(workspace.packages) == ""
            laid: dict[PackageId, Built] = {}
            for batch in target.split_singly(workspace.packages):
                laid |= await workspace.build(batch, lambda each: root / "into" / each.id.name)
            return {
                each.name: str(made)
                if isinstance(made, BuildFailed)
                else tuple(it.filename for it in made)
                for each, made in laid.items()
            }

    return asyncio.run(main())


def test_files_are_laid_out_as_they_are_and_what_lacks_a_signature_gets_one(root: Path) -> None:
    """R17: no mvn is started, whatever the options ask it to make."""
    program(root / "mvn", "exit 1")
    program(root / "gpg", SIGNS)
    place = publish(root, "a:1.0", "", ".jar", ".jar.asc", ".module")
    (place / "a-1.0.module").write_text("{}")
    publish(root, "bom:1.0", BOM.format(needs("a", "1.0")))
    assert build(root, sources=True, javadoc=True) == {
        "g:a": ("a-1.0.pom", "a-1.0.jar", "a-1.0.jar.asc", "a-1.0.module"),
        "g:bom": ("bom-1.0.pom", "bom-1.0.jar"),
    }
    assert build(root, sign=True)["g:a"] == (
        *("a-1.0.pom", "a-1.0.jar", "a-1.0.jar.asc", "a-1.0.module"),
        *("a-1.0.pom.asc", "a-1.0.module.asc"),
    )
    assert (root / "into/g:a/a-1.0.jar.asc").read_text() == "a:1.0.jar.asc"


def test_dist_brings_no_file_of_such_a_package(root: Path) -> None:
    """Nor takes any away."""
    publish(root, "a:1.0")
    write(root / "java" / "pom.xml", gav("j"))
    workspace = discover(root, reactors=("java",))
    config = fakes.config(root)

    def bring(name: str) -> Mapping[str, Package]:
        path = root / "dist" / f"{name}.pom"
        write(path, gav(*name.split("-")))
        target = MavenTarget(workspace, fakes.FakeRegistry())
        places = (Dist(root / "dist", "dist"),)
        completed = asyncio.run(
            with_prebuilt({"maven": target}, places, config.package_filter, ECOSYSTEMS)
        )
        return {each.id.name: each for each in completed["maven"].workspace.packages}

    assert {name: len(each.prebuilt) for name, each in bring("j-1.0").items()} == {
        "g:a": 2,
        "g:j": 1,
    }
    with pytest.raises(PlanError, match=r"is maven:g:a 1\.0, whose files .*/repo has"):
        bring("a-1.0")


def look_up(root: Path, there: Server) -> tuple[Published | None, tuple[Artifact, ...]]:
    """What a run on another machine sees of g:a."""
    config = settings(root, ecosystem_tables={"maven": {"directories": ["repo"]}})

    async def main() -> tuple[Published | None, tuple[Artifact, ...]]:
        async with services(there, config) as given:
            target = await discovery(ECOSYSTEMS["maven"], config, given).discover(config.root)
            (package,) = target.workspace.packages
            return await target.registry.lookup(package), package.prebuilt

    return asyncio.run(main())


def test_a_run_elsewhere_sees_that_all_of_it_is_there(root: Path) -> None:
    """R19: also what only this tool publishes. Of the same bytes, each signing makes another
    signature.
    """
    files = (".jar", ".module", "-all.jar", ".jar.asc")
    place = publish(root, "a:1.0", "", *files)
    (place / "a-1.0.module").write_text("{}")
    there = Server()
    for path in place.iterdir():
        if not path.name.endswith(("md5", "sha1", "sha256", "sha512")):
            there.files[f"/releases/g/a/1.0/{path.name}"] = path.read_bytes()
    there.files["/releases/g/a/maven-metadata.xml"] = (
        b"<metadata><versioning><versions><version>1.0</version></versions></versioning></metadata>"
    )
    (place / "a-1.0.jar.asc").write_text("signed again")
    published, prebuilt = look_up(root, there)
    assert published is not None
    assert {*published.files} == {"a-1.0.pom", "a-1.0.jar", "a-1.0.module", "a-1.0-all.jar"}
    action, _ = decide(published, None, commit="", url="", prebuilt=prebuilt)
    assert action is Action.KEEP
    (place / "a-1.0-all.jar").write_text("built again")
    published, prebuilt = look_up(root, there)
    action, reason = decide(published, None, commit="", url="", prebuilt=prebuilt)
    assert action is Action.REFUSE
    assert "Take it out of `dist` or `directories`, or bump the version" in reason


def notes(root: Path, place: str = "", action: Action = Action.PUBLISH, **table: object) -> str:
    """Of a plan with all of it; raises PlanError."""
    tables = {"maven": {"directories": ["repo"], **table}}
    config = settings(root, ecosystem_tables=tables, **({"place": place} if place else {}))

    async def main() -> str:
        async with services(Server(), config) as given:
            target = await discovery(ECOSYSTEMS["maven"], config, given).discover(config.root)
            return target.plan_notes(
                [
                    PlannedPackage(package=each, action=action, reason="")
                    for each in target.workspace.packages
                ]
            )

    return asyncio.run(main())


def test_a_plan_tells_what_is_left_out(root: Path) -> None:
    publish(root, "a:1.0", needs("x", "1-SNAPSHOT"))
    publish(root, "a:1.1-SNAPSHOT")
    write(root / "pom.xml", gav("root"))
    said = notes(root)
    assert "repo/g/a/1.0/a-1.0.pom needs g:x 1-SNAPSHOT, which users get from" in said
    assert "snapshots in maven.directories are left out: g:a 1.1-SNAPSHOT" in said
    assert "maven.directories takes the place of the pom.xml in the root" in said


@pytest.mark.parametrize(
    ("files", "sign", "lacking"),
    [
        ((".jar",), True, ("no a-1.0-sources.jar and no a-1.0-javadoc.jar",)),
        (
            (".jar", "-sources.jar", "-javadoc.jar", ".jar.asc"),
            False,
            ("no signature of a-1.0-javadoc.jar, a-1.0-sources.jar, a-1.0.pom: set `sign`",),
        ),
        ((".jar", "-sources.jar", "-javadoc.jar"), True, ()),
    ],
)
def test_what_central_refuses_is_known_before_anything_goes_out(
    root: Path, files: Sequence[str], sign: bool, lacking: Sequence[str]
) -> None:
    """R49: all that is going to be published is there already."""
    publish(root, "a:1.0", DESCRIBED, *files)
    if not lacking:
        assert "It refuses packages" not in notes(root, CENTRAL, sign=sign)
        return
    with pytest.raises(PlanError) as caught:
        notes(root, CENTRAL, sign=sign)
    assert all(f"repo/g/a/1.0/a-1.0.pom: {text}" in str(caught.value) for text in lacking) or all(
        text in str(caught.value) for text in lacking
    )
    assert notes(root, CENTRAL, Action.UPLOAD, sign=sign)
    publish(root, "a:1.0", "", *files)
    with pytest.raises(PlanError, match="neither declares nor inherits <name>"):
        notes(root, CENTRAL, sign=sign)


def test_a_pom_that_names_another_registry_does_not_go_to_central(root: Path) -> None:
    where = f"<distributionManagement><repository><id>i</id><url>{'https://n.example/'}</url>"
    publish(root, "a:1.0", f"{where}</repository></distributionManagement>")
    with pytest.raises(ConfigError, match=r"distributionManagement is 'https://n\.example/'"):
        discover(root)


def test_a_build_that_would_deploy_elsewhere_is_over(root: Path) -> None:
    """What configures or skips maven-deploy-plugin says nothing of files that are there."""
    where = "<altDeploymentRepository>x::https://n.example/</altDeploymentRepository>"
    configured = f"<configuration><skip>true</skip>{where}</configuration>"
    plugin = f"<plugin><artifactId>maven-deploy-plugin</artifactId>{configured}</plugin>"
    publish(root, "a:1.0", f"<build><plugins>{plugin}</plugins></build>")
    assert found(root)["g:a"].unpublishable == ""


def test_a_server_that_does_not_answer_is_no_empty_one(root: Path) -> None:
    """R15: for files of other tools too."""
    publish(root, "a:1.0")
    there = Server()
    there.files["/releases/g/a/1.0/a-1.0.pom"] = b"<project/>"
    there.answer("GET", "/releases/g/a/1.0/a-1.0.jar.sha1", *[httpx.Response(503)] * 9)
    with pytest.raises(Exception, match="503"):
        look_up(root, there)
