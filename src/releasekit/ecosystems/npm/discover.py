"""Which npm packages a workspace holds and how they depend on one another."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.ecosystems.npm import manifest, roots
from releasekit.ecosystems.npm.reference import Range, Reference
from releasekit.ecosystems.shared.packages import named_roots, twin_meant, unique_by_name
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import MembersError, map_all
from releasekit.host.files import follow, inside, is_file
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.ecosystems.npm import NpmOptions
    from releasekit.ecosystems.npm.manifest import DeclaredDependency, NpmPackage
    from releasekit.ecosystems.npm.roots import WorkspaceFiles

ECOSYSTEM: Final = "npm"
# The manifests of packages of other ecosystems.
_OTHERS: Final = ("pyproject.toml", "Cargo.toml", "go.mod", "pom.xml", "Chart.yaml")
_WILDCARD: Final = re.compile(r"[*?\[{(!]")
_VERSION: Final = re.compile(r"[=v\s]*\d+\.\d+\.\d+(?:[-+]\S+)?")


class Found(Struct, frozen=True):
    """`by_name` holds every package with a name, `twins` private ones whose name another has, and
    `places` the workspace that the package of a directory is in.
    """

    by_name: Mapping[str, NpmPackage]
    twins: Sequence[NpmPackage]
    places: Mapping[Path, WorkspaceFiles]

    def home(self, package: NpmPackage) -> WorkspaceFiles:
        return self.places[package.directory]

    def find_access(self, package: NpmPackage) -> str:
        """Who may see it, as its manifest says, or else the settings of its workspace."""
        said = package.publish_config.get("access", self.home(package).usual.get("access"))
        return said if isinstance(said, str) else ""

    def find_licenses(self, package: Package) -> tuple[str, ...]:
        """The files of its workspace's root that tools pack where it has none."""
        home = self.places.get(package.directory)
        if home is None or home.root == package.directory or package.prebuilt:
            return ()
        return home.licenses

    def list_given_licenses(self, package: Package) -> list[Path]:
        """Those that go into this one, without any of its own."""
        if not (names := self.find_licenses(package)) or roots.list_licenses(package.directory):
            return []
        return [self.places[package.directory].root / name for name in names]

    def resolve(self, declared: DeclaredDependency, package: NpmPackage) -> Reference:
        """What a dependency asks for, by the entry of a catalog where it names one."""
        reference = Reference.parse(declared.key, declared.spec)
        spec = find_catalog_spec(self.home(package).catalogs, reference)
        return Reference.parse(reference.name, spec) if spec else reference


def find_catalog_spec(catalogs: Mapping[str, Mapping[str, str]], reference: Reference) -> str:
    """The entry of a catalog as it is spelled; empty when there is none.
    https://pnpm.io/catalogs
    """
    if reference.kind != "catalog":
        return ""
    return catalogs.get(reference.wanted, {}).get(reference.name, "")


def find_packages(root: Path, options: NpmOptions) -> Found:
    """Every named package of the workspaces, their roots included, in the order of names.

    Raises ConfigError when two share a name, or a directory is outside the workspace.
    """
    where = "releasekit.toml: npm.workspaces"
    tops = named_roots(root, options.workspaces, roots.FILES, where=where)
    # Last, as globs of the options may name members of another workspace.
    if options.packages or any((root / name).is_file() for name in roots.FILES):
        tops.append(root)
    homes: dict[Path, WorkspaceFiles] = {}
    for top in tops:
        files = roots.read_workspace_files(top)
        for directory in _find_directories(root, files, options):
            homes.setdefault(directory, files)

    def read_package(directory: Path) -> NpmPackage | None:
        roots.refuse_other_manifest(directory)
        path = directory / roots.MANIFEST
        inside(root, path, where=str(path))
        return manifest.parse_package(manifest.read_manifest(path), path)

    packages = [project for project in map_all(read_package, sorted(homes)) if project]
    _refuse_missing(root, options, packages)
    by_name, twins = unique_by_name(
        packages, cure="exclude its directory", private=lambda package: package.unpublishable
    )
    return Found(by_name, twins, homes)


def _refuse_missing(root: Path, options: NpmOptions, packages: Sequence[NpmPackage]) -> None:
    """Raises MembersError for a directory that `packages` names, not by a wildcard, and that npm
    could not publish; one that says itself that it is private may be named.
    """
    found = {each.directory.resolve(): each for each in packages}
    without = roots.parse_globs(options.exclude, where="releasekit.toml: npm.exclude")
    for entry in options.packages:
        parts = PurePosixPath(entry).parts
        if _WILDCARD.search(entry) or any(glob.matches(parts) for glob in without):
            continue
        package = found.get(follow(root / entry))
        if package is None or package.unpublishable == manifest.UNVERSIONED:
            why = package.unpublishable if package else "it has no package.json with a name"
            raise MembersError(
                f"releasekit.toml: npm.packages names {entry!r}, but {why}",
                hint="Correct it, or remove the entry.",
            )


def _find_directories(root: Path, files: WorkspaceFiles, options: NpmOptions) -> list[Path]:
    members = [*files.members]
    if files.root == root:
        members += roots.parse_globs(options.packages, where="releasekit.toml: npm.packages")
    top = files.root
    where = f"{top}: the workspace's globs"
    found = set(roots.find_directories(top, members, where=where, tool=files.tool))
    excluded = any(glob.negated and glob.matches(()) for glob in members)
    if (top / roots.MANIFEST).is_file() and not excluded:
        found.add(top)
    without = roots.parse_globs(options.exclude, where="releasekit.toml: npm.exclude")
    return sorted(
        each
        for each in found
        if not any(glob.matches(each.relative_to(root).parts) for glob in without)
    )


def make_packages(found: Found) -> list[Package]:
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.directory,
            manifest=project.manifest,
            dependencies=tuple(
                dict.fromkeys(
                    (*_find_edges(project, found, inside=True), *_find_built(project, found))
                )
            ),
            elsewhere=tuple(dict.fromkeys(_find_edges(project, found, inside=False))),
            unpublishable=project.unpublishable,
            awaits_version=bool(project.unpublishable) and not project.is_private,
            # So what is bundled asks for what its own users get, whichever is packed first.
            inherits=tuple(
                each.manifest
                for each in find_bundled(project, found)
                if found.by_name[each.name] is each
            ),
            doubt=_find_doubt(project, found.home(project)),
        )
        for project in found.by_name.values()
    ]


def _find_doubt(project: NpmPackage, home: WorkspaceFiles) -> str:
    """https://docs.npmjs.com/cli/v11/using-npm/workspaces (include-workspace-root)"""
    directory = project.directory
    if directory == home.root and home.members and not home.find_standing(directory):
        return "is the root of a workspace, which `npm publish --workspaces` leaves out"
    if project.names_files or is_file(directory / "index.js"):
        return ""
    # changesets takes the versions of other ecosystems from such a package.json.
    beside = next((name for name in _OTHERS if is_file(directory / name)), "")
    return beside and f"does not list its `files` and lies beside a {beside}"


def _find_edges(project: NpmPackage, found: Found, *, inside: bool) -> Iterator[Dependency]:
    """Those that lead to the version of this workspace, or else those that exclude it, in the order
    of the manifest; users do not install development dependencies.
    """
    for declared in filter(project.is_installed, project.declared):
        needed = find_needed(declared, project, found)
        if needed is None or needed.name == project.name:
            continue
        reference = found.resolve(declared, project)
        if is_ours(reference, needed.version) is not inside:
            continue
        kind = find_kind(declared, project)
        if (
            project.scripts
            and needed.scripts
            and not needed.unpublishable
            and kind is not DependencyKind.OPTIONAL
        ):
            # Scripts compile against what the scripts of a dependency made.
            kind = DependencyKind.BUILD
        yield Dependency(
            on=PackageId(ECOSYSTEM, needed.name),
            kind=kind,
            requirement=declared.spec,
            soft=kind in {DependencyKind.OPTIONAL, DependencyKind.PEER},
            exact=declared.field == "peerDependencies" and is_exact(reference),
            private="" if needed is found.by_name[needed.name] else needed.unpublishable,
        )


def _find_built(project: NpmPackage, found: Found) -> Iterator[Dependency]:
    """Those that are bundled as their scripts make them."""
    for bundled in find_bundled(project, found):
        if bundled.scripts and not bundled.unpublishable:
            yield Dependency(on=PackageId(ECOSYSTEM, bundled.name), kind=DependencyKind.BUILD)


def find_bundled(project: NpmPackage, found: Found) -> list[NpmPackage]:
    """The packages here that its tarball holds: those that it bundles, with what they need at run
    time. https://github.com/npm/npm-packlist/blob/main/lib/index.js (gatherBundles)
    """
    bundled: dict[Path, NpmPackage] = {}
    pending = [project] if project.bundled else []
    while pending:
        taker = pending.pop()
        for declared in taker.declared:
            if declared.field in {"devDependencies", "peerDependencies"}:
                continue
            if taker is project and declared.key not in project.bundled:
                continue
            needed = find_needed(declared, taker, found)
            if needed is None or needed is project or needed.directory in bundled:
                continue
            if is_ours(found.resolve(declared, taker), needed.version):
                bundled[needed.directory] = needed
                pending.append(needed)
    return [*bundled.values()]


def find_kind(declared: DeclaredDependency, project: NpmPackage) -> DependencyKind:
    """What a dependency is to the users of `project`."""
    match declared.field:
        case "devDependencies":
            return DependencyKind.DEV
        case "optionalDependencies":
            return DependencyKind.OPTIONAL
        case "peerDependencies":
            is_optional = declared.key in project.optional_peers
            return DependencyKind.OPTIONAL if is_optional else DependencyKind.PEER
        case _:
            return DependencyKind.RUNTIME


def is_exact(reference: Reference) -> bool:
    """Whether what is published asks for one version only; of `*`, that of the workspace."""
    if reference.kind == "workspace" and reference.wanted == "*":
        return True
    return reference.kind in {"workspace", "range"} and bool(_VERSION.fullmatch(reference.wanted))


def is_ours(reference: Reference, version: str) -> bool:
    """Whether a dependency leads to the `version` of this workspace: a range that excludes it makes
    npm, pnpm and yarn take the registry's.
    https://docs.npmjs.com/cli/using-npm/workspaces, https://pnpm.io/workspaces and
    https://yarnpkg.com/configuration/yarnrc#enableTransparentWorkspaces
    """
    if reference.kind != "range" or not version:
        return True
    wanted = Range.parse(reference.wanted)
    return wanted.is_open or Version.parse(version) in wanted


def find_needed(
    declared: DeclaredDependency, project: NpmPackage, found: Found
) -> NpmPackage | None:
    """The package here that a dependency leads to; `workspace:` leads to no other workspace."""
    reference = found.resolve(declared, project)
    if reference.kind == "path":
        path = follow(Path(project.directory, reference.wanted))
        everything = (*found.by_name.values(), *found.twins)
        return next((each for each in everything if each.directory == path), None)
    needed = found.by_name.get(reference.name)
    if needed is None:
        return None
    twin = twin_meant(needed, project, found.twins, home=lambda each: found.home(each).root)
    if twin is not None or reference.kind != "workspace":
        return twin or needed
    return needed if found.home(needed) is found.home(project) else None
