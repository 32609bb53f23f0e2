"""Which Python packages a workspace holds and how they depend on one another."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import translate
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.pypi.pin import is_exact
from releasekit.ecosystems.shared import globs
from releasekit.ecosystems.shared.documents import checked_table
from releasekit.ecosystems.shared.globs import Glob
from releasekit.ecosystems.shared.packages import edge_meant, unique_by_name
from releasekit.ecosystems.shared.roots import named_roots
from releasekit.errors import ManifestError, MembersError, PlanError, map_all
from releasekit.graph import reachable
from releasekit.host.files import inside
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing
    from releasekit.ecosystems.pypi import Options
    from releasekit.ecosystems.pypi.manifest import Declared, Limits, PyProject

ECOSYSTEM: Final = "pypi"
MANIFEST: Final = "pyproject.toml"
_SEARCH: Final = globs.Search(marker=MANIFEST, links=True)
_WILDCARD: Final = re.compile(r"[*?\[]")


def projects(root: Path, options: Options) -> tuple[dict[str, PyProject], list[PyProject]]:
    """Every project of the workspace, by name in order, and private ones whose name another has;
    raises ConfigError when two that are published share one.

    The root's own project, the members of its uv workspace and of those that `options.workspaces`
    names, and what `options.packages` names.
    """
    return unique_by_name(
        _projects(root, options),
        cure="exclude its directory",
        private=lambda project: project.unpublishable,
    )


def _projects(root: Path, options: Options) -> list[PyProject]:
    limits = cache(partial(_limits, root))
    homes = manifests_of_workspaces(root, options)
    found = _manifests(root, options)

    def project_at(path: Path) -> PyProject | None:
        document = manifest.read_pyproject(path)
        if checked_table(document, "tool", "uv", path=path).get("managed") is False:
            return None
        if not manifest.is_project(document):
            raise ManifestError(
                f"{path} has no [project] table", hint="Add one, or exclude the directory."
            )
        project = manifest.parse_project(document, path)
        return replace(project, home=found[path], limits=limits(homes.get(path, path.parent)))

    return [project for project in map_all(project_at, found) if project]


def _limits(root: Path, directory: Path) -> Limits:
    """As uv finds them: in the root of a workspace, else in the nearest directory; what a uv.toml
    does not say, a pyproject.toml beside it does not say either.

    https://docs.astral.sh/uv/concepts/configuration-files/
    """
    for each in (directory, *directory.parents):
        if not each.is_relative_to(root):
            break
        path = each / "uv.toml"
        if path.is_file():
            document = manifest.read_pyproject(inside(root, path, where=str(path)))
            return manifest.parse_limits(document, path, "")
        path = each / MANIFEST
        document = manifest.read_pyproject(path) if path.is_file() else {}
        if "uv" in checked_table(document, "tool", path=path):
            settings = checked_table(document, "tool", "uv", path=path)
            return manifest.parse_limits(settings, path, "tool.uv.")
    return manifest.UNLIMITED


def top_manifests(root: Path, options: Options) -> list[Path]:
    """Each may be that of a workspace."""
    tops = [root] if (root / MANIFEST).is_file() else []
    where = "releasekit.toml: pypi.workspaces"
    tops += named_roots(root, options.workspaces, [MANIFEST], where=where)
    found = [inside(root, top / MANIFEST, where=str(top / MANIFEST)) for top in tops]
    return list(dict.fromkeys(found))


def manifests_of_workspaces(root: Path, options: Options) -> dict[Path, Path]:
    """Of all their members, and of those workspaces' own projects, with the workspace's root."""
    found: dict[Path, Path] = {}
    for path in top_manifests(root, options):
        for directory in _members_of(path, options.exclude if path.parent == root else ()):
            found.setdefault(directory / MANIFEST, path.parent)
    return found


def _manifests(root: Path, options: Options) -> dict[Path, Path]:
    """All of them, each with the root of its workspace."""
    where = "releasekit.toml: pypi.packages"
    named = members(root, options.packages, options.exclude, where=where)
    found = {directory / MANIFEST: root for directory in named}
    if (root / MANIFEST).is_file():
        found.pop(root / MANIFEST, None)
    found |= manifests_of_workspaces(root, options)
    excluded = _exclusions(options.exclude)
    return {
        inside(root, path, where=str(path)): found[path]
        for path in sorted(found)
        if path.parent == root or not _is_excluded(path.parent, root, excluded)
    }


def _members_of(path: Path, without: tuple[str, ...]) -> set[Path]:
    """Of the uv workspace of this manifest; its own directory where it has a project of its own."""
    document = manifest.read_pyproject(path)
    patterns, exclude = workspace_globs(document, path)
    where = f"{path}: tool.uv.workspace.members"
    found = set(members(path.parent, patterns, (*exclude, *without), where=where))
    found.discard(path.parent)
    return found | ({path.parent} if manifest.is_project(document) else set())


def workspace_globs(
    document: Mapping[str, object], path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a pyproject.toml says are members of its uv workspace, and what is excluded."""
    workspace = checked_table(document, "tool", "uv", "workspace", path=path)
    members, exclude = (
        manifest.strings(workspace, key, path=path, where=f"tool.uv.workspace.{key}")
        for key in ("members", "exclude")
    )
    return members, exclude


def members(
    root: Path, patterns: tuple[str, ...], exclude: tuple[str, ...], *, where: str
) -> list[Path]:
    """The directories with a pyproject.toml that the globs name as uv reads them, resolved, sorted.

    `where` is the file and key the globs stand in, for messages. Raises ConfigError for a glob or
    a symbolic link that leaves `root`, and for one without wildcards that names no package.
    """
    globs.refuse_too_many((*patterns, *exclude), where=where)
    parsed = [Glob.parse(pattern, where=where) for pattern in patterns]
    excluded = _exclusions(exclude)
    for pattern in patterns:
        if not _WILDCARD.search(pattern):
            left_out = _is_excluded(root / pattern, root, excluded)
            _check_literal(root / pattern, left_out, f"{where}: {pattern!r}")
    found = [
        path
        for path in _SEARCH.directories(root, parsed, where=where)
        if not _is_excluded(path, root, excluded)
    ]
    return sorted({inside(root, path, where=where) for path in found})


def membership(top: Path, patterns: Sequence[str], exclude: Sequence[str]) -> Membership:
    """What these globs in the pyproject.toml of `top` say of a directory, without looking there."""
    where = f"{top / MANIFEST}: tool.uv.workspace.members"
    parsed = [Glob.parse(pattern, where=where) for pattern in patterns]
    excluded = _exclusions(exclude)

    def standing(below: Path) -> Standing:
        if not below.is_relative_to(top):
            return ""
        if _is_excluded(below, top, excluded):
            return "excluded"
        parts = below.relative_to(top).parts
        return "member" if any(glob.matches(parts) for glob in parsed) else ""

    return standing


def _exclusions(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    for pattern in patterns:
        if len(pattern) > globs.MAX_CHARS:
            raise MembersError(f"exclude holds a glob of more than {globs.MAX_CHARS} characters")
    # uv matches `exclude` against the whole path, where a `*` also matches a slash.
    # https://docs.rs/glob/latest/glob/struct.MatchOptions.html (require_literal_separator)
    return [re.compile(translate(str(PurePosixPath(pattern)))) for pattern in patterns]


def _is_excluded(directory: Path, root: Path, excluded: Sequence[re.Pattern[str]]) -> bool:
    relative = directory.relative_to(root).as_posix()
    return any(pattern.fullmatch(relative) for pattern in excluded)


def _check_literal(directory: Path, excluded: bool, where: str) -> None:
    if directory.is_dir() and (excluded or (directory / MANIFEST).is_file()):
        return
    what = "has no pyproject.toml" if directory.is_dir() else "is not a directory"
    raise MembersError(f"{where} {what}", hint="Remove the entry, or correct the path.")


def check_build_order(by_name: Mapping[str, PyProject]) -> None:
    """Raises PlanError where a package would have to be built before itself, of those that are
    published and of what their builds need.
    """

    def closure(name: str) -> list[str]:
        return build_closure(by_name[name], by_name)

    public = [project.name for project in by_name.values() if not project.unpublishable]
    order = TopologicalSorter({name: closure(name) for name in reachable(public, closure)})
    try:
        order.prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise PlanError(
            f"build-system.requires form a cycle: {cycle}",
            hint="Build one of them with a backend of its own source tree (backend-path).",
            problem=Problem.CYCLE,
        ) from error


def between_tags(
    projects: Sequence[PyProject], chosen: Callable[[PyProject], bool]
) -> list[PyProject]:
    """With those marked whose version a build has computed for a commit between two tags, beside
    others of this run that have a tag here: they are of other releases, as a -SNAPSHOT of Maven is.

    https://setuptools-scm.readthedocs.io/en/latest/usage/#default-versioning-scheme
    """
    public = [project for project in projects if not project.unpublishable]
    drafts = {project.name for project in public if is_draft(project)}
    if all(project.name in drafts for project in [*filter(chosen, public)] or public):
        return [*projects]
    return [
        replace(
            project,
            between_tags=True,
            unpublishable="its version, computed for this commit, is a development or local one, "
            "and others here are to be released",
        )
        if project.name in drafts
        else project
        for project in projects
    ]


def is_draft(project: PyProject) -> bool:
    """Whether a build computes its version, and that is a development or local one."""
    if "version" not in project.dynamic or not project.version:
        return False
    version = Version(project.version)
    return version.is_devrelease or bool(version.local)


def settled(project: PyProject, by_name: Mapping[str, PyProject]) -> PyProject:
    """With the requirements that exclude the version of this workspace set apart: whoever installs
    the package gets another one from the index. uv locks and builds such a workspace, whatever
    `tool.uv.sources` says.
    """
    elsewhere = [need for need in project.requirements if _leads_out(need, by_name)]
    if not elsewhere:
        return project
    rest = tuple(need for need in project.requirements if need not in elsewhere)
    return replace(project, requirements=rest, elsewhere=(*project.elsewhere, *elsewhere))


def _leads_out(need: Declared, by_name: Mapping[str, PyProject]) -> bool:
    ours = by_name.get(need.name)
    if ours is None or not ours.version:
        return False
    if ours.between_tags:
        return True
    return not need.requirement.specifier.contains(ours.version, prereleases=True)


def packages(by_name: Mapping[str, PyProject], twins: Sequence[PyProject] = ()) -> list[Package]:
    """The projects, versions known, as packages with their edges to one another."""
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.manifest.parent,
            manifest=project.manifest,
            dependencies=tuple(
                edge_meant(
                    edge,
                    project,
                    by_name,
                    twins,
                    home=lambda each: each.home,
                    private=lambda each: each.unpublishable,
                )
                for edge in dependencies(project, by_name)
            ),
            # Without a range, whatever version users get is one that it asks for.
            elsewhere=tuple(
                _edge(each.name, each.kind, each.text if each.requirement.specifier else "")
                for each in project.elsewhere
            ),
            unpublishable=project.unpublishable,
        )
        for project in by_name.values()
    ]


def dependencies(project: PyProject, by_name: Mapping[str, PyProject]) -> tuple[Dependency, ...]:
    """The project's in-repo edges, in the order of its manifest.

    An extra that names the project itself is no edge. What a build requirement needs at run time is
    needed for the build. Extras are soft: where a framework's extra names a plugin that needs the
    framework, the plugin goes last, as only the framework works without the other.
    """
    edges = [
        _edge(need.name, need.kind, need.text, exact=is_exact(need.requirement))
        for need in project.requirements
        if need.name in by_name
    ]
    edges += [
        _edge(name, need.kind)
        for need in project.requirements
        for name in sorted(needs_of_extras(need, by_name))
    ]
    edges += [_edge(name, DependencyKind.BUILD) for name in build_closure(project, by_name)]
    spelled = {(edge.on, edge.kind) for edge in edges if edge.requirement}
    return tuple(
        dict.fromkeys(
            edge
            for edge in edges
            if edge.on.name != project.name
            and (edge.requirement or (edge.on, edge.kind) not in spelled)
        )
    )


def needs_without_version(project: PyProject) -> list[str]:
    """What its pyproject.toml itself requires in any version, for whoever installs it."""
    fields = {
        DependencyKind.RUNTIME: "dependencies",
        DependencyKind.OPTIONAL: "optional-dependencies",
    }
    return [
        need.name
        for need in project.requirements
        if need.kind in fields and fields[need.kind] not in project.dynamic
        if not need.requirement.specifier and need.requirement.url is None
    ]


def _edge(
    name: str, kind: DependencyKind, requirement: str = "", *, exact: bool = False
) -> Dependency:
    return Dependency(
        on=PackageId(ECOSYSTEM, name),
        kind=kind,
        requirement=requirement,
        soft=kind is DependencyKind.OPTIONAL,
        exact=exact and kind is DependencyKind.RUNTIME,
    )


def needs_of_extras(wanted: Declared, by_name: Mapping[str, PyProject]) -> set[str]:
    """The in-repo packages that the extras in `acme[cli]` need, whichever extras these ask for."""

    def under(name: str, extra: str) -> list[Declared]:
        project = by_name.get(name)
        return [need for need in project.requirements if extra in need.under] if project else []

    asked = reachable(
        [(wanted.name, extra) for extra in wanted.extras],
        lambda asked: [(need.name, extra) for need in under(*asked) for extra in need.extras],
    )
    return {need.name for name, extra in asked for need in under(name, extra)} & by_name.keys()


def build_closure(project: PyProject, by_name: Mapping[str, PyProject]) -> list[str]:
    """The other in-repo packages that have to be in the environment it is built in, sorted."""
    closure = reachable(
        _in_repo(project, DependencyKind.BUILD, by_name) - {project.name},
        lambda name: _in_repo(by_name[name], DependencyKind.RUNTIME, by_name) - {project.name},
    )
    return sorted(closure)


def _in_repo(
    project: PyProject, kind: DependencyKind, by_name: Mapping[str, PyProject]
) -> set[str]:
    declared = [need for need in project.requirements if need.kind is kind]
    names = {need.name for need in declared}.union(
        *(needs_of_extras(need, by_name) for need in declared)
    )
    return names & by_name.keys()
