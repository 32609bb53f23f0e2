"""Steps as packages of a release: found in releasekit.toml, with the versions of others."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.config.locations import FILENAME
from releasekit.config.version_options import FurtherFile
from releasekit.ecosystems.directory import page_there
from releasekit.ecosystems.interface import (
    Composition,
    Discovery,
    Target,
    Versioning,
    WrittenVersions,
)
from releasekit.ecosystems.shared.artifacts import digested, staged_aside, write_new
from releasekit.ecosystems.step import ECOSYSTEM, StepOptions
from releasekit.ecosystems.step.registry import (
    StepRegistry,
    make_record,
    name_record,
    published,
)
from releasekit.errors import (
    ConfigError,
    ManifestError,
    PathError,
    UnknownDependency,
    did_you_mean,
    map_all,
)
from releasekit.fields import replace
from releasekit.git.tag_forms import tag_name
from releasekit.host.files import inside, read_file
from releasekit.model import MAX_MANIFEST_BYTES, Package, PackageId
from releasekit.text.numbering import numbering_of
from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.decided import Ranges
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Built, Into, Registry, Services
    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.git.versions import Read
    from releasekit.host.edits import Edits
    from releasekit.model import Artifact, Published
    from releasekit.provenance.bundle import Bundle


class RecordLayout:
    """Implements `directory.Layout`: in a directory no step runs, and records lie there."""

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        return PurePosixPath(filename) if filename == name_record(package) else None

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """No client looks for one."""

    def pages(self, _root: Path, _package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        return ()

    def lookup(self, root: Path, package: Package) -> Published | None:
        return published(package, page_there(root / name_record(package)))


def layout(_options: StepOptions, _inputs: object) -> Layout:
    return RecordLayout()


def target(
    config: PlanConfig, _options: StepOptions, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a step that cannot be used."""
    if config.registry_url(ECOSYSTEM, default="").text:
        raise ConfigError("step-registry: a step publishes where its command does; write dir:PATH")
    steps = StepOptions.of_table(config.ecosystem_tables.get(ECOSYSTEM, {}))
    # From now on, so that nothing shows them.
    names = {name: services.credentials.claim(name) for it in steps.values() for name in it.secrets}
    secrets = {name: secret for name, secret in names.items() if secret}
    registry = directory or StepRegistry(steps, secrets, config, services)
    return Discovery.joining(Steps(steps, config), registry, StepTarget)


class Steps(Struct, frozen=True):
    """Implements `interface.Ecosystem`."""

    options: Mapping[str, StepOptions]
    config: PlanConfig

    async def discover(self, root: Path) -> StepWorkspace:
        def find(name: str) -> Package:
            return _find_package(name, self.options[name], root, self.config.config_file)

        packages = await asyncio.to_thread(map_all, find, self.options)
        return StepWorkspace(tuple(packages), self.options, self.config)


def _find_package(name: str, options: StepOptions, root: Path, config: Path | None) -> Package:
    """Of one that has the version of another package, that is not known yet. Raises ConfigError."""
    where = f"{options.where(name)} directory"
    directory = inside(root, root / options.directory, where=where)
    if not directory.is_dir():
        raise PathError(f"{where}: {options.directory!r} is no directory; write the path of one")
    found = Package(
        id=PackageId(ECOSYSTEM, name),
        version="",
        directory=directory,
        manifest=config or root / FILENAME,
    )
    if isinstance(options.version, PackageId):
        return replace(found, follows=options.version)
    file, where = options.version, f"{options.where(name)} version"
    assert file is not None  # noqa: S101 (a step without is refused)
    manifest = inside(root, directory / file.path, where=where)
    version = _read_version(read_file(manifest, max_bytes=MAX_MANIFEST_BYTES), file)
    try:
        return replace(found, version=numbering_of(ECOSYSTEM).check(version), manifest=manifest)
    except ValueError as error:
        raise ManifestError(
            f"{where}: {manifest}: {error if version else '`match` has to fit in one place'}",
            hint="Write a `match` whose group is a version such as 1.4.0, in one place.",
        ) from error


def _read_version(data: bytes | None, file: FurtherFile) -> str:
    """Empty where it does not stand there once."""
    assert file.match is not None  # noqa: S101 (the option asks for one)
    found = [*file.match.finditer((data or b"").decode("utf-8", "surrogateescape"))]
    return (found[0][1] or "") if len(found) == 1 else ""


class StepWorkspace(Struct, frozen=True):
    """Implements `interface.Workspace`."""

    packages: tuple[Package, ...]
    options: Mapping[str, StepOptions]
    config: PlanConfig

    def pin(self, manifest: str, _versions: Mapping[str, str]) -> str:
        return manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [[package] for package in packages]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        built = {}
        for package in packages:
            path = into(package) / name_record(package)
            async with staged_aside(path.parent) as partial:
                write_new(partial / path.name, make_record(package))
            built[package.id] = (await asyncio.to_thread(digested, path, "sha256"),)
        return built


class StepTarget(Target):
    def __init__(self, workspace: StepWorkspace, registry: Registry) -> None:
        super().__init__(workspace, registry)
        self._found = workspace
        self._steps = registry if isinstance(registry, StepRegistry) else None
        # What a step publishes to may take a version twice.
        self.is_repeatable = self._steps is None
        late = [name for name, each in workspace.options.items() if each.after == "release"]
        self.after_release = {PackageId(ECOSYSTEM, name) for name in late}
        self.composition = StepComposition()
        self.versioning = StepVersioning(workspace.options)

    def join(self, others: Mapping[str, Target]) -> StepTarget:
        known = {each.id: each for it in others.values() for each in it.workspace.packages}
        config, options = self._found.config, self._found.options

        def complete(package: Package) -> Package:
            of = known.get(package.follows or package.id)
            if of is None:
                near = did_you_mean(str(package.follows), map(str, known))
                why = f"{package.follows} is not a package here"
                if config.package_filter.has_package(package.id):
                    where = options[package.id.name].where(package.id.name)
                    raise UnknownDependency(f"{where} version: {why}{near}")
                return replace(package, unpublishable=why)
            if self._steps:
                own = others[of.id.ecosystem].versioning.find_registry_tag(of)
                tag = tag_name(config.tagging.name, of, config.root) if own is None else own
                self._steps.tags[package.id] = tag
            version = of.version.removeprefix("v" if of.id.ecosystem == "go" else "")
            why = of.unpublishable if of.awaits_version else "" if version else "it has no version"
            return replace(package, version=version, unpublishable=why and f"{of.id}: {why}")

        packages = tuple(map_all(complete, self._found.packages))
        if self._steps:
            self._steps.versions = {each.id: each.version for each in known.values()}
        return StepTarget(replace(self._found, packages=packages), self.registry)

    async def find_tool(self, _packages: Sequence[Package], /) -> str:
        return "your commands"

    def describe_lookups(self) -> tuple[str, str]:
        return "its check", "Run its `check` by hand: it exits with 0 where the version is there."

    def receive_files(
        self, package: Package, needed: Mapping[PackageId, Sequence[Artifact] | None], /
    ) -> None:
        if self._steps:
            self._steps.files[package.id] = needed


class StepComposition(Composition):
    """Of a step with the version of another package, no change asks for a new one."""

    def make_filter(self, package: Package, _tracked: Collection[str], /) -> Counts:
        return lambda _: package.follows is None


class StepVersioning(Versioning):
    """Of steps that have a version of their own."""

    def __init__(self, options: Mapping[str, StepOptions]) -> None:
        self._files = {
            name: each.version
            for name, each in options.items()
            if isinstance(each.version, FurtherFile)
        }
        self._places = {name: options[name].directory for name in self._files}

    def read_version(self, package: Package, read: Read, /) -> str:
        file = self._files.get(package.id.name)
        return _read_version(read(package.manifest), file) if file else ""

    def edit(
        self, versions: Mapping[str, str], edits: Edits, _ranges: Ranges, /
    ) -> WrittenVersions:
        for name, file in self._files.items():
            path = edits.root / self._places[name] / file.path
            if file.match and name in versions:
                text = edits.read(path) or ""
                (found,) = file.match.finditer(text)  # as it was discovered
                edits.write(path, splice(text, [(found.span(1), versions[name])]))
        return WrittenVersions()
