"""Which npm packages a workspace holds and how they depend on one another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm import manifest, workspace
from releasekit.ecosystems.npm.reference import Range, Reference
from releasekit.ecosystems.shared.packages import unique_by_name
from releasekit.ecosystems.shared.semver import Version
from releasekit.host.files import inside
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.ecosystems.npm import Options
    from releasekit.ecosystems.npm.manifest import Declared, NpmPackage
    from releasekit.ecosystems.npm.workspace import WorkspaceFiles

ECOSYSTEM: Final = "npm"


def is_used(root: Path, options: Options) -> bool:
    names = (workspace.MANIFEST, workspace.PNPM)
    return bool(options.packages) or any((root / name).is_file() for name in names)


def packages_by_name(root: Path, files: WorkspaceFiles, options: Options) -> dict[str, NpmPackage]:
    """Every named package of the workspace, its root included, by name in order.

    Raises ConfigError when two share a name, or a directory is outside the workspace.
    """
    return unique_by_name(_named_packages(root, files, options), cure="exclude its directory")


def _named_packages(root: Path, files: WorkspaceFiles, options: Options) -> Iterator[NpmPackage]:
    for directory in _directories(root, files, options):
        path = directory / workspace.MANIFEST
        inside(root, path, where=str(path))
        if project := manifest.parse_package(manifest.read_manifest(path), path):
            yield project


def _directories(root: Path, files: WorkspaceFiles, options: Options) -> list[Path]:
    without = [f"!{pattern}" for pattern in options.exclude]
    members = [
        *files.members,
        *workspace.parse_globs(options.packages, where="releasekit.toml: npm.packages"),
        *workspace.parse_globs(without, where="releasekit.toml: npm.exclude"),
    ]
    found = set(workspace.package_directories(root, members, where="the workspace's globs"))
    excluded = any(glob.negated and glob.matches(()) for glob in members)
    if (root / workspace.MANIFEST).is_file() and not excluded:
        found.add(root)
    return sorted(found)


def packages(by_name: Mapping[str, NpmPackage], catalogs: Catalogs) -> list[Package]:
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.directory,
            manifest=project.manifest,
            dependencies=tuple(dict.fromkeys(_edges(project, by_name, catalogs, inside=True))),
            elsewhere=tuple(dict.fromkeys(_edges(project, by_name, catalogs, inside=False))),
            unpublishable=project.unpublishable,
        )
        for project in by_name.values()
    ]


def _edges(
    project: NpmPackage, by_name: Mapping[str, NpmPackage], catalogs: Catalogs, *, inside: bool
) -> Iterator[Dependency]:
    """Those that lead to the version of this workspace, or else those that exclude it, in the order
    of the manifest; development dependencies are nobody's who installs it.
    """
    for declared in project.declared:
        if declared.field == "devDependencies" or declared.key in project.bundled:
            continue
        needed = package_needed(declared, project, by_name, catalogs)
        if needed is None or needed.name == project.name:
            continue
        reference = catalogs.resolve(Reference.parse(declared.key, declared.spec))
        if takes_ours(reference, needed.version) is inside:
            kind = _kind(declared, project, needed)
            yield Dependency(
                on=PackageId(ECOSYSTEM, needed.name),
                kind=kind,
                requirement=declared.spec,
                soft=kind in {DependencyKind.OPTIONAL, DependencyKind.PEER},
            )


def takes_ours(reference: Reference, version: str) -> bool:
    """Whether a dependency leads to the `version` of this workspace: a range that excludes it is
    taken from the registry by npm, pnpm and yarn.

    https://docs.npmjs.com/cli/using-npm/workspaces, https://pnpm.io/workspaces and
    https://yarnpkg.com/configuration/yarnrc#enableTransparentWorkspaces
    """
    if reference.kind != "range" or not version:
        return True
    wanted = Range.parse(reference.wanted)
    return wanted.open or Version.parse(version) in wanted


def _kind(declared: Declared, project: NpmPackage, needed: NpmPackage) -> DependencyKind:
    peer = declared.field == "peerDependencies"
    if declared.field == "optionalDependencies" or (
        peer and declared.key in project.optional_peers
    ):
        return DependencyKind.OPTIONAL
    # Scripts compile against what the scripts of a dependency made.
    compiled = project.scripts and needed.scripts and not needed.unpublishable
    if compiled:
        return DependencyKind.BUILD
    return DependencyKind.PEER if peer else DependencyKind.RUNTIME


def package_needed(
    declared: Declared, project: NpmPackage, by_name: Mapping[str, NpmPackage], catalogs: Catalogs
) -> NpmPackage | None:
    """The package of this workspace that a dependency leads to."""
    reference = catalogs.resolve(Reference.parse(declared.key, declared.spec))
    if reference.kind == "path":
        path = Path(project.directory, reference.wanted).resolve()
        return next((found for found in by_name.values() if found.directory == path), None)
    return by_name.get(reference.name)


class Catalogs:
    """Shared ranges: https://pnpm.io/catalogs"""

    def __init__(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        self._tables = tables

    def resolve(self, reference: Reference) -> Reference:
        """What the catalog's entry asks for; the same when there is none, or it needs none."""
        spec = self.spec(reference)
        return Reference.parse(reference.name, spec) if spec else reference

    def spec(self, reference: Reference) -> str:
        """The entry as it is spelled; empty when there is none."""
        if reference.kind != "catalog":
            return ""
        return self._tables.get(reference.wanted, {}).get(reference.name, "")
