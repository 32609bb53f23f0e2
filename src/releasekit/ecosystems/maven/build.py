"""Building a reactor: one mvn for all of its packages, on a copy of the sources.

The last goal deploys into a directory, so that what is published is exactly what Maven itself would
have deployed: a POM that a plugin has flattened, attached artifacts, signatures of the project.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.aio import uncancellable
from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.maven import layout, metadata, pin
from releasekit.ecosystems.maven.document import MAX_BYTES
from releasekit.ecosystems.maven.failures import not_built
from releasekit.ecosystems.maven.tools import INSTALL
from releasekit.ecosystems.shared.artifacts import copy_new, digested, placed, staged
from releasekit.errors import BuildFailed, CommandFailed, ManifestError
from releasekit.host import durable
from releasekit.host.folder import Folder
from releasekit.problems import Problem
from releasekit.state.directory import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Built, Into, Services
    from releasekit.ecosystems.maven import Options
    from releasekit.ecosystems.maven.workspace import PomProject
    from releasekit.model import Artifact, Package, PackageId
    from releasekit.state.run_logs import Log

PLUGINS: Final = "org.apache.maven.plugins"
DEPLOY: Final = f"{PLUGINS}:maven-deploy-plugin:3.1.4:deploy"
SOURCES: Final = f"{PLUGINS}:maven-source-plugin:3.3.1:jar-no-fork"
JAVADOC: Final = f"{PLUGINS}:maven-javadoc-plugin:3.11.2:jar"
_COPY_SOURCES: Final = Path(__file__).with_name("copy_sources.py")


@dataclass(frozen=True, slots=True)
class Builder:
    """Of the reactor at `top`; `projects` are all of the workspace at `root`, by name."""

    root: Path
    top: Path
    projects: Mapping[str, PomProject]
    config: Config
    options: Options
    services: Services

    @property
    def work(self) -> Path:
        """Of its own, because reactors are built side by side."""
        # No name of a directory holds a "/", so no two reactors share one.
        name = self.top.relative_to(self.root).as_posix().replace("+", "++").replace("/", "+-")
        return self.config.state_directory / "work" / "maven" / f"at{name}"

    @property
    def staging(self) -> Path:
        """What Maven deploys into."""
        return self.work / "staged"

    async def build(self, packages: Sequence[Package], into: Into) -> dict[PackageId, Built]:
        """Packages of this reactor, the files of each into a directory of its own."""
        log = self.services.logs.fresh("build", packages[0].id)
        try:
            failure = await self.run(packages, log)
            return {
                package.id: await self.taken(package, into, failure, log) for package in packages
            }
        finally:
            await self.clear()

    async def run(self, packages: Sequence[Package], log: Log) -> CommandFailed | None:
        """One mvn, on a copy; one that fails may have built some of the packages all the same."""
        copy = self.work / "sources" / self.top.relative_to(self.root)
        processes = self.services.processes
        command = [self._command(packages[0], copy), *self._arguments(packages)]
        env = processes.passing(self.options.pass_env)
        try:
            await self._copy_sources(copy, log)
            await processes.run(command, cwd=copy, env=env, log=log.path)
        except CommandFailed as error:
            return error
        return None

    async def taken(
        self, package: Package, into: Into, failure: CommandFailed | None, log: Log
    ) -> Built:
        """What was deployed of a package, out of the staging directory."""
        # A mvn that was killed may have left half of a deployment.
        if failure is not None and not await asyncio.to_thread(is_deployed, package, self.staging):
            return not_built(package, failure, log)
        found = await asyncio.to_thread(collect, package, self.staging, into(package))
        return found or not_built(package, failure, log)

    async def clear(self) -> None:
        await uncancellable(asyncio.to_thread(_cleared, self.work))

    async def _copy_sources(self, copy: Path, log: Log) -> None:
        """A copy of the reactor whose POMs leave nothing open. Raises CommandFailed.

        No `target` of an earlier build gets into a release, and none is left in the tree.
        """
        await asyncio.to_thread(_make_empty, self.work, copy.parent)
        # In the sandbox: what other builds change meanwhile leads out of it nowhere.
        copying = [sys.executable, "-I", "-S", _COPY_SOURCES, self.top, copy]
        left_out = [self.config.state_directory, ".git", "node_modules", NAME]
        command = [*map(str, (*copying, *left_out))]
        await self.services.processes.run(command, cwd=copy.parent, log=log.path)
        await asyncio.to_thread(self._fill_in, copy)

    def _fill_in(self, copy: Path) -> None:
        for project in self.projects.values():
            if project.top == self.top and project.pom.path.is_relative_to(self.top):
                path = copy / project.pom.path.relative_to(self.top)
                try:
                    data = durable.read_file(path, max_bytes=MAX_BYTES)
                    filled = pin.filled_in(data, project)
                    if filled != data:
                        durable.replace(path, filled)
                except OSError as error:
                    raise CommandFailed(f"{error.filename}: {error.strerror}") from error
                except (ManifestError, ValueError) as error:  # changed since, or by a build
                    raise CommandFailed(f"{path}: not the POM that was planned: {error}") from error

    def _command(self, package: Package, copy: Path) -> str:
        command = self.options.command
        if "/" in command:
            return str(copy / command)
        found = self.services.processes.which(command)
        if found is None:
            raise BuildFailed(
                f"{package.id}: {command} is not installed",
                hint=INSTALL,
                problem=Problem.BUILD_TOOL,
            )
        return found

    def _arguments(self, packages: Sequence[Package]) -> list[str]:
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
        return [
            *arguments,
            DEPLOY,
            f"-DaltDeploymentRepository=releasekit::{self.staging.as_uri()}",
            "-DdeployAtEnd=false",  # which beats a property of the POM, and no configuration
        ]


def _make_empty(work: Path, directory: Path) -> None:
    try:
        durable.remove_tree(work)
        durable.make_directory(directory)
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}") from error


def _cleared(work: Path) -> None:
    """The next build does it again, where something is in the way."""
    with contextlib.suppress(OSError):
        durable.remove_tree(work)
        with Folder.reached(work.parent.parent) as folder:
            folder.remove_empty(work.parent.name)


def is_deployed(package: Package, staging: Path) -> bool:
    """Whether all of its files are there; blocks. Maven lists a version after its last file.

    https://github.com/apache/maven-resolver (BasicRepositoryConnector.put: artifacts, then
    metadata)
    """
    pom = staging / layout.version_directory(package) / layout.pom_name(package)
    # What lists it may be half written, and a build may leave links anywhere.
    with contextlib.suppress(OSError, ValueError):
        page = read_page(staging / layout.artifact_directory(package) / layout.METADATA)
        listed = page is not None and package.version in metadata.listed_versions(page)
        return listed and durable.is_file(pom)
    return False


def collect(package: Package, staging: Path, into: Path) -> tuple[Artifact, ...]:
    """The deployed files of one package, the POM first; empty if it was not deployed."""
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
    return _pom_first(package, into, names)


def overlaid(package: Package, into: Path, made: Sequence[Artifact]) -> Built:
    """In `into`, the prebuilt files of a package, and of those `made` there what they lack.

    The signature of a file that one of them takes the place of is left out.
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
    return _pom_first(package, into, names)


def _pom_first(package: Package, into: Path, names: Sequence[str]) -> tuple[Artifact, ...]:
    ordered = sorted(names, key=lambda name: (name != layout.pom_name(package), name))
    return tuple(digested(into / name, *layout.ALGORITHMS) for name in ordered)
