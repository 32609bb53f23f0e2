"""Maven packages: discovery, pins and builds, and the registry that they go to."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.aio import Resource, gather_all
from releasekit.config.locations import FILENAME
from releasekit.ecosystems.interface import Clients, Discovery, Services, Target, Trial
from releasekit.ecosystems.maven import CENTRAL, MavenInputs, discover, mvn
from releasekit.ecosystems.maven.build import (
    PLUGINS,
    ReactorBuilder,
    RunningBuild,
    overlay_prebuilt,
)
from releasekit.ecosystems.maven.destination import find_named_registry, is_central, refuse_diverted
from releasekit.ecosystems.maven.directories import load_directories
from releasekit.ecosystems.maven.discover import load_projects
from releasekit.ecosystems.maven.document import MAX_BYTES, parse_document
from releasekit.ecosystems.maven.layout import (
    MavenDirectory,
    is_complete,
    main_names,
    pom_name,
    usual_names,
)
from releasekit.ecosystems.maven.pin import pin_versions
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.ecosystems.maven.portal import Portal, PortalStaging
from releasekit.ecosystems.maven.prebuilt import MavenFiles
from releasekit.ecosystems.maven.repository import Repository
from releasekit.ecosystems.maven.requirements import list_lacking, list_missing_files
from releasekit.ecosystems.maven.roots import MavenComposition
from releasekit.ecosystems.maven.signing import GpgSigner
from releasekit.ecosystems.maven.versioning import MavenVersioning
from releasekit.ecosystems.preflight import Preflight
from releasekit.ecosystems.shared.destinations import find_elsewhere
from releasekit.ecosystems.shared.packages import batched, unique_by_name
from releasekit.errors import BuildFailed, ConfigError, ManifestError, PackageError, PlanError
from releasekit.host.artifact_reader import open_artifact
from releasekit.model import Action, PackageId
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Built, Into, Registry
    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.ecosystems.maven.discover import PomProject
    from releasekit.ecosystems.maven.pom import Pom
    from releasekit.model import Artifact, Package, PackageWarning, PlannedPackage

_REQUIREMENTS: Final = "What it asks for: https://central.sonatype.org/publish/requirements/"


class Maven(Resource):
    """Implements `interface.Ecosystem`; its group has a task for each reactor in the making."""

    def __init__(self, config: PlanConfig, options: MavenOptions, services: Services) -> None:
        super().__init__(together=True)
        self.config = config
        self.options = options
        self.services = services

    async def discover(self, root: Path) -> MavenWorkspace:
        found = await asyncio.to_thread(load_projects, root, self.options)
        # What gives versions or tells of them comes before anything is built.
        if self.config.command.needs_destinations or self.config.mode == "init":
            found += await asyncio.to_thread(load_directories, root, self.options, found)
        projects, twins = unique_by_name(
            found,
            cure="take its reactor or its directory out of [maven]",
            private=discover.explain_unpublishable,
        )
        chosen = [*filter(self._is_chosen, projects.values())]
        if self.config.command.needs_destinations:
            tops = {each.top for each in chosen if each.files is None}
            refuse_diverted(each for each in found if each.top in tops)
        # It is stronger than what files say, as mvn's `-DaltDeploymentRepository` is.
        is_given = self.config.registries.get(discover.ECOSYSTEM) is not None
        elsewhere = find_elsewhere(
            (
                (PackageId(discover.ECOSYSTEM, each.name), find_named_registry(each))
                for each in (() if is_given else chosen)
            ),
            self.config,
            here=CENTRAL,
            setting="maven-registry",
        )
        return MavenWorkspace(
            packages=tuple(discover.make_packages(projects, twins)),
            projects=projects,
            by_key={project.pom.key: project for project in projects.values()},
            elsewhere=elsewhere,
            aside=tuple(f"{it.name} {it.version}" for it in twins if it.files is not None),
            root=root,
            maven=self,
        )

    def _is_chosen(self, project: PomProject) -> bool:
        about = self.config.package_filter
        is_wanted = about.has_package(PackageId(discover.ECOSYSTEM, project.name))
        return is_wanted and not discover.explain_unpublishable(project)


class MavenWorkspace(Struct, frozen=True, kw_only=True):
    """Implements `interface.Workspace`; `projects` are all, by name, published or not, and `by_key`
    the same by the coordinates that their POMs write. What is `elsewhere` is meant for another
    registry. `aside` are snapshots in a directory beside another version.
    """

    packages: tuple[Package, ...]
    projects: Mapping[str, PomProject]
    by_key: Mapping[tuple[str, str], PomProject]
    elsewhere: frozenset[PackageId]
    aside: tuple[str, ...]
    root: Path
    maven: Maven
    running: dict[Path, RunningBuild] = field(default_factory=dict)

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        pom = parse_pom(
            parse_document(manifest.encode("utf-8", "surrogateescape")), self.root / "pom.xml"
        )
        project = self.by_key[pom.key]
        if (needed := discover.find_file_needed(project, self.root)) is not None:
            raise PlanError(
                f"maven:{project.name}: {project.manifest.relative_to(self.root)}: its dependency "
                f"{needed.artifact} is the file {needed.system_path}, which users do not have",
                hint="Publish that file to a repository, and depend on it without <systemPath>; or "
                f"leave the package out: `exclude-packages: maven:{project.name}`.",
                problem=Problem.ONLY_HERE,
            )
        # Which also refuses what no client resolves.
        pinned = pin_versions(manifest, pom, project, versions, self.maven.config.pin)
        return pinned if project.files is None else manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """One for each reactor, and each directory."""
        return batched(packages, lambda package: self.projects[package.id.name].top)

    def split_singly(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """Each package alone, although one mvn builds a reactor: it deploys them one by one.

        Pinned manifests stay pinned for the build of a whole batch, and with one slot mvn would run
        beside the work on each package; there the batches stay.
        """
        config, group = self.maven.config, self.maven.group
        if config.pin == "exact" or config.build_concurrency == 1 or not group.is_open:
            return self.batches(packages)
        for batch in self.batches(packages):
            wanted = [each for each in batch if not each.prebuilt or self._lacks_files(each)]
            if len(wanted) > 1:
                builder = self._make_builder(wanted)
                self.running[builder.top] = RunningBuild(builder, wanted, group)
        return [[package] for package in packages]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        if packages[0].prebuilt:  # of one directory
            return await self.complete(packages, into)
        return await self._sign(packages, await self._build(packages, into))

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        """Lay the prebuilt files out; Maven builds the packages that lack any."""
        lacking = [package for package in packages if self._lacks_files(package)]
        built = await self._build(lacking, into) if lacking else {}
        for package in packages:
            made = built.get(package.id, ())
            if not isinstance(made, BuildFailed):
                built[package.id] = await asyncio.to_thread(
                    overlay_prebuilt, package, into(package), made
                )
        return await self._sign(packages, built)

    def _lacks_files(self, package: Package) -> bool:
        if self.projects[package.id.name].files is not None:
            return False
        options, names = self.maven.options, {each.filename for each in package.prebuilt}
        sources, javadoc = usual_names(package) or ("", "")
        wanted = {sources} if options.sources else set()
        wanted |= {javadoc} if options.javadoc else set()
        return not is_complete(package, names) or not wanted - {""} <= names

    async def _build(self, packages: Sequence[Package], into: Into) -> dict[PackageId, Built]:
        builder = self._make_builder(packages)
        running = self.running.get(builder.top)
        try:
            if running is not None and len(packages) == 1 and running.has(packages[0]):
                return {packages[0].id: await running.take(packages[0], into)}
            return await builder.build(packages, into)
        except BuildFailed as error:
            return {package.id: error for package in packages}

    def _make_builder(self, packages: Sequence[Package]) -> ReactorBuilder:
        maven, top = self.maven, self.projects[packages[0].id.name].top
        return ReactorBuilder(
            self.root, top, self.projects, maven.config, maven.options, maven.services
        )

    async def _sign(
        self, packages: Sequence[Package], built: Mapping[PackageId, Built]
    ) -> Mapping[PackageId, Built]:
        config, options, services = self.maven.config, self.maven.options, self.maven.services
        if not options.sign:
            return built
        signer = GpgSigner(services.processes, options.sign, concurrency=config.build_concurrency)

        async def sign(package: Package) -> Built:
            each = built[package.id]
            if isinstance(each, BuildFailed):
                return each
            try:
                return await signer.sign(package, each)
            except BuildFailed as error:
                return error

        signed = await gather_all(map(sign, packages))
        return {package.id: each for package, each in zip(packages, signed, strict=True)}


def layout(_options: MavenOptions, _inputs: object) -> Layout:
    return MavenDirectory()


def target(
    config: PlanConfig, options: MavenOptions, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a registry that cannot be used."""
    ecosystem = Maven(config, options, services)
    if directory is not None:
        return Discovery.joining(ecosystem, directory, MavenTarget)
    url = config.registry_url("maven", default=CENTRAL)
    has_portal = url.text.rstrip("/") == CENTRAL
    if options.api == "portal" or (options.api == "auto" and has_portal):
        portal = Portal(config, options, services)
        staging = PortalStaging(portal, options.stage or config.stage)
        return Discovery.joining(ecosystem, portal, partial(PortalTarget, staging=staging))
    if options.stage == "always":
        raise ConfigError(
            f'releasekit.toml: [maven] stage = "always": {url} shows at once what it accepts',
            hint='Leave it out; or write api = "portal", if that is the address of one.',
            problem=Problem.REGISTRY_SETTINGS,
        )
    repository = Repository(
        url,
        options,
        services,
        username=config.own(MavenInputs).username,
        state_directory=config.state_directory,
        concurrency=config.concurrency,
    )
    return Discovery.joining(ecosystem, repository, MavenTarget)


class MavenTarget(Target):
    composition = MavenComposition()

    def __init__(self, workspace: MavenWorkspace, registry: Registry) -> None:
        super().__init__(workspace, registry)
        self._found = workspace
        self.clients = Clients(try_out=self._try_out)
        self.versioning = MavenVersioning(
            {name: it for name, it in workspace.projects.items() if it.files is None},
            workspace.root,
            workspace.maven.options,
            workspace.root / (workspace.maven.config.config_file or FILENAME),
            workspace.maven.config.pin,
        )
        self.elsewhere = workspace.elsewhere
        self.prebuilt = MavenFiles(workspace.packages, workspace.complete)
        if isinstance(registry, Repository):
            self.preflight = Preflight(rights=registry, is_new=registry.is_new)

    def split_singly(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return self._found.split_singly(packages)

    def plan_notes(self, planned: Sequence[PlannedPackage], /) -> str:
        """Also raises PlanError for what no user of Maven Central can resolve."""
        found = self._found
        projects = [
            project
            for each in planned
            if each.action is Action.PUBLISH
            and ((project := found.projects[each.package.id.name]).files or each.is_built)
        ]
        needed = {
            f"{each.pom.path.relative_to(found.root)} needs {name} {version}": each
            for each in projects
            for name, version in discover.find_snapshots_needed(each, found.projects)
        }
        lost = [
            text
            for text, each in needed.items()
            if is_central(self.registry.url)
            and not any(holder.pom.offers_snapshots for holder in each.ancestry())
        ]
        if lost:
            raise PlanError(
                f"maven: {few(lost)}, and Maven Central holds no snapshots",
                hint="Depend on a release of it; or leave the package out by `exclude-packages`.",
                problem=Problem.CANNOT_PIN,
            )
        notes = (
            [f"{few([*needed])}, which users get from a repository of snapshots"] if needed else []
        )
        strays = [
            f"{each.pom.path.relative_to(found.root)} (line {each.pom.stray})"
            for each in projects
            if each.pom.stray
        ]
        if strays:
            # Gradle, for one, reads POMs by Xerces, which ends there:
            # https://github.com/gradle/gradle/blob/master/platforms/software/dependency-management/src/main/java/org/gradle/api/internal/artifacts/ivyservice/ivyresolve/parser/PomReader.java
            notes.append(
                f"{few(strays)} has a byte that is invalid in its encoding: Maven reads the file, "
                "and Gradle does not; save it as UTF-8"
            )
        if found.aside:
            notes.append(f"snapshots in maven.directories are left out: {few(found.aside)}")
        options = found.maven.options
        if options.directories and not options.reactors and (found.root / "pom.xml").is_file():
            notes.append(
                "maven.directories takes the place of the pom.xml in the root; to publish both, "
                'write `reactors = ["."]` beside it'
            )
        tops = dict.fromkeys(each.top for each in projects if each.files is None)
        files = filter(None, (discover.find_rewriting(each, found.root) for each in tops))
        for path, name in dict.fromkeys(files):
            notes.append(
                f"{path.relative_to(found.root)} loads {clip(visible(name), 100)}, which may "
                "change versions and POMs: ReleaseKit reads each pom.xml as it stands"
            )
        return ". ".join(notes)

    def _try_out(self, package: Package, shared: Path) -> Trial:
        """`dependency:get` resolves what the POM needs, too. Two mvn may not share a repository.
        https://maven.apache.org/plugins/maven-dependency-plugin/get-mojo.html
        """
        command, is_read = self._found.maven.options.command, isinstance(self.registry, Repository)
        main = next(iter(main_names(package)), pom_name(package))
        return Trial(
            argv=(
                str(self._found.root / command) if "/" in command else command,
                *("--batch-mode", "--no-transfer-progress", f"-Dmaven.repo.local={shared}"),
                f"{PLUGINS}:maven-dependency-plugin:3.8.1:get",
                f"-Dartifact={package.id.name}:{package.version}:{main.rpartition('.')[2]}",
                *([f"-DremoteRepositories=it::::{self.registry.url}"] if is_read else []),
            ),
            files={".mvn/jvm.config": ""},  # else it looks for one in all directories above
            alone=True,
        )

    async def find_tool(self, packages: Sequence[Package], /) -> str:
        maven, services = self._found.maven, self._found.maven.services
        return await mvn.find_mvn(
            packages, maven.options, services.processes, services.environment, self._found.root
        )


class PortalTarget(MavenTarget):
    def __init__(
        self, workspace: MavenWorkspace, portal: Portal, *, staging: PortalStaging
    ) -> None:
        super().__init__(workspace, portal)
        self._portal = self.deployment = portal
        self.staging = staging
        self.preflight = Preflight(
            rights=portal, is_new=portal.is_new, find_excess=portal.find_excess
        )

    @property
    def _is_central(self) -> bool:
        return self._portal.url.rstrip("/") == CENTRAL

    async def find_warnings(
        self, package: Package, artifacts: Sequence[Artifact], /
    ) -> list[PackageWarning]:
        """Raises PackageError for what is built and Maven Central refuses. Files of `dist` are not
        all there are: others are built, and all are signed.
        """
        if not self._is_central or not artifacts or tuple(artifacts) == package.prebuilt:
            return []
        if wrong := await asyncio.to_thread(self._find_lacking_files, package, artifacts):
            raise PackageError(
                f"{package}: Maven Central refuses it: {few(wrong)}",
                hint=_REQUIREMENTS,
                problem=Problem.REFUSED,
            )
        return []

    def _find_lacking_files(self, package: Package, artifacts: Sequence[Artifact]) -> list[str]:
        names = {each.filename: each for each in artifacts}
        found = [*list_missing_files(package, names)]
        if (artifact := names.get(pom_name(package))) is not None:
            with open_artifact(artifact) as file:
                data = file.read(MAX_BYTES + 1)
            try:
                pom = parse_pom(parse_document(data), artifact.path)
                found += list_lacking(pom, self._list_above(pom))
            except (ValueError, ManifestError) as error:
                found.append(f"ReleaseKit cannot read its POM: {error}")
        return found

    def _list_above(self, pom: Pom) -> list[Pom]:
        wanted = pom.parent
        above = self._found.projects.get(f"{wanted.group}:{wanted.artifact}") if wanted else None
        return [each.pom for each in above.ancestry()] if above else []

    def _refuse_lacking(self, planned: Sequence[PlannedPackage]) -> None:
        """What the POMs tell; one that `dist` has takes their place, and is read before it goes.
        Of what another tool has published, also the files.
        """
        wrong = []
        for each in planned:
            names = {it.filename for it in each.package.prebuilt}
            own, *above = self._found.projects[each.package.id.name].ancestry()
            if each.action is Action.PUBLISH and (own.files or pom_name(each.package) not in names):
                where = own.pom.path.relative_to(self._found.root).as_posix()
                lacking = [*list_lacking(own.pom, [it.pom for it in above])]
                if own.files:
                    signed = {f"{it}.asc" for it in names if self._found.maven.options.sign}
                    lacking += list_missing_files(each.package, names | signed)
                wrong += [f"{where}: {text}" for text in lacking]
        if wrong:
            raise PlanError(
                f"maven: Maven Central would refuse these POMs: {few(wrong)}",
                hint=_REQUIREMENTS,
                problem=Problem.REFUSED_BY_CENTRAL,
            )

    def split_singly(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """The one upload waits for all builds."""
        return self.workspace.batches(packages)

    def plan_notes(self, planned: Sequence[PlannedPackage], /) -> str:
        """Also what Maven Central refuses to go without, where no option makes it."""
        if self._is_central:
            self._refuse_lacking(planned)
        notes = (super().plan_notes(planned), self._portal.plan_notes(planned))
        counted, options = ". ".join(filter(None, notes)), self._found.maven.options
        made = {"sources": options.sources, "javadoc": options.javadoc, "sign": options.sign}
        unset = [f"`{name}`" for name, given in made.items() if not given]
        if not counted or not unset or not any(each.is_built for each in planned):
            return counted
        return (
            f"{counted}. It refuses packages without sources, javadoc and signatures, and [maven] "
            f"does not set {', '.join(unset)}: plugins of the POMs have to make these"
        )
