"""Maven packages through ./entrypoint.sh: real builds, a real repository, and back with mvn."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration import reactor
from integration.maven_server import local_repository
from integration.reactor import GROUP, NEEDS, VERSION
from integration.recorder import Fault
from integration.servers import static_server
from integration.tools import require_landlock, require_tool
from outside import make_outside
from processes import wait_until
from releasekit.ecosystems.maven import MavenOptions, discover, document
from releasekit.ecosystems.maven.discover import load_projects
from workspaces import Program, git, wait_for_orphans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.maven_server import MavenServer
    from integration.portal import PortalServer
    from integration.recorder import Exchange, Recorder
    from workspaces import Run

EFFECTIVE = "org.apache.maven.plugins:maven-help-plugin:3.5.1:effective-pom"
NAMES = {f"{GROUP}:{artifact}" for artifact in NEEDS}
SIGNED = "sign = true\nsources = true\njavadoc = true\n"
SMALL_NAMES = {f"{GROUP}:{artifact}" for artifact in reactor.needs_of(reactor.SMALL)}


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_tool("mvn")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return reactor.write(tmp_path / "a workspace")


@pytest.fixture(scope="module")
def gnupg() -> Iterator[Path]:
    """A keyring with one key, which has no passphrase, where no build can write."""
    home = make_outside("gnupg")
    gpg = [str(require_tool("gpg")), "--homedir", str(home), "--batch"]
    make = ["--passphrase", "", "--quick-generate-key", "Releaser <releaser@example.invalid>"]
    subprocess.run([*gpg, *make], check=True, capture_output=True)
    yield home
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    shutil.rmtree(home, ignore_errors=True)  # the agent removes its sockets meanwhile


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, gnupg: Path) -> Path:
    """The small reactor, built and signed by a dry run."""
    require_tool("mvn")
    place = tmp_path_factory.mktemp("built")
    root = reactor.write(place / "workspace", reactor.SMALL)
    # Where a test publishes to is none of the sources: what is built stays theirs.
    (root / ".git" / "info" / "exclude").write_text("releasekit.toml\n")
    (root / "releasekit.toml").write_text(f"[maven]\n{SIGNED}")
    (place / "home").mkdir()
    known = Program(place / "home", {**reactor.environment(), "GNUPGHOME": str(gnupg)})
    run = known.run("publish", root, "--registry", f"dir:{place / 'registry'}", "--dry-run")
    assert run.code == 0, run.out + run.err
    return root


@pytest.fixture
def small(tmp_path: Path, built: Path) -> Path:
    """A copy of it, which is published without being built again."""
    return shutil.copytree(built, tmp_path / "a small workspace")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "home", reactor.environment())


def publish(
    program: Program, workspace: Path, server: MavenServer, *more: str, **environment: str
) -> Run:
    known = Program(program.home, {**program.environment, **server.environment, **environment})
    registry = ["--maven-registry", server.url, "--retry-base-delay", "0.05s"]
    return known.run("publish", workspace, *registry, *more)


def artifact_of(exchange: Exchange) -> str:
    return exchange.path.split("/")[-3]


def assert_in_order(recorder: Recorder) -> None:
    """No byte of a package came before the repository had shown its dependencies whole."""
    uploads = recorder.uploads
    began = {name: min(it.began_s for it in uploads if artifact_of(it) == name) for name in NEEDS}
    shown = {
        name: min(
            it.ended_s
            for it in recorder.exchanges
            if it.method == "GET" and it.status == 200 and it.path.endswith(".pom.sha1")
            if artifact_of(it) == name
        )
        for name in NEEDS
    }
    for name, needs in NEEDS.items():
        for need in needs:
            assert shown[need] < began[name], (name, need)


def fresh_repository(tmp_path: Path) -> Path:
    """A local repository that holds plugins, and nothing of the release."""
    path = tmp_path / "m2"
    shutil.copytree(local_repository(), path, copy_function=os.link)
    shutil.rmtree(path / "com" / "example", ignore_errors=True)
    return path


def test_a_release_in_order_once_readable_by_itself_and_back(
    maven_server: MavenServer, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R1, R2, R19, R25"""
    metadata = maven_server.files / "com/example/acme/acme-core/maven-metadata.xml"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(_NEWER)
    before = {path: path.read_bytes() for path in workspace.rglob("pom.xml")}
    first = publish(program, workspace, maven_server, "--concurrency", "3")
    assert first.code == 0, first.out + first.err
    assert first.outcomes == dict.fromkeys(NAMES, "published")
    uploads = maven_server.recorder.uploads
    assert len(uploads) == len({upload.path for upload in uploads}) == 2 * 4 + 2
    assert_in_order(maven_server.recorder)
    assert {path: path.read_bytes() for path in before} == before
    assert git(workspace, "status", "--porcelain", "--ignored") == "!! .releasekit/\n"

    maven_server.recorder.forget()
    shutil.rmtree(workspace / ".releasekit" / "logs")
    second = publish(program, workspace, maven_server)
    assert not (workspace / ".releasekit" / "logs").exists()  # Maven was not even started
    assert second.results["result"] == "noop", second.out
    assert [it for it in maven_server.recorder.exchanges if it.method != "GET"] == []

    assert_readable(maven_server.files / "com/example/acme")
    page = metadata.read_text()
    assert page.index(f"<version>{VERSION}<") < page.index("<version>1.5.0<")
    assert "<latest>1.5.0</latest>" in page

    repository = fresh_repository(tmp_path)
    reactor.dependent(tmp_path / "user", maven_server.url)
    reactor.mvn(tmp_path / "user", "compile", repository=repository)
    assert (repository / "com/example/acme/acme-core" / VERSION).is_dir()


# Of a line that somebody has released already.
_NEWER = """\
<metadata>
  <groupId>com.example.acme</groupId>
  <artifactId>acme-core</artifactId>
  <versioning>
    <latest>1.5.0</latest>
    <release>1.5.0</release>
    <versions><version>1.5.0</version></versions>
  </versioning>
</metadata>
"""


def assert_readable(home: Path) -> None:
    """Without the workspace."""
    for artifact in NEEDS:
        directory = home / artifact / VERSION
        page = (directory / f"{artifact}-{VERSION}.pom").read_text()
        assert "${revision}" not in page
        assert f"<version>{VERSION}</version>" in page
        for path in directory.iterdir():
            algorithm = path.name.rpartition(".")[2]
            if algorithm in {"md5", "sha1", "sha256", "sha512"}:
                data = path.with_suffix("").read_bytes()
                assert path.read_text() == hashlib.new(algorithm, data).hexdigest()
    metadata = (home / "acme-web" / "maven-metadata.xml").read_text()
    assert f"<release>{VERSION}</release>" in metadata
    page = (home / "acme-web" / VERSION / f"acme-web-{VERSION}.pom").read_text()
    assert "<!-- of this workspace -->" in page
    assert not (home / "acme-internal").exists()


def test_a_bad_network_costs_nothing_but_time(
    maven_server: MavenServer, small: Path, program: Program
) -> None:
    """R12, R15, R16"""
    maven_server.recorder.faults.extend(
        [
            Fault(kind="status", status=503, method="PUT", path=r".*/acme-parent.*"),
            Fault(
                kind="status",
                status=429,
                method="PUT",
                path=r".*/acme-core.*\.jar",
                headers=(("Retry-After", "0"),),
            ),
            Fault(kind="lost", method="PUT", path=r".*/acme-core.*\.pom"),
            Fault(kind="lost", method="PUT", path=r".*/acme-core.*\.jar"),
            Fault(kind="lost", method="PUT", path=r".*/acme-core/maven-metadata\.xml"),
            Fault(kind="reset", method="PUT", path=r".*/acme-core.*\.jar\.sha1"),
            Fault(kind="lost", method="PUT", path=r".*/acme-bom.*\.pom\.sha1"),
            Fault(kind="status", status=502, method="GET"),
        ]
    )
    run = publish(program, small, maven_server)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    assert not maven_server.recorder.faults
    stored = [it.path for it in maven_server.recorder.uploads if it.status in {201, 204}]
    assert len(stored) == len(set(stored))


def test_wrong_credentials_are_one_clear_message(
    maven_server: MavenServer, small: Path, program: Program
) -> None:
    run = publish(program, small, maven_server, RELEASEKIT_MAVEN_PASSWORD="wrong-password")
    assert run.code == 1
    assert run.outcomes[f"{GROUP}:acme-parent"] == "failed"
    assert run.outcomes[f"{GROUP}:acme-core"] == "blocked"
    row = run.row(f"{GROUP}:acme-parent")
    assert "maven-password" in row["reason"] + row["hint"]
    assert "wrong-password" not in run.out + run.err + str(run.results)


def test_a_killed_run_is_finished_by_the_next(
    maven_server: MavenServer, program: Program, tmp_path: Path
) -> None:
    """R14, R18: the second run sends what the first one built, and builds nothing."""
    workspace = reactor.write(tmp_path / "workspace", reactor.SMALL)
    maven_server.recorder.faults.append(
        Fault(kind="held", method="PUT", path=r".*acme-core.*\.jar")
    )
    known = Program(program.home, {**program.environment, **maven_server.environment})
    journal = workspace / ".releasekit" / "journal.jsonl"

    def is_under_way() -> bool:
        built = journal.read_text().count('"event":"built"') if journal.exists() else 0
        return maven_server.recorder.holding == 1 and built == len(SMALL_NAMES)

    known.kill_once(is_under_way, workspace, "--maven-registry", maven_server.url)
    maven_server.recorder.let_go()
    logs = sorted((workspace / ".releasekit" / "logs").rglob("build-maven-*.log"))
    assert len(logs) == 1
    run = publish(program, workspace, maven_server)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) <= {"published", "already-published"}
    assert sorted((workspace / ".releasekit" / "logs").rglob("*.log")) == logs


def test_a_first_list_of_versions_gets_its_checksum_from_the_run_after_a_killed_one(
    maven_server: MavenServer, small: Path, program: Program
) -> None:
    """R14, R21: the checksum was the only request that had not arrived."""
    page = maven_server.files / "com/example/acme/acme-core/maven-metadata.xml"
    checksum = page.with_name(f"{page.name}.sha1")
    proof = page.parent / VERSION / f"acme-core-{VERSION}.pom.sha1"
    maven_server.recorder.faults.append(
        Fault(kind="late", method="PUT", path=rf".*/acme-core/{checksum.name}")
    )

    def is_all_that_is_missing() -> bool:
        return maven_server.recorder.holding == 1 and page.exists() and proof.exists()

    known = Program(program.home, {**program.environment, **maven_server.environment})
    known.kill_once(is_all_that_is_missing, small, "--maven-registry", maven_server.url)
    assert not checksum.exists()
    maven_server.recorder.forget()
    run = publish(program, small, maven_server)
    assert run.code == 0, run.out + run.err
    assert run.outcomes[f"{GROUP}:acme-core"] == "published"
    assert checksum.read_text() == hashlib.sha1(page.read_bytes()).hexdigest()
    assert "acme-core" not in {artifact_of(it) for it in maven_server.recorder.uploads}


def test_a_build_that_dies_with_pinned_poms_gives_them_back(
    maven_server: MavenServer, program: Program, tmp_path: Path
) -> None:
    """R22, R27: of a run killed while mvn works; mvn keeps the lock until it has ended."""
    workspace = reactor.write(tmp_path / "workspace", reactor.PAIR)
    pom = workspace / "text" / "pom.xml"
    version = "<version>${project.version}</version>"
    assert pom.read_text().count(version) == 1
    pom.write_text(pom.read_text().replace(version, "<version>[1.0,2.0)</version>"))
    pom.chmod(0o640)
    git(workspace, "commit", "--quiet", "--all", "--message", "A range")
    before = pom.read_bytes(), pom.stat().st_mode, pom.stat().st_mtime_ns
    programs, begun, go_on = tmp_path / "bin", tmp_path / "begun", tmp_path / "go-on"
    programs.mkdir()
    mvn = require_tool("mvn")
    (programs / "mvn").write_text(
        f"#!/bin/sh\n[ \"$*\" != --version ] || exec '{mvn}' --version\n"
        f"[ -e '{begun}' ] || set -- --version\ntouch '{begun}'\n"
        f"until [ -e '{go_on}' ]; do sleep 0.05; done\nexec '{mvn}' \"$@\"\n"
    )
    (programs / "mvn").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    known = Program(program.home, {**program.environment, **maven_server.environment, "PATH": path})
    more = ("--maven-registry", maven_server.url, "--pin", "exact")
    killed = known.start("publish", workspace, *more)
    wait_until(begun.exists, killed, known.log.read_text)
    assert f"<version>{VERSION}</version>" in pom.read_text()
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    go_on.touch()
    wait_for_orphans(workspace)
    assert pom.read_bytes() != before[0]
    run = known.run("publish", workspace, *more)
    assert run.code == 0, run.out + run.err
    assert f"restored {pom}" in run.out
    assert (pom.read_bytes(), pom.stat().st_mode, pom.stat().st_mtime_ns) == before
    assert git(workspace, "status", "--porcelain") == ""
    assert set(run.outcomes.values()) == {"published"}
    deployed = f"com/example/acme/acme-text/{VERSION}/acme-text-{VERSION}.pom"
    text = (maven_server.files / deployed).read_text()
    assert f"<version>{VERSION}</version>" in text
    assert "[1.0,2.0)" not in text


def test_a_static_directory_serves_what_was_published(
    small: Path, program: Program, tmp_path: Path
) -> None:
    served = tmp_path / "served"
    run = program.run("publish", small, "--registry", f"dir:{served}")
    assert run.code == 0, run.out + run.err
    repository = fresh_repository(tmp_path)
    with static_server(served / "maven") as url:
        used = {"artifact": "acme-core", "name": "acme.Core.NAME"}
        reactor.dependent(tmp_path / "user", f"{url}/", **used)
        reactor.mvn(tmp_path / "user", "compile", repository=repository)


_ATTACHED_LATE = """\
  <groupId>com.example</groupId>
  <artifactId>lone</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
  </properties>
  <build><plugins><plugin>
    <artifactId>maven-source-plugin</artifactId>
    <version>3.3.1</version>
    <executions><execution>
      <phase>verify</phase>
      <goals><goal>jar-no-fork</goal></goals>
    </execution></executions>
  </plugin></plugins></build>
"""


def test_what_a_build_attaches_after_packaging_is_published(
    tmp_path: Path, program: Program
) -> None:
    root, served = tmp_path / "lone", tmp_path / "served"
    reactor.page(root / "pom.xml", _ATTACHED_LATE)
    source = root / "src" / "main" / "java" / "Lone.java"
    source.parent.mkdir(parents=True)
    source.write_text("class Lone {}")
    run = program.run("publish", root, "--registry", f"dir:{served}")
    assert run.code == 0, run.out + run.err
    files = {path.name for path in (served / "maven/com/example/lone/1").iterdir()}
    assert {"lone-1.jar", "lone-1-sources.jar"} <= files


@pytest.mark.parametrize("hard", [True, False])
def test_what_is_built_goes_out_unless_the_configuration_of_a_pom_keeps_it(
    tmp_path: Path, program: Program, hard: bool
) -> None:
    """No option of mvn beats what is written into a plugin's configuration."""
    workspace = reactor.write(tmp_path / "workspace", reactor.PAIR)
    (workspace / "text" / "src" / "main" / "java" / "acme" / "Text.java").write_text("nonsense")
    pom = workspace / "pom.xml"
    at_end = "<deployAtEnd>true</deployAtEnd>"
    plugin = "<plugin><artifactId>maven-deploy-plugin</artifactId><configuration>"
    configured = f"<build><plugins>{plugin}{at_end}</configuration></plugin></plugins></build>"
    before = "</project>" if hard else "  </properties>"
    told = configured if hard else at_end
    pom.write_text(pom.read_text().replace(before, f"{told}{before}"))
    run = program.run("publish", workspace, "--registry", f"dir:{tmp_path / 'served'}")
    assert run.code == 1
    parent = run.row(f"{GROUP}:acme-parent")
    assert parent["outcome"] == ("failed" if hard else "published")
    held = "was built, but `deployAtEnd` in the POM held it back: acme-text failed"
    assert (held in parent["reason"]) is hard
    assert (run.outcomes[f"{GROUP}:acme-core"] == "published") is not hard


def test_gpg_obeys_nothing_that_a_build_wrote(
    program: Program, tmp_path: Path, gnupg: Path
) -> None:
    """R50: it is refused before anything is built; with files of the user's own it signs."""
    require_landlock()
    small = reactor.write(tmp_path / "workspace", reactor.SMALL)
    (small / "releasekit.toml").write_text("[maven]\nsign = true\n")
    ran = tmp_path / "ran"
    mine = tmp_path / "bin" / "gpg"
    mine.parent.mkdir()
    mine.write_text(f"#!/bin/sh\ntouch '{ran}'\necho signature\n")
    mine.chmod(0o755)
    for given in (
        {"GNUPGHOME": str(tmp_path)},
        {"GNUPGHOME": "/var/tmp/none", "PATH": f"{mine.parent}:{os.environ['PATH']}"},
    ):
        releaser = replace(program, environment={**program.environment, **given})
        run = releaser.run("publish", small, "--registry", f"dir:{tmp_path / 'registry'}")
        assert run.code == 2, run.out + run.err
        assert f"{tmp_path}" in run.err
        assert "where builds can write" in run.err
    assert not ran.exists()
    assert not list((tmp_path / "registry").glob("**/*.pom"))
    releaser = replace(program, environment={**program.environment, "GNUPGHOME": str(gnupg)})
    run = releaser.run("publish", small, "--registry", f"dir:{tmp_path / 'registry'}")
    assert run.code == 0, run.out + run.err
    signatures = list((tmp_path / "registry").glob("**/*.asc"))
    assert len(signatures) >= len(SMALL_NAMES)
    for path in signatures:
        assert_signed(path.with_suffix(""), gnupg)


def assert_signed(path: Path, gnupg: Path) -> None:
    verify = ["gpg", "--homedir", str(gnupg), "--verify", f"{path}.asc", str(path)]
    subprocess.run(verify, check=True, capture_output=True)


def through_portal(
    program: Program, workspace: Path, portal: PortalServer, *more: str, **environment: str
) -> Run:
    (workspace / "releasekit.toml").write_text(
        f'[maven]\napi = "portal"\nrepository = "{portal.repository}"\n{SIGNED}'
    )
    known = Program(program.home, {**program.environment, **portal.environment, **environment})
    registry = ["--maven-registry", portal.url, "--retry-base-delay", "0.05s"]
    return known.run("publish", workspace, *registry, *more)


def test_the_portal_gets_one_signed_bundle_which_is_checked_and_then_published(
    portal_server: PortalServer, small: Path, program: Program, gnupg: Path, tmp_path: Path
) -> None:
    """R1, R19: no package waits for another one, and none is visible before all of them are."""
    run = through_portal(program, small, portal_server)
    assert run.code == 0, run.out + run.err
    assert run.outcomes == dict.fromkeys(SMALL_NAMES, "published")
    (deployed,) = portal_server.deployments.values()
    assert deployed.state == "PUBLISHED"
    assert not deployed.automatic
    poms = {name for name in deployed.files if name.endswith(".pom")}
    assert len(poms) == len(SMALL_NAMES)
    assert portal_server.requests.count("POST upload") == 1
    assert portal_server.requests.count("POST deployment") == 1
    again = through_portal(program, small, portal_server)
    assert again.results["result"] == "noop"
    assert portal_server.requests.count("POST upload") == 1
    for kind in (".pom", ".jar", "-sources.jar", "-javadoc.jar"):
        path = tmp_path / f"acme-core-{VERSION}{kind}"
        for each in (path, Path(f"{path}.asc")):
            each.write_bytes(deployed.files[f"com/example/acme/acme-core/{VERSION}/{each.name}"])
        assert_signed(path, gnupg)


def test_a_dead_token_of_the_portal_keeps_all_back_before_anything_is_uploaded(
    portal_server: PortalServer,
    small: Path,
    program: Program,
    gnupg: Path,
) -> None:
    """R38: with the right one, the same command publishes."""
    run = through_portal(program, small, portal_server, RELEASEKIT_MAVEN_PASSWORD="dead")
    assert run.code == 3
    assert f"{portal_server.url} does not know the user token; nothing was sent [RK-324]" in run.err
    assert portal_server.requests == []
    run = through_portal(program, small, portal_server)
    assert run.outcomes == dict.fromkeys(SMALL_NAMES, "published")


def test_what_waits_at_the_portal_is_published_by_a_person(
    portal_server: PortalServer, small: Path, program: Program
) -> None:
    """R19: no run publishes it, or uploads it twice, nor does `approve`, which names the page; once
    a person has, there is nothing to do.
    """

    def stage() -> Run:
        return through_portal(program, small, portal_server, "--stage", "always")

    run = stage()
    assert run.code == 0, run.out + run.err
    assert run.results["result"] == "staged"
    assert run.outcomes == dict.fromkeys(SMALL_NAMES, "staged")
    ((identifier, deployed),) = portal_server.deployments.items()
    assert deployed.state == "VALIDATED"
    assert {row["staged"]["id"] for row in run.results["packages"]} == {identifier}
    assert not portal_server.files

    assert stage().results["result"] == "staged"
    assert portal_server.requests.count("POST upload") == 1
    assert deployed.state == "VALIDATED"

    asked = len(portal_server.requests)
    page = f"{portal_server.url.rstrip('/')}/publishing/deployments"
    assert f"Press Publish or Drop at {page} for maven:" in run.out
    here = ["--working-directory", str(small), "--maven-registry", portal_server.url]
    for command in ("approve", "reject"):
        told = program.run(command, *here, "--yes")
        assert told.code == 1, told.out + told.err
        assert all(f"maven:{name}" in told.out for name in SMALL_NAMES)
        assert page in told.out
    assert len(portal_server.requests) == asked

    portal_server.publish(identifier)
    portal_server.look(identifier)
    assert portal_server.files == deployed.files
    assert stage().results["result"] == "noop"
    assert portal_server.requests.count("POST upload") == 1


def test_what_the_portal_refuses_is_told_in_its_words_and_nothing_is_published(
    portal_server: PortalServer, small: Path, program: Program
) -> None:
    taken = f"com/example/acme/acme-core/{VERSION}/acme-core-{VERSION}-tests.jar"
    portal_server.files[taken] = b"somebody else's"
    run = through_portal(program, small, portal_server)
    assert run.code == 1
    assert "Component already exists" in run.out
    assert set(run.outcomes.values()) <= {"failed", "blocked"}
    assert portal_server.deployments == {}
    assert list(portal_server.files) == [taken]


@pytest.mark.parametrize(("path", "uploads"), [(".*upload.*", 2), (".*/deployment/.*", 1)])
def test_an_answer_of_the_portal_that_gets_lost_publishes_nothing_twice(
    portal_server: PortalServer, small: Path, program: Program, path: str, uploads: int
) -> None:
    """R15, R16: what is visible only in part is on its way, and is not sent again."""
    assert portal_server.recorder is not None
    portal_server.recorder.faults.append(Fault(kind="lost", method="POST", path=path))
    run = through_portal(program, small, portal_server)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    states = [deployed.state for deployed in portal_server.deployments.values()]
    assert states.count("PUBLISHED") == 1
    assert set(states) <= {"PUBLISHED", "PENDING"}
    assert portal_server.requests.count("POST upload") == uploads


def test_a_build_that_fails_keeps_the_whole_release_from_the_portal(
    portal_server: PortalServer, small: Path, program: Program, gnupg: Path
) -> None:
    """R6"""
    (small / "core" / "src" / "main" / "java" / "acme" / "Core.java").write_text("nonsense")
    run = through_portal(program, small, portal_server, GNUPGHOME=str(gnupg))
    assert run.code == 1
    assert run.outcomes[f"{GROUP}:acme-core"] == "failed"
    assert run.outcomes[f"{GROUP}:acme-bom"] == "failed"
    assert "one deployment" in run.row(f"{GROUP}:acme-parent")["reason"]
    assert portal_server.deployments == {}


def test_what_is_discovered_is_what_maven_itself_has(workspace: Path, tmp_path: Path) -> None:
    """Maven's effective models are the oracle: modules, versions, parents and dependencies."""
    where = tmp_path / "effective.xml"
    reactor.mvn(workspace, EFFECTIVE, f"-Doutput={where}")
    models = document.read_document(where).children
    theirs = {
        f"{model.value('groupId')}:{model.value('artifactId')}": model.value("version")
        for model in models
    }
    projects = load_projects(workspace.resolve(), MavenOptions())
    found = discover.make_packages({project.name: project for project in projects})
    assert {package.id.name: package.version for package in found} == theirs
    edges = {package.id.name: {it.on.name for it in package.dependencies} for package in found}
    for model in models:
        name = f"{model.value('groupId')}:{model.value('artifactId')}"
        above = [parent for parent in [model.child("parent")] if parent is not None]
        for needed in (*above, *model.all("dependencies", "dependency")):
            assert f"{needed.value('groupId')}:{needed.value('artifactId')}" in edges[name]
