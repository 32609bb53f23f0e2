"""Python packages and PyPI-like registries: what is found, pinned, built and taken ready-made, and
where it goes.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING

from msgspec import Struct, field
from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from releasekit.aio import GroupClosed, Resource, gather_all
from releasekit.ecosystems.interface import (
    Clients,
    Contained,
    Discovery,
    Services,
    Target,
    Trial,
    list_warnings,
)
from releasekit.ecosystems.preflight import Preflight
from releasekit.ecosystems.pypi import PYPI, UV, PyPIInputs, discover, manifest
from releasekit.ecosystems.pypi.build import DIGESTS, Builder, InRepoWheels, list_tags
from releasekit.ecosystems.pypi.composition import PyPIComposition
from releasekit.ecosystems.pypi.directory_layout import SimpleDirectory
from releasekit.ecosystems.pypi.distribution import (
    check_declared,
    find_pinned_apart,
    find_pinned_python,
    find_warnings,
    foresee_platform,
    list_names,
    read_dist_metadata,
    read_metadata,
    refuse_other_python,
    refuse_unpinned,
)
from releasekit.ecosystems.pypi.environment import (
    INTERFERING,
    Environments,
    Installer,
    Requirements,
)
from releasekit.ecosystems.pypi.manifest import ECOSYSTEM, pin
from releasekit.ecosystems.pypi.registry import IndexAttesting, PackageIndex
from releasekit.ecosystems.pypi.simple_index import parse_filename
from releasekit.ecosystems.pypi.versioning import PyPIVersioning
from releasekit.ecosystems.shared import artifacts
from releasekit.ecosystems.shared.destinations import find_elsewhere
from releasekit.ecosystems.shared.packages import not_a_package
from releasekit.ecosystems.shared.tools import find_tool
from releasekit.errors import BuildFailed, CommandFailed, PlanError, map_all
from releasekit.host.scratch import scratch
from releasekit.model import Dependency, DependencyKind, PackageId, PackageWarning, WarningName
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from packaging.metadata import RawMetadata

    from releasekit.config.config import PlanConfig
    from releasekit.config.values import PinMode
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Built, Into, Registry
    from releasekit.ecosystems.pypi import PyPIOptions
    from releasekit.ecosystems.pypi.manifest import PyProject
    from releasekit.model import Artifact, Package, PlannedPackage


def layout(options: PyPIOptions, _inputs: object) -> Layout:
    return SimpleDirectory(options.directory_url)


def target(
    config: PlanConfig, options: PyPIOptions, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for an index or a registry that cannot be used."""
    registry = directory or PackageIndex(
        config.registry_url("pypi", default=PYPI),
        config.own(PyPIInputs),
        services,
        trusted_publishing=config.trusted_publishing,
        concurrency=config.concurrency,
    )
    ecosystem = PyPI(config, options, services)
    make = partial(PyPITarget, config=config, options=options, ecosystem=ecosystem)
    return Discovery.joining(ecosystem, registry, make)


class PyPITarget(Target):
    def __init__(
        self,
        workspace: PyPIWorkspace,
        registry: Registry,
        *,
        config: PlanConfig,
        options: PyPIOptions,
        ecosystem: PyPI,
    ) -> None:
        super().__init__(workspace, registry)
        self._found = workspace
        self._pypi = ecosystem
        self._config, self._root, self._options = config, config.root, options
        self._index = index = registry if isinstance(registry, PackageIndex) else None
        self.clients = Clients(
            try_out=self._try_out,
            takes_hidden=manifest.is_pin,
            takes_instead=manifest.is_taken_instead,
            read_asked=index.read_asked if index else None,
            find_pinned_apart=find_pinned_apart,
        )
        self.composition = PyPIComposition(workspace.projects, config.root)
        self.versioning = PyPIVersioning(workspace.projects, config.root, options, config.pin)
        named = [each.name for each in workspace.projects.values() if each.goes_to]
        self.elsewhere = {PackageId(ECOSYSTEM, each) for each in named}
        self.prebuilt = PythonFiles(workspace)
        if index:
            self.preflight = Preflight(
                rights=index,
                trust=index if index.is_pypi else None,
                is_new=index.is_new,
                find_excess=index.find_excess,
                token_ends=index.token_limits.expires,
            )
        if index is None:
            self.attesting = IndexAttesting()
        elif index.is_pypi or config.attestations == "required":
            self.attesting = IndexAttesting(index, config.trust_config is not None)

    def plan_notes(self, planned: Sequence[PlannedPackage], /) -> str:
        of_index = self._index.plan_notes(planned) if self._index else ""
        self._found.refuse_unpublishable(planned, on_pypi=bool(self._index and self._index.is_pypi))
        return ". ".join(filter(None, [of_index, self._found.describe_pins(planned)]))

    def describe_lookups(self) -> tuple[str, str]:
        return self._index.describe_lookups() if self._index else super().describe_lookups()

    def _try_out(self, package: Package, shared: Path) -> Trial:
        """Wheels alone: to ask a source distribution can mean to build it."""
        # The extra index comes first, and of a name that it has, nothing else counts.
        # https://docs.astral.sh/uv/concepts/indexes/#searching-across-multiple-indexes
        index = self._index.index_url if self._index else ""
        lines = [f"--extra-index-url {index}", f"{package.id.name}=={package.version}"]
        asked = ("pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:")
        return Trial(
            argv=(self._config.uv_path or "uv", *asked, "requirements.in"),
            files={"requirements.in": "\n".join(lines)},
            env={**dict.fromkeys(INTERFERING), "UV_CACHE_DIR": str(shared)},
        )

    async def find_tool(self, packages: Sequence[Package], /) -> str:
        return "" if all(each.prebuilt for each in packages) else await self._pypi.find_tool()

    async def find_warnings(
        self, package: Package, artifacts: Sequence[Artifact], /
    ) -> list[PackageWarning]:
        index = self._index
        pypi = index if index and index.is_pypi else None
        classifiers = await pypi.find_classifiers() if pypi else frozenset[str]()
        keep = partial(self._check_metadata, package)
        find = partial(find_warnings, on_pypi=pypi is not None, classifiers=classifiers, keep=keep)
        found = await list_warnings(find, package, artifacts)
        if pypi and not artifacts:
            found += check_declared(self._found.projects[package.id.name], classifiers)
        if pypi and not classifiers and (package.prebuilt or not artifacts):
            found.append(
                PackageWarning(
                    name=WarningName.INVALID_METADATA,
                    message=f"{pypi.url} did not say which classifiers it takes, so those of the "
                    "package are not checked",
                )
            )
        # Of all settings, only these let maturin name a standard.
        settings = " ".join(self._options.config_settings.values())
        is_set = "--compatibility" in settings or "--manylinux" in settings
        if pypi and not is_set and not any(it.filename.endswith(".whl") for it in artifacts):
            project = self._found.projects[package.id.name]
            found += await asyncio.to_thread(lambda: list(foresee_platform(project)))
        return found

    def _check_metadata(self, package: Package, artifact: Artifact, raw: RawMetadata) -> None:
        """What passes is kept for the upload. Raises PackageError."""
        if self._found.pins == "exact" and not package.prebuilt:
            pins = self._found.list_versions()
            pins.pop(package.id.name, None)
            refuse_unpinned(artifact, raw, pins)
        pinned = "" if package.prebuilt else find_pinned_python(package.directory, self._root)
        refuse_other_python(artifact, raw, pinned)
        if self._index:
            self._index.keep_metadata(artifact, raw)


class PyPI(Resource):
    """Implements `interface.Ecosystem`; all its workspaces are built in the same environments."""

    def __init__(self, config: PlanConfig, options: PyPIOptions, services: Services) -> None:
        super().__init__()
        self._config = config
        self._options = options
        self._processes = services.processes
        self._logs = services.logs
        self._tool = ""
        self._making = asyncio.Lock()
        self._environments: Environments | None = None
        self._preparing = asyncio.Lock()
        self._builder: Builder | None = None

    async def discover(self, root: Path) -> PyPIWorkspace:
        found, twins = await asyncio.to_thread(self._read, root)
        if self._config.will_build("pypi"):
            self._prepare_early(found)
        wheels = InRepoWheels(self._get_builder)
        limit = asyncio.Semaphore(self._config.build_concurrency)

        dynamic = {
            name
            for name, project in found.items()
            if project.dynamic & manifest.COMPUTED and not project.unpublishable
        }
        known = await asyncio.to_thread(read_dist_metadata, self._config.dist, dynamic)
        if dynamic - known.keys():
            await self.find_tool()

        async def complete(project: PyProject) -> PyProject:
            if project.name not in dynamic:
                return project
            metadata = known.get(project.name)
            if metadata is None:
                async with limit:
                    builder = await self._get_builder()
                    needed = await wheels.collect_for(project, found)
                    metadata = await builder.metadata(project, wheels=needed)
            return manifest.with_computed_fields(project, metadata)

        completed = discover.mark_between_tags(
            await gather_all(map(complete, found.values())), self._is_chosen
        )
        named = {project.name: project for project in completed}
        projects = {name: discover.with_elsewhere(each, named) for name, each in named.items()}
        return PyPIWorkspace(
            packages=tuple(discover.make_packages(projects, twins)),
            projects=projects,
            pins=self._config.pin,
            builder=self._get_builder,
            wheels=wheels,
        )

    @property
    def _uv(self) -> str:
        return self._config.uv_path or self._processes.which("uv") or ""

    async def find_tool(self) -> str:
        """Python, once it is known that the uv that makes its environments can; asks it once."""
        if self._uv and not self._tool:
            await find_tool(
                UV, self._processes, ecosystem=ECOSYSTEM, cwd=self._config.root, program=self._uv
            )
        self._tool = f"Python {platform.python_version()}"
        return self._tool

    def _is_chosen(self, project: PyProject) -> bool:
        return self._config.package_filter.has_package(PackageId(ECOSYSTEM, project.name))

    def _read(self, root: Path) -> tuple[Mapping[str, PyProject], Sequence[PyProject]]:
        """What the manifests say, before any build hook is asked."""
        list_tags()  # reads files of Python once, which no build can have changed yet
        # An input is stronger than what files say, as uv's `--publish-url` is.
        read, twins = discover.read_projects(
            root,
            self._options,
            list_names(self._config.dist),
            is_set=self._config.registries.get(ECOSYSTEM) is not None,
            has_index=bool(self._config.index_url),
        )
        self._refuse_elsewhere(read.values())
        read = discover.resolve_sources(read, root, self._options)
        found = {name: discover.with_elsewhere(each, read) for name, each in read.items()}
        discover.check_build_order(found)
        return found, twins

    def _refuse_elsewhere(self, projects: Iterable[PyProject]) -> None:
        public = [each for each in projects if not each.unpublishable]
        meant = [(PackageId(ECOSYSTEM, each.name), each.goes_to) for each in public]
        find_elsewhere(meant, self._config, here=PYPI, setting="pypi-registry")

    def _prepare_early(self, found: Mapping[str, PyProject]) -> None:
        """Start to make the environment that most packages of this run are built in, as far as it
        can be installed before anything is built, and its worker. A failure here is silent: the
        first build retries it and reports the error.
        """
        wanted = Counter(
            (project.build_system, project.limits)
            for project in found.values()
            if not project.unpublishable
            and self._is_chosen(project)
            and not discover.list_build_needs(project, found)
            and not project.find_unread(project.build_system.requires)
        )
        if not wanted:
            return
        system, limits = max(wanted, key=wanted.__getitem__)

        async def prepare() -> None:
            with suppress(BuildFailed, GroupClosed, OSError):
                environments = await self._get_environments()
                # Opened after the directory that it writes to, it ends before that is removed.
                _ = self.group.start(start_worker(environments))
                _ = await self._get_builder()

        async def start_worker(environments: Environments) -> None:
            with suppress(BuildFailed, GroupClosed, OSError):
                needed = Requirements.parse(system.requires, {}, limits)
                worker = await environments.worker(needed)
                backend = {"backend": system.backend, "backend_path": system.backend_path}
                _ = await worker.ask({"operation": "rehearse", **backend})

        _ = self.group.start(prepare())

    async def _get_environments(self) -> Environments:
        async with self._making:
            if self._environments is None:
                config = self._config
                installer = Installer(
                    uv=self._uv,
                    index_url=config.index_url,
                    find_links=config.find_links,
                    pass_env=self._options.pass_env,
                )
                place = await self.group.enter(scratch(self._processes.environment))
                environments = Environments(installer, self._processes, place)
                self._environments = await self.group.enter(environments)
            return self._environments

    async def _get_builder(self) -> Builder:
        async with self._preparing:
            if self._builder is None:
                environments = await self._get_environments()
                epoch = await self._find_source_date_epoch()
                self._builder = Builder(
                    environments=environments,
                    config_settings=self._options.config_settings,
                    environment={"SOURCE_DATE_EPOCH": epoch} if epoch else {},
                    state=self._config.state_directory,
                    scratch=environments.scratch,
                    logs=self._logs,
                )
            return self._builder

    async def _find_source_date_epoch(self) -> str:
        """The last commit's time in seconds; empty where the user set it, or without a commit.
        https://reproducible-builds.org/specs/source-date-epoch/
        """
        if "SOURCE_DATE_EPOCH" in self._processes.environment:
            return ""
        with suppress(CommandFailed):
            log = await self._processes.run(
                ["git", "log", "-1", "--format=%ct"], cwd=self._config.root, timeout_s=30
            )
            # The date of a commit may be none.
            return log.stdout.parse(lambda text: text.strip() and str(int(text)))
        return ""


class PyPIWorkspace(Struct, frozen=True, kw_only=True):
    """Implements `interface.Workspace`; `projects` are all of the workspace, by name, versions
    known. `wheels` are those that builds of other packages need, made on demand. `pinned` is what
    was answered about a manifest while planning: its build asks again.
    """

    packages: tuple[Package, ...]
    projects: Mapping[str, PyProject]
    pins: PinMode
    builder: Callable[[], Awaitable[Builder]]
    wheels: InRepoWheels
    pinned: dict[str, tuple[Mapping[str, str], str]] = field(default_factory=dict)

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        known = self.pinned.get(manifest)
        if known is None or known[0] != versions:
            known = versions, pin(manifest, versions, self.pins)
            self.pinned[manifest] = known
        return known[1]

    def list_versions(self) -> dict[str, str]:
        """Of all that is published, by name."""
        return {each.id.name: each.version for each in self.packages if not each.unpublishable}

    def refuse_unpublishable(self, planned: Sequence[PlannedPackage], *, on_pypi: bool) -> None:
        """Raises PlanError for requirements that no user could get from the index, for those that
        `pin: exact` does not reach, and for settings of builds that are not applied.
        """
        versions = self.list_versions()

        def refuse(each: PlannedPackage) -> None:
            project = self.projects[each.package.id.name]
            for name in (project.name, *discover.list_build_needs(project, self.projects)):
                built = self.projects[name]
                if unread := built.find_unread(built.build_system.requires):
                    raise PlanError(unread.what, hint=unread.cure, problem=Problem.UNREAD_SETTING)
            for need in project.requirements:
                field = manifest.PUBLISHED.get(need.kind, "")
                where, name = f"project.{field}", need.name
                if not field:
                    where = "build-system.requires"
                elif field in project.dynamic:
                    where = f"what the build backend provides as {field}"
                wanted = need.requirement
                why = manifest.explain_unresolvable(
                    wanted, on_pypi=on_pypi and bool(field), is_built=field in project.dynamic
                )
                if why:
                    raise PlanError(
                        f"{project.manifest}: {where} holds {need.text!r}, {why}",
                        hint=_advise(
                            name,
                            versions.get(name, ""),
                            f"project.{field}" if field else where,
                            project.build_system.backend,
                        ),
                        problem=Problem.CANNOT_PIN,
                    )
                # What stands in the manifest itself is pinned.
                is_dynamic = field in project.dynamic and name != project.name
                version = versions.get(name, "") if self.pins == "exact" and is_dynamic else ""
                if version and manifest.is_unpinned(wanted, version):
                    raise PlanError(
                        f"{project.manifest}: {where} holds {need.text!r}, and `pin: exact` cannot "
                        f"write {name}=={version} there",
                        hint=f"Write {name} in project.{field}, and take that out of "
                        "project.dynamic; or have the build backend write the version; or use "
                        "`pin: auto`.",
                        problem=Problem.CANNOT_PIN,
                    )

        map_all(refuse, [each for each in planned if each.is_built])

    def describe_pins(self, planned: Sequence[PlannedPackage]) -> str:
        """What `auto` adds to requirements without a version, which the user did not ask for; and
        where it does not, as it does not reach them.
        """
        if self.pins != "auto":
            return ""
        versions = self.list_versions()
        found: dict[str, None] = {}
        dynamic: dict[str, None] = {}
        for each in planned:
            if each.is_built:
                project = self.projects[each.package.id.name]
                for need in project.requirements:
                    # Only what its users get, in any version.
                    if need.kind not in manifest.PUBLISHED:
                        continue
                    if need.requirement.specifier or need.requirement.url is not None:
                        continue
                    if need.name in versions and need.name != project.name:
                        if manifest.PUBLISHED[need.kind] in project.dynamic:
                            dynamic[f"{need.name} in {project.name}"] = None
                        else:
                            found[f"{need.name}=={versions[need.name]} in {project.name}"] = None
        notes = []
        if found:
            notes.append(
                f"pinned in what is built: {few([*found])}; `pin: none` leaves requirements as "
                "written"
            )
        if dynamic:
            notes.append(
                f"not pinned, because the build backend provides them: {few([*dynamic])}; write "
                "them in project.dependencies, or have the backend write a range"
            )
        return ". ".join(notes)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [[package] for package in packages]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {package.id: await self._build(package, into) for package in packages}

    async def _build(self, package: Package, into: Into) -> Built:
        # Pinning changes nothing of it: in a build environment, wheels replace what is pinned.
        project = self.projects[package.id.name]
        by_name = {each.id.name: each for each in self.packages}
        try:
            builder = await self.builder()
            wheels = await self.wheels.collect_for(
                project, self.projects, lambda name: into(by_name[name])
            )
            built = await builder.build(
                project, into(package), wheels=wheels, given=package.prebuilt
            )
        except BuildFailed as error:
            return error
        self.add_wheels(package, built)
        return built

    def add_wheels(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Offer the wheels of a package to the builds of others."""
        paths = [artifact.path for artifact in artifacts]
        self.wheels.add(package.id.name, [path for path in paths if path.suffix == ".whl"])


def _advise(name: str, version: str, where: str, backend: str) -> str:
    """What to write in the place of a URL; `version` is that of a package here."""
    wanted = f"{name}>={version}" if version else f"{name}>=1.0"
    # https://python-poetry.org/docs/dependency-specification/#projectdependencies-and-toolpoetrydependencies
    # https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources
    table = "[tool.poetry.dependencies]"
    if backend != manifest.POETRY_BACKEND:
        table = "[tool.uv.sources]"
    return (
        f"Write {wanted!r} (or {name!r} alone) in {where}, and set the source for developers "
        f"in {table}, which is not published."
    )


class PythonFiles:
    """Wheels and source distributions that were built elsewhere. Implements `interface.Prebuilt`: a
    release has an sdist, and a wheel at least.
    https://packaging.python.org/en/latest/specifications/binary-distribution-format/
    """

    algorithms = DIGESTS

    def __init__(self, workspace: PyPIWorkspace) -> None:
        self._workspace = workspace

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        release = parse_filename(path.name)
        if release is None:
            raise not_a_package(f"{path}: this is not the name of a wheel or an sdist")
        try:
            raw, _ = parse_email(read_metadata(file, str(path)))
            name, version = canonicalize_name(raw.get("name", "")), Version(raw.get("version", ""))
            needs = tuple(self._find_needs(raw.get("requires_dist", ())))
        except ValueError as error:  # of packaging, and for numbers of thousands of digits
            # Of a requirement, two more lines say where it is wrong.
            reason = str(error).splitlines()[0]
            raise not_a_package(f"{path}: its metadata cannot be used: {reason}") from error
        if (name, version) != release[:2]:
            raise not_a_package(
                f"{path}: its metadata says {name} {version}, its name {release[0]} {release[1]}"
            )
        return Contained(name=name, version=self._spell(name, version), dependencies=needs)

    def admits(self, requirement: str, version: str) -> bool:
        return SpecifierSet(requirement).contains(version, prereleases=True)

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        built: dict[PackageId, Built] = {}
        for package in packages:
            wheels = [each for each in package.prebuilt if each.filename.endswith(".whl")]
            if not wheels or len(wheels) == len(package.prebuilt):
                built |= await self._workspace.build([package], into)
                continue
            files = await asyncio.to_thread(
                artifacts.copied, package.prebuilt, into(package), *DIGESTS
            )
            if not isinstance(files, BuildFailed):
                self._workspace.add_wheels(package, files)
            built[package.id] = files
        return built

    def _spell(self, name: str, version: Version) -> str:
        """The planned spelling, if that is the same version, as 1.0 and 1.0.0 are."""
        for each in self._workspace.packages:
            if each.id.name == name:
                with suppress(InvalidVersion):
                    return each.version if Version(each.version) == version else str(version)
        return str(version)

    def _find_needs(self, requires: Sequence[str]) -> Iterator[Dependency]:
        here = {package.id.name for package in self._workspace.packages}
        for text in requires:
            wanted = Requirement(text)
            name = canonicalize_name(wanted.name)
            if name in here and wanted.url is None:
                optional = wanted.marker is not None and "extra" in str(wanted.marker)
                yield Dependency(
                    on=PackageId(ECOSYSTEM, name),
                    kind=DependencyKind.OPTIONAL if optional else DependencyKind.RUNTIME,
                    requirement=str(wanted.specifier),
                    soft=optional,
                )
