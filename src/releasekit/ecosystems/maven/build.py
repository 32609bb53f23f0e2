"""Building a reactor: one mvn for all of its packages, on a copy of the sources.

The last goal deploys into a directory, so that a release has the files that Maven itself would have
deployed: a POM that a plugin flattened, attached artifacts, signatures of the project. A
`RunningBuild` takes each package out of that directory as soon as mvn has deployed it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import in_time, uncancellable
from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.maven import TOOL, layout
from releasekit.ecosystems.maven.discover import load_projects
from releasekit.ecosystems.maven.document import MAX_BYTES
from releasekit.ecosystems.maven.mvn import explain_unbuilt
from releasekit.ecosystems.maven.pin import fill_in_pom
from releasekit.ecosystems.maven.pom import ALTERNATIVES
from releasekit.ecosystems.shared.artifacts import copy_new, digested, placed, staged
from releasekit.errors import (
    BuildFailed,
    CommandFailed,
    ConfigError,
    ManifestError,
    ReleasekitError,
    describe_os_error,
)
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.files import find_top
from releasekit.host.folder import Folder
from releasekit.host.streams import last_lines
from releasekit.problems import Problem
from releasekit.state.directory import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.aio import Group
    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Built, Into, Services
    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.ecosystems.maven.discover import PomProject
    from releasekit.model import Artifact, Package, PackageId
    from releasekit.state.run_logs import Log


PLUGINS: Final = "org.apache.maven.plugins"
DEPLOY: Final = f"{PLUGINS}:maven-deploy-plugin:3.1.4:deploy"
SOURCES: Final = f"{PLUGINS}:maven-source-plugin:3.3.1:jar-no-fork"
JAVADOC: Final = f"{PLUGINS}:maven-javadoc-plugin:3.11.2:jar"
_COPY_SOURCES: Final = Path(__file__).with_name("copy_sources.py")
# Between two looks at the files of a running mvn.
_PAUSE_S: Final = 0.1


class ReactorBuilder(Struct, frozen=True):
    """Builds the reactor at `top`; `projects` are those of the workspace at `root`, by name."""

    root: Path
    top: Path
    projects: Mapping[str, PomProject]
    config: PlanConfig
    options: MavenOptions
    services: Services

    @property
    def work(self) -> Path:
        """One directory for each reactor, because they are built in parallel."""
        # Without "/" in the names of directories, this is one to one.
        name = self.top.relative_to(self.root).as_posix().replace("+", "++").replace("/", "+-")
        return self.config.state_directory / "work" / "maven" / f"at{name}"

    @property
    def _base(self) -> Path:
        """What lies in it may be part of the sources."""
        return find_top(self.root)

    @property
    def staging(self) -> Path:
        """The directory that Maven deploys into."""
        return self.work / "staged"

    async def build(self, packages: Sequence[Package], into: Into) -> dict[PackageId, Built]:
        """Build packages of this reactor, each into its directory."""
        log = self.services.logs.fresh("build", packages[0].id)
        try:
            failure = await self.run(packages, log)
            return {each.id: await self.take(each, into, failure, log) for each in packages}
        finally:
            await self.clear()

    async def run(self, packages: Sequence[Package], log: Log) -> CommandFailed | None:
        """Run mvn on a copy of the sources; a failing mvn may have deployed some packages."""
        copy = self.work / "sources" / self.top.relative_to(self._base)
        processes, name = self.services.processes, self.options.command
        program = str(copy / name) if "/" in name else processes.which(name)
        if program is None:
            raise BuildFailed(
                f"{packages[0].id}: {name} is not installed",
                hint=TOOL.install,
                problem=Problem.BUILD_TOOL,
            )
        command = [program, *self._make_arguments(packages)]
        env = processes.passing(self.options.pass_env)
        limit_s = self.config.task_timeout
        try:
            # Packages that are taken one by one have it together.
            async with in_time(asyncio.timeout(limit_s)):
                await self._copy_sources(copy, log)
                await processes.run(command, cwd=copy, env=env, log=log.path)
        except TimeoutError:
            return CommandFailed(
                f"mvn did not end within {limit_s:g} s, `task-timeout`",
                log=await asyncio.to_thread(last_lines, log.path),
                problem=Problem.BUILD_TIMED_OUT,
            )
        except CommandFailed as error:
            return error
        return None

    async def take(
        self, package: Package, into: Into, failure: CommandFailed | None, log: Log
    ) -> Built:
        """Take the deployed files of a package out of the staging directory."""
        # A mvn that was killed may have deployed half of a package.
        if failure is not None and not await asyncio.to_thread(is_deployed, package, self.staging):
            return explain_unbuilt(package, failure, log)
        found = await asyncio.to_thread(collect, package, self.staging, into(package))
        return found or explain_unbuilt(package, failure, log)

    async def clear(self) -> None:
        await uncancellable(asyncio.to_thread(_clear, self.work))

    async def _copy_sources(self, copy: Path, log: Log) -> None:
        """Copy the reactor, with POMs that are complete; raises CommandFailed. The copy has no
        `target` of an earlier build, and this build leaves none in the tree.
        """
        await asyncio.to_thread(_make_empty, self.work, copy.parent)
        # In the sandbox, because other builds may put links into the tree meanwhile.
        copying = [sys.executable, "-I", "-S", _COPY_SOURCES, self.top, copy, self._base]
        left_out = [self.config.state_directory, ".git", "node_modules", NAME]
        command = [*map(str, (*copying, *left_out))]
        await self.services.processes.run(command, cwd=copy.parent, log=log.path)
        await asyncio.to_thread(self._fill_in, copy)

    def _fill_in(self, copy: Path) -> None:
        reactor = {each.pom.path: each for each in self.projects.values() if each.top == self.top}
        if any(each.pom.modules_of_profiles for each in reactor.values()):
            # A profile that is active makes Maven read these too, and their parents are filled in.
            where = self.top.relative_to(self.root).as_posix()
            options = replace(self.options, reactors=(where,))
            with contextlib.suppress(ConfigError):  # no profile may be active that lists these
                loaded = load_projects(self.root, options, with_profiles=True)
                reactor = {each.pom.path: each for each in loaded} | reactor
        for project in reactor.values():
            if not project.pom.path.is_relative_to(self.top):
                continue
            path = copy / project.pom.path.relative_to(self.top)
            try:
                data = durable.read_file(path, max_bytes=MAX_BYTES)
                filled = fill_in_pom(data, project)
                if filled != data:
                    durable.replace(path, filled)
            except OSError as error:
                raise CommandFailed(describe_os_error(error)) from error
            except (ManifestError, ValueError) as error:  # changed since, or by a build
                raise CommandFailed(f"{path}: not the POM that was planned: {error}") from error

    def _make_arguments(self, packages: Sequence[Package]) -> list[str]:
        options = self.options
        others = {name for name, project in self.projects.items() if project.top == self.top}
        wanted = [package.id.name for package in packages]
        arguments = ["--batch-mode", "--no-transfer-progress", "--fail-at-end", *options.args]
        arguments += [f"-D{name}={value}" for name, value in options.properties.items()]
        if options.skip_tests:
            arguments.append("-DskipTests")
        if others - set(wanted):
            arguments += ["--projects", ",".join(wanted), "--also-make"]
        arguments += options.goals
        arguments += [SOURCES] if options.sources else []
        arguments += [JAVADOC] if options.javadoc else []
        staging = f"releasekit::{self.staging.as_uri()}"
        arguments += [DEPLOY, *(f"-D{name}={staging}" for name in ALTERNATIVES)]
        # It beats a property of the POM, but not a configuration.
        return [*arguments, "-DdeployAtEnd=false"]


class RunningBuild:
    """One mvn for `packages`, which are taken in any order, each once; the first `take` starts it.

    It ends when the last package is taken, when the last waiting `take` is cancelled, or when
    `group` closes.
    """

    def __init__(
        self,
        builder: ReactorBuilder,
        packages: Sequence[Package],
        group: Group,
        *,
        pause_s: float = _PAUSE_S,
    ) -> None:
        self._builder = builder
        self._packages = packages
        self._group = group
        self._pause_s = pause_s
        self._there = {package.id: asyncio.Event() for package in packages}
        self._all_taken = asyncio.Event()
        self._begun: tuple[asyncio.Task[None], Log] | None = None
        self._waiting = 0
        self._interrupted = False
        self._has_ended = False
        self._failure: CommandFailed | None = CommandFailed("`mvn` was interrupted")
        self._trouble: ReleasekitError | OSError | None = None

    def has(self, package: Package) -> bool:
        return package.id in self._there

    async def take(self, package: Package, into: Into) -> Built:
        """Take the files of a package once mvn has deployed it, or has ended without."""
        if self._begun is None:
            log = self._builder.services.logs.fresh("build", self._packages[0].id)
            self._begun = self._group.start(self._build(log)), log
        task, log = self._begun
        self._waiting += 1
        try:
            await self._there[package.id].wait()
            if self._trouble is not None:
                raise self._trouble
            if self._interrupted:
                # The deployed files are being removed.
                return explain_unbuilt(package, self._failure, log)
            return await self._builder.take(package, into, self._failure, log)
        except asyncio.CancelledError:
            # Its time is up, it was removed, or the run ends; the other packages go on.
            if self._waiting == 1 and not self._has_ended:
                self._interrupted = True
                task.cancel()
            raise
        finally:
            self._waiting -= 1
            del self._there[package.id]
            if not self._there:
                self._all_taken.set()

    async def _build(self, log: Log) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch())
                try:
                    self._failure = await self._builder.run(self._packages, log)
                except (ReleasekitError, OSError) as error:
                    self._trouble = error
                self._has_ended = True
                watching.cancel()
            self._wake_all()
            await self._all_taken.wait()
        finally:
            self._wake_all()
            await self._builder.clear()

    def _wake_all(self) -> None:
        for there in self._there.values():
            there.set()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            awaited = [
                package
                for package in self._packages
                if package.id in self._there and not self._there[package.id].is_set()
            ]
            for package in await asyncio.to_thread(_find_deployed, awaited, self._builder.staging):
                if package.id in self._there:  # else its `take` was cancelled meanwhile
                    self._there[package.id].set()


def _make_empty(work: Path, directory: Path) -> None:
    try:
        durable.remove_tree(work)
        durable.make_directory(directory)
    except OSError as error:
        raise CommandFailed(describe_os_error(error)) from error


def _clear(work: Path) -> None:
    """A failure is silent; the next build clears again."""
    with contextlib.suppress(OSError):
        durable.remove_tree(work)
        with Folder.reached(work.parent.parent) as folder:
            folder.remove_empty(work.parent.name)


def _find_deployed(packages: Sequence[Package], staging: Path) -> list[Package]:
    """Looks only into directories that are there: of a large reactor, few are."""
    places = [layout.artifact_directory(package) for package in packages]
    begun = set[PurePosixPath]()
    for group in {place.parent for place in places}:
        # A build may leave links anywhere.
        with contextlib.suppress(OSError):
            begun |= {group / name for name in durable.names(staging / group)}
    return [
        package
        for package, place in zip(packages, places, strict=True)
        if place in begun and is_deployed(package, staging)
    ]


def is_deployed(package: Package, staging: Path) -> bool:
    """Whether all files of a package are there; blocks. Maven lists a version after its last file.

    https://github.com/apache/maven-resolver (BasicRepositoryConnector.put: artifacts, then
    metadata)
    """
    pom = staging / layout.version_directory(package) / layout.pom_name(package)
    # The metadata may be half written, and a link may be there.
    with contextlib.suppress(OSError, ValueError):
        page = read_page(staging / layout.artifact_directory(package) / layout.METADATA)
        listed = page is not None and package.version in layout.list_versions(page)
        return listed and durable.is_file(pom)
    return False


def collect(package: Package, staging: Path, into: Path) -> tuple[Artifact, ...]:
    """Move the deployed files of a package into `into`, the POM first; empty without a POM."""
    found, pom = staging / layout.version_directory(package), layout.pom_name(package)
    if not durable.is_file(found / pom):
        return ()
    names = [name for name in durable.names(found) if not layout.is_checksum(name)]
    with (
        staged(into) as partial,
        Folder.reached(found) as source,
        Folder.reached(partial) as target,
    ):
        for name in names:
            source.move(name, target, name)
    return _digest_files(package, into, names)


def overlay_prebuilt(package: Package, into: Path, made: Sequence[Artifact]) -> Built:
    """Put the prebuilt files of a package into `into`, over those that were `made` there.

    A prebuilt file also removes the signature of the file that it replaces.
    """
    given = {artifact.filename for artifact in package.prebuilt}
    try:
        with staged(into) as partial:
            names = placed(package.prebuilt, partial)
            for name in (artifact.filename for artifact in made):
                if not {name, name.removesuffix(".asc")} & given:
                    copy_new(into / name, partial / name)
                    names.append(name)
    except BuildFailed as error:
        return error
    return _digest_files(package, into, names)


def _digest_files(package: Package, into: Path, names: Sequence[str]) -> tuple[Artifact, ...]:
    ordered = sorted(names, key=lambda name: (name != layout.pom_name(package), name))
    return tuple(digested(into / name, *layout.ALGORITHMS) for name in ordered)
