from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fakes
from raising import raises
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.build import collect
from releasekit.ecosystems.maven.mvn import explain_unbuilt
from releasekit.ecosystems.maven.signing import GpgSigner
from releasekit.ecosystems.maven.target import Maven
from releasekit.errors import BuildFailed, CommandFailed, ConfigError
from releasekit.host.process import Processes
from releasekit.host.scrub import NOTHING_SECRET
from releasekit.problems import Problem
from releasekit.state.run_logs import Log
from unit.maven.poms import child, gav, modules, needs, packages, write
from unit.maven.releases import built

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Artifact, Package, PackageId

LOG = Log(Path("/logs/build-maven-g+a.log"), NOTHING_SECRET)
ERROR = (
    "[ERROR] Failed to execute goal org.example:compile (default) on project a: Compilation failure"
)


WHERE = "/w s/.releasekit/work/maven/at./sources/a/src/main/java/A.java:[3,1] ';' expected"


def a_package(root: Path, name: str = "a") -> Package:
    write(root / "pom.xml", gav("top") + modules("a", "b"))
    for each in ("a", "b"):
        write(root / each / "pom.xml", gav(each))
    return packages(root)[name]


@pytest.mark.parametrize(
    ("name", "lines", "words"),
    [
        ("a", (ERROR,), "could not be built: Compilation failure"),
        ("b", (ERROR,), "was not built: a failed before it"),
        (
            "a",
            (f"{ERROR}: Compilation failure: ", f"[ERROR] {WHERE}", "[ERROR] /w/B.java:[1,1] no"),
            "could not be built: Compilation failure: a/src/main/java/A.java:[3,1] ';' expected",
        ),
        (
            "a",
            (ERROR, f"[ERROR] {WHERE}", "[ERROR] -> [Help 1]"),
            "could not be built: Compilation failure: a/src/main/java/A.java:[3,1] ';' expected",
        ),
        (
            "a",
            (ERROR.replace("Compilation failure", "There are test failures."), "[ERROR] Please"),
            "could not be built: There are test failures.",
        ),
        (
            "a",
            (
                ERROR.replace(" Compilation failure", " "),
                "[ERROR] Rule 0: RequireMavenVersion failed with message:",
                "[ERROR] Detected Maven Version: 3.8.7 is not in the allowed range [99,).",
                "[ERROR] -> [Help 3]",
            ),
            "built: Rule 0: RequireMavenVersion failed with message: Detected Maven Version: 3.8.7",
        ),
        (
            "a",
            (ERROR.replace("Compilation failure", "Could not find artifact g:x -> [Help 2]"),),
            "could not be built: Could not find artifact g:x",
        ),
        ("a", (ERROR.replace(": Compilation failure", ":"), ERROR), "built: Compilation failure"),
        ("b", ("[ERROR] The POM is broken",), "`mvn` failed with exit code 1"),
        ("b", (), "`mvn` failed with exit code 1"),
    ],
)
def test_why_a_package_was_not_built(
    tmp_path: Path, name: str, lines: tuple[str, ...], words: str
) -> None:
    failure = CommandFailed("`mvn` failed with exit code 1", log=lines)
    error = explain_unbuilt(a_package(tmp_path, name), failure, LOG)
    assert str(error).startswith(f"maven:g:{name}: ")
    assert words in str(error)
    assert (error.log, error.hint.endswith(f"{LOG.path}.")) == (lines, True)
    assert "[Help" not in str(error)


OTHER = "[INFO] --- maven-surefire-plugin:2.12.4:test (default-test) @ b ---"
TESTING = "[INFO] --- surefire:3.2.5:test (default-test) @ a ---"


@pytest.mark.parametrize(
    "output",
    [
        (OTHER, "Failed tests:   others(BTest)", TESTING, "Failed tests:   adds(ATest): 1"),
        (OTHER, "[ERROR] Failures: ", "[ERROR]   BTest.others", TESTING, "[ERROR] Failures: ",
         "[ERROR]   adds(ATest): 1"),
        (TESTING, "Tests in error: ", "  adds(ATest): 1"),
        (TESTING, "Tests in error: ", "", "Failed tests: adds(ATest): 1"),
    ],
)  # fmt: skip
def test_a_failed_test_is_named(tmp_path: Path, output: tuple[str, ...]) -> None:
    """R47: it stands far above the lines that mvn ends with."""
    log = Log(tmp_path / "mvn.log", NOTHING_SECRET)
    log.path.write_text("\n".join([*output, "[ERROR] Tests run: 9", *["[INFO] "] * 2_000]))
    failed = ERROR.replace("Compilation failure", "There are test failures.")
    error = explain_unbuilt(a_package(tmp_path), CommandFailed("", log=(failed,)), log)
    assert str(error).endswith("could not be built: There are test failures: adds(ATest): 1")


def test_what_was_built_and_held_back_is_not_said_to_be_unbuilt(tmp_path: Path) -> None:
    """By `deployAtEnd`, which mvn tells far above the lines that it ends with."""
    log = Log(tmp_path / "mvn.log", NOTHING_SECRET)
    deferred = "[INFO] Deferring deploy for g:b:1.0 at end"
    log.path.write_text("\n".join([deferred, *["[INFO] Running a test"] * 50_000]))
    error = explain_unbuilt(a_package(tmp_path, "b"), CommandFailed("", log=(ERROR,)), log)
    assert str(error).endswith("was built, but `deployAtEnd` in the POM held it back: a failed")
    assert error.hint.startswith("Take `deployAtEnd` out of the POM")
    error = explain_unbuilt(a_package(tmp_path, "top"), CommandFailed("", log=(ERROR,)), log)
    assert str(error).endswith("was not built: a failed before it")


@pytest.mark.parametrize("text", ["[ERROR]", "[ERROR] on project ", "[ERROR] on project a"])
def test_no_line_of_a_log_takes_long(tmp_path: Path, text: str) -> None:
    """R51"""
    lines = (text * (64 * 1024 // len(text)),) * 3
    error = explain_unbuilt(
        a_package(tmp_path), CommandFailed("`mvn` failed with exit code 1", log=lines), LOG
    )
    assert "`mvn` failed with exit code 1" in str(error)


def test_a_build_that_deploys_nothing_says_so(tmp_path: Path) -> None:
    error = explain_unbuilt(a_package(tmp_path), None, LOG)
    assert "deployed no a-1.0.pom" in str(error)


def test_only_what_maven_deployed_is_collected_the_pom_first(tmp_path: Path) -> None:
    package = a_package(tmp_path)
    staged = tmp_path / "staged" / "g" / "a" / "1.0"
    staged.mkdir(parents=True)
    assert collect(package, tmp_path / "staged", tmp_path / "into") == ()
    for name in ("a-1.0.jar", "a-1.0.jar.sha1", "a-1.0-sources.jar", "a-1.0.pom"):
        (staged / name).write_bytes(b"x")
    artifacts = collect(package, tmp_path / "staged", tmp_path / "into")
    assert [artifact.filename for artifact in artifacts] == [
        "a-1.0.pom",
        "a-1.0-sources.jar",
        "a-1.0.jar",
    ]
    assert artifacts[0].digests.keys() == {"md5", "sha1", "sha256", "sha512"}
    assert artifacts[0].path.parent == tmp_path / "into"


def build(
    root: Path, environment: Mapping[str, str], options: MavenOptions
) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
    async def main() -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            config = fakes.config(root)
            maven = Maven(config, options, fakes.services(config, processes))
            workspace = await maven.discover(root)
            (batch,) = workspace.batches(workspace.packages)
            return await workspace.build(batch, lambda package: root / "into" / package.id.name)

    return asyncio.run(main())


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_maven_it_is_said_what_to_install(tmp_path: Path) -> None:
    a_package(tmp_path)
    results = build(tmp_path.resolve(), {"PATH": str(tmp_path)}, MavenOptions())
    assert len(results) == 3
    for result in results.values():
        assert isinstance(result, BuildFailed)
        assert "mvn is not installed" in str(result)
        assert "mvnw" in result.hint


def test_the_projects_own_wrapper_gets_every_option(tmp_path: Path) -> None:
    a_package(tmp_path)
    (tmp_path / "target").mkdir()
    program(tmp_path / "mvnw", f'printf "%s\\n" "$@" > {tmp_path}/arguments; ls > {tmp_path}/seen')
    options = MavenOptions(
        command="./mvnw",
        args=("-Prelease",),
        properties={"revision": "2"},
        goals=("clean", "package"),
        skip_tests=True,
        sources=True,
        javadoc=True,
        sign=True,
    )
    results = build(tmp_path.resolve(), {"PATH": "/usr/bin:/bin"}, options)
    assert all(isinstance(result, BuildFailed) for result in results.values())
    arguments = (tmp_path / "arguments").read_text().splitlines()
    for wanted in ("--fail-at-end", "-Prelease", "-Drevision=2", "-DskipTests", "clean", "package"):
        assert wanted in arguments
    assert any("maven-source-plugin" in each for each in arguments)
    assert any("maven-javadoc-plugin" in each for each in arguments)
    assert "--projects" not in arguments
    assert "target" not in (tmp_path / "seen").read_text().split()
    assert not (tmp_path / ".releasekit" / "work" / "maven").exists()


@pytest.mark.parametrize(
    ("text", "words"), [("<project", "unclosed token"), ("<html/>", "its root is <html>")]
)
def test_a_pom_that_became_something_else_is_a_failed_build(
    tmp_path: Path, text: str, words: str
) -> None:
    """R52: another build may write into the copy of this one."""
    root = tmp_path.resolve()
    a_package(root)
    program(root / "mvnw", "exit 0")
    config = fakes.config(root)

    async def main() -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        environment = {"PATH": "/usr/bin:/bin"}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            maven = Maven(config, MavenOptions(command="./mvnw"), fakes.services(config, processes))
            workspace = await maven.discover(root)
            (root / "a" / "pom.xml").write_text(text)
            return await workspace.build(workspace.packages, lambda _: root / "into")

    for result in asyncio.run(main()).values():
        assert "sources/a/pom.xml: not the POM that was planned: " in str(result)
        assert words in str(result)


@pytest.mark.parametrize("text", ["${revision}", "${revision", "<"])
def test_a_module_of_a_profile_finds_its_parent_in_the_copy(tmp_path: Path, text: str) -> None:
    """R67: Maven reads the module where the profile is active, and the POM above it is filled in.
    Where none is active, nobody reads it, and it may be anything.
    """
    root = tmp_path.resolve()
    only = "<profiles><profile><id>p</id><modules><module>e</module></modules></profile></profiles>"
    revision = "<properties><revision>1.0</revision></properties>"
    write(root / "pom.xml", gav("top", "${revision}") + modules("a") + revision + only)
    for name, version in (("a", "${revision}"), ("e", text)):
        write(root / name / "pom.xml", child(name, version))
    program(root / "mvnw", f"cp e/pom.xml {root}/seen; cp a/pom.xml {root}/listed; exit 1")
    build(root, {"PATH": "/usr/bin:/bin"}, MavenOptions(command="./mvnw"))
    assert "<version>1.0<" in (root / "listed").read_text()
    seen = (root / "seen").read_text()
    assert ("<version>1.0<" if text == "${revision}" else f"<version>{text}<") in seen


DEPLOYS = """
for argument in "$@"; do
  case $argument in -DaltDeploymentRepository=*) into=${argument#*file://} ;; esac
done
mkdir -p "$into/g/a/1.0" "$into/g/b/1.0"
cp a/pom.xml "$into/g/a/1.0/a-1.0.pom"
cp b/pom.xml "$into/g/b/1.0/b-1.0.pom"
page="<metadata><versioning><versions><version>1.0</version></versions></versioning></metadata>"
for name in a b; do echo "$page" > "$into/g/$name/maven-metadata.xml"; done
echo "$@" >&2
"""
SIGNS = """
while [ "$1" != --output ]; do shift; done
if [ "$2" = - ]; then echo signature; else echo signature > "$2"; fi
"""


def a_reactor(root: Path, version: str = "${revision}") -> None:
    """One of two, whose POMs take their version from a property."""
    revision = "<properties><revision>1.0</revision></properties>"
    write(root / "r" / "pom.xml", gav("top", version) + modules("a", "b") + revision)
    for name in ("a", "b"):
        write(root / "r" / name / "pom.xml", child(name, version))
    write(root / "other" / "pom.xml", gav("other"))


def build_some(
    root: Path, names: tuple[str, ...], **options: object
) -> dict[str, tuple[Artifact, ...] | BuildFailed]:
    table = MavenOptions(reactors=("r", "other"), **options)  # type: ignore[arg-type]

    async def main() -> dict[str, tuple[Artifact, ...] | BuildFailed]:
        environment = {"PATH": f"{root}:/usr/bin:/bin"}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            config = fakes.config(root)
            workspace = await Maven(config, table, fakes.services(config, processes)).discover(root)
            assert len(workspace.batches(workspace.packages)) == 2
            wanted = [package for package in workspace.packages if package.id.name in names]
            results = await workspace.build(wanted, lambda package: root / "into" / package.id.name)
            return {package.name: result for package, result in results.items()}

    return asyncio.run(main())


def test_what_maven_deploys_is_signed_and_needs_no_workspace(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    a_reactor(root)
    program(root / "mvn", f'{DEPLOYS}echo "$@" > {root}/arguments')
    program(root / "gpg", SIGNS)
    results = build_some(root, ("g:a", "g:b"), sign="KEY")
    artifacts = results["g:a"]
    assert not isinstance(artifacts, BuildFailed)
    assert [artifact.filename for artifact in artifacts] == ["a-1.0.pom", "a-1.0.pom.asc"]
    assert "${revision}" not in artifacts[0].path.read_text()
    assert "<version>1.0</version>" in artifacts[0].path.read_text()
    arguments = (root / "arguments").read_text()
    assert "--projects g:a,g:b --also-make" in arguments
    # R68: of these, the one for releases is stronger, and POMs may set it.
    for kind in ("", "Release", "Snapshot"):
        assert f"-Dalt{kind}DeploymentRepository=releasekit::file:///" in arguments


def test_a_maven_that_fails_may_have_built_some_of_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    a_reactor(root, "1.0")
    program(
        root / "mvn", f"{DEPLOYS}rm -r $into/g/b; echo '[ERROR] broken on project b: why'\nexit 1"
    )
    program(root / "gpg", SIGNS)
    results = build_some(root, ("g:a", "g:b"), sign=True)
    assert not isinstance(results["g:a"], BuildFailed)
    assert "g:b: could not be built: why" in str(results["g:b"])


def test_two_reactors_are_built_side_by_side(tmp_path: Path) -> None:
    """Each on a copy of its own: either waits until the other one has its copy too."""
    root = tmp_path.resolve()
    a_reactor(root, "1.0")
    meet = f"""
pwd >> {root}/begun
until [ "$(wc -l < {root}/begun)" = 2 ]; do sleep 0.01; done
test -f pom.xml || exit 1
for argument in "$@"; do
  case $argument in -DaltDeploymentRepository=*) into=${{argument#*file://}} ;; esac
done
name=top; grep -q '>other<' pom.xml && name=other
mkdir -p "$into/g/$name/1.0"
cp pom.xml "$into/g/$name/1.0/$name-1.0.pom"
"""
    program(root / "mvn", meet)

    async def main() -> list[Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]]:
        environment = {"PATH": f"{root}:/usr/bin:/bin"}
        options = MavenOptions(reactors=("r", "other"))
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            config = fakes.config(root)
            services = fakes.services(config, processes)
            workspace = await Maven(config, options, services).discover(root)
            wanted = [p for p in workspace.packages if p.id.name in {"g:top", "g:other"}]
            builds = [
                workspace.build(batch, lambda package: root / "into" / package.id.name)
                for batch in workspace.batches(wanted)
            ]
            return list(await asyncio.gather(*builds))

    for results in asyncio.run(main()):
        for result in results.values():
            assert not isinstance(result, BuildFailed), result


def test_one_that_cannot_be_signed_fails(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    a_reactor(root)
    program(root / "mvn", DEPLOYS)
    program(root / "gpg", "exit 2")
    assert "gpg did not sign" in str(build_some(root, ("g:a",), sign=True)["g:a"])
    assert not isinstance(build_some(root, ("g:a",))["g:a"], BuildFailed)


def test_a_workspace_pins_the_manifest_of_a_project(tmp_path: Path) -> None:
    """R24"""
    root = tmp_path.resolve()
    write(root / "pom.xml", gav("top") + modules("a", "b"))
    write(root / "a" / "pom.xml", gav("a", "1.1"))
    manifest = write(root / "b" / "pom.xml", gav("b") + needs("a", "[1.0,2.0)")).read_text()
    maven = Maven(
        fakes.config(root, pin="exact"), MavenOptions(), fakes.services(fakes.config(root), None)
    )
    workspace = asyncio.run(maven.discover(root))
    pinned = workspace.pin(manifest, {"g:a": "1.1"})
    assert pinned == manifest.replace("[1.0,2.0)", "1.1")


def test_a_signature_goes_through_no_link(tmp_path: Path) -> None:
    """R52: a build put it there, and gpg is not in the sandbox."""
    artifacts = built(tmp_path)
    (tmp_path / "victim").write_text("as it was")
    for artifact in artifacts:
        artifact.path.with_name(f"{artifact.filename}.asc").symlink_to(tmp_path / "victim")
    program(tmp_path / "gpg", SIGNS)

    async def main() -> None:
        async with Processes(environment={"PATH": str(tmp_path)}) as processes:
            await GpgSigner(processes, key=True, concurrency=1).sign(a_package(tmp_path), artifacts)

    with pytest.raises(BuildFailed, match="File exists"):
        asyncio.run(main())
    assert (tmp_path / "victim").read_text() == "as it was"


@pytest.mark.parametrize("kind", ["changed", "link", "gone"])
def test_only_the_bytes_that_were_built_are_signed(tmp_path: Path, kind: str) -> None:
    """R52: a process that a build left behind puts others in their place, for the user's key."""
    artifacts = built(tmp_path)
    for artifact in artifacts:
        data = artifact.path.read_bytes()
        artifact.path.unlink()
        if kind == "changed":
            artifact.path.write_bytes(data[::-1])
        elif kind == "link":
            (tmp_path / "other").write_bytes(data)
            artifact.path.symlink_to(tmp_path / "other")
    program(tmp_path / "gpg", f"touch {tmp_path}/asked\n{SIGNS}")

    async def main() -> None:
        async with Processes(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}) as processes:
            await GpgSigner(processes, key=True, concurrency=1).sign(a_package(tmp_path), artifacts)

    with raises(Problem.SIGNING, match="it was not sent"):
        asyncio.run(main())
    assert not (tmp_path / "asked").exists()


def test_gpg_reads_what_was_built(tmp_path: Path) -> None:
    artifacts = built(tmp_path)
    program(tmp_path / "gpg", "cat")

    async def main() -> tuple[Artifact, ...]:
        async with Processes(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}) as processes:
            signer = GpgSigner(processes, key=True, concurrency=1)
            return await signer.sign(a_package(tmp_path), artifacts)

    signed = asyncio.run(main())
    assert [each.path.read_bytes() for each in signed[2:]] == [
        each.path.read_bytes() for each in artifacts
    ]


@pytest.mark.parametrize(
    ("script", "words"),
    [(None, "gpg is not installed"), ("echo no key >&2; exit 2", "gpg did not sign: no key")],
)
def test_what_gpg_cannot_sign_is_not_built(tmp_path: Path, script: str | None, words: str) -> None:
    package = a_package(tmp_path)
    artifacts = built(tmp_path)
    if script is not None:
        program(tmp_path / "gpg", script)

    async def main() -> None:
        async with Processes(environment={"PATH": str(tmp_path)}) as processes:
            await GpgSigner(processes, key="KEY", concurrency=1).sign(package, artifacts)

    with pytest.raises(BuildFailed, match=words):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"reactors": "x"}, "reactors"),
        ({"sign": "--homedir=x"}, "sign"),
        ({"sign": 1}, "sign"),
        ({"api": "nexus"}, "api"),
        ({"publishing": 1}, "publishing"),
        ({"properties": {"a b": "c"}}, "properties"),
        ({"properties": {"a": 1}}, "properties"),
        ({"skip-tests": "yes"}, "skip-tests"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(table: Mapping[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MavenOptions.from_table(table)
    assert "releasekit.toml: [maven]" in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.hint
