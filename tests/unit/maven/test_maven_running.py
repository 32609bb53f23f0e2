"""Packages of one reactor, taken while its mvn is still at work."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import fakes
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven import build as maven_build
from releasekit.ecosystems.maven.build import ReactorBuilder, is_deployed
from releasekit.ecosystems.maven.target import Maven
from releasekit.errors import BuildFailed
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.problems import Problem
from unit.maven.poms import gav, modules, packages, write
from unit.maven.releases import built

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from releasekit.ecosystems.maven.target import MavenWorkspace
    from releasekit.model import Artifact, Package

# Deploys a, and b once there is a file `go`, each as Maven does it: what lists it comes last.
DEPLOYS = """
for argument in "$@"; do
  case $argument in -DaltDeploymentRepository=*) into=${argument#*file://} ;; esac
done
deploy() {
  mkdir -p "$into/g/$1/1.0"
  cp "$1/pom.xml" "$into/g/$1/1.0/$1-1.0.pom"
  printf "<metadata><versioning><versions>%s</versions></versioning></metadata>" \\
    "<version>1.0</version>" > "$into/g/$1/maven-metadata.xml"
}
echo begun >> HERE/calls
deploy a
until [ -e HERE/go ]; do sleep 0.01; done
"""


def write_reactor(root: Path, script: str) -> None:
    write(root / "pom.xml", gav("top", "1.0-SNAPSHOT") + modules("a", "b"))
    for each in ("a", "b"):
        write(root / each / "pom.xml", gav(each))
    program = root / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{(DEPLOYS + script).replace('HERE', str(root))}\n")
    program.chmod(0o755)


def write_third(root: Path, script: str) -> None:
    write_reactor(root, script)
    (root / "c").mkdir()
    write(root / "pom.xml", gav("top", "1.0-SNAPSHOT") + modules("a", "b", "c"))
    write(root / "c" / "pom.xml", gav("c"))


@asynccontextmanager
async def opened(
    root: Path, *, path: str = "/usr/bin:/bin", **changes: object
) -> AsyncIterator[MavenWorkspace]:
    environment = {"PATH": f"{root}/bin:{path}"}
    config = fakes.config(root, **changes)
    async with (
        Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes,
        Maven(config, MavenOptions(), fakes.services(config, processes)) as maven,
    ):
        yield await maven.discover(root)


class Line:
    """Calls of one workspace, as the publish line makes them."""

    def __init__(self, root: Path, workspace: MavenWorkspace) -> None:
        self.root = root
        self.workspace = workspace
        self.packages = [each for each in workspace.packages if not each.unpublishable]
        self.batches = workspace.split_singly(self.packages)

    async def build(self, name: str) -> tuple[Artifact, ...] | BuildFailed:
        (batch,) = (batch for batch in self.batches if [p.id.name for p in batch] == [name])
        (result,) = (await self.workspace.build(batch, self.into)).values()
        return result

    def into(self, package: Package) -> Path:
        return self.root / "into" / package.id.name


def test_a_package_is_there_while_the_next_is_built(tmp_path: Path) -> None:
    """One mvn builds them all, and leaves nothing behind."""
    root = tmp_path.resolve()
    write_reactor(root, "deploy b")

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            later = asyncio.ensure_future(line.build("g:b"))
            first = await line.build("g:a")
            assert not isinstance(first, BuildFailed)
            assert [artifact.filename for artifact in first] == ["a-1.0.pom"]
            assert not later.done()
            (root / "go").touch()
            assert not isinstance(await later, BuildFailed)

    asyncio.run(main())
    assert (root / "calls").read_text() == "begun\n"
    assert not (root / ".releasekit" / "work" / "maven").exists()


def test_a_look_reads_nothing_of_packages_that_maven_has_not_begun_to_deploy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each look at a reactor of a thousand modules reads for a thousand of them."""
    root, looked_at = tmp_path.resolve(), set[str]()
    write_reactor(root, "deploy b")

    def look(package: Package, staging: Path) -> bool:
        looked_at.add(package.id.name)
        return is_deployed(package, staging)

    monkeypatch.setattr(maven_build, "is_deployed", look)

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            later = asyncio.ensure_future(line.build("g:b"))
            assert not isinstance(await line.build("g:a"), BuildFailed)
            assert looked_at == {"g:a"}
            (root / "go").touch()
            assert not isinstance(await later, BuildFailed)

    asyncio.run(main())


def test_why_the_rest_is_missing_is_told_when_maven_has_ended(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    write_reactor(root, "echo '[ERROR] broken on project b: why'; exit 1")

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            assert not isinstance(await line.build("g:a"), BuildFailed)
            (root / "go").touch()
            assert "g:b: could not be built: why" in str(await line.build("g:b"))

    asyncio.run(main())


def test_nobody_waits_for_a_maven_that_cannot_be_started(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    write_reactor(root, "")
    (root / "bin" / "mvn").unlink()

    async def main() -> None:
        async with opened(root, path="") as workspace:
            line = Line(root, workspace)
            for name in ("g:a", "g:b"):
                assert "mvn is not installed" in str(await line.build(name))

    asyncio.run(main())


def test_a_build_that_is_interrupted_ends_maven(tmp_path: Path) -> None:
    """R28: with the last that no longer waits for its package; whoever comes then is told."""
    root = tmp_path.resolve()
    write_third(root, "")

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            assert not isinstance(await line.build("g:a"), BuildFailed)
            waiting = asyncio.ensure_future(line.build("g:b"))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert "interrupted" in str(await line.build("g:c"))

    asyncio.run(main())
    assert not (root / ".releasekit" / "work" / "maven").exists()


def test_the_limit_is_that_of_the_one_maven(tmp_path: Path) -> None:
    """R28: a package whose turn comes later has no time of its own."""
    root = tmp_path.resolve()
    write_third(root, "")

    async def main() -> None:
        async with opened(root, task_timeout=0.2) as workspace:
            line = Line(root, workspace)
            for name in ("g:b", "g:c"):
                failed = await line.build(name)
                assert isinstance(failed, BuildFailed)
                assert str(failed).endswith("mvn did not end within 0.2 s, `task-timeout`")
                assert failed.problem is Problem.BUILD_TIMED_OUT

    asyncio.run(main())
    assert not (root / ".releasekit" / "work" / "maven").exists()


def test_a_package_that_is_taken_out_of_the_run_stops_no_other(tmp_path: Path) -> None:
    """R6, R11"""
    root = tmp_path.resolve()
    write_third(root, "deploy c")

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            assert not isinstance(await line.build("g:a"), BuildFailed)
            one, other = (asyncio.ensure_future(line.build(name)) for name in ("g:b", "g:c"))
            await asyncio.sleep(0)
            one.cancel()
            await asyncio.wait((one,))
            (root / "go").touch()
            assert not isinstance(await other, BuildFailed)

    asyncio.run(main())


def test_nothing_is_taken_of_what_is_being_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R18: half of the files of a package are no package."""
    root = tmp_path.resolve()
    write_third(root, "deploy b; deploy c; until [ -e HERE/more ]; do sleep 0.01; done")
    (root / "go").touch()
    collected: list[str] = []

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            gone = asyncio.Event()

            async def take(_builder: ReactorBuilder, package: Package, *_: object) -> BuildFailed:
                collected.append(package.id.name)
                if gone.is_set():
                    return BuildFailed("taken all the same")
                gone.set()
                await asyncio.Event().wait()
                raise AssertionError

            monkeypatch.setattr(ReactorBuilder, "take", take)
            first = asyncio.ensure_future(line.build("g:b"))
            await gone.wait()
            first.cancel()
            await asyncio.wait((first,))
            assert "interrupted" in str(await line.build("g:c"))

    asyncio.run(main())
    assert collected == ["g:b"]


def test_a_package_that_is_cancelled_while_it_is_found_fails_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R28"""
    root = tmp_path.resolve()
    write_reactor(root, "deploy b")
    gone = threading.Event()

    async def main() -> None:
        looking, loop = asyncio.Event(), asyncio.get_running_loop()

        def find(packages: list[Package], staging: Path) -> list[Package]:
            loop.call_soon_threadsafe(looking.set)
            gone.wait()
            return [package for package in packages if is_deployed(package, staging)]

        monkeypatch.setattr(maven_build, "_find_deployed", find)
        async with opened(root) as workspace:
            line = Line(root, workspace)
            first, second = (asyncio.ensure_future(line.build(name)) for name in ("g:a", "g:b"))
            await looking.wait()
            first.cancel()
            await asyncio.wait((first,))
            (root / "go").touch()
            gone.set()
            assert not isinstance(await second, BuildFailed)

    asyncio.run(main())


def test_half_of_a_deployment_is_none(tmp_path: Path) -> None:
    """R18: whoever kills mvn, as a full memory does, leaves files that nobody deployed."""
    root = tmp_path.resolve()
    half = 'mkdir -p "$into/g/b/1.0"; cp b/pom.xml "$into/g/b/1.0/b-1.0.pom"; kill -9 $$'
    write_reactor(root, half)

    async def main() -> None:
        async with opened(root) as workspace:
            line = Line(root, workspace)
            assert not isinstance(await line.build("g:a"), BuildFailed)
            (root / "go").touch()
            assert isinstance(await line.build("g:b"), BuildFailed)

    asyncio.run(main())


@pytest.mark.parametrize("changes", [{"pin": "exact"}, {"build_concurrency": 1}])
def test_what_has_to_be_built_together_stays_together(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """R42: with one slot nothing runs on beside; and pins last as long as a batch is built."""
    root = tmp_path.resolve()
    write_reactor(root, "")

    async def main() -> None:
        async with opened(root, **changes) as workspace:
            assert [len(batch) for batch in Line(root, workspace).batches] == [2]
        async with opened(root) as workspace:
            assert [len(batch) for batch in Line(root, workspace).batches] == [1, 1]
        # Nobody is left who could end it.
        assert [len(batch) for batch in Line(root, workspace).batches] == [2]

    asyncio.run(main())


def test_one_package_needs_nobody_to_wait_for(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    write_reactor(root, "")
    (root / "go").touch()

    async def main() -> None:
        async with opened(root) as workspace:
            alone = [each for each in workspace.packages if each.id.name == "g:a"]
            assert workspace.split_singly(alone) == [alone]
            assert not workspace.running

    asyncio.run(main())


def test_a_link_in_the_place_of_a_group_is_no_package(tmp_path: Path) -> None:
    """What a build leaves behind ends no look at it."""
    package, staging = packages_of(tmp_path), tmp_path / "staged"
    (staging / "elsewhere").mkdir(parents=True)
    (staging / "g").symlink_to("elsewhere")
    assert maven_build._find_deployed([package], staging) == []


@pytest.mark.parametrize(
    ("page", "pom", "there"),
    [
        ("<metadata><versioning><versions><version>1.0</version>", True, False),
        ("<metadata><versioning><versions><version>0.9</version></versions>", True, False),
        (None, True, False),
        ("<version>1.0</version>", False, False),
        ("<version>1.0</version>", True, True),
    ],
)
def test_a_package_is_deployed_when_it_is_listed(
    tmp_path: Path, page: str | None, pom: bool, there: bool
) -> None:
    package = packages_of(tmp_path)
    home = tmp_path / "staged" / "g" / "a"
    (home / "1.0").mkdir(parents=True)
    if pom:
        (home / "1.0" / "a-1.0.pom").write_text("x")
    if page is not None:
        whole = page.startswith("<version>")
        around = ("<metadata><versioning><versions>", "</versions></versioning></metadata>")
        text = page.join(around) if whole else page
        (home / "maven-metadata.xml").write_text(text)
    assert is_deployed(package, tmp_path / "staged") is there


def test_what_is_behind_a_link_is_not_deployed(tmp_path: Path) -> None:
    """R52: and whoever looks is told so, because a build may leave links anywhere."""
    package = packages_of(tmp_path)
    home = tmp_path / "elsewhere"
    (home / "1.0").mkdir(parents=True)
    (home / "1.0" / "a-1.0.pom").write_text("x")
    versions = "<versions><version>1.0</version></versions>"
    (home / "maven-metadata.xml").write_text(
        f"<metadata><versioning>{versions}</versioning></metadata>"
    )
    staged = tmp_path / "staged" / "g"
    staged.mkdir(parents=True)
    (staged / "a").symlink_to(home)
    assert not is_deployed(package, tmp_path / "staged")
    (staged / "a").unlink()
    home.rename(staged / "a")
    assert is_deployed(package, tmp_path / "staged")


def packages_of(root: Path) -> Package:
    write(root / "pom.xml", gav("a"))
    return packages(root)["a"]


def test_what_came_whole_is_not_built(tmp_path: Path) -> None:
    """A POM and a jar from elsewhere want no mvn."""
    root = tmp_path.resolve()
    write_reactor(root, "deploy b")

    async def main() -> None:
        async with opened(root) as workspace:
            wanted = [each for each in workspace.packages if not each.unpublishable]
            a = next(each for each in wanted if each.id.name == "g:a")
            (root / "elsewhere").mkdir()
            brought = replace(a, prebuilt=built(root / "elsewhere"))
            others = [each for each in wanted if each is not a]
            assert len(workspace.split_singly([brought, *others])) == 2
            assert not workspace.running

    asyncio.run(main())
