"""Which Python packages a workspace holds and how they depend on one another."""

from __future__ import annotations

import re
from fnmatch import translate
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.pypi.pin import is_exact
from releasekit.ecosystems.shared import globs
from releasekit.ecosystems.shared.documents import checked_table
from releasekit.ecosystems.shared.packages import unique_by_name
from releasekit.errors import ConfigError, PlanError
from releasekit.graph import reachable
from releasekit.host.files import inside
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.pypi import Options
    from releasekit.ecosystems.pypi.manifest import Declared, PyProject

ECOSYSTEM: Final = "pypi"
MANIFEST: Final = "pyproject.toml"
_SEARCH: Final = globs.Search(marker=MANIFEST, links=True)
_WILDCARD: Final = re.compile(r"[*?\[]")


def projects(root: Path, options: Options) -> dict[str, PyProject]:
    """Every project of the workspace, by name in order; raises ConfigError when two share one.

    The root's own project, the members of its uv workspace, and what `options.packages` names.
    """
    return unique_by_name(_projects(root, options), cure="exclude its directory")


def _projects(root: Path, options: Options) -> Iterator[PyProject]:
    for path in _manifests(root, options):
        document = manifest.read_pyproject(path)
        if checked_table(document, "tool", "uv", path=path).get("managed") is False:
            continue
        if "project" not in document:
            raise ConfigError(
                f"{path} has no [project] table", hint="Add one, or exclude the directory."
            )
        yield manifest.parse_project(document, path)


def _manifests(root: Path, options: Options) -> list[Path]:
    directories = set(
        members(root, options.packages, options.exclude, where="releasekit.toml: pypi.packages")
    )
    top = root / MANIFEST
    if top.is_file():
        document = manifest.read_pyproject(inside(root, top, where=str(top)))
        uv = checked_table(document, "tool", "uv", path=top)
        workspace = checked_table(uv, "workspace", path=top)
        patterns, exclude = (
            manifest.strings(workspace, key, path=top, where=f"tool.uv.workspace.{key}")
            for key in ("members", "exclude")
        )
        where = f"{top}: tool.uv.workspace.members"
        directories.update(members(root, patterns, (*exclude, *options.exclude), where=where))
        directories.discard(root)
        if "project" in document:
            directories.add(root)
    return [
        inside(root, directory / MANIFEST, where=str(directory / MANIFEST))
        for directory in sorted(directories)
    ]


def members(
    root: Path, patterns: tuple[str, ...], exclude: tuple[str, ...], *, where: str
) -> list[Path]:
    """The directories with a pyproject.toml that the globs name as uv reads them, resolved, sorted.

    `where` is the file and key the globs stand in, for messages. Raises ConfigError for a glob or
    a symbolic link that leaves `root`, and for one without wildcards that names no package.
    """
    globs.refuse_too_many((*patterns, *exclude), where=where)
    parsed = [globs.Glob.parse(pattern, where=where) for pattern in patterns]
    # uv matches `exclude` against the whole path, where a `*` also matches a slash.
    # https://docs.rs/glob/latest/glob/struct.MatchOptions.html (require_literal_separator)
    excluded = [re.compile(translate(str(PurePosixPath(pattern)))) for pattern in exclude]

    def is_excluded(directory: Path) -> bool:
        relative = directory.relative_to(root).as_posix()
        return any(pattern.fullmatch(relative) for pattern in excluded)

    for pattern in patterns:
        if not _WILDCARD.search(pattern):
            _check_literal(root / pattern, is_excluded(root / pattern), f"{where}: {pattern!r}")
    found = _SEARCH.directories(root, parsed, where=where)
    return sorted({inside(root, path, where=where) for path in found if not is_excluded(path)})


def _check_literal(directory: Path, excluded: bool, where: str) -> None:
    if directory.is_dir() and (excluded or (directory / MANIFEST).is_file()):
        return
    what = "has no pyproject.toml" if directory.is_dir() else "is not a directory"
    raise ConfigError(f"{where} {what}", hint="Remove the entry, or correct the path.")


def check_build_order(by_name: Mapping[str, PyProject]) -> None:
    """Raises PlanError where a package would have to be built before itself."""
    order = TopologicalSorter({name: build_closure(by_name[name], by_name) for name in by_name})
    try:
        order.prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise PlanError(
            f"build-system.requires form a cycle: {cycle}",
            hint="Build one of them with a backend of its own source tree (backend-path).",
        ) from error


def packages(by_name: Mapping[str, PyProject], mode: PinMode = "auto") -> list[Package]:
    """The projects, versions known, as packages with their edges to one another, pinned so."""
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.manifest.parent,
            manifest=project.manifest,
            dependencies=dependencies(project, by_name, mode),
            unpublishable=project.unpublishable,
        )
        for project in by_name.values()
    ]


def dependencies(
    project: PyProject, by_name: Mapping[str, PyProject], mode: PinMode = "auto"
) -> tuple[Dependency, ...]:
    """The project's in-repo edges, in the order of its manifest.

    An extra that names the project itself is no edge. What a build requirement needs at run time is
    needed for the build. Extras are soft: where a framework's extra names a plugin that needs the
    framework, the plugin goes last, as only the framework works without the other.
    """
    edges = [
        _edge(need.name, need.kind, need.text, exact=is_exact(need.requirement, mode))
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
