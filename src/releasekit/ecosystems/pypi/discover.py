"""Which Python packages a workspace holds and how they depend on one another."""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.pypi.members import members
from releasekit.errors import ConfigError, PlanError
from releasekit.host.files import inside
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.pypi.manifest import Declared, PyProject
    from releasekit.ecosystems.pypi.options import Options

ECOSYSTEM: Final = "pypi"


def projects(root: Path, options: Options) -> list[PyProject]:
    """Every project of the workspace, sorted by name; raises ConfigError when two share one.

    The root's own project, the members of its uv workspace, and what `options.packages` names.
    """
    found: dict[str, PyProject] = {}
    for path in _manifests(root, options):
        document = manifest.read_pyproject(path)
        if manifest.table(document, "tool", "uv", path=path).get("managed") is False:
            continue
        if "project" not in document:
            raise ConfigError(
                f"{path} has no [project] table", hint="Add one, or exclude the directory."
            )
        project = manifest.project(document, path)
        if project.name in found:
            raise ConfigError(
                f"{path} and {found[project.name].manifest} are both named {project.name!r}",
                hint="Rename one of them, or exclude its directory.",
            )
        found[project.name] = project
    return [found[name] for name in sorted(found)]


def _manifests(root: Path, options: Options) -> list[Path]:
    directories = set(
        members(root, options.packages, options.exclude, where="releasekit.toml: pypi.packages")
    )
    top = root / "pyproject.toml"
    if top.is_file():
        document = manifest.read_pyproject(inside(root, top, where=str(top)))
        uv = manifest.table(document, "tool", "uv", path=top)
        workspace = manifest.table(uv, "workspace", path=top)
        globs, exclude = (
            manifest.strings(workspace, key, path=top, where=f"tool.uv.workspace.{key}")
            for key in ("members", "exclude")
        )
        where = f"{top}: tool.uv.workspace.members"
        directories.update(members(root, globs, (*exclude, *options.exclude), where=where))
        directories.discard(root)
        if "project" in document:
            directories.add(root)
    return [
        inside(root, directory / "pyproject.toml", where=f"{directory / 'pyproject.toml'}")
        for directory in sorted(directories)
    ]


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


def packages(by_name: Mapping[str, PyProject]) -> list[Package]:
    """The projects, versions known, as packages with their edges to one another."""
    edges = {name: dependencies(project, by_name) for name, project in by_name.items()}
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.manifest.parent,
            manifest=project.manifest,
            dependencies=kept,
            unpublishable=project.unpublishable,
        )
        for project, kept in zip(by_name.values(), without_circles(edges), strict=True)
    ]


def dependencies(project: PyProject, by_name: Mapping[str, PyProject]) -> tuple[Dependency, ...]:
    """The project's in-repo edges, in the order of its manifest.

    An extra that names the project itself is no edge, and neither is one that needs a package
    which is never published: nothing that is published depends on it. What a build requirement
    needs at run time is needed for the build.
    """
    edges = [
        Dependency(on=PackageId(ECOSYSTEM, need.name), kind=need.kind, requirement=need.text)
        for need in project.requirements
        if need.name in by_name
    ]
    edges += [
        Dependency(on=PackageId(ECOSYSTEM, name), kind=need.kind)
        for need in project.requirements
        for name in sorted(needs_of_extras(need, by_name))
    ]
    edges += [
        Dependency(on=PackageId(ECOSYSTEM, name), kind=DependencyKind.BUILD)
        for name in build_closure(project, by_name)
    ]
    spelled = {(edge.on, edge.kind) for edge in edges if edge.requirement}
    return tuple(
        dict.fromkeys(
            edge
            for edge in edges
            if edge.on.name != project.name
            and not (edge.kind is DependencyKind.OPTIONAL and by_name[edge.on.name].unpublishable)
            and (edge.requirement or (edge.on, edge.kind) not in spelled)
        )
    )


def needs_of_extras(wanted: Declared, by_name: Mapping[str, PyProject]) -> set[str]:
    """The in-repo packages that the extras in `acme[cli]` need, whichever extras these ask for."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    pending = [(wanted.name, extra) for extra in wanted.extras]
    while pending:
        name, extra = asked = pending.pop()
        if asked in seen or name not in by_name:
            continue
        seen.add(asked)
        for need in by_name[name].requirements:
            if extra in need.under:
                found.add(need.name)
                pending += [(need.name, further) for further in need.extras]
    return {name for name in found if name in by_name}


def without_circles(edges: Mapping[str, tuple[Dependency, ...]]) -> list[tuple[Dependency, ...]]:
    """The edges of each without extras that need what needs the project itself.

    A framework's extra that names a plugin says nothing about order: one of the two has to go
    first, and only the framework works without the other.
    """
    # What is needed anyway comes first, so that an extra is not given up for another extra.
    required = {
        name: tuple(edge for edge in its if edge.kind is not DependencyKind.OPTIONAL)
        for name, its in edges.items()
    }
    kept = _without_extras_behind(edges, required)
    return list(_without_extras_behind(kept, kept).values())


def _without_extras_behind(
    edges: Mapping[str, tuple[Dependency, ...]], counted: Mapping[str, tuple[Dependency, ...]]
) -> dict[str, tuple[Dependency, ...]]:
    """`edges` without extras from which edges in `counted` lead back."""
    stuck = _stuck({name: {edge.on.name for edge in its} for name, its in edges.items()})
    needed_by: dict[str, set[str]] = {name: set() for name in stuck}
    for name in stuck:
        for on in {edge.on.name for edge in counted[name]} & stuck:
            needed_by[on].add(name)
    kept = {}
    for name, its in edges.items():
        extras = {edge.on.name for edge in its if edge.kind is DependencyKind.OPTIONAL}
        circular = _all_behind(name, needed_by) & extras if extras & stuck else set()
        kept[name] = tuple(
            edge
            for edge in its
            if edge.kind is not DependencyKind.OPTIONAL or edge.on.name not in circular
        )
    return kept


def _stuck(edges: Mapping[str, set[str]]) -> set[str]:
    """All on a cycle or behind one."""
    order, stuck = TopologicalSorter(edges), set(edges)
    with suppress(CycleError):
        order.prepare()
    while ready := order.get_ready():
        stuck.difference_update(ready)
        order.done(*ready)
    return stuck


def _all_behind(name: str, needed_by: Mapping[str, set[str]]) -> set[str]:
    """All that needs `name`, directly or not."""
    found: set[str] = set()
    pending = [name]
    while pending:
        fresh = needed_by.get(pending.pop(), set()) - found
        found |= fresh
        pending += fresh
    return found


def build_closure(project: PyProject, by_name: Mapping[str, PyProject]) -> list[str]:
    """The other in-repo packages that have to be in the environment it is built in, sorted."""
    closure: set[str] = set()
    pending = _in_repo(project, DependencyKind.BUILD, by_name)
    while pending:
        name = pending.pop()
        if name not in closure and name != project.name:
            closure.add(name)
            pending += _in_repo(by_name[name], DependencyKind.RUNTIME, by_name)
    return sorted(closure)


def _in_repo(
    project: PyProject, kind: DependencyKind, by_name: Mapping[str, PyProject]
) -> list[str]:
    declared = [need for need in project.requirements if need.kind is kind]
    names = {need.name for need in declared}.union(
        *(needs_of_extras(need, by_name) for need in declared)
    )
    return sorted(names & by_name.keys())
